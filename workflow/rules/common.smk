"""Validation of the configuration, names and paths that all rules share."""

from pathlib import Path

from sgtune.artifacts import MODEL_OF, REQUIRES
from sgtune.config import exit_unless_valid
from sgtune.settings import FACTS, model_settings, settings_of, studied
from sgtune.workflow import offer_package_to_jobs

exit_unless_valid(config, workflow.source_path("../schemas/config.schema.yaml"))

offer_package_to_jobs()

# A resource without a limit is ignored in a local run, and then untimed jobs would run beside timed ones. The limit is
# set here and not in a profile, because --resources and --default-resources replace a profile's.
if "machine" not in workflow.global_resources:
    workflow.global_resources["machine"] = 1000

RUN = f"results/{config['run']}"
LOGS = f"{RUN}/logs"
MODELS = config["models"]

STUDIED = studied(config)
"""Every (model, sampler, tuner) of the run."""

WHOLE_MACHINE = 1000
"""Of the resource `machine`: what a timed rule takes, so that nothing runs beside it."""


wildcard_constraints:
    model="|".join(MODELS),
    sampler="|".join(config["samplers"]),
    tuner="|".join(dict.fromkeys(tuner for _, _, tuner in STUDIED)),
    chain=r"\d+",


def settings(kind, model=None):
    """The configuration that results of `kind` depend on, as a function of a job's wildcards (or for `model`)."""

    def of_job(wildcards):
        return settings_of(config, kind, model or wildcards.model, getattr(wildcards, "tuner", None))

    return of_job


def has_reference(model):
    """Whether NUTS samples `model`; without, nothing may wait for its draws."""
    return model_settings(config, model)["reference"]["nuts"]


def reference_of(wildcards):
    """The reference's summary, for models that have a reference."""
    referenced = [wildcards.model] if has_reference(wildcards.model) else []
    return expand(rules.combine_nuts.output.facts, model=referenced)


def ood_of(wildcards):
    """The out-of-distribution inputs, for models that have such inputs."""
    return [f"{RUN}/data/{wildcards.model}.ood.json"] if FACTS[wildcards.model].out_of_distribution else []


def chains_of(wildcards):
    """The chains of a model's reference."""
    n_chains = model_settings(config, wildcards.model)["reference"]["chains"]
    return expand(rules.sample_nuts.output.draws, model=wildcards.model, chain=range(n_chains))


def sources_of(wildcards):
    """The result files that a table or figure is made from (`RESULTS` of artifacts.smk)."""
    artifact = getattr(wildcards, "table", None) or wildcards.figure
    models = [MODEL_OF[artifact], ""] if MODEL_OF[artifact] else [*MODELS, ""]
    return [path for kind in REQUIRES[artifact] for model in models for path in RESULTS[kind].get(model, [])]


def study_of(model):
    """The results of `model`, and the tables and figures of it alone."""
    results = [path for of_models in RESULTS.values() for path in of_models.get(model, [])]
    return results + [path for path in ARTIFACTS if MODEL_OF[Path(path).stem] == model]
