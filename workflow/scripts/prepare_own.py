"""Describe the model of the user's file, so that jobs can read it."""

from sgtune.study.pipeline.job import job

with job(snakemake) as this:
    from sgtune.study.posteriors.own import NAME

    this.write(snakemake.output.facts, {"model": NAME, **this.settings["data"][NAME]})
