"""Stein-guided tuning for stochastic-gradient MCMC: from data to every table and figure of the study."""

from snakemake.utils import min_version

min_version("9.20")


configfile: "config/config.yaml"


include: "workflow/rules/common.smk"
include: "workflow/rules/data.smk"
include: "workflow/rules/reference.smk"
include: "workflow/rules/tune.smk"
include: "workflow/rules/evaluate.smk"
include: "workflow/rules/ladder.smk"
include: "workflow/rules/artifacts.smk"
include: "workflow/rules/ccadl.smk"
include: "workflow/rules/studies.smk"
include: "workflow/rules/keep.smk"


report: "workflow/report/report.rst"


rule all:
    default_target: True
    input:
        ARTIFACTS,
        rules.describe_run.output,
    localrule: True


for model in MODELS:

    rule:
        name:
            model
        input:
            study_of(model),
        localrule: True
