"""Acceptance of AdamMCMC on the posterior of the logistic regression."""

from sgtune.study.pipeline.job import job

with job(snakemake) as this:
    from sgtune.study.adam_mcmc.known_targets import acceptance_on_posterior

    model = this.load_model("logistic")
    settings = this.settings["adam_mcmc"]["acceptance"]
    this.write(snakemake.output.acceptance, acceptance_on_posterior(model, settings, this.parts, this.seed))
