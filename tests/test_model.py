"""Features of a model besides its density: functionals, rows held out of its data, and its Gibbs posteriors."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from predictive_models import random_draws, small_network, small_pmf
from reference_models import gaussian_log_likelihood, gaussian_model, standard_normal
from small_models import small_logistic_model

from sgtune import Budget, InputError, define_model, localise, metrics, sample, temper
from sgtune.mode.find import map_position
from sgtune.model.derived import hold_out
from sgtune.model.posterior import density_of, log_posterior, scores
from sgtune.samplers.gradients import control_variate


def regression(n_rows=100, **settings):
    """`gaussian_model` with predictions and their targets."""
    return replace(
        gaussian_model(n_rows=n_rows, **settings)[0],
        predict=lambda position, inputs: position["intercept"] + inputs @ position["slopes"],
        as_test=lambda rows: {"inputs": rows["inputs"], "targets": rows["targets"]},
    )


@pytest.mark.parametrize(
    ("make", "fraction"),
    [(small_logistic_model, 0.1), (small_pmf, 0.29), (small_network, 0.29), (regression, 0.999)],
)
def test_held_out_rows_are_the_last_and_the_others_train(make, fraction):
    """Each row is in one of the two sets, with the same log-likelihood."""
    model = make()
    held = hold_out(model, fraction)
    n_held = int(fraction * model.n_data + 1e-9)
    assert (held.n_data, len(held.test_data["targets"])) == (model.n_data - n_held, n_held)
    position = model.unravel(jnp.asarray(random_draws(model, 1)[0]))
    every = np.asarray(model.log_likelihood(position, model.data))
    left = np.asarray(held.log_likelihood(position, held.data))
    np.testing.assert_allclose(left, every[: held.n_data], rtol=1e-5, atol=1e-5)
    assert metrics.predictive_names(held)
    assert np.isfinite(list(metrics.at_position(held, position).values())).any()
    assert hold_out(model, fraction) is held


def test_what_is_left_has_a_mode_of_its_own(tmp_path):
    """The mode without the held-out rows is found from the remaining rows, and saved under another name."""
    model = regression(data_dir=tmp_path)
    held = hold_out(model, 0.5)
    design = np.column_stack([np.ones(50), model.data["inputs"][:50]]).astype(np.float64)
    exact = np.linalg.solve(design.T @ design + np.eye(3), design.T @ np.asarray(model.data["targets"][:50]))
    found = ravel_pytree(map_position(held))[0]
    np.testing.assert_allclose(found, exact, atol=1e-4)
    assert np.abs(found - ravel_pytree(map_position(model))[0]).max() > 0.01
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"gaussian.map.npz", "gaussian-without-0.5.map.npz"}
    # In another process it has the same checksum, and so the same mode.
    again = hold_out(regression(data_dir=tmp_path), 0.5)
    assert again is not held
    assert again.checksum == held.checksum != hold_out(model, 0.4).checksum


@pytest.mark.parametrize("fraction", [0, 0.0, 1, 1.5, -0.1, float("nan"), True])
def test_a_fraction_must_leave_rows_on_both_sides(fraction):
    with pytest.raises(InputError, match=r"^fraction: .* it must be a number > 0[^\n]*$") as caught:
        hold_out(regression(), fraction)
    assert repr(fraction) in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value", "line"),
    [
        # The sum is forgotten.
        ("log_prior", lambda position: -0.5 * position["slopes"] ** 2, "model 'm' gives .* one number"),
        ("max_lockstep", 0, "0 is not allowed"),
        ("task", "ranking", "'ranking' is not known"),
    ],
)
def test_a_function_or_a_number_that_cannot_be_is_refused(name, value, line):
    model = regression()
    own = {"log_prior": standard_normal, "log_likelihood": gaussian_log_likelihood}
    with pytest.raises(InputError, match=rf"^{name}: {line}"):
        define_model("m", data=model.data, init=model.init, **own | {name: value})


@pytest.fixture(scope="module")
def logistic():
    return small_logistic_model(n_data=200, seed=4)


@pytest.mark.parametrize("inverse_temperature", [0.5, 50, 1_000.0])
def test_the_density_is_that_of_gibbs(logistic, inverse_temperature):
    """The density is exp(-lambda R) p with the mean loss R, and scores are its gradients."""
    model = temper(logistic, inverse_temperature)
    rows = np.asarray(logistic.data["signed_inputs"], np.float64)
    positions = np.array([[0.2, -0.4], [1.5, 1.0]])
    losses = np.logaddexp(0, -rows @ positions.T).mean(axis=0)
    exact = -inverse_temperature * losses - np.sum(positions**2, axis=1) / 20
    density = density_of(model)
    found = [float(log_posterior(density, jnp.float32(one), model.data)) for one in positions]
    assert found[1] - found[0] == pytest.approx(exact[1] - exact[0], rel=1e-4)
    slopes = (rows.T @ (1 / (1 + np.exp(rows @ positions.T)))).T / len(rows)
    expected = inverse_temperature * slopes - positions / 10
    np.testing.assert_allclose(scores(model, positions.astype(np.float32)), expected, rtol=1e-3, atol=1e-3)


def test_n_is_the_ordinary_posterior_and_each_model_is_made_once(logistic):
    assert temper(logistic, 200) is logistic
    cold = temper(logistic, 400.0)
    assert temper(logistic, 400) is cold
    assert cold.name != logistic.name
    assert len({logistic.checksum, cold.checksum, temper(logistic, 300.0).checksum}) == 3
    # The same functions and temperature share the compiled programs.
    other = temper(small_logistic_model(n_data=200, seed=5), 400)
    assert other.log_likelihood == cold.log_likelihood
    assert hash(other.log_likelihood) == hash(cold.log_likelihood)


def test_the_mode_and_control_variates_are_those_of_the_tempered_posterior(logistic):
    hot = temper(logistic, 5.0)
    mode = map_position(hot)
    assert np.abs(scores(hot, np.asarray(mode)[None])).max() < 0.01
    assert np.linalg.norm(mode) < np.linalg.norm(map_position(logistic))
    arm = {"step_size": 0.01, "batch_size": 20, "budget": Budget(steps=5)}
    assert sample(logistic, "sgld", gradient=control_variate, **arm, inverse_temperature=5).model is hot


@pytest.mark.parametrize("value", [0, -1.0, float("nan"), float("inf")])
def test_bad_inverse_temperatures_get_one_line(logistic, value):
    options = {"step_size": 0.1, "batch_size": 20, "budget": Budget(steps=1)}
    for refuse in (
        lambda: temper(logistic, value),
        lambda: sample(logistic, "adam-mcmc", inverse_temperature=value, **options),
    ):
        with pytest.raises(InputError, match=r"^inverse_temperature: .* it must be a number > 0$"):
            refuse()


def test_a_pull_is_added_to_the_prior_and_keeps_its_strength_at_any_temperature(logistic):
    around = jnp.array([0.4, -1.0])
    one, again, other = (localise(logistic, at, 30) for at in (around, np.asarray(around), around + 1))
    positions = np.array([[0.2, -0.4], [1.5, 1.0]], np.float32)
    expected = scores(temper(logistic, 50), positions) - 30 * (positions - np.asarray(around))
    np.testing.assert_allclose(scores(temper(one, 50), positions), expected, rtol=1e-5, atol=1e-5)
    assert again.log_prior == one.log_prior  # so that they share compiled programs
    assert again.checksum != other.checksum != logistic.checksum


@pytest.mark.parametrize(
    ("around", "strength", "line"),
    [
        (jnp.zeros(3), 1.0, r"around: shape \(3,\) is not allowed; .* needs \(2,\)"),
        (jnp.array([0.0, jnp.nan]), 1.0, "around: nan is not allowed"),
        (jnp.zeros(2), 0.0, "strength: 0.0 is not allowed"),
    ],
)
def test_a_pull_needs_a_point_and_a_strength(logistic, around, strength, line):
    with pytest.raises(InputError, match=rf"^{line}"):
        localise(logistic, around, strength)
