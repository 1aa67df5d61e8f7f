"""Rebuild the run's folder from the saved files of its finished jobs."""

from sgtune.study.pipeline.job import job

with job(snakemake, saved=False) as this:
    from sgtune.study.pipeline.saved import restore

    for line in restore(this.run, this.settings).lines(this.run):
        this.show(line)
