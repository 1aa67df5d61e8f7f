"""Estimate the discrepancies of SGLD chains in four ways."""

from sgtune.workflow import job

with job(snakemake) as this:
    from pathlib import Path

    from sgtune.budget import CostTable
    from sgtune.models import load_model
    from sgtune.stein_study import estimate_discrepancies
    from sgtune.tuning.arms import batch_size_of

    model = load_model(snakemake.wildcards.model, Path(snakemake.input.data).parent)
    cost = CostTable.from_rows(this.read(snakemake.input.cost, snakemake.params.cost_settings)["rows"])
    settings, grid = this.settings["estimates"], this.settings["grids"]
    rows = estimate_discrepancies(
        model,
        log10_step_sizes=grid["log10_step_sizes"],
        batch_sizes=[batch_size_of(fraction, model.n_data) for fraction in grid["batch_fractions"]],
        fixed_batch_size=batch_size_of(settings["batch_fraction"], model.n_data),
        fixed_step_size=10.0 ** settings["log10_step_size"],
        seconds=settings["seconds"],
        thin=settings["thin"],
        max_points=settings["max_points"],
        cost=cost,
        seed=this.seed,
        report=this.report,
    )
    this.write(snakemake.output.estimates, {"model": model.name, "n_data": model.n_data, "rows": rows})
