"""Losses of arms in replicates, screens with oracles, fresh runs of the best and of the chosen arms."""

import json
from functools import partial

import numpy as np
import pytest
from job_pieces import Log
from small_models import small_logistic_model

from sgtune import Arm, Budget, CostTable, metrics
from sgtune.mode.curvature import laplace_scale
from sgtune.mode.find import map_position
from sgtune.sampling import lockstep
from sgtune.sampling.lockstep import Lockstep
from sgtune.sampling.thinning import evenly_spaced
from sgtune.study.experiments.losses import Losses, capped, frozen_losses, losses_of, raced_arm, run_arms
from sgtune.study.experiments.screen import rerun_finalists, screen_grid
from sgtune.study.pipeline.parts import Task
from sgtune.tuning import Grid, Halving

COST = CostTable({("sgld", 40, None): 1e-3, ("sgld", 400, None): 2e-3})
GOOD, SMALL, BAD = Arm(1e-4, 40), Arm(1e-5, 40), Arm(1e6, 40)
GRID = {"log10_step_sizes": [6, -3, -4, -5, -6], "batch_fractions": [0.1]}
SECTION = {
    **{"finalists": 2, "seconds": [0.05, 0.2], "replicates": 3, "prediction_draws": 0},
    "screen": {"seconds": 0.05, "replicates": 2, "oracle_losses": 2},
}


@pytest.fixture(scope="module")
def model():
    return small_logistic_model(n_data=400)


@pytest.fixture(scope="module")
def reference(model):
    scale = laplace_scale(model)
    covariance = scale @ scale.T
    return metrics.Reference(np.sqrt(np.diagonal(covariance)), covariance)


@pytest.fixture(scope="module")
def losses(reference):
    return Losses(("xi_white", "relative_sd_error", "log_loss"), reference, prediction_draws=8)


@pytest.fixture
def run(model, losses):
    return partial(run_arms, Task(model, "sgld", cost=COST), losses=losses, seconds=[0.1], replicate="a")


