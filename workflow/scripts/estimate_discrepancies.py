"""Estimate the discrepancies of SGLD chains in four ways."""

from sgtune.study.pipeline.job import job

with job(snakemake) as this:
    from sgtune.sampling.budget import batch_size_of
    from sgtune.study.experiments.discrepancies import estimate_discrepancies

    model = this.load_model(snakemake.wildcards.model, snakemake.input.data)
    settings = this.settings["estimates"]
    rows = estimate_discrepancies(
        model,
        log10_step_sizes=settings["log10_step_sizes"],
        batch_sizes=[batch_size_of(fraction, model.n_data) for fraction in settings["batch_fractions"]],
        fixed_batch_size=batch_size_of(settings["batch_fraction"], model.n_data),
        fixed_step_size=10.0 ** settings["log10_step_size"],
        seconds=settings["seconds"],
        thin=settings["thin"],
        max_points=settings["max_points"],
        cost=this.cost_table(model),
        seed=this.seed,
        report=this.report,
    )
    this.write(snakemake.output.estimates, {"model": model.name, "n_data": model.n_data, "rows": rows})
