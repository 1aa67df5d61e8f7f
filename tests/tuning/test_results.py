"""The result of `tune`: saved and loaded whole, its planned run checked, its picture and its short form."""

import json
import warnings

import matplotlib
import numpy as np
import pytest
from small_models import gaussian_model, small_logistic_model

from sgtune import Budget, TuningResult, tune
from sgtune.support.errors import DataError, InputError
from sgtune.support.files import read_npz
from sgtune.tuning import AllDivergedError, Grid, Halving

matplotlib.use("Agg")
pytestmark = pytest.mark.optimised

TUNER = Halving(grid=Grid((-1.5, -1.0, -0.5), batch_fractions=(0.1,)))
RACE = {"budget": Budget(steps=100), "horizon": Budget(steps=2_000), "rounds": 1, "tuner": TUNER}


@pytest.fixture(scope="module")
def model():
    return small_logistic_model()


@pytest.fixture(scope="module")
def result(model):
    return tune(model, "sgld-cv", **RACE)


def test_a_loaded_result_is_the_same_and_makes_the_same_run(model, result, tmp_path):
    result.save(tmp_path / "result.npz")
    loaded = TuningResult.load(tmp_path / "result.npz", model)
    assert loaded.best == result.best
    assert loaded.best.preconditioner == result.best.preconditioner
    assert json.dumps(loaded.to_dict()) == json.dumps(result.to_dict())
    assert repr(loaded.best) in repr(loaded)
    winner = next(row for row in result.rows[::-1] if not row["pruned"])
    assert loaded.forecast == result.forecast == winner["discrepancy"]
    assert loaded.rungs.equals(result.rungs)
    assert len(loaded.plot()) == result.rungs["rung"].nunique()
    matplotlib.pyplot.close("all")
    runs = [each.sample(kept_draws=50, check=False) for each in (result, loaded)]
    np.testing.assert_array_equal(runs[0].draws, runs[1].draws)
    assert runs[1].n_samples == 2_000


def test_a_race_is_made_again_by_the_costs_that_a_file_of_it_keeps(model, result, tmp_path):
    assert result.cost is None
    race = {"budget": Budget(seconds=0.02), "rounds": 1}
    first = tune(model, "sgld-cv", **race)
    first.save(tmp_path / "first.npz")
    loaded = TuningResult.load(tmp_path / "first.npz")
    again = tune(model, "sgld-cv", **race, cost=loaded.cost)
    assert again.rungs.equals(first.rungs)
    assert again.cost == loaded.cost == first.cost


def test_a_result_without_its_model_or_of_another_cannot_sample_but_keeps_its_plan(model, result, tmp_path):
    first, again = tmp_path / "result.npz", tmp_path / "again.npz"
    result.save(first)
    loaded = TuningResult.load(first)
    with pytest.raises(InputError, match=r"model: .*load\(path, model\)"):
        loaded.sample()
    loaded.save(again)
    others = {"dimension 3": small_logistic_model(dimension=3), "checksum": small_logistic_model(seed=1)}
    for path in (first, again):
        for words, other in others.items():
            with pytest.raises(InputError, match=f"model: .* has {words}"):
                TuningResult.load(path, other)
    run = TuningResult.load(again, model).sample(kept_draws=5, check=False)
    assert run.n_samples == 2_000


def test_a_rule_plans_no_run_unless_it_is_given_one(model, tmp_path):
    rule = tune(model, "sgld", tuner="heuristic")
    rule.save(tmp_path / "rule.npz")
    with pytest.raises(InputError, match="'heuristic' ran no arms"):
        rule.plot()
    for found in (rule, TuningResult.load(tmp_path / "rule.npz", model)):
        with pytest.raises(InputError, match=r"^budget: None .* heuristic has chosen for no planned run"):
            found.sample()
        assert found.sample(Budget(steps=30), check=False).n_samples == 30
    planned = tune(model, "sgld", tuner="heuristic", horizon=Budget(gradients=20_000))
    assert planned.sample(check=False).n_samples == 100


def test_files_that_are_not_of_a_result_are_refused_by_name(model, result, tmp_path):
    path = tmp_path / "result.npz"

    def assert_refused(words):
        with pytest.raises(DataError, match=words):
            TuningResult.load(path)

    with pytest.raises(DataError, match=r"must end in \.npz"):
        result.save(tmp_path / "result.json")
    assert_refused(r"result\.npz: ")
    result.save(path)
    whole, arrays = path.read_bytes(), read_npz(path)
    for damaged in (whole[: len(whole) // 2], b"", b"{}"):
        path.write_bytes(damaged)
        assert_refused(r"result\.npz: not a readable")
    del arrays["factor"]
    np.savez(path, **arrays)
    assert_refused(r"result\.npz: its preconditioner is damaged")
    np.savez(path, draws=np.zeros(3))
    assert_refused("not a file that sgtune saved")
    result.sample(kept_draws=5, check=False).save(path)
    assert_refused("has a chain of format 1; it must have a tuning result")


def test_a_result_without_a_winner_is_saved(tmp_path):
    tuner = Halving(grid=Grid((3.0, 4.0), batch_fractions=(1.0,)))
    options = {"preconditioner": "none", "budget": Budget(steps=100), "tuner": tuner}
    with pytest.raises(AllDivergedError) as caught:
        tune(gaussian_model(np.eye(2), np.zeros(2)), "sgld", **options)
    lost = caught.value.result
    lost.save(tmp_path / "none.npz")
    loaded = TuningResult.load(tmp_path / "none.npz")
    assert loaded.best is None
    assert loaded.rows == lost.rows
    with pytest.raises(InputError, match=r"^best: None is not allowed"):
        lost.sample()


def test_the_planned_run_is_checked_in_the_users_coordinates():
    """A step size that is right for no direction: the parameters by their own names are too wide."""
    model = gaussian_model(np.linalg.inv([[4.0, 1.9], [1.9, 1.0]]), np.array([3.0, -1.0]))
    tuner = Halving(grid=Grid((0.176,), batch_fractions=(1.0,)))
    options = {"budget": Budget(steps=200), "rounds": 1, "tuner": tuner}
    tuned = tune(model, "sgld", **options, preconditioner="laplace")
    with pytest.warns(UserWarning, match="too wide") as caught:
        chain = tuned.sample(Budget(steps=4_000))
    said = [str(each.message) for each in caught]
    (line,) = [one for one in said if one.startswith("too wide: position[")]
    assert line in chain.warnings
    assert line.endswith("posterior sd, and 1 other is too wide")
    # e = 1.5 in units of the posterior's variance: 1 / (1 - e / 2) times the variance.
    found = chain.check()
    np.testing.assert_allclose(found.table["sd_ratio"], 2.0, rtol=0.1)
    # A run of another length than the planned one has no forecast.
    assert found.forecast is None
    assert chain.arm["preconditioner"] == tuned.best.preconditioner
    assert line in chain.diagnosis.warnings
    planned = tuned.sample(chains=2, check=False)
    for run in (planned, planned[0], tuned.sample(Budget(steps=200), check=False)):
        assert run.check().forecast == tuned.forecast
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tuned.sample(Budget(steps=4_000), check=False)
