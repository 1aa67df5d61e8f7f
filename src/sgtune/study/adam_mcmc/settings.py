"""The settings of the configuration that each of the study's results depends on.

Imports nothing heavy: the workflow reads it while it is parsed.
"""

from collections.abc import Mapping

from sgtune.study.config.sections import model_settings
from sgtune.study.config.sections import settings_of as main_settings_of

__all__ = [
    "costs_settings",
    "evaluation_settings",
    "experiment_settings",
    "grid_of",
    "posterior_settings",
    "race_settings",
]

MODEL = "logistic"
"""On whose posterior samplers are compared."""

OF_POSTERIOR = (
    *("posterior_steps", "posterior_long", "posterior_warmup", "posterior_drifts"),
    *("posterior_scales", "posterior_replicates", "batch_fraction"),
)
"""Keys of the section ``acceptance`` that the Gaussians do not use."""


def grid_of(config: Mapping, sampler: str) -> dict:
    """The arms of a sampler: the section's own for those with a Metropolis test, else the main study's."""
    own = config["adam_mcmc"]["grids"]
    if sampler in own:
        return dict(own[sampler])
    return {
        name: values for name, values in model_settings(config, MODEL)["grids"].items() if name != "smaller"
    }


def experiment_settings(config: Mapping, name: str) -> dict:
    """The settings of an experiment on known densities: ``gaussians``, ``bias`` or ``distances``."""
    section = config["adam_mcmc"]
    if name != "gaussians":
        return {"seed": config["seed"], "adam_mcmc": {name: section[name]}}
    dropped = ("dimensions", *OF_POSTERIOR)
    own = {key: value for key, value in section["acceptance"].items() if key not in dropped}
    return {"seed": config["seed"], "adam_mcmc": {"acceptance": own}}


def posterior_settings(config: Mapping) -> dict:
    """The settings that acceptance on the posterior depends on."""
    shared = ("directional_noises", *OF_POSTERIOR)
    own = {key: config["adam_mcmc"]["acceptance"][key] for key in shared}
    return {
        "seed": config["seed"],
        **main_settings_of(config, "map", MODEL),
        "adam_mcmc": {"acceptance": own},
    }


def costs_settings(config: Mapping) -> dict:
    """The settings that the costs of steps depend on: their shapes."""
    section = config["adam_mcmc"]
    samplers = dict.fromkeys([*section["race"]["samplers"], *section["evaluation"]["samplers"]])
    static = ("batch_fractions", "n_leapfrogs")
    grids = {
        sampler: {key: values for key, values in grid_of(config, sampler).items() if key in static}
        for sampler in samplers
    }
    own = {"costs": section["costs"], "grids": grids}
    own["batch_fraction"] = section["acceptance"]["batch_fraction"]
    return {**main_settings_of(config, "map", MODEL), "adam_mcmc": own}


def evaluation_settings(config: Mapping, sampler: str) -> dict:
    """The settings that the evaluation of a sampler depends on; other samplers are not among them."""
    section = config["adam_mcmc"]
    own = {key: value for key, value in section["evaluation"].items() if key != "samplers"}
    race = {"pruning_rate": section["race"]["pruning_rate"]}
    return {
        **main_settings_of(config, "reference", MODEL),
        "adam_mcmc": {"evaluation": own, "race": race, "grid": grid_of(config, sampler)},
    }


def race_settings(config: Mapping, sampler: str) -> dict:
    """The settings that the races of a sampler, and their regret, depend on."""
    own = {key: value for key, value in config["adam_mcmc"]["race"].items() if key != "samplers"}
    return {
        **main_settings_of(config, "reference", MODEL),
        "adam_mcmc": {"race": own, "grid": grid_of(config, sampler)},
    }
