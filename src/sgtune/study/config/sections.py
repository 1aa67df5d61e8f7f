"""The settings of each model, and those that a result depends on: their slices of the configuration, their fingerprint.

Imports nothing heavy: the workflow reads it while it is parsed.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping

from sgtune.study.catalogue import MODELS, NEEDS_RAW, TUNERS

RUN = ("data", "map", "seed", "calibration.table")
JUDGED = (*RUN, "reference")
"""What draws of an arm, and its loss, depend on. The measuring time affects only the measured costs; all other results
depend on whether a table replaces them."""

SECTIONS = {
    "data": ("data",),
    "ood": ("data", "ood"),
    "map": ("data", "map"),
    "reference": ("data", "map", "reference", "seed"),
    # The cost of a step depends neither on the number of steps nor on its traced numbers, such as its size.
    "cost": (
        *("data", "grids.batch_fractions", "grids.n_leapfrogs", "calibration.seconds", "samplers"),
        *("grid.batch_fraction", "heuristic", "estimates.batch_fraction", "estimates.batch_fractions"),
    ),
    "tuning": (*RUN, "grids", "tuning"),
    "evaluation": (*JUDGED, "evaluation", "ood"),
    "screen": (
        *(*JUDGED, "grids", "mamba.seconds", "mamba.pruning_rate"),
        *("tuning.replicates", "regret.screen", "regret.prediction_draws"),
    ),
    "regret": (*JUDGED, "grids", "regret"),
    "estimates": (*RUN, "estimates"),
    "widths": ("data", "map", "seed", "reference", "widths"),
    "horizons": (*JUDGED, "grids", "mamba", "tuning.validation_fraction", "horizons"),
}
"""What each kind of result depends on: sections, or single keys of them."""


def model_settings(config: Mapping, model: str) -> dict:
    """The configuration for ``model``: sections overridden by ``per_model``, with only the model's data and grid.

    ``data`` stays keyed by the model's name; ``grids`` is the model's grid; ``ood`` names its out-of-distribution
    inputs, None if it has none.
    """
    sections = {name: value for name, value in config.items() if name != "per_model"}
    return {
        **merge(sections, config["per_model"].get(model, {})),
        "data": {model: config["data"][model]},
        "ood": config["data"]["ood"] if MODELS[model].out_of_distribution else None,
        "grids": config["grids"][model],
    }


def tuners_of(config: Mapping, model: str, sampler: str) -> list[str]:
    """Tuners studied with ``sampler`` on ``model``, those on the smaller grid last; of a user's model those that suit
    it."""
    settings = model_settings(config, model)
    tuners = list(settings["tuners"])
    if not MODELS[model].in_paper:
        predicts = settings["data"][model]["predicts"]
        tuners = [
            name
            for name in tuners
            if name not in NEEDS_RAW and (predicts or not TUNERS[name].looks_at_test_set)
        ]
    if sampler in settings["grids"].get("smaller", {}).get("samplers", []):
        # The name under which a tuner also runs on the smaller grid, if it does.
        tuners += [name for tuner in tuners for name, entry in TUNERS.items() if entry.method == tuner]
    return tuners


def merge(below: Mapping, above: Mapping) -> dict:
    """``below`` with the values of ``above``: mappings merge key by key, anything else is replaced."""
    merged = dict(below)
    for name, value in above.items():
        both = isinstance(value, Mapping) and isinstance(merged.get(name), Mapping)
        merged[name] = merge(merged[name], value) if both else value
    return merged


def settings_of(config: Mapping, kind: str, model: str, tuner: str | None = None) -> dict:
    """The settings that results of ``kind`` depend on; Snakemake reruns a job when they change.

    Args:
        config: a valid configuration.
        kind: a key of `SECTIONS`.
        tuner: which tunes; for the kind ``tuning`` only.

    Returns:
        The sections by name, as `model_settings` has them; ``grids`` is the one grid that the tuner uses.
    """
    settings = model_settings(config, model)
    if not settings["reference"]["nuts"]:
        settings["reference"] = {"nuts": False}
    grid = dict(settings["grids"])
    smaller = grid.pop("smaller", None)
    if tuner is not None and TUNERS[tuner].method is not None:
        grid["log10_step_sizes"] = smaller["log10_step_sizes"]
    settings["grids"] = grid
    # Only those of the named samplers that the run has.
    named = settings["horizons"]["samplers"]
    settings["horizons"] = settings["horizons"] | {"samplers": [s for s in config["samplers"] if s in named]}
    found = {}
    for name in sorted(SECTIONS[kind] if tuner is None else (*SECTIONS[kind], TUNERS[tuner].section)):
        section, _, key = name.partition(".")
        if key:
            found.setdefault(section, {})[key] = settings[section][key]
        else:
            found[section] = settings[section]
    return found


def fingerprint(section: object) -> str:
    """SHA-256, in hex, of a configuration or a part of it; the order of keys and 1 against 1.0 do not matter."""
    text = json.dumps(canonical(section), sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def canonical(value: object) -> object:
    """``value`` with whole numbers as integers, tuples as lists and names of keys as text."""
    if isinstance(value, Mapping):
        return {str(name): canonical(child) for name, child in value.items()}
    if isinstance(value, list | tuple):
        return [canonical(child) for child in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def leaves(section: Mapping, path: str = "") -> Iterator[tuple[str, object]]:
    """Every key of a configuration that has a value and no keys of its own, as ``mamba.seconds``, with the value."""
    for name, value in section.items():
        if isinstance(value, Mapping):
            yield from leaves(value, f"{path}{name}.")
        else:
            yield f"{path}{name}", value