@pytest.mark.parametrize("chunk", [1024, 7])
def test_losses_are_those_of_all_draws_and_of_predictions_evenly_spaced(
    model, losses, run, monkeypatch, chunk
):
    """Also where the run is longer than a chunk of steps: draws that predict keep their spacing, with and without a
    reference."""
    monkeypatch.setattr(lockstep, "CHUNK_DRAWS", chunk)
    arms = [GOOD, SMALL, Arm(1e-4, 400)]
    by_predictions = losses._replace(names=("log_loss",), reference=None)
    found, bare = (run(arms, seconds=[0.1, 0.15], losses=own) for own in (losses, by_predictions))
    for arm, rows, without in zip(arms, found, bare, strict=True):
        assert [row["losses"]["log_loss"] for row in without] == [row["losses"]["log_loss"] for row in rows]
        together = [other for other in arms if other.batch_size == arm.batch_size]
        for seconds, row in zip((0.1, 0.15), rows, strict=True):
            n_steps = round(seconds / (1e-3 if arm.batch_size == 40 else 2e-3))
            ensemble = Lockstep(model, "sgld", together, replicate="a")
            draws = ensemble.advance(n_steps)[:, together.index(arm)]
            errors = metrics.reference_errors(model, draws, losses.reference)
            assert (row["steps"], row["diverged"]) == (n_steps, False)
            assert row["losses"]["xi_white"] == pytest.approx(errors["xi_white"], rel=1e-5)
            assert row["losses"]["relative_sd_error"] == pytest.approx(errors["relative_sd_error"], rel=1e-5)
            every = -(-rows[0]["steps"] // 8)
            spaced = evenly_spaced(draws[every - 1 :: every], 8)
            predicted = metrics.predictive_metrics(model, spaced)
            assert row["losses"]["log_loss"] == pytest.approx(predicted["log_loss"], rel=1e-5)


def test_a_run_depends_only_on_its_arm_and_replicate(run):
    """A run does not depend on other arms or on checkpoints; an arm may occur twice."""
    (once,), (again,), _ = run([GOOD, GOOD, SMALL])
    (other_replicate,) = run([GOOD], replicate="b")[0]
    early, late = run([GOOD, SMALL], seconds=[0.1, 0.3])[0]
    ((filled_up,),) = run([GOOD], width=5)
    _, (second,) = run([SMALL, GOOD], width=1)
    for other in (again, early, filled_up, second):
        # From jax 0.12 on a program of one chain rounds otherwise than one of several.
        assert other["losses"] == pytest.approx(once["losses"], rel=1e-4)
        assert {**other, "losses": None} == {**once, "losses": None}
    assert late["steps"] == 300
    assert other_replicate["losses"] != once["losses"]
    assert run([GOOD], seconds=[1e-6])[0][0]["steps"] == 10


def test_an_arm_that_diverges_is_named_and_counts_as_the_cap(run):
    (good,), (bad,) = run([GOOD, BAD])
    assert (good["diverged"], bad["diverged"]) == (False, True)
    assert set(bad["losses"].values()) == {10.0}
    assert [capped("xi_white", value) for value in (3.0, 11.0, np.inf)] == [3.0, 10.0, 10.0]
    assert [capped("brier", value) for value in (1.5, np.nan)] == [1.5, 2.0]


def test_losses_are_those_that_the_reference_knows(model, reference):
    without = metrics.Reference(reference.sd)
    wanted = Losses(("xi_white", "relative_sd_error"), reference, 5)
    assert losses_of(Task(model, reference=reference), 5) == wanted
    assert losses_of(Task(model, reference=without), 5).names == ("relative_sd_error",)
    assert losses_of(Task(model), 5) == Losses(("log_loss", "brier"), None, 5)


def test_a_frozen_chain_has_no_spread(model, losses):
    found = frozen_losses(model, losses)
    at_mode = metrics.at_position(model, map_position(model))
    assert found == {"xi_white": 1.0, "relative_sd_error": 1.0, "log_loss": at_mode["log_loss"]}


def test_an_oracle_judges_by_the_true_loss_of_its_own_draws(model, losses):
    """In a race of one rung it takes the arm whose draws have the smallest error; they are those that tuners see."""
    arms = [Arm(step, 40) for step in (1e-3, 1e-4, 1e-5)]
    tuner = Halving(judge=losses.judge("xi_white"), grid=Grid((-3, -4, -5), (0.1,)), thin=1, pruning_rate=100)
    task, budget = Task(model, "sgld", cost=COST, seed=7), Budget(steps=30)
    for i in range(4):
        draws = Lockstep(model, "sgld", arms, seed=7, replicate=f"race {i}").advance(30)
        errors = [metrics.reference_errors(model, draws[:, place], losses.reference) for place in range(3)]
        best = raced_arm(task, tuner=tuner, budget=budget, replicate=i)
        smallest = int(np.argmin([error["xi_white"] for error in errors]))
        assert best.step_size == pytest.approx(arms[smallest].step_size)
    tuner = Halving(judge=losses.judge("xi_white"), grid=Grid((6,), (0.1,)), thin=1)
    assert raced_arm(task, tuner=tuner, budget=budget, replicate=0) is None


@pytest.fixture
def job(model, reference, tmp_path):
    return lambda name, grid=GRID: Log(tmp_path / name, model, "sgld", grid, COST, reference)


def screened(log):
    return screen_grid(log.task, SECTION, race={"seconds": 0.03, "pruning_rate": 2}, n_races=2)


def test_from_the_screen_to_the_finalists(job):
    screen = screened(job("screen"))
    assert screen["arms"][0]["diverged"] == [True, True]
    oracles = {name: len(arms) for name, arms in screen["oracles"].items()}
    assert oracles == {"xi_white": 2, "relative_sd_error": 2}
    chosen = {"tuner": [{"step_size": 1e-6, "batch_size": 40, "n_leapfrog": None}, None]}
    found = rerun_finalists(job("regret").task, SECTION, screen, chosen)
    json.dumps(found, allow_nan=False)
    arms = [Arm(**arm) for arm in found["arms"]]
    assert len(set(arms)) == len(arms)
    assert found["chosen"] == [{"tuner": "tuner", "arms": [arms.index(Arm(1e-6, 40)), None]}]
    for name in screen["oracles"]:
        means = {Arm(arm["step_size"], 40): np.mean(arm["losses"][name]) for arm in screen["arms"]}
        assert [arms[place] for place in found["finalists"][name]] == sorted(means, key=means.get)[:2]
    for name, oracles in screen["oracles"].items():
        assert [arms[place] for place in found["oracles"][name]] == [Arm(**arm) for arm in oracles]
    at_random = [arms[place] for place in found["random"]]
    assert len(at_random) == len(set(at_random)) == 4, "all that stayed finite, of fewer than five"
    assert 1e6 not in {arm.step_size for arm in at_random}
    pairs = [(place, seconds) for place in range(len(arms)) for seconds in (0.05, 0.2)]
    assert [(run["arm"], run["seconds"]) for run in found["runs"]] == pairs
    # Runs are fresh: the same arm and length have other draws than in the screen, and replicates differ.
    of_screen = {arm["step_size"]: arm["losses"]["xi_white"] for arm in screen["arms"]}
    for run in found["runs"]:
        values = run["losses"]["xi_white"]
        assert len(set(values)) == len(run["diverged"]) == 3
        if run["seconds"] == 0.05:
            assert not set(of_screen[found["arms"][run["arm"]]["step_size"]]) & set(values)


def test_pieces_of_a_screen_are_taken_unless_they_are_of_another_grid(job):
    whole, again = screened(job("parts")), job("parts")
    assert screened(again) == whole
    assert again.taken()
    other = job("parts", {**GRID, "log10_step_sizes": [-3.5, -4.5]})
    found = screened(other)
    assert other.taken() == []
    assert [arm["step_size"] for arm in found["arms"]] == pytest.approx([10**-3.5, 10**-4.5])
    chosen = {"tuner": [{"step_size": 1e-6, "batch_size": 40, "n_leapfrog": None}]}
    # Nor those of other arms.
    for own, is_taken in (({}, False), ({}, True), (chosen, False)):
        log = job("regret")
        rerun_finalists(log.task, SECTION, found, own)
        assert bool(log.taken()) == is_taken
