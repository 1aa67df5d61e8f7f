"""A sampler is tuned by all its tuners, a record for each race; and choices of tuners that look ahead, for runs of
several lengths."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import fields, replace
from functools import partial
from itertools import product

from sgtune.mode.find import map_result
from sgtune.model.derived import hold_out
from sgtune.sampling.arm import Arm
from sgtune.sampling.budget import Budget
from sgtune.study.catalogue import TUNERS, method_of
from sgtune.study.experiments.losses import losses_of, run_replicates
from sgtune.study.pipeline.parts import Task
from sgtune.study.pipeline.plan import n_races
from sgtune.tuning import TUNERS as METHODS
from sgtune.tuning import AllDivergedError, Grid, Tuner, tune

AHEAD = ("mamba", "theory")
"""The tuners that look ahead to a horizon, and are compared for several."""


def tuning_arguments(settings: Mapping, tuner: str) -> dict:
    """``tuner``, ``budget``, ``horizon`` and ``preconditioner`` of `sgtune.tune` from the configuration's sections
    (`settings_of`)."""
    section, method = settings[TUNERS[tuner].section], METHODS[method_of(tuner)]
    amounts = {"seconds": section.get("seconds"), "steps": section.get("n_steps")}
    ahead = section.get("horizon")
    own = {**section, "validation_fraction": settings["tuning"]["validation_fraction"]}
    if method.choose is not None:
        # It runs no arm and needs no clock: costs give the number of steps that the horizon buys.
        own.pop("clock", None)
    return {
        "tuner": with_numbers(method, settings["grids"], own),
        "budget": Budget(**amounts) if any(amounts.values()) else None,
        "horizon": None if ahead is None else Budget(seconds=ahead),
        # As in the papers, whose step sizes are for the parameters themselves.
        "preconditioner": "none",
    }


def as_grid(grid: Mapping[str, Iterable]) -> Grid:
    """A configuration's grid: keys without a field of `sgtune.tuning.Grid` are further axes."""
    further = {name: tuple(values) for name, values in grid.items()}
    axes = {entry.name: further.pop(entry.name) for entry in fields(Grid) if entry.name in further}
    return Grid(**axes, hyperparameters=further)


def with_numbers(tuner: Tuner, grid: Mapping[str, Iterable], numbers: Mapping) -> Tuner:
    """``tuner`` on a ``grid`` of the configuration, with those of the ``numbers`` that it, or its judge, has."""
    given = {name: number for name, number in numbers.items() if number is not None} | {"grid": as_grid(grid)}
    if tuner.judge is not None:
        scores = {name: given.get(name, number) for name, number in tuner.judge.scores.items()}
        given["judge"] = replace(tuner.judge, scores=scores)
    return replace(tuner, **{entry.name: given[entry.name] for entry in fields(tuner) if entry.name in given})


def tune_sampler(
    task: Task,
    settings: Mapping[str, Mapping],
    *,
    startup: float = 0.0,
    warn: Callable[[str], None] = lambda line: None,
) -> list[dict]:
    """A record for each tuner of ``settings`` (tuner -> its sections of the configuration) and tuning replicate.

    The tuners, in their order, share compiled programs, and within a replicate the random streams of an arm. A tuner
    without randomness has one replicate. In a record's seconds, ``cold`` is the time that a user waits who runs this
    tuner alone in a new process, including ``startup``, the seconds of the process until now, and all compilation of
    sampling programs; ``warm`` has neither. A tuner that finds no arm has ``best`` None, and a ``reason``.
    """

    def race(tuner: str, own: Mapping, replicate: int, fraction: float) -> dict:
        task.report(f"{tuner}, replicate {replicate + 1}/{n_races(tuner, own)}:")
        arguments, reason = tuning_arguments(own, tuner) | {"seed": task.seed, "cost": task.cost}, ""
        try:
            result = tune(task.model, task.sampler, replicate=replicate, report=task.report, **arguments)
        except AllDivergedError as failure:
            result, reason = failure.result, str(failure)
            warn(f"{tuner} found no arm of {task.sampler} for {task.model.name}: {reason}")
        record = result.to_dict() | {"reason": reason, "tuner": tuner, "replicate": replicate}
        seconds = record["seconds"]
        seconds["startup"] = startup
        seconds["cold"] = startup + seconds["total"] + seconds["shared_compilation"]
        task.report(
            f"{tuner}: best {record['best']}, {seconds['warm']:.1f} s warm, {seconds['cold']:.1f} s cold"
        )
        return record | {"validation_fraction": fraction}

    records = []
    for tuner, own in settings.items():
        by_predictions = METHODS[method_of(tuner)].tasks is not None
        fraction = own["tuning"]["validation_fraction"] if by_predictions else 0
        if fraction:
            # The mode is found before a tuner's time begins, as for the model with all rows.
            map_result(hold_out(task.model, fraction), **own["map"])
        for i in range(n_races(tuner, own)):
            records.append(task.once(f"{tuner} {i}", partial(race, tuner, own, i, fraction), settings=own))
    return records


