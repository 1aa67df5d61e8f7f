"""Choices of tuners that look ahead for runs of several lengths, and the errors of each choice in the longest run."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from sgtune.metrics import Reference
from sgtune.model import Model
from sgtune.sampling.arm import Arm
from sgtune.sampling.budget import Budget, CostTable
from sgtune.study.experiments.losses import losses_of, run_arms, runs_of
from sgtune.study.experiments.tune import tuning_arguments
from sgtune.study.pipeline.parts import Parts
from sgtune.tuning import AllDivergedError, tune

__all__ = ["AHEAD", "compare_horizons"]

AHEAD = ("mamba", "theory")
"""The tuners that are compared."""


def compare_horizons(
    model: Model,
    settings: Mapping,
    *,
    reference: Reference,
    cost: CostTable,
    seed: int,
    parts: Parts,
    inputs: Mapping[str, str],
    report: Callable[[str], None] = lambda line: None,
) -> dict:
    """For each sampler and horizon the arm of each of `AHEAD`, all from the same race budget R (``mamba.seconds``), in
    one race each, by measured costs; then fresh runs of all these arms for the longest horizon. A killed job loses at
    most the races of one sampler, or one replicate of its arms.

    Args:
        settings: sections of the configuration (`settings_of`, kind ``horizons``).
        inputs: checksums of the inputs that the records depend on besides their settings.

    Returns:
        ``seconds`` (the horizons), ``race_seconds`` (R), ``losses`` (their names), and ``samplers``: for each
        ``sampler`` the ``arms``, the choices ``chosen`` (tuner, horizon, the arm's place or None, and its ``foreseen``
        error), and ``runs`` (for each arm and horizon: steps, and lists over replicates of ``diverged`` and of each
        loss).
    """
    section = settings["horizons"]
    losses = losses_of(model.name, reference, {"prediction_draws": 0})
    depends_on = {"settings": settings, "inputs": inputs, "seed": seed}

    def choices(sampler: str) -> list[dict]:
        rows = []
        for tuner in AHEAD:
            for seconds in section["seconds"]:
                choice = _choice(model, sampler, tuner, seconds, settings, cost, seed)
                report(f"{sampler}, {tuner} for {seconds:g} s: {choice['best']}")
                rows.append({"tuner": tuner, "horizon": seconds, **choice})
        return rows

    def of_sampler(sampler: str) -> dict:
        chosen = parts.once(sampler, depends_on, partial(choices, sampler))
        records = [one["best"] for one in chosen if one["best"] is not None]
        arms = [record for place, record in enumerate(records) if record not in records[:place]]
        run = partial(
            run_arms,
            model,
            sampler,
            [Arm(**arm) for arm in arms],
            losses=losses,
            seconds=section["seconds"],
            cost=cost,
            seed=seed,
            report=report,
        )
        replicates = [
            parts.once(f"{sampler}-{i}", depends_on, partial(run, replicate=f"horizons {i}"))
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


def _choice(
    model: Model, sampler: str, tuner: str, seconds: float, settings: Mapping, cost: CostTable, seed: int
) -> dict[str, dict | float | None]:
    """The record of the ``best`` arm for runs of this many seconds and its ``foreseen`` error, the value in its last
    rung; None if all diverged."""
    arguments = tuning_arguments(settings, tuner)
    arguments["horizon"] = Budget(seconds=seconds)
    arguments["settings"] = replace(arguments["settings"], clock="calibrated")
    try:
        result = tune(model, sampler, cost=cost, seed=seed, **arguments)
    except AllDivergedError:
        return {"best": None, "foreseen": None}
    best = result.best.to_record()
    values = [row["discrepancy"] for row in result.rows if all(row[name] == best[name] for name in best)]
    return {"best": best, "foreseen": values[-1] if values else None}
