"""The bias of AdamMCMC's approximations on N(0, I) against gamma / s."""

from sgtune.study.pipeline.job import job

with job(snakemake) as this:
    from sgtune.study.adam_mcmc.known_targets import measure_bias
    from sgtune.support.machine import watch_compilation

    watch_compilation()
    settings = this.settings["adam_mcmc"]["bias"]
    this.write(snakemake.output.bias, measure_bias(settings, this.parts, this.seed))
