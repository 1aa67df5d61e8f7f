"""Race a sampler with a Metropolis test by several judges, and measure the expected regret of their choices."""

from sgtune.study.pipeline.job import job

with job(snakemake) as this:
    from sgtune.study.adam_mcmc.races import race_sampler

    sampler = snakemake.wildcards.kernel
    model = this.load_model("logistic", snakemake.input.data)
    own = this.settings["adam_mcmc"]
    record = race_sampler(
        model,
        sampler,
        own["grid"],
        own["race"],
        reference=this.reference(),
        cost=this.cost_table(model),
        seed=this.seed,
        parts=this.parts,
        depends_on=this.depends_on("data", "map", "cost", "reference"),
        report=this.report,
    )
    known = this.reference_record()
    record["trusted"] = known is not None and known["trusted"]
    names = {"model": model.name, "sampler": sampler, "n_data": model.n_data, "grid": own["grid"]}
    this.write(snakemake.output.races, {**names, **record})
