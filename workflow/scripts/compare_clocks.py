"""Repeat one cell of the evaluation with the other clock."""

from sgtune.study.job import job

with job(snakemake) as this:
    from sgtune.study.catalogue import losses_of
    from sgtune.study.per_sampler import compare_clocks

    files = snakemake.input
    ood, reference = (next(iter(files.get(name)), None) for name in ("ood", "reference"))
    model = this.load_model(snakemake.wildcards.model, files.data, ood=ood)
    evaluated = this.read(next(iter(files.evaluation)), this.settings)
    sampler = evaluated["sampler"]
    found = compare_clocks(
        model,
        sampler,
        evaluated,
        this.settings["evaluation"],
        reference=this.reference(reference, snakemake.params.reference_settings),
        cost=this.cost_table(files.cost, model, snakemake.params.cost_settings),
        seed=this.seed,
        report=this.report,
    )
    losses = list(losses_of(model.name, reference is not None))
    this.write(snakemake.output.clocks, {"model": model.name, "sampler": sampler, "losses": losses, **found})
