"""What the configuration says of each model's study: its tuners, its sections, and what a result depends on.

Imports nothing heavy: the workflow reads it while it is parsed.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

__all__ = [
    "FACTS",
    "METHODS",
    "SMALLER",
    "TUNER_SECTIONS",
    "Facts",
    "laid_over",
    "model_settings",
    "settings_of",
    "studied",
    "tuners_of",
]


@dataclass(frozen=True)
class Facts:
    """What must be known of a model before its data are there.

    Attributes:
        task: as of `sgtune.models.Model`.
        n_data: number of training rows, given the model's section of ``data``.
        out_of_distribution: whether its evaluation takes the inputs that ``data.ood`` names.
    """

    task: str
    n_data: Callable[[Mapping], int]
    out_of_distribution: bool = False


def _n_ratings(data: Mapping) -> int:
    n_ratings = 100_000 if data["simulated"] is None else data["simulated"]
    return n_ratings - n_ratings // 5


def _n_images(data: Mapping) -> int:
    return 60_000 if data["simulated"] is None else data["simulated"]


FACTS = {
    "logistic": Facts("classification", lambda data: data["n_train"]),
    "pmf": Facts("regression", _n_ratings),
    "bnn": Facts("classification", _n_images, out_of_distribution=True),
}

SMALLER = {"mamba-ksd": "mamba-ksd-smaller", "grid": "grid-smaller"}
"""Tuners that are run once more, under these names, on the grid ``smaller`` of a model that has one."""

METHODS = {name: tuner for tuner, name in SMALLER.items()}
"""The tuner of `sgtune.tuning.TUNERS` behind a name that is none of them."""

TUNER_SECTIONS = {
    "mamba-ksd": "mamba",
    "mamba-fssd": "mamba",
    "mamba-ksd-scaled": "mamba",
    "mamba-ece": "mamba",
    "mamba-mce": "mamba",
    "mamba-accuracy": "mamba",
    "mamba-log-loss": "mamba",
    "grid": "grid",
    "grid-ksd": "grid_ksd",
    "heuristic": "heuristic",
}
"""The section of the configuration that holds a tuner's numbers."""

SECTIONS = {
    "data": ("data",),
    "ood": ("data", "ood"),
    "map": ("data", "map"),
    "reference": ("data", "map", "reference", "seed"),
    "cost": ("data", "grids", "calibration", "grid", "heuristic", "estimates", "samplers"),
    "tuning": ("data", "map", "seed", "grids"),
    "evaluation": ("data", "map", "seed", "grids", "reference", "evaluation", "ood"),
    "sweep": ("data", "map", "seed", "reference", "grids", "heuristic", "sweep"),
    "estimates": ("data", "map", "seed", "grids", "estimates"),
    "widths": ("data", "map", "seed", "reference", "widths"),
}
"""Sections that each kind of result depends on."""

OF_A_TUNER = ("tuning", "evaluation")
"""Kinds that depend on their tuner's section and grid, too; other kinds do not, whichever job reads them."""


def model_settings(config: Mapping, model: str) -> dict:
    """The configuration as it is for ``model``: ``per_model`` laid over the sections, its own data and grid alone.

    ``data`` stays keyed by the model's name; ``grids`` is the model's grid; ``ood`` names its out-of-distribution
    inputs, None if it has none.
    """
    sections = {name: value for name, value in config.items() if name != "per_model"}
    return {
        **laid_over(sections, config["per_model"].get(model, {})),
        "data": {model: config["data"][model]},
        "ood": config["data"]["ood"] if FACTS[model].out_of_distribution else None,
        "grids": config["grids"][model],
    }


def laid_over(below: Mapping, above: Mapping) -> dict:
    """``below`` with the values of ``above``: mappings merge key by key, anything else is replaced."""
    merged = dict(below)
    for name, value in above.items():
        both = isinstance(value, Mapping) and isinstance(merged.get(name), Mapping)
        merged[name] = laid_over(merged[name], value) if both else value
    return merged


def settings_of(config: Mapping, kind: str, model: str, tuner: str | None = None) -> dict:
    """What results of ``kind`` depend on; Snakemake reruns a job when it changes.

    Args:
        config: a valid configuration.
        kind: a key of `SECTIONS`.
        tuner: of the job; it matters to the kinds of `OF_A_TUNER` only.

    Returns:
        The sections by name, as `model_settings` has them; ``grids`` is the one grid that the tuner uses.
    """
    settings, sections = model_settings(config, model), SECTIONS[kind]
    if not settings["reference"]["nuts"]:
        settings["reference"] = {"nuts": False}
    grid = dict(settings["grids"])
    smaller = grid.pop("smaller", None)
    if kind in OF_A_TUNER and tuner in METHODS:
        grid["log10_step_sizes"] = smaller["log10_step_sizes"]
    settings["grids"] = grid
    if kind == "cost":
        # A step costs the same whatever its size, and however many are made.
        settings["grids"] = {name: values for name, values in grid.items() if name != "log10_step_sizes"}
        for section in ("grid", "estimates"):
            settings[section] = {"batch_fraction": settings[section]["batch_fraction"]}
    if kind in OF_A_TUNER:
        sections = (*sections, TUNER_SECTIONS[METHODS.get(tuner, tuner)])
    return {section: settings[section] for section in sorted(set(sections))}


def tuners_of(config: Mapping, model: str, sampler: str) -> list[str]:
    """Tuners studied with ``sampler`` on ``model``, those on the smaller grid last."""
    settings = model_settings(config, model)
    tuners = list(settings["tuners"])
    if sampler in settings["grids"].get("smaller", {}).get("samplers", []):
        tuners += [SMALLER[tuner] for tuner in tuners if tuner in SMALLER]
    return tuners


def studied(config: Mapping) -> list[tuple[str, str, str]]:
    """All (model, sampler, tuner) of the run, in the order of the report."""
    return [
        (model, sampler, tuner)
        for model in config["models"]
        for sampler in config["samplers"]
        for tuner in tuners_of(config, model, sampler)
    ]
