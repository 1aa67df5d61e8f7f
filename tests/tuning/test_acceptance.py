"""Arms judged by their acceptance rates: which arm is chosen, and for which samplers."""

import numpy as np
import pytest
from small_models import gaussian_model

from sgtune import Budget, sample, tune
from sgtune.support.errors import InputError
from sgtune.tuning import Grid, GridSearch, Halving, acceptance

STEP_SIZES = (-2.0, -1.5, -1.0, -0.5, 0.0, 0.5)


@pytest.fixture(scope="module")
def model():
    return gaussian_model(np.eye(10), np.zeros(10))


def grid_of(**hyperparameters):
    return Grid(STEP_SIZES, batch_fractions=(1.0,), n_leapfrogs=(3,), hyperparameters=hyperparameters)


OPTIMA = {
    "mala": 0.574,
    "hmc": 0.651,
    "adam-mcmc": 0.234,
    "adam-mcmc-minibatch": 0.234,
    "adam-mcmc-exact": 0.234,
}


@pytest.mark.parametrize("sampler", ["mala", "hmc", "adam-mcmc"])
def test_the_chosen_arm_is_that_whose_rate_is_nearest(model, sampler):
    """The rates of the race agree with the rates of separate chains, and the smallest distance wins."""
    own = {"noise_sd": (0.3, 1.0)} if sampler == "adam-mcmc" else {}
    tuner = GridSearch(judge=acceptance(), grid=grid_of(**own), batch_fraction=None, start_noise=0.0)
    result = tune(model, sampler, tuner=tuner, budget=Budget(steps=1_000))
    names = [name for name in ("step_size", "batch_size", "n_leapfrog", "noise_sd") if name in result.best]
    rows = result.rungs.dropna(axis=1, how="all")
    assert len(rows) == len(STEP_SIZES) * (2 if own else 1)
    distances = []
    for _, row in rows.iterrows():
        arm = {name: int(row[name]) if name in ("batch_size", "n_leapfrog") else row[name] for name in names}
        rate = sample(model, sampler, **arm, budget=Budget(steps=1_000)).statistics
        distances.append(abs(rate["mean_acceptance_probability"] - OPTIMA[sampler]))
    # The error of the difference of two chains of 1,000 steps with an effective size of at least 20.
    assert np.abs(np.array(distances) - rows["discrepancy"]).max() < 4.5 * np.sqrt(2 * 0.25 / 20) / 2
    best = rows["discrepancy"].astype(float).idxmin()
    assert all(result.best[name] == rows.loc[best, name] for name in names)
    assert max(distances) > min(distances) + 0.1


def test_halving_and_a_custom_optimum(model):
    """Rates fall with the step size, so a higher optimum chooses a smaller step size."""
    chosen = [
        tune(
            model, "mala", tuner=Halving(judge=acceptance(optimum), grid=grid_of()), budget=Budget(steps=900)
        ).best.step_size
        for optimum in (0.98, None, 0.1)
    ]
    assert chosen == sorted(chosen)
    assert len(set(chosen)) == 3


def test_samplers_without_a_test_get_one_line(model):
    with pytest.raises(InputError) as raised:
        tune(model, "sgld-cv", tuner=Halving(judge=acceptance(), grid=grid_of()), budget=Budget(steps=10))
    line = str(raised.value)
    assert line.startswith("sampler: 'sgld-cv' is not allowed; 'halving' judges by the acceptance rate")
    assert "mala, hmc, adam-mcmc" in line
    assert "\n" not in line
