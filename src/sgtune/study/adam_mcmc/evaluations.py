"""Samplers tuned by the default tuner at equal seconds: discrepancies, errors and predictions."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from sgtune import metrics
from sgtune.metrics import Reference
from sgtune.mode.find import map_position
from sgtune.model import Model
from sgtune.model.positions import flatten
from sgtune.sampling.arm import Arm, shape_of
from sgtune.sampling.budget import CostTable
from sgtune.study.adam_mcmc.races import race_once
from sgtune.study.config.sections import fingerprint
from sgtune.study.experiments.evaluate import EvaluationSettings, evaluate_run, in_short, stein_metrics
from sgtune.study.pipeline.parts import Parts, code_digest

__all__ = ["evaluate_sampler"]


def evaluate_sampler(
    model: Model,
    sampler: str,
    grid: Mapping[str, Sequence],
    section: Mapping,
    *,
    pruning_rate: int,
    reference: Reference | None,
    cost: CostTable,
    seed: int,
    parts: Parts,
    depends_on: Mapping,
    report: Callable[[str], None] = lambda line: None,
) -> dict:
    """Races of the default tuner, and runs of their choices from the MAP, for ``seconds`` converted to steps by the
    measured costs. Run r uses the choice of race r; if there are fewer races, they repeat.

    Args:
        section: of the model, in the configuration's section ``adam_mcmc.evaluation``.

    Returns:
        ``arms`` (None: no arm stayed finite) with their ``edges``, ``warnings`` of the races, ``table``, a row for
        each run (`sgtune.study.experiments.evaluate.evaluate_run`), ``seconds``, ``race_seconds``,
        ``seconds_per_step`` of each
        of the arms, and ``map``: the predictions at the MAP, and ``ksd`` of a chain that stays there.
    """
    races = [
        race_once(
            model,
            sampler,
            "mamba",
            grid,
            seconds=section["race_seconds"],
            horizon=section["seconds"],
            pruning_rate=pruning_rate,
            cost=cost,
            seed=seed,
            replicate=replicate,
            parts=parts,
            depends_on=depends_on,
            report=report,
        )
        for replicate in range(section["races"])
    ]
    arms = [None if race["best"] is None else Arm(**race["best"]) for race in races]
    settings = EvaluationSettings(
        seconds=section["seconds"],
        thin=section["thin"],
        burn_in=section["burn_in"],
        kept_draws=section["kept_draws"],
        ksd_points=section["ksd_points"],
        prediction_draws=section["prediction_draws"],
        curve_seconds=(),
        curve_points=0,
        curve_prediction_draws=0,
    )
    rows = []
    for replicate in range(section["replicates"]):
        arm = arms[replicate % len(arms)]
        if arm is None:
            rows.append({"replicate": replicate, "no_arm": True})
            continue
        name = f"run {replicate}"
        own = fingerprint({**depends_on, "arm": arm.to_record(), "run": replicate, "code": code_digest()})
        row = parts.get(name, own)
        if row is None:
            row = evaluate_run(
                model,
                sampler,
                arm,
                replicate,
                settings=settings,
                has_curve=False,
                reference=reference,
                cost=cost,
                seed=seed,
            )["table"]
            parts.keep(name, own, row)
            report(f"{name}: {row['n_samples']} samples, {in_short(row)}")
        rows.append(row)
    return {
        "tuner": "mamba",
        "arms": [race["best"] for race in races],
        "best": next((race["best"] for race in races if race["best"] is not None), None),
        "n_arms": races[0]["n_arms"],
        "edges": [race["edges"] for race in races],
        "table": rows,
        "race_seconds": section["race_seconds"],
        "seconds": section["seconds"],
        "warnings": [warning for race in races for warning in race["warnings"]],
        "seconds_per_step": [None if arm is None else cost.lookup(*shape_of(sampler, arm)) for arm in arms],
        "map": {**metrics.at_position(model, map_position(model)), "ksd": _frozen_ksd(model)},
    }


def _frozen_ksd(model: Model) -> float:
    """The KSD of a chain that stays at the MAP, of any length: the root of the kernel's diagonal there."""
    mode = flatten(map_position(model))
    (found,) = stein_metrics(model, [np.stack([mode, mode])], at_most=[2], streams=[("frozen",)])
    return found["ksd"]
