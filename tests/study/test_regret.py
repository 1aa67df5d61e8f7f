"""The parts of regret: losses of every arm in replicates, oracles, and fresh runs of the best and the chosen arms."""

import json
from functools import partial

import numpy as np
import pytest
from small_models import small_logistic_model

from sgtune import Budget, CostTable, metrics
from sgtune.mode.curvature import laplace_scale
from sgtune.mode.find import map_position
from sgtune.sampling.arm import Arm
from sgtune.sampling.lockstep import Lockstep
from sgtune.study.experiments.regret import (
    Losses,
    best_arms,
    capped,
    frozen_losses,
    oracle_arm,
    random_arms,
    run_arms,
)
from sgtune.study.experiments.screen import losses_of, rerun_finalists, screen_grid
from sgtune.study.pipeline.parts import Parts
from sgtune.tuning import Grid, Halving

COST = CostTable({("sgld", 40, None): 1e-3, ("sgld", 400, None): 2e-3})
GOOD, BAD = Arm(1e-4, 40), Arm(1e6, 40)
GRID = {"log10_step_sizes": [6, -3, -4, -5, -6], "batch_fractions": [0.1]}
SCREEN = {"seconds": 0.05, "replicates": 2}
SECTION = {"finalists": 2, "seconds": [0.05, 0.2], "replicates": 3}


@pytest.fixture(scope="module")
def model():
    return small_logistic_model(n_data=400)


@pytest.fixture(scope="module")
def losses(model):
    scale = laplace_scale(model)
    covariance = scale @ scale.T
    reference = metrics.Reference(np.sqrt(np.diagonal(covariance)), covariance)
    return Losses(("xi_white", "relative_sd_error", "log_loss"), reference, prediction_draws=8)


@pytest.fixture
def run(model, losses):
    return partial(run_arms, model, "sgld", losses=losses, seconds=[0.1], cost=COST, replicate="a")


