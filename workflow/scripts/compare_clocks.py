"""Repeat one cell of the evaluation with the other clock."""

from sgtune.study.pipeline.job import job

with job(snakemake) as this:
    from sgtune.study.catalogue import losses_of
    from sgtune.study.experiments.evaluate import compare_clocks

    evaluated = this.read(this.file("evaluation"), this.settings)
    task = this.task(sampler=evaluated["sampler"])
    found = compare_clocks(task, evaluated, this.settings["evaluation"])
    model, losses = task.model.name, list(losses_of(task.model.name, task.reference is not None))
    this.write(snakemake.output.clocks, {"model": model, "sampler": task.sampler, "losses": losses, **found})
