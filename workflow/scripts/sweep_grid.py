"""Run every arm of a sampler's grid and record its sd error."""

from sgtune.workflow import job

with job(snakemake) as this:
    from pathlib import Path

    import numpy as np

    from sgtune.budget import CostTable
    from sgtune.evaluation import sweep_arms
    from sgtune.models import load_model
    from sgtune.tuning import Settings
    from sgtune.tuning.tuners import TUNERS

    sampler = snakemake.wildcards.sampler
    model = load_model(snakemake.wildcards.model, Path(snakemake.input.data).parent)
    cost = CostTable.from_rows(this.read(snakemake.input.cost, snakemake.params.cost_settings)["rows"])
    reference = this.read(snakemake.input.reference, snakemake.params.reference_settings)
    heuristic = TUNERS["heuristic"].arms(model.n_data, sampler, Settings(**this.settings["heuristic"]))
    rows = sweep_arms(
        model,
        sampler,
        grid=this.settings["grids"][model.name],
        extra=heuristic,
        seconds=this.settings["sweep"]["seconds"],
        cost=cost,
        reference_sd=np.array(reference["sd"]),
        seed=this.seed,
        report=this.report,
    )
    this.write(
        snakemake.output.sweep,
        {"model": model.name, "sampler": sampler, "n_data": model.n_data, "rows": rows},
    )
