"""Acceptance and effective sample sizes of AdamMCMC on N(0, I) of one dimension."""

from sgtune.study.pipeline.job import job

with job(snakemake) as this:
    from sgtune.study.adam_mcmc.acceptance import acceptance_on_gaussian
    from sgtune.support.machine import watch_compilation

    watch_compilation()
    settings = this.settings["adam_mcmc"]["acceptance"]
    dimension = int(snakemake.wildcards.dimension)
    record = acceptance_on_gaussian(dimension, settings, seed=this.seed, parts=this.parts, report=this.report)
    this.write(snakemake.output.acceptance, record)
