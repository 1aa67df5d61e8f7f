"""Measure which errors each discrepancy sees: exact draws with one error at a time."""

from sgtune.study.pipeline.job import job

with job(snakemake) as this:
    from sgtune.study.experiments.discrepancies import measure_sensitivity
    from sgtune.support.machine import watch_compilation

    watch_compilation()
    rows = measure_sensitivity(**this.settings["sensitivity"], seed=this.seed, report=this.report)
    this.write(snakemake.output.sensitivity, {"rows": rows})
