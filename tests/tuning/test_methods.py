"""Samplers, estimators, tuners and judges as objects: they equal their names, bit for bit; judging by acceptance."""

import numpy as np
import pytest
from small_models import gaussian_model, small_logistic_model, tune

import sgtune
from sgtune import Budget, InputError, sample
from sgtune.samplers import SAMPLERS, published_name
from sgtune.samplers.gradients import ESTIMATORS
from sgtune.tuning import Grid, GridSearch, Halving, Theory, acceptance, predictive, stein
from sgtune.tuning.judges import ArmDraws


def test_a_chain_by_objects_equals_the_chain_by_name():
    model = small_logistic_model(n_data=1_000)
    options = {"step_size": 1e-4, "batch_size": 100, "n_leapfrog": 3, "budget": Budget(steps=20)}
    by_name = sample(model, "sghmc-cv", **options)
    for sampler in (sgtune.samplers.sghmc, "sghmc"):
        chain = sample(model, sampler, gradient=sgtune.gradients.control_variate, **options)
        assert (chain.draws == by_name.draws).all()
    race = {"tuner": Halving(grid=Grid((-2.0, -3.0, -4.0), (1.0, 0.1))), "budget": Budget(steps=20)}
    assert tune(model, sgtune.samplers.sgld, **race).best == tune(model, "sgld", **race).best


SGLD, CV = SAMPLERS["sgld"], ESTIMATORS["cv"]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: published_name(SGLD._replace(has_leapfrog=True)), r"^sampler: .*must be one of .*: sgld, "),
        (lambda: published_name("sgld-cv", CV), r"^sampler: 'sgld-cv' is not allowed with a gradient"),
        (lambda: Halving(judge="ksd"), "^judge: .* is not allowed; it must be a Judge"),
        (lambda: GridSearch(judge=None), "^judge: None is not allowed; it must be a Judge"),
        (lambda: Theory(grid=(-3, -4)), "^grid: .* is not allowed; it must be a Grid"),
        (lambda: stein("kds"), r"^discrepancy: 'kds' .*did you mean 'ksd'"),
        (lambda: predictive("acuracy"), r"^name: 'acuracy' .*did you mean 'accuracy'"),
    ],
)
def test_bad_objects_get_one_line(call, words):
    with pytest.raises(InputError, match=words) as raised:
        call()
    assert "\n" not in str(raised.value)


RATE = "mean_acceptance_probability"
STEP_SIZES = (-2.0, -1.5, -1.0, -0.5, 0.0, 0.5)


@pytest.fixture(scope="module")
def normal():
    return gaussian_model(np.eye(10), np.zeros(10))


def grid_of(**hyperparameters):
    return Grid(STEP_SIZES, batch_fractions=(1.0,), n_leapfrogs=(3,), hyperparameters=hyperparameters)


@pytest.mark.parametrize(("sampler", "optimum"), [("mala", 0.574), ("hmc", 0.651), ("adam-mcmc", 0.234)])
def test_the_chosen_arm_is_that_whose_rate_is_nearest(normal, sampler, optimum):
    """The rates of the race agree with the rates of separate chains, and the smallest distance wins."""
    own = {"noise_sd": (0.3, 1.0)} if sampler == "adam-mcmc" else {}
    tuner = GridSearch(judge=acceptance(), grid=grid_of(**own), batch_fraction=None, start_noise=0.0)
    result, distances = tune(normal, sampler, tuner=tuner, budget=Budget(steps=1_000)), []
    arms = [{name: row[name] for name in result.best} for row in result.rows]
    assert len(arms) == len(STEP_SIZES) * (2 if own else 1)
    for arm in arms:
        rate = sample(normal, sampler, **arm, budget=Budget(steps=1_000)).statistics
        distances.append(abs(rate[RATE] - optimum))
    judged = [row["discrepancy"] for row in result.rows]
    # The error of the difference of two chains of 1,000 steps with an effective size of at least 20.
    assert np.abs(np.subtract(distances, judged)).max() < 4.5 * np.sqrt(2 * 0.25 / 20) / 2
    assert dict(result.best) == arms[np.argmin(judged)]
    assert max(distances) > min(distances) + 0.1


def test_halving_and_a_custom_optimum(normal):
    """Rates fall with the step size, so a higher optimum chooses a smaller step size."""
    tuners = [Halving(judge=acceptance(optimum), grid=grid_of()) for optimum in (0.98, None, 0.1)]
    chosen = [tune(normal, "mala", tuner=tuner, budget=Budget(steps=900)).best.step_size for tuner in tuners]
    assert chosen == sorted(chosen)
    assert len(set(chosen)) == 3


def test_an_arm_that_is_not_usable_has_no_value():
    """A chain that starts where the density is zero accepts nothing: a rate of 0 is near 0.234."""
    dead, alive = (
        ArmDraws(*(np.full((3, 2), x), np.arange(1, 4), 3, 3, 1.0), "adam-mcmc", {RATE: rate})
        for x, rate in ((np.nan, 0.0), (0.0, 0.9))
    )
    assert acceptance().metric(0)(None, [dead, alive]).values == [np.inf, pytest.approx(0.666)]
