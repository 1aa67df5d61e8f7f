"""Choices of tuners that look ahead for runs of several lengths, and the errors of each choice in the longest run."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from sgtune.sampling.arm import Arm
from sgtune.sampling.budget import Budget
from sgtune.study.experiments.losses import losses_of, run_arms, runs_of
from sgtune.study.experiments.tune import tuning_arguments
from sgtune.study.pipeline.parts import Task
from sgtune.tuning import AllDivergedError, tune

__all__ = ["AHEAD", "compare_horizons"]

AHEAD = ("mamba", "theory")
"""The tuners that are compared."""


def compare_horizons(task: Task, settings: Mapping) -> dict:
    """For each sampler and horizon the arm of each of `AHEAD`, all from the same race budget R (``mamba.seconds``), in
    one race each, by measured costs; then fresh runs of all these arms for the longest horizon. A killed job loses at
    most the races of one sampler, or one replicate of its arms.

    Args:
        settings: sections of the configuration (`settings_of`, kind ``horizons``).

    Returns:
        ``seconds`` (the horizons), ``race_seconds`` (R), ``losses`` (their names), and ``samplers``: for each
        ``sampler`` the ``arms``, the choices ``chosen`` (tuner, horizon, the arm's place or None, and its ``foreseen``
        error), and ``runs`` (for each arm and horizon: steps, and lists over replicates of ``diverged`` and of each
        loss).
    """
    section, losses = settings["horizons"], losses_of(task, prediction_draws=0)

    def choices(own: Task) -> list[dict]:
        rows = []
        for tuner in AHEAD:
            for seconds in section["seconds"]:
                choice = _choice(own, tuner, seconds, settings)
                task.report(f"{own.sampler}, {tuner} for {seconds:g} s: {choice['best']}")
                rows.append({"tuner": tuner, "horizon": seconds, **choice})
        return rows

    def of_sampler(sampler: str) -> dict:
        own = task._replace(sampler=sampler)
        chosen = own.once(sampler, partial(choices, own))
        records = [one["best"] for one in chosen if one["best"] is not None]
        arms = [record for place, record in enumerate(records) if record not in records[:place]]
        run = partial(run_arms, own, [Arm(**arm) for arm in arms], losses=losses, seconds=section["seconds"])
        replicates = [
            own.once(f"{sampler}-{i}", partial(run, replicate=f"horizons {i}"))
            for i in range(section["replicates"])
        ]
        return {
            "sampler": sampler,
            "arms": arms,
            "chosen": [
                {
                    **{name: one[name] for name in ("tuner", "horizon", "foreseen")},
                    "arm": None if one["best"] is None else arms.index(one["best"]),
                }
                for one in chosen
            ],
            "runs": runs_of(replicates, section["seconds"]),
        }

    return {
        "seconds": section["seconds"],
        "race_seconds": settings["mamba"]["seconds"],
        "losses": list(losses.names),
        "samplers": [of_sampler(sampler) for sampler in section["samplers"]],
    }


def _choice(task: Task, tuner: str, seconds: float, settings: Mapping) -> dict[str, dict | float | None]:
    """The record of the ``best`` arm for runs of this many seconds and its ``foreseen`` error, the value in its last
    rung; None if all diverged."""
    arguments = tuning_arguments(settings, tuner)
    arguments["horizon"] = Budget(seconds=seconds)
    arguments["settings"] = replace(arguments["settings"], clock="calibrated")
    try:
        result = tune(task.model, task.sampler, cost=task.cost, seed=task.seed, **arguments)
    except AllDivergedError:
        return {"best": None, "foreseen": None}
    best = result.best.to_record()
    values = [row["discrepancy"] for row in result.rows if all(row[name] == best[name] for name in best)]
    return {"best": best, "foreseen": values[-1] if values else None}
