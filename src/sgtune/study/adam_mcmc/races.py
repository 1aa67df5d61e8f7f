"""Samplers with a Metropolis test on a posterior: races by several judges, their regret, and equal seconds."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

import numpy as np

from sgtune.mode.find import map_position
from sgtune.model import Model
from sgtune.model.positions import flatten
from sgtune.samplers import resolve_sampler
from sgtune.sampling.arm import shape_of
from sgtune.sampling.budget import Budget, CostTable
from sgtune.study.experiments.evaluate import evaluate_tuned, stein_metrics
from sgtune.study.experiments.losses import raced_arm
from sgtune.study.experiments.screen import rerun_finalists, screen_grid
from sgtune.study.experiments.tune import as_grid
from sgtune.study.pipeline.parts import Task
from sgtune.study.report.records import rows_of
from sgtune.support.errors import InputError
from sgtune.tuning import Halving, acceptance, at_horizon, make_arms, stein
from sgtune.tuning import calibrate_cost as calibrate

JUDGES = {"mamba": at_horizon, "mamba-ksd": stein, "acceptance": acceptance}
"""By the name of the configuration: the default tuner's judge, the KSD of the MAMBA paper, and |acceptance - optimum|
(its Sect. 5.1), which is for samplers without a bias: MALA and HMC."""


def least_costs(
    model: Model,
    samplers: Mapping[str, Mapping[str, Sequence]],
    shapes: Iterable[tuple],
    settings: Mapping,
    *,
    report: Callable[[str], None] = lambda line: None,
) -> CostTable:
    """The smallest of several measured costs of a step: of ``shapes``, and of the arms of all ``samplers``' grids.

    All shapes are measured one after another, and then again, ``repeats`` times: what slows the machine for some
    seconds slows every shape in one pass, and the minimum leaves it out. A disturbance only makes steps slower.
    """
    of_grids = [
        shape_of(name, arm) for name in samplers for arm in make_arms(model.n_data, name, **samplers[name])
    ]
    measure = partial(calibrate, model, list(dict.fromkeys([*shapes, *of_grids])), report=report)
    passes = [measure(seconds=settings["seconds"]).seconds_per_step for _ in range(settings["repeats"])]
    return CostTable({shape: min(own[shape] for own in passes) for shape in passes[0]})


def _race(
    task: Task, judge: str, replicate: int, *, seconds: float, horizon: float, pruning_rate: int
) -> dict:
    """Successive halving of all arms of the grid: ``judge``, ``replicate`` and ``best`` (None: every arm diverged). The
    arm that runs longest has so many ``seconds``; the default tuner's judge looks ahead to the ``horizon``."""

    def run() -> dict:
        tuner = Halving(judge=JUDGES[judge](), pruning_rate=pruning_rate, grid=as_grid(task.grid))
        budgets = {"budget": Budget(seconds=seconds), "horizon": Budget(seconds=horizon)}
        arm = raced_arm(task, tuner=tuner, replicate=replicate, **budgets)
        return {"judge": judge, "replicate": replicate, "best": arm and arm.to_record()}

    name = f"{judge} {replicate}"
    record = task.once(name, run, seconds=seconds, horizon=horizon)
    task.report(f"{name}: {record['best']}")
    return record


def race_sampler(task: Task, section: Mapping) -> dict:
    """``races`` by every judge, and ``regret``: the arms chosen and the best of a screen in fresh replicates
    (`sgtune.study.experiments.screen.rerun_finalists`), by section ``adam_mcmc.race``.
    """
    if task.reference is None:
        raise InputError("reference.nuts: False is not allowed for the study adam_mcmc; it must be true")
    # An acceptance rate depends on the step size, but does not show AdamMCMC's bias.
    is_exact = resolve_sampler(task.sampler)[0].needs_all_data
    judges = [name for name in section["judges"] if name != "acceptance" or is_exact]
    regret = {**section["regret"], "prediction_draws": 0}
    budget = {name: section[name] for name in ("seconds", "pruning_rate")}
    races = [
        _race(task, judge, replicate, horizon=regret["seconds"][-1], **budget)
        for judge in judges
        for replicate in range(section["replicates"])
    ]
    screened = screen_grid(task, regret, race=budget, n_races=section["replicates"])
    chosen = {judge: [race["best"] for race in races if race["judge"] == judge] for judge in judges}
    found = rerun_finalists(task, regret, screened, chosen)
    return {"races": races, "seconds": section["seconds"], "regret": found}


def evaluate_sampler(task: Task, section: Mapping, pruning_rate: int) -> dict:
    """Races of the default tuner, and runs of their choices from the MAP, for ``seconds`` converted to steps by the
    measured costs. Run r uses the choice of race r; if there are fewer races, they repeat. By section
    ``adam_mcmc.evaluation``.

    Returns:
        ``arms`` (None: no arm stayed finite), ``table``, a row for each run
        (`sgtune.study.experiments.evaluate.evaluate_run`), ``seconds``, ``race_seconds``, and ``map``: the ``ksd`` of
        a chain that stays there, of any length.
    """
    budget = {"seconds": section["race_seconds"], "horizon": section["seconds"], "pruning_rate": pruning_rate}
    arms = [_race(task, "mamba", replicate, **budget)["best"] for replicate in range(section["races"])]
    judged = {**section, "prediction_draws": 0, "curves": {"replicates": 0}}
    found = evaluate_tuned(task, {"mamba": arms}, judged)
    mode = flatten(map_position(task.model))
    frozen = stein_metrics(task.model, np.stack([mode, mode]), 2, "frozen")
    [own] = found["tuners"]
    # Without curves, whose rows are others.
    rows = {name: rows_of(own, found["runs"])[name] for name in ("best", "table")}
    seconds = {name: section[name] for name in ("race_seconds", "seconds")}
    return {"tuner": "mamba", "arms": arms, **rows, **seconds, "map": {"ksd": frozen["ksd"]}}
