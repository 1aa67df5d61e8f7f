"""The configuration's section ``ccadl``: the settings that each of the study's results depends on.

Imports nothing heavy: the workflow reads it while it is parsed.
"""

from collections.abc import Mapping

__all__ = ["KINDS", "data_settings", "reference_settings", "settings_of"]

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
