"""Tune one sampler by the default tuner, run the chosen arms for equal seconds, and judge their draws."""

from sgtune.study.pipeline.job import job

with job(snakemake) as this:
    from sgtune.study.adam_mcmc.races import Task, evaluate_sampler

    model = this.load_model("logistic", snakemake.input.data)
    own = this.settings["adam_mcmc"]
    task = Task(
        model=model,
        sampler=snakemake.wildcards.kernel,
        grid=own["grid"],
        reference=this.reference(),
        cost=this.cost_table(model),
        seed=this.seed,
        parts=this.parts,
        depends_on=this.depends_on("data", "map", "cost", "reference"),
    )
    names = {"model": model.name, "sampler": task.sampler, "n_data": model.n_data}
    record = evaluate_sampler(task, own["evaluation"], own["race"]["pruning_rate"])
    this.write(snakemake.output.evaluation, {**names, "dimension": model.dimension, **record})
