"""`tune_and_sample`: a race, a pilot and chains in one call, and what each of them cost."""

import numpy as np
import pytest
from small_models import gaussian_model, mixture_model

import sgtune
from sgtune import Budget, tune_and_sample
from sgtune.tuning import Grid, Halving

TUNER = Halving(grid=Grid((-0.5, -1.0, -2.0), batch_fractions=(0.1,)))
STEPS = 2_000


def make_model():
    return gaussian_model([[2.0, -1.2], [-1.2, 1.5]], [0.5, -1.0], n_data=40)


@pytest.fixture(scope="module")
def run():
    options = {"budget": Budget(steps=STEPS), "chains": 3, "tuner": TUNER, "seed": 4}
    return tune_and_sample(make_model(), "sgld-cv", **options)


def test_the_run_is_what_tuning_and_sampling_give_one_after_the_other(run):
    """The longest arm of the race has a tenth of a chain's budget, and the horizon is that of one chain."""
    budgets = {"budget": Budget(steps=STEPS // 10), "horizon": Budget(steps=STEPS)}
    tuned = sgtune.tune(make_model(), "sgld-cv", **budgets, tuner=TUNER, seed=4, n_starts=3)
    assert isinstance(run.tuning.sample(Budget(steps=5)), sgtune.Chain)
    assert run.tuning.rows == tuned.rows
    assert max(row["steps"] for row in run.tuning.rows) == STEPS // 10
    chains = tuned.sample(seed=4, chains=3)
    np.testing.assert_array_equal(chains.draws, run.draws)
    assert chains.tuning is tuned
    assert run.draws.shape == (3, STEPS, 2)


def test_the_cost_has_all_parts(run):
    cost, tuned = run.cost, run.tuning
    assert list(cost) == ["races", "pilots", "chains", "check", "total"]
    (pilot,) = tuned.pilots
    # A pilot's steps, the scores of 64 of its draws, and its Hessians; each of 2 n rows, but all 40 once in a score.
    terms = 2 * tuned.best.batch_size * pilot["steps"] + 64 * 40 + pilot["hessian_terms"]
    assert cost["pilots"] == {"data_terms": terms, "seconds": pilot["seconds"]}
    # 200 densities of all 40 rows, and scores of half as many terms or more, as far as the check may spend.
    assert 8_000 + 8_000 < cost["check"]["data_terms"] <= 2 * 200 * 40 + 40 + 200 * 40
    assert cost["races"]["data_terms"] == tuned.gradient_evaluations - terms > 0
    assert cost["chains"] == {"data_terms": 3 * STEPS * 2 * tuned.best.batch_size, "seconds": run.seconds}
    for name in ("data_terms", "seconds"):
        assert cost["total"][name] == pytest.approx(sum(cost[part][name] for part in list(cost)[:4]))
    assert f"{cost['total']['data_terms']:.3g}" in repr(run)


def test_chains_of_a_tuned_run_start_about_all_modes_that_starts_find(tmp_path):
    """A single start of this model ends at a saddle."""
    model = mixture_model()
    with pytest.warns(UserWarning, match=r"^modes: the search found 2"):
        run = tune_and_sample(model, "sgld-cv", tuner="theory", budget=Budget(steps=200), chains=4)
    assert run.tuning.best.preconditioner is not None
    assert {tuple(row) for row in np.sign(run.draws[:, -1])} == {(-1, 1), (1, -1)}
    assert len(model.found.searches) == 4
    # So do chains of a result, as many as there are starts.
    model = mixture_model()
    tuned = sgtune.tune(model, "sgld-cv", tuner="theory", budget=Budget(steps=200), n_starts=4)
    with pytest.warns(UserWarning, match=r"^modes: the search found 2"):
        several = tuned.sample(chains=4, check=False)
    assert {tuple(row) for row in np.sign(several.draws[:, -1])} == {(-1, 1), (1, -1)}
    # And of one that another process has loaded.
    tuned.save(tmp_path / "tuned.npz")
    loaded = sgtune.TuningResult.load(tmp_path / "tuned.npz", mixture_model())
    with pytest.warns(UserWarning, match=r"^modes: the search found 2"):
        again = loaded.sample(chains=4, check=False)
    np.testing.assert_array_equal(again.draws, several.draws)


def test_numbers_in_place_of_the_chosen_ones_have_no_forecast(run):
    tuned, few = run.tuning, {"kept_draws": 50, "check": False}
    assert tuned.sample(**few).forecast == tuned.forecast is not None
    for other in ({"step_size": 0.02}, {"inverse_temperature": 10.0}, {"preconditioner": "laplace"}):
        assert tuned.sample(**other, **few).forecast is None
    assert tuned.sample(step_size=0.02, **few).arm.step_size == 0.02
    same = {"seed": 3, "centre": None, "inverse_temperature": None}
    assert tuned.sample(**same, **few).forecast == tuned.forecast


def test_no_mode_is_searched_for_where_the_position_is_given():
    """Also if an earlier call has found one. The check may be left out."""
    model = make_model()
    sgtune.tune(model, "sgld-cv", budget=Budget(steps=20), tuner=TUNER)
    assert len(model.found.searches) == 1
    options = {"budget": Budget(steps=200), "chains": 3, "tuner": TUNER, "check": False}
    run = tune_and_sample(model, "sgld-cv", position=np.array([0.4, -0.9], np.float32), **options)
    run.tuning.sample(chains=2, check=False)
    assert len(model.found.searches) == 1
    assert run.diagnosis is None
    assert "check" not in run.cost
