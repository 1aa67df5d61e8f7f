"""Repeat one cell of the evaluation with the other clock."""

from sgtune.study.pipeline.job import job

with job(snakemake) as this:
    from sgtune.study.catalogue import losses_of
    from sgtune.study.experiments.evaluate import compare_clocks

    model = this.load_model(snakemake.wildcards.model, snakemake.input.data, ood=this.file("ood"))
    evaluated = this.read(this.file("evaluation"), this.settings)
    sampler = evaluated["sampler"]
    found = compare_clocks(
        model,
        sampler,
        evaluated,
        this.settings["evaluation"],
        reference=this.reference(),
        cost=this.cost_table(model),
        seed=this.seed,
        report=this.report,
    )
    losses = list(losses_of(model.name, this.file("reference") is not None))
    this.write(snakemake.output.clocks, {"model": model.name, "sampler": sampler, "losses": losses, **found})
