"""The configuration's section ``ccadl``: its checks, and the settings that each of the study's results depends on.

Imports nothing heavy: the workflow reads it while it is parsed.
"""

from collections.abc import Mapping

from sgtune.support.errors import InputError

__all__ = ["KINDS", "check", "data_settings", "reference_settings", "settings_of"]

LOGISTIC = ("step_sizes", "frictions", "batch_size")

KINDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "normal": (
        "normal",
        (
            *("step_sizes", "frictions", "n_data", "standardised", "batch_size", "steps", "warmup"),
            *("replicates", "bins"),
        ),
    ),
    "logistic_curves": ("logistic", (*LOGISTIC, "curves")),
    "logistic_draws": ("logistic", (*LOGISTIC, "draws")),
    "drbm": (
        "drbm",
        (
            *("step_sizes", "frictions", "batch_size", "passes", "burn_in", "readings", "draws_per_reading"),
            "replicates",
        ),
    ),
}
"""Of each kind of result that a sampler has: the experiment, a part of the section, and its keys."""


def check(section: Mapping) -> None:
    """Checks that the schema cannot express, because they compare one key with another.

    Raises:
        InputError: one line naming the key, its value and what is allowed.
    """
    normal, reference = section["normal"], section["logistic"]["reference"]
    _at_most("normal.batch_size", normal["batch_size"], "normal.n_data", normal["n_data"])
    if reference["n_draws"] % reference["chains"]:
        raise InputError(
            f"ccadl.logistic.reference.n_draws: {reference['n_draws']} is not allowed; it must be a multiple of "
            f"ccadl.logistic.reference.chains = {reference['chains']}"
        )
    simulated = section["data"]["simulated"]
    if simulated is not None:
        for experiment in ("logistic", "drbm"):
            size = section[experiment]["batch_size"]
            _at_most(f"{experiment}.batch_size", size, "data.simulated", simulated)


def _at_most(key: str, value: int, other: str, most: int) -> None:
    if value > most:
        raise InputError(f"ccadl.{key}: {value} is not allowed; it must be <= ccadl.{other} = {most}")


def settings_of(config: Mapping, kind: str, method: str, data_set: str | None = None) -> dict:
    """The settings that the results of one sampler depend on; Snakemake reruns the job when they change.

    Args:
        kind: of `KINDS`.
        method: the sampler; results do not depend on which others there are.
        data_set: the same, where there are several.
    """
    section = config["ccadl"]
    experiment, keys = KINDS[kind]
    own = {name: section[experiment][name] for name in keys} | {"samplers": [method]}
    if data_set is not None:
        own["step_sizes"] = {data_set: own["step_sizes"][data_set]}
    data = {} if experiment == "normal" else {"data": section["data"]}
    return {"seed": config["seed"], "ccadl": {experiment: own} | data}


def data_settings(config: Mapping) -> dict:
    """The settings that the study's prepared data depend on."""
    return {"ccadl": {"data": config["ccadl"]["data"]}}


def reference_settings(config: Mapping) -> dict:
    """The settings that the ground truth of the logistic regression depends on."""
    section = config["ccadl"]
    reference = section["logistic"]["reference"]
    return {"seed": config["seed"], "reference": reference, **data_settings(config)}
