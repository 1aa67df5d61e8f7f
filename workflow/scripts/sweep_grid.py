"""Run every arm of a sampler's grid and record how good it is."""

from sgtune.study.job import job

with job(snakemake) as this:
    import numpy as np

    from sgtune.study.evaluation import sweep_arms
    from sgtune.tuning import Settings
    from sgtune.tuning.tuners import TUNERS

    sampler = snakemake.wildcards.sampler
    model = this.load_model(snakemake.wildcards.model, snakemake.input.data)
    cost = this.cost_table(snakemake.input.cost, model, snakemake.params.cost_settings)
    heuristic = TUNERS["heuristic"].arms(model.n_data, sampler, Settings(**this.settings["heuristic"]))
    # A model without a reference has no such input.
    references = [this.read(path, snakemake.params.reference_settings) for path in snakemake.input.reference]
    rows = sweep_arms(
        model,
        sampler,
        grid=this.settings["grids"],
        extra=heuristic,
        seconds=this.settings["sweep"]["seconds"],
        cost=cost,
        reference_sd=np.array(references[0]["sd"]) if references else None,
        prediction_draws=this.settings["sweep"]["prediction_draws"],
        seed=this.seed,
        report=this.report,
    )
    this.write(
        snakemake.output.sweep,
        {"model": model.name, "sampler": sampler, "n_data": model.n_data, "rows": rows},
    )
