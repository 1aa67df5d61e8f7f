"""The tables and figures of the study of AdamMCMC (Bieringer et al. 2023), and the settings of the configuration that
each of its results depends on. Imports nothing heavy: the workflow reads it while it is parsed.
"""

from collections.abc import Mapping

from sgtune.study.config import sections
from sgtune.study.report.artifact import Artifact, Study

NAMES = {
    **{"adam-mcmc": "AdamMCMC", "mala": "MALA", "hmc": "HMC", "map": "MAP"},
    **{"isotropic": "s_d = 0", "prolate": "s_d = 1", "prolate-batch": "s_d = 1, minibatch gradients"},
    **{"minibatch-test": "s_d = 1, minibatch test", "exact": "s_d = 1, exact"},
    **{"acceptance": "Acceptance", "chosen": "Arm of each race"},
    **{f"gaussian-{d}": f"N(0, I), D = {d:,}" for d in (2, 10, 50, 100, 1_000, 10_000)},
}
"""Printed names that only this study has, in the order of print; targets for the configurations that are tracked."""

STUDY = Study(
    label="AdamMCMC",
    tables={
        "adam_acceptance": Artifact(
            ("acceptance",),
            title="AdamMCMC: acceptance with and without noise along the update",
            rows=("ratio", "along"),
            columns=("metric", "scale"),
            stub={"model": "Target", "ratio": "γ / s", "along": "s_d"},
            parts=("ratio", "along", "scale"),
        ),
        "adam_bias": Artifact(
            ("bias",),
            title="AdamMCMC: bias of the approximations",
            rows=("sampler", "metric"),
            columns=("detail",),
            stub={"model": "Target", "sampler": "Variant", "metric": "γ / s ="},
        ),
        "adam_regret": Artifact(
            ("races",),
            title="Samplers with a Metropolis test: regret of their tuners",
            rows=("sampler", "tuner"),
            stub={"tuner": "Chosen by"},
            needs=("logistic",),
        ),
        "adam_choices": Artifact(
            ("races",),
            title="Samplers with a Metropolis test: hyperparameters chosen",
            rows=("sampler", "tuner"),
            stub={"tuner": "Judge"},
            is_prose=True,
            needs=("logistic",),
        ),
        "adam_evaluation": Artifact(
            ("evaluations",),
            title="AdamMCMC at equal seconds",
            rows=("sampler",),
            needs=("logistic",),
        ),
    },
    figures={
        "adam_acceptance_curves": Artifact(
            ("acceptance",),
            title="AdamMCMC: acceptance and width against the noise",
        ),
        "adam_bias_curves": Artifact(("bias",), title="AdamMCMC: bias against γ / s"),
        "adam_distances": Artifact(("distances",), title="Total variation to the target against steps"),
    },
    names=NAMES,
)

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
    grid = own[sampler] if sampler in own else sections.model_settings(config, MODEL)["grids"]
    return {name: values for name, values in grid.items() if name != "smaller"}


def settings_of(config: Mapping, result: str, sampler: str = "") -> dict:
    """The settings that a result depends on; of ``race`` and ``evaluation``, of one sampler: others are not among them.

    Args:
        result: ``gaussians`` and ``posterior``, of the section ``acceptance``; ``bias``, ``distances``, ``costs``,
            ``race`` or ``evaluation``.
    """
    section, seed = config["adam_mcmc"], {"seed": config["seed"]}
    if result in ("bias", "distances"):
        return {**seed, "adam_mcmc": {result: section[result]}}
    if result == "gaussians":
        others = ("dimensions", *OF_POSTERIOR)
        own = {key: value for key, value in section["acceptance"].items() if key not in others}
        return {**seed, "adam_mcmc": {"acceptance": own}}
    if result == "posterior":
        own = {key: section["acceptance"][key] for key in ("directional_noises", *OF_POSTERIOR)}
        return {**seed, **sections.settings_of(config, "map", MODEL), "adam_mcmc": {"acceptance": own}}
    if result == "costs":
        # Those of the shapes of all arms.
        samplers = dict.fromkeys([*section["race"]["samplers"], *section["evaluation"]["samplers"]])
        grids = {own: grid_of(config, own) for own in samplers}
        static = ("batch_fractions", "n_leapfrogs")
        own = {"costs": section["costs"], "batch_fraction": section["acceptance"]["batch_fraction"]}
        own["grids"] = {
            name: {key: values for key, values in grid.items() if key in static}
            for name, grid in grids.items()
        }
        return {**sections.settings_of(config, "map", MODEL), "adam_mcmc": own}
    own = {key: value for key, value in section[result].items() if key != "samplers"}
    race = {} if result == "race" else {"race": {"pruning_rate": section["race"]["pruning_rate"]}}
    own = {result: own, **race, "grid": grid_of(config, sampler)}
    return {**sections.settings_of(config, "reference", MODEL), "adam_mcmc": own}
