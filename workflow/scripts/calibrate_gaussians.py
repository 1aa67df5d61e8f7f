"""Measure what a step of AdamMCMC costs on N(0, I) of every dimension."""

from sgtune.study.pipeline.job import job

with job(snakemake) as this:
    from sgtune.study.adam_mcmc.cell_chains import SAMPLER
    from sgtune.study.adam_mcmc.costs import least_costs
    from sgtune.study.adam_mcmc.gaussians import standard_normal
    from sgtune.support.machine import watch_compilation

    watch_compilation()
    seconds = {}
    for dimension in this.settings["dimensions"]:
        cost, _ = least_costs(
            standard_normal(dimension), [(SAMPLER, 1, None)], this.settings["costs"], report=this.report
        )
        seconds[f"gaussian-{dimension}"] = cost.lookup(SAMPLER, 1, None)
    this.write(snakemake.output.cost, {"seconds_per_step": seconds})
