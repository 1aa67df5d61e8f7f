"""Measure what a step of AdamMCMC costs on N(0, I) of every dimension."""

from sgtune.study.job import job

with job(snakemake) as this:
    from sgtune.sampling.compilation import watch_compilation
    from sgtune.study.adam_mcmc.acceptance import SAMPLER
    from sgtune.study.adam_mcmc.gaussians import standard_normal
    from sgtune.tuning import calibrate_cost

    watch_compilation()
    seconds = {}
    for dimension in this.settings["dimensions"]:
        cost = calibrate_cost(
            standard_normal(dimension),
            [(SAMPLER, 1, None)],
            seconds=this.settings["costs"]["seconds"],
            report=this.report,
        )
        seconds[f"gaussian-{dimension}"] = cost.lookup(SAMPLER, 1, None)
    this.write(snakemake.output.cost, {"seconds_per_step": seconds})
