"""Tune on Gaussians of one dimension, and compute the expected errors of the choices by theory."""

from sgtune.study.job import job

with job(snakemake) as this:
    from sgtune.study.ladder.runs import gaussian_ladder
    from sgtune.study.parts import Parts

    parts = Parts(snakemake.params.parts, this.report)
    record = gaussian_ladder(
        int(snakemake.wildcards.dimension), this.settings, seed=this.seed, parts=parts, report=this.report
    )
    this.write(snakemake.output.ladder, record)
    parts.clear()
