"""Measure what a step of every shape of AdamMCMC's study costs, on one model."""

from sgtune.study.pipeline.job import job

with job(snakemake) as this:
    from sgtune.sampling.budget import batch_size_of
    from sgtune.study.adam_mcmc.cell_chains import SAMPLER
    from sgtune.study.adam_mcmc.costs import least_costs
    from sgtune.study.adam_mcmc.races import shapes_of_grid

    model = this.load_model(snakemake.wildcards.model, snakemake.input.data)
    section = this.settings["adam_mcmc"]
    shapes = [(SAMPLER, batch_size_of(section["batch_fraction"], model.n_data), None)]
    for sampler, grid in section["grids"].items():
        shapes += shapes_of_grid(model, sampler, grid)
    cost, warnings = least_costs(model, shapes, section["costs"], report=this.report)
    record = {"model": model.name, "n_data": model.n_data, "dimension": model.dimension}
    this.write(snakemake.output.cost, {**record, "rows": cost.to_rows(), "warnings": warnings})
