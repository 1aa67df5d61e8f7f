"""Acceptance and E x^2 of AdamMCMC on N(0, I) of one dimension."""

from sgtune.study.pipeline.job import job

with job(snakemake) as this:
    from sgtune.study.adam_mcmc.known_targets import acceptance_on_gaussian
    from sgtune.support.machine import watch_compilation

    watch_compilation()
    settings = this.settings["adam_mcmc"]["acceptance"]
    dimension = int(snakemake.wildcards.dimension)
    this.write(
        snakemake.output.acceptance, acceptance_on_gaussian(dimension, settings, this.parts, this.seed)
    )
