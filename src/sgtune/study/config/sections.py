"""Each model's study in the configuration: its tuners, its sections, and the settings that a result depends on.

Imports nothing heavy: the workflow reads it while it is parsed.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping

from sgtune.sampling.budget import batch_size_of
from sgtune.study.catalogue import MODELS, SAMPLERS, TUNERS, smaller_of
from sgtune.support.axes import BATCH_SIZE, N_LEAPFROG, STEP_SIZE

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
        *(*JUDGED, "grids", "heuristic", "mamba.seconds", "mamba.pruning_rate"),
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


def tunes_alone(config: Mapping, model: str) -> bool:
    """Whether the tuning jobs of ``model`` take the whole machine.

    With a given cost table and no wall clock the choices do not depend on the machine's load: only the measured
    seconds do, and such a run is for speed.
    """
    own = model_settings(config, model)
    clocks = {own[tuner]["clock"] for tuner in ("mamba", "grid_ksd")}
    return own["calibration"]["table"] is None or "wall" in clocks


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


def tuning_settings(config: Mapping, model: str, sampler: str) -> dict[str, dict]:
    """`settings_of` each tuner that is studied with ``sampler`` on ``model``, by its name."""
    return {tuner: settings_of(config, "tuning", model, tuner) for tuner in tuners_of(config, model, sampler)}


def n_races(tuner: str, settings: Mapping[str, Mapping]) -> int:
    """The tuning replicates of ``tuner``, from its sections of the configuration: 1 without randomness."""
    if not TUNERS[tuner].is_random:
        return 1
    of_all, own = settings["tuning"]["replicates"], settings[TUNERS[tuner].section].get("replicates")
    return of_all if own is None else min(of_all, own)


def extras_of(config: Mapping, model: str) -> set[str]:
    """What a model's study has only if it is configured: ``reference``; ``regret``, the fresh runs of its arms; and
    ``horizons``, the tuning of one of the run's samplers for runs of several lengths, which needs a reference."""
    settings = model_settings(config, model)
    regret, horizons = settings["regret"], settings["horizons"]
    found = {"reference"} if settings["reference"]["nuts"] else set()
    if found and horizons["seconds"] and set(horizons["samplers"]) & set(config["samplers"]):
        found.add("horizons")
    return found | {"regret"} if regret["seconds"] else found


def ladder_settings(config: Mapping, dimension: int) -> dict:
    """The settings that the runs on Gaussians of one dimension depend on: other dimensions do not affect them."""
    return {"ladder": {**config["ladder"], "dimensions": [dimension]}, "seed": config["seed"]}


def has_axis(sampler: str, axis: str) -> bool:
    """Whether arms of ``sampler`` have a number on ``axis``."""
    return axis in (STEP_SIZE.name, BATCH_SIZE.name, *SAMPLERS[sampler].axes)


def shapes_of(settings: Mapping, n_data: int) -> list[tuple]:
    """Every (sampler, batch size, leapfrog number) for which a run needs the cost of a step.

    ``settings``: of the kind ``cost``. SGLD is always included, for the estimates of the discrepancies.
    """
    grid, heuristic, estimates = settings["grids"], settings["heuristic"], settings["estimates"]
    wanted = [
        (grid["batch_fractions"], grid["n_leapfrogs"]),
        ([settings["grid"]["batch_fraction"]], grid["n_leapfrogs"]),
        ([heuristic["batch_fraction"]], [heuristic["n_leapfrog"]]),
    ]
    own = [(sampler, *each) for sampler in settings["samplers"] for each in wanted]
    own.append(("sgld", [estimates["batch_fraction"], *estimates["batch_fractions"]], []))
    shapes = [
        (sampler, batch_size_of(fraction, n_data), leapfrog)
        for sampler, fractions, leapfrogs in own
        for fraction in fractions
        for leapfrog in (leapfrogs if has_axis(sampler, N_LEAPFROG.name) else [None])
    ]
    return list(dict.fromkeys(shapes))


def tuners_of(config: Mapping, model: str, sampler: str) -> list[str]:
    """Tuners studied with ``sampler`` on ``model``, those on the smaller grid last."""
    settings = model_settings(config, model)
    tuners = list(settings["tuners"])
    if sampler in settings["grids"].get("smaller", {}).get("samplers", []):
        tuners += [name for tuner in tuners if (name := smaller_of(tuner)) is not None]
    return tuners


def studied(config: Mapping) -> list[tuple[str, str, str]]:
    """All (model, sampler, tuner) of the run, in the order of the report."""
    return [
        (model, sampler, tuner)
        for model in config["models"]
        for sampler in config["samplers"]
        for tuner in tuners_of(config, model, sampler)
    ]


def fingerprint(section: object) -> str:
    """SHA-256, in hex, of a configuration or a part of it; the order of keys and 1 against 1.0 do not matter.

    Raises:
        TypeError, ValueError: the section has a value that JSON does not allow, or a number that is not finite.
    """
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
