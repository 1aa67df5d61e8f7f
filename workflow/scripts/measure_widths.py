"""Measure the discrepancies of reference draws drawn in or out about their mean."""

from sgtune.workflow import job

with job(snakemake) as this:
    from sgtune.reference.draws import flat_draws, read_draws
    from sgtune.stein_study import measure_widths

    settings = this.settings["widths"]
    model = this.load_model(snakemake.wildcards.model, snakemake.input.data)
    draws = flat_draws(read_draws(snakemake.input.draws)).reshape(-1, model.dimension)
    rows = measure_widths(model, draws, widths=settings["widths"], points=settings["points"], seed=this.seed)
    this.write(snakemake.output.widths, {"model": model.name, "rows": rows})