def chosen_arms(records: Iterable[Mapping]) -> dict[str, list[Mapping | None]]:
    """From `tune_sampler`'s records: tuner -> its arm, or None, in each tuning replicate."""
    chosen: dict[str, list] = {}
    for record in records:
        chosen.setdefault(record["tuner"], []).append(record["best"])
    return chosen


def with_facts(rows: Iterable[Mapping], records: Iterable[Mapping]) -> list[dict]:
    """The ``rows`` of tuners with ``validation_fraction`` from `tune_sampler`'s records, and the first ``reason`` why
    the tuner found no arm."""
    facts: dict[str, dict] = {}
    for record in records:
        known = facts.setdefault(record["tuner"], {"reason": ""})
        known["validation_fraction"] = record["validation_fraction"]
        known["reason"] = known["reason"] or record["reason"]
    return [{**row, **facts[row["tuner"]]} for row in rows]


def compare_horizons(task: Task, settings: Mapping) -> dict:
    """For each sampler and horizon the arm of each of `AHEAD`, all from the same race budget R (``mamba.seconds``), in
    one race each, by measured costs; then fresh runs of all these arms for the longest horizon. A killed job loses at
    most the races of one sampler, or one replicate of its arms.

    Returns:
        ``seconds`` (the horizons), ``race_seconds`` (R), ``losses`` (their names), and ``samplers``: for each
        ``sampler`` the ``arms``, the choices ``chosen`` (tuner, horizon, the arm's place or None, and its ``predicted``
        error), and ``runs`` (of `run_replicates`).
    """
    section, losses = settings["horizons"], losses_of(task, prediction_draws=0)

    def of_sampler(sampler: str) -> dict:
        own = task._replace(sampler=sampler)
        chosen = own.once(sampler, partial(_choices, own, settings))
        best = [one["best"] and Arm(**one["best"]) for one in chosen]
        arms = list(dict.fromkeys(arm for arm in best if arm is not None))
        options = {"losses": losses, "seconds": section["seconds"]}
        return {
            "sampler": sampler,
            "arms": [arm.to_record() for arm in arms],
            "chosen": [
                {
                    **{name: one[name] for name in ("tuner", "horizon", "predicted")},
                    "arm": None if arm is None else arms.index(arm),
                }
                for one, arm in zip(chosen, best, strict=True)
            ],
            "runs": run_replicates(own, arms, "horizons", section["replicates"], **options),
        }

    return {
        "seconds": section["seconds"],
        "race_seconds": settings["mamba"]["seconds"],
        "losses": list(losses.names),
        "samplers": [of_sampler(sampler) for sampler in section["samplers"]],
    }


def _choices(task: Task, settings: Mapping) -> list[dict]:
    """Of each tuner and horizon the record of the ``best`` arm and its ``predicted`` error, the value in its last rung;
    None if all diverged."""
    rows = []
    for tuner, seconds in product(AHEAD, settings["horizons"]["seconds"]):
        arguments = tuning_arguments(settings, tuner)
        arguments["horizon"] = Budget(seconds=seconds)
        arguments["tuner"] = replace(arguments["tuner"], clock="calibrated")
        best, values = None, []
        with suppress(AllDivergedError):
            result = tune(task.model, task.sampler, cost=task.cost, seed=task.seed, **arguments)
            best = result.best.to_record()
            values = [row["discrepancy"] for row in result.rows if best.items() <= row.items()]
        task.report(f"{task.sampler}, {tuner} for {seconds:g} s: {best}")
        predicted = values[-1] if values else None
        rows.append({"tuner": tuner, "horizon": seconds, "best": best, "predicted": predicted})
    return rows
