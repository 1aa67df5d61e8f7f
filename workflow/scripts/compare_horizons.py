"""Tune one model's samplers for runs of several lengths, and run the chosen arms for the longest."""

from sgtune.study.pipeline.job import job

with job(snakemake) as this:
    from sgtune.study.experiments.tune import compare_horizons

    task = this.task()
    names = {"model": task.model.name, "n_data": task.model.n_data}
    names["trusted"] = this.reference_record()["trusted"]
    this.write(snakemake.output.horizons, {**names, **compare_horizons(task, this.settings)})
