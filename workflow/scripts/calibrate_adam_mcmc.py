"""Measure what a step of every shape of AdamMCMC's study costs, on the logistic regression."""

from sgtune.study.pipeline.job import job

with job(snakemake) as this:
    from sgtune.sampling.budget import batch_size_of
    from sgtune.study.adam_mcmc.known_targets import SAMPLER
    from sgtune.study.adam_mcmc.races import least_costs

    model = this.load_model("logistic")
    section = this.settings["adam_mcmc"]
    shape = (SAMPLER, batch_size_of(section["batch_fraction"], model.n_data), None)
    cost = least_costs(model, section["grids"], [shape], section["costs"], report=this.report)
    record = {"model": model.name, "n_data": model.n_data, "dimension": model.dimension}
    this.write(snakemake.output.cost, {**record, "rows": cost.to_rows()})
