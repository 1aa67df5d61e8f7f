"""Shared by the rules of CCAdL's study: names, and functions of a job's wildcards."""

from sgtune.study.ccadl.settings import data_settings, reference_settings
from sgtune.study.ccadl.settings import settings_of as settings_of_ccadl

CCADL = f"{RUN}/ccadl"
CCADL_CONFIG = config["ccadl"]


def settings_of_method(kind):
    """The configuration that one sampler's results of `kind` depend on, as a function of a job's wildcards."""

    def of_job(wildcards):
        return settings_of_ccadl(config, kind, wildcards.method)

    return of_job


def settings_of_drbm(wildcards):
    """The configuration that one sampler's results on one data set depend on."""
    return settings_of_ccadl(config, "drbm", wildcards.method, wildcards.set)


def download_of_set(wildcards):
    """The input of a set; empty if it is simulated."""
    if CCADL_CONFIG["data"]["simulated"] is not None:
        return []
    if wildcards.set == "mnist79":
        return [rules.download_mnist.output.source]
    return expand(rules.download_set.output.source, download=wildcards.set)


def chains_of_logistic(wildcards):
    """The chains of the logistic regression's reference."""
    n_chains = CCADL_CONFIG["logistic"]["reference"]["chains"]
    return expand(rules.sample_set_nuts.output.draws, chain=range(n_chains))
