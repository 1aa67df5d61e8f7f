"""Tune the samplers of the main study on one model with and without a preconditioner, at equal seconds."""

from sgtune.study.pipeline.job import job

with job(snakemake) as this:
    from sgtune.study.user_posteriors.races import compare_preconditioned

    record = compare_preconditioned(this.task(grid={}), this.settings["samplers"], this.settings)
    this.write(snakemake.output.preconditioned, record)
