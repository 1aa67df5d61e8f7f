"""Shared by the rules of AdamMCMC's study: names, and functions of a job's wildcards."""

from sgtune.study.adam_mcmc.settings import (
    costs_settings,
    experiment_settings,
    model_job_settings,
    models_of,
    posterior_settings,
    race_settings,
)

ADAM_MCMC = f"{RUN}/adam_mcmc"
ADAM_MCMC_CONFIG = config["adam_mcmc"]
ADAM_MCMC_MODELS = models_of(config)


def settings_of_costs(wildcards):
    """The configuration that the costs of one model's steps depend on."""
    return costs_settings(config, wildcards.model)


def settings_of_race(wildcards):
    """The configuration that the races of one sampler depend on."""
    return race_settings(config, wildcards.kernel)


def settings_of_evaluation(wildcards):
    """The configuration that the evaluation of one sampler depends on."""
    return model_job_settings(config, wildcards.model, wildcards.kernel)


def references_of_logistic(wildcards):
    """The summary of the logistic regression's reference, if it has one."""
    return expand(rules.combine_nuts.output.facts, model="logistic") if has_reference("logistic") else []
