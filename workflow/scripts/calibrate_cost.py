"""Measure what a step of every shape in the grids costs."""

from sgtune.workflow import job

with job(snakemake) as this:
    from pathlib import Path

    from sgtune.models import load_model
    from sgtune.tuning import calibrate_cost, make_arms

    model = load_model(snakemake.wildcards.model, Path(snakemake.input.data).parent)
    grid = this.settings["grids"]
    samplers = dict.fromkeys(["sgld", *this.settings["samplers"]])
    shapes = [(name, *arm[1:]) for name in samplers for arm in make_arms(model.n_data, name, **grid)]
    # Arms outside the grid: one batch size, and the heuristic's leapfrog number.
    for section, leapfrogs in (
        ("grid", grid["n_leapfrogs"]),
        ("estimates", grid["n_leapfrogs"]),
        ("heuristic", [this.settings["heuristic"]["n_leapfrog"]]),
    ):
        fractions = [this.settings[section]["batch_fraction"]]
        fixed = {**grid, "batch_fractions": fractions, "n_leapfrogs": leapfrogs}
        shapes += [(name, *arm[1:]) for name in samplers for arm in make_arms(model.n_data, name, **fixed)]
    cost = calibrate_cost(model, shapes, seconds=this.settings["calibration"]["seconds"], report=this.report)
    this.write(snakemake.output.cost, {"model": model.name, "rows": cost.to_rows()})
