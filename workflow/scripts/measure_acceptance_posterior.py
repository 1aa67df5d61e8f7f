"""Acceptance and effective sample sizes of AdamMCMC on the posterior of the logistic regression."""

from sgtune.study.job import job

with job(snakemake) as this:
    from sgtune.study.adam_mcmc.acceptance import acceptance_on_posterior
    from sgtune.study.parts import Parts

    model = this.load_model("logistic", snakemake.input.data)
    parts = Parts(snakemake.params.parts, this.report)
    settings = this.settings["adam_mcmc"]["acceptance"]
    record = acceptance_on_posterior(model, settings, seed=this.seed, parts=parts, report=this.report)
    this.write(snakemake.output.acceptance, record)
    parts.clear()
