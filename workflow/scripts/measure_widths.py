"""Measure the discrepancies of reference draws, shrunk or stretched about their mean."""

from sgtune.study.pipeline.job import job

with job(snakemake) as this:
    from sgtune.study.experiments.discrepancies import measure_widths
    from sgtune.study.ground_truth.draws import flat_draws, read_draws

    model = this.load_model()
    draws = flat_draws(read_draws(snakemake.input.draws)).reshape(-1, model.dimension)
    rows = measure_widths(model, draws, this.settings["widths"], seed=this.seed)
    this.write(snakemake.output.widths, {"model": model.name, "rows": rows})
