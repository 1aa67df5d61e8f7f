"""Run every arm of a sampler's grid a few times, and the race of an oracle."""

from sgtune.study.pipeline.job import job

with job(snakemake) as this:
    from sgtune.study.experiments.screen import screen_grid
    from sgtune.tuning import Heuristic

    task, own = this.task(), this.settings
    record = screen_grid(
        task,
        own["regret"],
        race=own["mamba"],
        n_races=own["tuning"]["replicates"],
        extra=Heuristic(**own["heuristic"]).arms(task.model.n_data, task.sampler),
    )
    this.write(snakemake.output.screen, {**task.names, **record})
