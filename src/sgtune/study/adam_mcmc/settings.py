"""The configuration's section ``adam_mcmc``: the settings that each of the study's results depends on.

Imports nothing heavy: the workflow reads it while it is parsed.
"""

from collections.abc import Mapping

from sgtune.study.config.sections import model_settings
from sgtune.study.config.sections import settings_of as main_settings_of

__all__ = [
    "OF_POSTERIOR",
    "chains_in",
    "costs_settings",
    "experiment_settings",
    "grid_of",
    "model_job_settings",
    "models_of",
    "n_chains_of",
    "posterior_settings",
    "race_settings",
]

MORE_OF_EXACT = 8
"""The exact variant is claimed to have no bias. It has this many times the chains, so that a small one would show."""

OF_POSTERIOR = (
    "posterior_steps",
    "posterior_long",
    "posterior_warmup",
    "posterior_drifts",
    "posterior_scales",
    "posterior_replicates",
    "batch_fraction",
)
"""Keys of the section ``acceptance`` that the Gaussians do not use."""


def models_of(config: Mapping) -> list[str]:
    """The models that the study evaluates samplers on: those of the run for which its section names a sampler."""
    sections = config["adam_mcmc"]["evaluation"]
    return [model for model, section in sections.items() if model in config["models"] and section["samplers"]]


def grid_of(config: Mapping, model: str, sampler: str) -> dict:
    """The arms of a sampler: the section's own for those with a Metropolis test, else the main study's with the batch
    sizes that ``without_test`` names."""
    own = config["adam_mcmc"]["grids"][model]
    if sampler in own:
        return dict(own[sampler])
    grid = dict(model_settings(config, model)["grids"])
    grid.pop("smaller", None)
    if own["without_test"]["batch_fractions"] is not None:
        grid["batch_fractions"] = own["without_test"]["batch_fractions"]
    return grid


def experiment_settings(config: Mapping, name: str) -> dict:
    """The settings of an experiment on known densities: ``gaussians``, ``bias`` or ``distances``."""
    section = config["adam_mcmc"]
    if name == "gaussians":
        dropped = ("dimensions", *OF_POSTERIOR)
        own = {key: value for key, value in section["acceptance"].items() if key not in dropped}
        return {"seed": config["seed"], "adam_mcmc": {"acceptance": own}}
    return {"seed": config["seed"], "adam_mcmc": {name: section[name]}}


def posterior_settings(config: Mapping) -> dict:
    """The settings that acceptance on the posterior of the logistic regression depends on."""
    shared = ("directional_noises", *OF_POSTERIOR)
    own = {key: config["adam_mcmc"]["acceptance"][key] for key in shared}
    return {
        "seed": config["seed"],
        **main_settings_of(config, "map", "logistic"),
        "adam_mcmc": {"acceptance": own},
    }


def costs_settings(config: Mapping, model: str) -> dict:
    """The settings that the costs of a model's steps depend on: its shapes."""
    section = config["adam_mcmc"]
    raced = section["race"]["samplers"] if model == "logistic" else []
    samplers = dict.fromkeys([*raced, *section["evaluation"][model]["samplers"]])
    static = ("batch_fractions", "n_leapfrogs")
    grids = {
        sampler: {key: values for key, values in grid_of(config, model, sampler).items() if key in static}
        for sampler in samplers
    }
    own = {"costs": section["costs"], "grids": grids}
    own["batch_fraction"] = section["acceptance"]["batch_fraction"]
    return {**main_settings_of(config, "map", model), "adam_mcmc": own}


def model_job_settings(config: Mapping, model: str, sampler: str) -> dict:
    """The settings that the evaluation of a sampler depends on; other samplers are not among them."""
    section = config["adam_mcmc"]
    own = {key: value for key, value in section["evaluation"][model].items() if key != "samplers"}
    race = {key: section["race"][key] for key in ("pruning_rate",)}
    return {
        **main_settings_of(config, "reference", model),
        "adam_mcmc": {"evaluation": own, "race": race, "grid": grid_of(config, model, sampler)},
    }


def race_settings(config: Mapping, sampler: str) -> dict:
    """The settings that the races of a sampler on the logistic regression, and their regret, depend on."""
    section = config["adam_mcmc"]
    own = {key: value for key, value in section["race"].items() if key != "samplers"}
    return {
        **main_settings_of(config, "reference", "logistic"),
        "adam_mcmc": {"race": own, "grid": grid_of(config, "logistic", sampler)},
    }


def chains_in(found: Mapping, variant: str) -> int:
    """How many chains a variant has in a record of biases; older records have as many of each."""
    cells = (cell for cell in found["cells"] if cell["variant"] == variant)
    return next((cell.get("chains", found["chains"]) for cell in cells), found["chains"])


def n_chains_of(variant: str, settings: Mapping) -> int:
    """How many chains a variant has, from ``chains`` of the section ``adam_mcmc.bias``."""
    return settings["chains"] * (MORE_OF_EXACT if variant == "exact" else 1)
