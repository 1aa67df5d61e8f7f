"""Tune one sampler by the default tuner, run the chosen arms for equal seconds, and judge their draws."""

from sgtune.study.pipeline.job import job

with job(snakemake) as this:
    from sgtune.study.adam_mcmc.evaluations import evaluate_sampler

    sampler = snakemake.wildcards.kernel
    model = this.load_model(snakemake.wildcards.model, snakemake.input.data)
    own = this.settings["adam_mcmc"]
    record = evaluate_sampler(
        model,
        sampler,
        own["grid"],
        own["evaluation"],
        pruning_rate=own["race"]["pruning_rate"],
        reference=this.reference(),
        cost=this.cost_table(model),
        seed=this.seed,
        parts=this.parts,
        depends_on=this.depends_on("data", "map", "cost", "reference"),
        report=this.report,
    )
    names = {"model": model.name, "sampler": sampler, "n_data": model.n_data, "dimension": model.dimension}
    this.write(snakemake.output.evaluation, {**names, **record})
