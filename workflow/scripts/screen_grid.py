"""Run every arm of a sampler's grid a few times, and the race of an oracle."""

from sgtune.study.pipeline.job import job

with job(snakemake) as this:
    from sgtune.study.experiments.screen import screen_grid

    task, own = this.task(), this.settings
    record = screen_grid(task, own["regret"], race=own["mamba"], n_races=own["tuning"]["replicates"])
    this.write(snakemake.output.screen, {**task.names, **record})