def test_losses_are_those_of_the_draws(model, losses, run):
    """Losses use running moments of all draws, and predictions averaged over evenly spaced draws."""
    arms = [GOOD, Arm(1e-5, 40), Arm(1e-4, 400)]
    for arm, (row,) in zip(arms, run(arms), strict=True):
        n_steps = 50 if arm.batch_size == 400 else 100
        together = [other for other in arms if other.batch_size == arm.batch_size]
        ensemble = Lockstep.at_mode(model, "sgld", together, replicate="a")
        draws = ensemble.advance(n_steps)[:, together.index(arm)]
        errors = metrics.reference_errors(model, draws, losses.reference)
        assert row["steps"] == n_steps
        assert not row["diverged"]
        assert row["losses"]["xi_white"] == pytest.approx(errors["xi_white"], rel=1e-5)
        assert row["losses"]["relative_sd_error"] == pytest.approx(errors["relative_sd_error"], rel=1e-5)
        every = -(-n_steps // 8)
        predicted = metrics.predictive_metrics(model, draws[every - 1 :: every])
        assert row["losses"]["log_loss"] == pytest.approx(predicted["log_loss"], rel=1e-5)


def test_a_run_depends_only_on_its_arm_and_replicate(run):
    """A run does not depend on other arms or on checkpoints; an arm may occur twice."""
    (once,), (again,), _ = run([GOOD, GOOD, Arm(1e-5, 40)])
    (other_replicate,) = run([GOOD], replicate="b")[0]
    early, late = run([GOOD, Arm(1e-5, 40)], seconds=[0.1, 0.3])[0]
    ((filled_up,),) = run([GOOD], width=5)
    _, (second,) = run([Arm(1e-5, 40), GOOD], width=1)
    assert once == again == early == filled_up == second
    assert late["steps"] == 300
    assert other_replicate["losses"] != once["losses"]


def test_an_arm_that_diverges_is_named_and_counts_as_the_cap(run):
    (good,), (bad,) = run([GOOD, BAD])
    assert (good["diverged"], bad["diverged"]) == (False, True)
    assert set(bad["losses"].values()) == {10.0}
    assert max(good["losses"].values()) < 10


@pytest.mark.parametrize(
    ("loss", "value", "counts"),
    [
        ("xi_white", 3.0, 3.0),
        ("xi_white", 11.0, 10.0),
        ("brier", 1.5, 1.5),
        ("log_loss", np.inf, 10.0),
        ("brier", np.nan, 2.0),
        ("brier", 2.5, 2.0),
    ],
)
def test_no_run_counts_more_than_the_cap(loss, value, counts):
    assert capped(loss, value) == counts


def test_ten_steps_are_made_at_any_cost(run):
    assert run([GOOD], seconds=[1e-6])[0][0]["steps"] == 10


def test_nothing_to_judge_by_gets_one_line(model, run):
    with pytest.raises(
        ValueError, match="losses: 'xi_white' is not allowed for 'logistic' without a reference"
    ):
        run([GOOD], losses=Losses(("xi_white",)))
    with pytest.raises(ValueError, match=r"losses: 'log_loss' .* prediction_draws = 0"):
        run([GOOD], losses=Losses(("log_loss",)))


def test_losses_are_those_that_the_reference_knows(losses):
    section = {"prediction_draws": 5}
    known = losses.reference
    without = metrics.Reference(known.sd)
    assert losses_of("logistic", known, section) == Losses(("xi_white", "relative_sd_error"), known, 5)
    assert losses_of("logistic", without, section).names == ("relative_sd_error",)
    assert losses_of("logistic", None, section) == Losses(("log_loss", "brier"), None, 5)


def test_a_frozen_chain_has_no_spread(model, losses):
    found = frozen_losses(model, losses)
    at_mode = metrics.at_position(model, map_position(model))
    assert found == {"xi_white": 1.0, "relative_sd_error": 1.0, "log_loss": at_mode["log_loss"]}


def test_an_oracle_judges_by_the_true_loss_of_its_own_draws(model, losses):
    """In a race of one rung it takes the arm whose draws have the smallest error; they are those that tuners see."""
    steps = [1e-3, 1e-4, 1e-5]
    tuner = Halving(judge=losses.judge("xi_white"), grid=Grid((-3, -4, -5), (0.1,)), thin=1, pruning_rate=100)
    for replicate in range(4):
        arms = [Arm(step, 40) for step in steps]
        draws = Lockstep.at_mode(model, "sgld", arms, seed=7, replicate=f"race {replicate}").advance(30)
        errors = [
            metrics.reference_errors(model, draws[:, place], losses.reference)["xi_white"]
            for place in range(3)
        ]
        best = oracle_arm(
            model, "sgld", tuner=tuner, budget=Budget(steps=30), cost=COST, seed=7, replicate=replicate
        )
        assert best.step_size == pytest.approx(steps[int(np.argmin(errors))])


def test_an_oracle_without_an_arm_has_none(model, losses):
    tuner = Halving(judge=losses.judge("xi_white"), grid=Grid((6,), (0.1,)), thin=1)
    arguments = {"budget": Budget(steps=30), "cost": COST, "seed": 0, "replicate": 0}
    assert oracle_arm(model, "sgld", tuner=tuner, **arguments) is None


def test_the_best_and_a_random_arm():
    arms = [Arm(step, 10) for step in (1.0, 2.0, 3.0, 4.0)]
    means = dict(zip(arms, (2.0, 1.0, 10.0, 3.0), strict=True))
    assert best_arms(means, 2) == [arms[1], arms[0]]
    drawn = [frozenset(random_arms(arms, 2, seed)) for seed in range(60)]
    assert len(set(drawn)) == 6, "every pair comes"
    assert random_arms(arms, 2, 0) == random_arms(arms, 2, 0)
    assert random_arms(arms, 9, 0) == arms


class Log(list):
    """A job's lines, and its pieces in a folder."""

    def __init__(self, folder):
        self.parts = Parts(folder, self.append)


def screened(model, losses, folder, **more):
    log = Log(folder)
    arguments = {"section": SCREEN, "oracle": {"seconds": 0.03, "pruning_rate": 2}, "n_oracles": 2}
    found = screen_grid(
        model,
        "sgld",
        grid=GRID,
        extra=[Arm(1 / 400, 40)],
        losses=losses,
        cost=COST,
        seed=0,
        parts=log.parts,
        depends_on={},
        report=log.append,
        **arguments,
        **more,
    )
    return found, log


def reran(model, losses, screen, folder, chosen):
    log = Log(folder)
    found = rerun_finalists(
        model,
        "sgld",
        screen,
        chosen,
        grid=GRID,
        losses=losses,
        section=SECTION,
        cost=COST,
        seed=0,
        parts=log.parts,
        depends_on={},
        report=log.append,
    )
    return found, log


def test_from_the_screen_to_the_finalists(model, losses, tmp_path):
    screen, _ = screened(model, losses, tmp_path / "screen")
    assert len(screen["arms"]) == 6
    assert [arm["is_extra"] for arm in screen["arms"]] == [False] * 5 + [True]
    assert screen["arms"][0]["diverged"] == [True, True]
    assert screen["frozen"]["xi_white"] == 1.0
    assert {name: len(arms) for name, arms in screen["oracles"].items()} == {"xi_white": 2}

    chosen = {"tuner": [{"step_size": 1e-6, "batch_size": 40, "n_leapfrog": None}, None]}
    found, _ = reran(model, losses, screen, tmp_path / "regret", chosen)
    json.dumps(found, allow_nan=False)
    arms = [Arm(**arm) for arm in found["arms"]]
    assert len(set(arms)) == len(arms)
    assert found["losses"] == list(losses.names)
    assert found["chosen"] == [{"tuner": "tuner", "arms": [arms.index(Arm(1e-6, 40)), None]}]
    for name in losses.names:
        means = {
            Arm(arm["step_size"], 40): np.mean(arm["losses"][name])
            for arm in screen["arms"]
            if not arm["is_extra"]
        }
        assert [arms[place] for place in found["finalists"][name]] == sorted(means, key=means.get)[:2]
    oracles = [Arm(**arm) for arm in screen["oracles"]["xi_white"]]
    assert [arms[place] for place in found["oracles"]["xi_white"]] == oracles
    assert found["oracles"].keys() == {"xi_white"}
    at_random = [arms[place] for place in found["random"]]
    assert len(at_random) == len(set(at_random)) == 4, "all that stayed finite, of fewer than five"
    assert 1e6 not in {arm.step_size for arm in at_random}
    assert [(run["arm"], run["seconds"]) for run in found["runs"]] == [
        (place, seconds) for place in range(len(arms)) for seconds in (0.05, 0.2)
    ]
    assert [arm["step_size"] for arm in found["screen"]["diverged"]] == [1e6]
    # Runs are fresh: the same arm and length have other draws than in the screen.
    of_screen = {arm["step_size"]: arm["losses"]["xi_white"] for arm in screen["arms"]}
    for run in found["runs"]:
        assert len(run["losses"]["xi_white"]) == len(run["diverged"]) == 3
        if run["seconds"] == 0.05:
            ours = of_screen[found["arms"][run["arm"]]["step_size"]]
            assert not set(ours) & set(run["losses"]["xi_white"])


def test_every_loss_may_have_an_oracle_of_its_own(model, losses, tmp_path):
    one, _ = screened(model, losses, tmp_path / "one")
    two, _ = screened(model, losses, tmp_path / "two", oracle_losses=2)
    assert list(two["oracles"]) == list(losses.names[:2])
    assert two["oracles"]["xi_white"] == one["oracles"]["xi_white"]
    found, _ = reran(model, losses, two, tmp_path / "regret", {})
    arms = [Arm(**arm) for arm in found["arms"]]
    for name, chosen in two["oracles"].items():
        assert [arms[place] for place in found["oracles"][name]] == [Arm(**arm) for arm in chosen]


def test_pieces_of_a_job_that_was_killed_are_kept(model, losses, tmp_path, monkeypatch):
    whole, _ = screened(model, losses, tmp_path / "whole")
    calls = []

    def killed(*arguments, **options):
        calls.append(options["replicate"])
        if len(calls) == 2:
            raise KeyboardInterrupt
        return run_arms(*arguments, **options)

    monkeypatch.setattr("sgtune.study.experiments.screen.run_arms", killed)
    with pytest.raises(KeyboardInterrupt):
        screened(model, losses, tmp_path / "part")
    again, log = screened(model, losses, tmp_path / "part")
    assert calls == ["screen 0", "screen 1", "screen 1"]
    assert again == whole
    assert [line for line in log if "kept" in line] == ["screen 0: kept from an unfinished job"]
