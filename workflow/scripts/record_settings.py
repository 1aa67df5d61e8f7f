"""Record the configuration of a study, defaults filled in."""

from sgtune.study.pipeline.job import job

with job(snakemake) as this:
    this.write(snakemake.output.settings, {"configuration": snakemake.params.config})
