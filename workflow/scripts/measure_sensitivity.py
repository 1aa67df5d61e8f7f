"""Measure which errors each discrepancy sees: exact draws with one error at a time."""

from sgtune.study.pipeline.job import job

with job(snakemake) as this:
    from sgtune.sampling.compilation import watch_compilation
    from sgtune.study.experiments.sensitivity import measure_sensitivity

    watch_compilation()
    rows = measure_sensitivity(**this.settings["sensitivity"], seed=this.seed, report=this.report)
    this.write(snakemake.output.sensitivity, {"rows": rows})
