"""Choices of tuners that look ahead for runs of several lengths, and the errors of each choice in the longest run."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from sgtune.metrics import Reference
from sgtune.model import Model
from sgtune.sampling.arm import Arm
from sgtune.sampling.budget import Budget, CostTable
from sgtune.study.artifacts.records import foreseen_of
from sgtune.study.config.sections import fingerprint
from sgtune.study.parts import Parts, code_digest
from sgtune.study.per_sampler import tuning_arguments
from sgtune.study.regret import run_arms, runs_of
from sgtune.study.screen import losses_of
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
    one race each, by measured costs; then fresh runs of all these arms for the longest horizon.

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
    depends_on = {"settings": settings, "inputs": dict(inputs), "seed": seed, "code": code_digest()}

    def of_sampler(sampler: str) -> dict:
        choices = [
            {
                "tuner": tuner,
                "horizon": seconds,
                **_choice(model, sampler, tuner, seconds, settings, cost, seed),
            }
            for tuner in AHEAD
            for seconds in section["seconds"]
        ]
        for one in choices:
            report(f"{sampler}, {one['tuner']} for {one['horizon']:g} s: {one['best']}")
        arms = list(dict.fromkeys(one["best"] for one in choices if one["best"] is not None))
        replicates = [
            run_arms(
                model,
                sampler,
                arms,
                losses=losses,
                seconds=section["seconds"],
                cost=cost,
                replicate=f"horizons {i}",
                seed=seed,
                report=report,
            )
            for i in range(section["replicates"])
        ]
        chosen = [
            {
                **{name: one[name] for name in ("tuner", "horizon", "foreseen")},
                "arm": None if one["best"] is None else arms.index(one["best"]),
            }
            for one in choices
        ]
        return {
            "sampler": sampler,
            "arms": [arm.to_record() for arm in arms],
            "chosen": chosen,
            "runs": runs_of(replicates, section["seconds"]),
        }

    found = []
    for sampler in section["samplers"]:
        own = fingerprint({**depends_on, "sampler": sampler})
        record = parts.get(sampler, own)
        if record is None:
            record = of_sampler(sampler)
            parts.keep(sampler, own, record)
        found.append(record)
    return {
        "seconds": section["seconds"],
        "race_seconds": settings["mamba"]["seconds"],
        "losses": list(losses.names),
        "samplers": found,
    }


def _choice(
    model: Model,
    sampler: str,
    tuner: str,
    seconds: float,
    settings: Mapping,
    cost: CostTable,
    seed: int,
) -> dict[str, Arm | float | None]:
    """The ``best`` arm for a run of this many seconds, and its ``foreseen`` error; None if all arms diverged."""
    arguments = tuning_arguments(settings, tuner)
    arguments |= {
        "horizon": Budget(seconds=seconds),
        "settings": replace(arguments["settings"], clock="calibrated"),
    }
    try:
        result = tune(model, sampler, cost=cost, seed=seed, **arguments)
    except AllDivergedError:
        return {"best": None, "foreseen": None}
    return {"best": result.best, "foreseen": foreseen_of(result.best.to_record(), result.rows)}
