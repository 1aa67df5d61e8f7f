"""Print the expected time of the run."""

from sgtune.study.pipeline.job import job

with job(snakemake) as this:
    from sgtune.study.pipeline.forecast import forecast, read_seen
    from sgtune.support.machine import cores

    for line in forecast(snakemake.config, read_seen(), cores() or 1):
        this.show(line)
