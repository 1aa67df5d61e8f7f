"""Race a sampler with a Metropolis test by several judges, and measure the expected regret of their choices."""

from sgtune.study.pipeline.job import job

with job(snakemake) as this:
    from sgtune.study.adam_mcmc.races import Task, race_sampler

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
    record = race_sampler(task, own["race"])
    known = this.reference_record()
    record["trusted"] = known is not None and known["trusted"]
    this.write(snakemake.output.races, {**names, "grid": own["grid"], **record})
