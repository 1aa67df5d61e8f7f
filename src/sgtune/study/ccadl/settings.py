"""The settings of the configuration's section ``ccadl`` that each of the study's results depends on.

Imports nothing heavy: the workflow reads it while it is parsed.
"""

from collections.abc import Mapping

__all__ = ["KINDS", "data_settings", "reference_settings", "settings_of"]

KINDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "normal": ("normal", ()),
    "logistic_curves": ("logistic", ("draws", "reference")),
    "logistic_draws": ("logistic", ("curves", "reference")),
    "drbm": ("drbm", ("sets",)),
}
"""Of each kind of result that a sampler has: the experiment, a part of the section, and those of its keys that the
result does not depend on."""


def settings_of(config: Mapping, kind: str, method: str, data_set: str | None = None) -> dict:
    """The settings that the results of one sampler depend on; Snakemake reruns the job when they change.

    Args:
        kind: of `KINDS`.
        method: the sampler; results do not depend on which others there are.
        data_set: the same, where there are several.
    """
    section = config["ccadl"]
    experiment, left_out = KINDS[kind]
    own = {name: value for name, value in section[experiment].items() if name not in left_out}
    own["samplers"] = [method]
    if data_set is not None:
        own["step_sizes"] = {data_set: own["step_sizes"][data_set]}
    data = {} if experiment == "normal" else {"data": section["data"]}
    return {"seed": config["seed"], "ccadl": {experiment: own} | data}


def data_settings(config: Mapping) -> dict:
    """The settings that the study's prepared data depend on."""
    return {"ccadl": {"data": config["ccadl"]["data"]}}


def reference_settings(config: Mapping) -> dict:
    """The settings that the ground truth of the logistic regression depends on."""
    reference = config["ccadl"]["logistic"]["reference"]
    return {"seed": config["seed"], "reference": reference, **data_settings(config)}
