"""What a run consists of: its samplers and tuners on each model, their races, the steps whose costs it needs, and which
jobs have the machine to themselves.

Imports nothing heavy: the workflow reads it while it is parsed.
"""

from collections.abc import Mapping
from pathlib import Path

from sgtune.sampling.budget import batch_size_of, read_costs
from sgtune.study.catalogue import MODELS, TUNERS, has_axis, losses_of
from sgtune.study.config.sections import model_settings, settings_of, tuners_of
from sgtune.support.axes import N_LEAPFROG
from sgtune.support.errors import InputError

CHECKED_CHAINS = 4
"""Of each sampler on a user's model."""

RANDOM_ARMS = 5
"""This many random arms run with the finalists: the loss of a tuner that does not look at any draws."""


def studied(config: Mapping) -> list[tuple[str, str, str]]:
    """All (model, sampler, tuner) of the run, in the order of the report."""
    return [
        (model, sampler, tuner)
        for model in config["models"]
        for sampler in config["samplers"]
        for tuner in tuners_of(config, model, sampler)
    ]


def tuning_settings(config: Mapping, model: str, sampler: str) -> dict[str, dict]:
    """`settings_of` each tuner that is studied with ``sampler`` on ``model``, by its name."""
    return {tuner: settings_of(config, "tuning", model, tuner) for tuner in tuners_of(config, model, sampler)}


def ladder_settings(config: Mapping, dimension: int) -> dict:
    """The settings that the runs on Gaussians of one dimension depend on: other dimensions do not affect them."""
    return {"ladder": {**config["ladder"], "dimensions": [dimension]}, "seed": config["seed"]}


def n_races(tuner: str, settings: Mapping[str, Mapping]) -> int:
    """The tuning replicates of ``tuner``, from its sections of the configuration: 1 without randomness."""
    if not TUNERS[tuner].is_random:
        return 1
    of_all, own = settings["tuning"]["replicates"], settings[TUNERS[tuner].section].get("replicates")
    return of_all if own is None else min(of_all, own)


def extras_of(config: Mapping, model: str) -> set[str]:
    """What a model's study has only if it is configured: ``reference``; ``regret``, the fresh runs of its arms, if
    there is a loss to judge them by; and ``horizons``, the tuning of one of the run's samplers for runs of several
    lengths, which needs a reference."""
    settings = model_settings(config, model)
    regret, horizons = settings["regret"], settings["horizons"]
    found = {"reference"} if settings["reference"]["nuts"] else set()
    if found and horizons["seconds"] and set(horizons["samplers"]) & set(config["samplers"]):
        found.add("horizons")
    judged = losses_of(model, settings["reference"]["nuts"])
    return found | {"regret"} if regret["seconds"] and judged else found


def tunes_alone(config: Mapping, model: str) -> bool:
    """Whether the tuning jobs of ``model`` take the whole machine.

    With a given cost table and no wall clock the choices do not depend on the machine's load: only the measured
    seconds do, and such a run is for speed.
    """
    own = model_settings(config, model)
    clocks = {own[tuner]["clock"] for tuner in ("mamba", "grid_ksd")}
    return own["calibration"]["table"] is None or "wall" in clocks


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


def check_costs(config: Mapping) -> None:
    """A given cost table must have the cost of every step that the run can make, at each model's N and D."""
    results = Path(f"results/{config['run']}")
    for model in config["models"]:
        own, entry = model_settings(config, model), MODELS[model]
        table, of_data = own["calibration"]["table"], own["data"][model]
        if table is None:
            continue
        try:
            if results.resolve() in Path(table).resolve().parents:
                raise InputError(f"the run itself writes to {results}/; copy the file elsewhere")
            n_data = entry.n_data(of_data)
            costs = read_costs(table, model, n_data, entry.dimension(of_data))
            for shape in shapes_of(settings_of(config, "cost", model), n_data):
                costs.lookup(*shape)
        except InputError as problem:
            of_model = "table" in config["per_model"][model].get("calibration", {})
            key = f"per_model.{model}.calibration.table" if of_model else "calibration.table"
            what = "it must have the costs of the run"
            raise InputError(f"{key}: {table!r} is not allowed: {problem}; {what}") from None
