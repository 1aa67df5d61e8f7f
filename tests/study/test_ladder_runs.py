"""The tuners on the ladder: expected errors of arms against chains, and records of the choices."""

import numpy as np
import pytest

from sgtune import metrics
from sgtune.sampling.arm import Arm
from sgtune.sampling.lockstep import Lockstep
from sgtune.study.config.sections import ladder_settings
from sgtune.study.experiments import ladder_runs as runs
from sgtune.study.experiments.ladder_models import gaussian, ladder_model
from sgtune.study.experiments.ladder_runs import (
    ESCAPED,
    N_DATA,
    expected_of,
    gaussian_ladder,
    ladder_runs,
    xi_along,
)
from sgtune.study.pipeline.parts import Parts
from sgtune.tuning import TUNERS, Heuristic, make_arms

DIMENSION = 10
SECTION = {"seconds": 0.01, "points": 20, "replicates": 2}


@pytest.mark.parametrize("sampler", ["sgld", "sghmc-cv"])
def test_expected_errors_are_those_of_chains(sampler):
    """Mean squared errors and mean marginal variances of 24 chains of one arm, which share minibatches."""
    known, model = gaussian("rotated", DIMENSION, N_DATA), ladder_model("rotated", DIMENSION)
    arm = Arm(1e-4, 100, 5) if sampler == "sghmc-cv" else Arm(3e-4, 100)
    expected = expected_of(known, sampler, [arm], seconds=0.02)[arm]
    copies = [Arm(**{**arm, "step_size": arm.step_size * (1 + 1e-9 * i)}) for i in range(24)]
    draws = Lockstep.at_mode(model, sampler, copies, replicate="chains").advance(expected.steps)
    squares = np.array([xi_along(known, draws[:, place]) ** 2 for place in range(len(copies))])
    error = squares.std(ddof=1) / np.sqrt(len(copies))
    assert abs(squares.mean() - expected.error**2) < 4 * error
    ratios = draws.var(axis=0) / known.marginal_variances(1 / known.precision[:, None])[:, 0]
    roots = np.sqrt(ratios.mean(axis=0))
    noise = ratios.std(axis=0, ddof=1) / (2 * roots * np.sqrt(len(copies)))
    measured = metrics.xi_rel(roots, np.ones(DIMENSION))
    assert abs(measured - expected.marginal) < 4 * noise.max()


def test_steps_are_what_the_clock_buys_and_the_extremes_are_named():
    known = gaussian("axis", DIMENSION, N_DATA)
    arms = [Arm(0.1, 100), Arm(1e-12, 100), Arm(3e-4, 100), Arm(3e-4, 10)]
    unstable, still, good, small = expected_of(known, "sgld", arms, 0.1).values()
    # 5 us and 0.1 us a row: 15 us and 6 us.
    assert (good.steps, small.steps) == (6_666, 16_666)
    assert expected_of(known, "sgld-cv", arms[2:3], 0.1)[arms[2]].steps == 4_000
    assert np.isinf([unstable.error, unstable.marginal]).all()
    assert (unstable.escaped, unstable.frozen) == (True, False)
    assert still.error == pytest.approx(1, abs=1e-3)
    assert (still.escaped, still.frozen) == (False, True)
    assert (good.escaped, good.frozen) == (False, False)
    # An arm with too large sds is not frozen.
    assert small.error > good.error
    assert not small.frozen


@pytest.mark.parametrize("sampler", ["sgld", "sghmc"])
def test_the_narrow_kind_is_the_same_posterior_in_other_units(sampler):
    """Each arm of the other grid has a counterpart with the same expected error."""
    errors = []
    for kind in ("axis", "axis-narrow"):
        known = gaussian(kind, DIMENSION, N_DATA)
        arms = make_arms(N_DATA, sampler, **runs.grid_of(known.eigenvalues.max()))
        errors.append([one.error for one in expected_of(known, sampler, arms, 0.01).values()])
    np.testing.assert_allclose(*errors, rtol=1e-6)
    assert min(errors[0]) < 0.7


@pytest.fixture(scope="module")
def record():
    return ladder_runs(
        "equicorrelated", DIMENSION, "sgld", tuners=["mamba-ksd-scaled", "heuristic"], **SECTION
    )


def test_a_record_has_every_arm_and_what_each_tuner_chose(record):
    arms = make_arms(N_DATA, "sgld", **runs.grid_of())
    held = [Arm(**{name: one[name] for name in ("step_size", "batch_size")}) for one in record["arms"]]
    assert held[: len(arms)] == arms
    # The heuristic's step size of 1 / N is one of the grid.
    assert not any(one["is_extra"] for one in record["arms"])
    assert record["smallest"] == min(one["error"] for one in record["arms"])
    assert [(run["tuner"], run["replicate"]) for run in record["runs"]] == [
        (tuner, i) for tuner in ("oracle", "mamba-ksd-scaled", "heuristic") for i in range(2)
    ]
    for run in record["runs"]:
        assert run["error"] == min(record["arms"][run["arm"]]["error"], ESCAPED)
        oracle = record["arms"][record["runs"][run["replicate"]]["arm"]]
        assert (run["oracle_error"], run["oracle_marginal"]) == (oracle["error"], oracle["marginal"])
    assert record["arms"][record["runs"][-1]["arm"]]["step_size"] == 1 / N_DATA


def test_choices_of_the_edges_are_counted(monkeypatch):
    """A tuner that takes the largest step size of the grid, and one that takes a smaller one than the grid has."""
    for name, arm in (("first", Arm(0.01, 100)), ("last", Arm(1e-9, 100))):
        chooses = type("Chooses", (Heuristic,), {"arms": lambda *_, arm=arm: [arm]})
        monkeypatch.setitem(TUNERS, name, chooses())
    record = ladder_runs("axis", DIMENSION, "sgld", tuners=["first", "last"], **SECTION | {"replicates": 1})
    found = {run["tuner"]: run for run in record["runs"]}
    assert (found["first"]["escaped"], found["first"]["frozen"]) == (True, False)
    assert (found["first"]["error"], found["first"]["marginal"]) == (ESCAPED, ESCAPED)
    assert (found["last"]["escaped"], found["last"]["frozen"]) == (False, True)
    assert [one["step_size"] for one in record["arms"] if one["is_extra"]] == [1e-9]
    assert (found["oracle"]["escaped"], found["oracle"]["frozen"]) == (False, False)


def test_a_job_goes_on_where_it_was(tmp_path, monkeypatch):
    section = {**SECTION, "dimensions": [3, DIMENSION], "kinds": ["axis", "rotated"], "samplers": ["sgld"]}
    settings = ladder_settings({"ladder": {**section, "tuners": ["heuristic"]}, "seed": 4}, DIMENSION)
    assert settings["ladder"]["dimensions"] == [DIMENSION]
    made = []

    def fake(kind, dimension, sampler, **numbers):
        made.append((kind, dimension, sampler, numbers["seed"]))
        if kind == "rotated" and len(made) == 2:
            raise KeyboardInterrupt
        return {"kind": kind}

    monkeypatch.setattr(runs, "ladder_runs", fake)
    with pytest.raises(KeyboardInterrupt):
        gaussian_ladder(DIMENSION, settings, seed=4, parts=Parts(tmp_path))
    found = gaussian_ladder(DIMENSION, settings, seed=4, parts=Parts(tmp_path))
    assert [one[0] for one in made] == ["axis", "rotated", "rotated"]
    assert found["gaussians"] == [{"kind": "axis"}, {"kind": "rotated"}]
    assert (found["dimension"], found["n_data"]) == (DIMENSION, N_DATA)
