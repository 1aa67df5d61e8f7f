"""Races with one defect of the code behind the paper, and runs of their choices.

* explicit: SGHMC kicks with the gradient from before the drift (`sgtune.samplers.sghmc`).
* restarts: momenta are fresh in every rung, whose draws alone judge it (`sgtune.tuning.Halving`).
* u_statistic: the FSSD is a U-statistic, negative for some draws, and the most negative arm wins; all its locations
  come from one key (`fssd_u_statistic`).
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import numpy as np
from jaxtyping import Float

from sgtune.model import Model
from sgtune.model.posterior import scores
from sgtune.sampling.budget import CostTable
from sgtune.stein import optimise_locations
from sgtune.study.experiments.evaluate import evaluate_tuned
from sgtune.study.experiments.losses import raced_arm
from sgtune.study.experiments.tune import tuning_arguments
from sgtune.study.pipeline.parts import Task
from sgtune.study.pipeline.plan import n_races
from sgtune.tuning import Halving, Judge, Tuner
from sgtune.tuning.judges import ArmDraws, Judgement


def audit_sampler(task: Task, defect: str, settings: Mapping) -> dict:
    """What the tuners choose for a sampler with one defect (or ``as_published``: all of them), and runs of it: by the
    streams and the settings of the main study, so that all else is equal. ``settings``:
    `sgtune.study.audit.artifacts.settings_of`.

    Returns:
        `evaluate_tuned`, with the ``defect``.
    """
    if defect in ("explicit", "as_published") and task.sampler.startswith("sghmc"):
        task = explicit(task)

    def chosen(tuner: str, replicate: int) -> dict | None:
        arguments = tuning_arguments(settings["tuners"][tuner], tuner)
        own = with_defect(arguments["tuner"], tuner, defect)
        arm = raced_arm(task, tuner=own, budget=arguments["budget"], replicate=replicate)
        task.report(f"{defect}, {tuner}, race {replicate}: {arm}")
        return arm and arm.to_record()

    arms = {
        tuner: [
            task.once(f"{tuner} {i}", partial(chosen, tuner, i), tuning=own)
            for i in range(n_races(tuner, own))
        ]
        for tuner, own in settings["tuners"].items()
    }
    no_curves = {**settings["evaluation"], "curves": {"replicates": 0}}
    return {"defect": defect, **evaluate_tuned(task, arms, no_curves)}


def explicit(task: Task) -> Task:
    """The task on the explicit SGHMC, a step of which costs as much."""
    sampler = task.sampler.replace("sghmc", "sghmc-as-published")
    costs = task.cost.seconds_per_step
    renamed = {(sampler, *shape): cost for (name, *shape), cost in costs.items() if name == task.sampler}
    return task._replace(sampler=sampler, cost=CostTable(renamed))


def with_defect(tuner: Tuner, name: str, defect: str) -> Tuner:
    """The ``tuner`` of this ``name``, with what of the defect concerns it."""
    if defect in ("restarts", "as_published") and isinstance(tuner, Halving):
        tuner = replace(tuner, restarts=True)
    if defect in ("u_statistic", "as_published") and name == "mamba-fssd":
        tuner = replace(tuner, judge=Judge(u_statistic_metric))
    return tuner


def u_statistic_metric(seed: int):
    """The metric of `fssd_u_statistic`, with scores of all data."""

    def judge(model: Model, arms: list[ArmDraws]) -> Judgement:
        values = [
            fssd_u_statistic(arm.points, scores(model, arm.points), seed) if arm.usable else np.inf
            for arm in arms
        ]
        return Judgement(values, 0.0, 0.0, sum(len(arm.points) for arm in arms) * model.n_data)

    return judge


def fssd_u_statistic(
    positions: Float[np.ndarray, "n d"], scores: Float[np.ndarray, "n d"], seed: int
) -> float:
    """The unbiased estimate of FSSD^2 (Jitkrittum et al. 2017): the mean over pairs of two different draws, so that it
    may be negative. Locations from one key are all the same: one location, optimised on one half of the draws as in
    `sgtune.stein.fssd`. Infinite if draws or scores are not finite."""
    even, odd = (slice(0, None, 2), slice(1, None, 2)) if len(positions) >= 4 else (slice(None), slice(None))
    (location,) = optimise_locations(positions[even], scores[even], seed=seed, n_locations=1)
    x, s = positions[odd].astype(np.float64), scores[odd].astype(np.float64)
    away = x - location
    root = 1 / np.sqrt(1 + np.sum(away**2, axis=1, keepdims=True))
    witnesses = root * s - root**3 * away
    n = len(x)
    pairs, own = np.sum(witnesses.sum(axis=0) ** 2), np.sum(witnesses**2)
    value = (pairs - own) / (n * (n - 1)) if n > 1 else own
    return float(value / x.shape[1]) if np.isfinite(value) else float("inf")
