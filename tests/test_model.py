"""Features of a model besides its density: functionals, rows held out of its data, and its Gibbs posteriors."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from predictive_models import random_draws, small_network, small_pmf
from reference_models import gaussian_log_likelihood, gaussian_model, standard_normal
from small_models import small_logistic_model

import sgtune
from sgtune import Budget, localise, metrics, sample, temper
from sgtune.mode.find import map_position
from sgtune.model import define_model
from sgtune.model.derived import hold_out
from sgtune.model.posterior import density_of, log_posterior, scores
from sgtune.samplers.gradients import control_variate
from sgtune.support.errors import InputError


def regression(n_rows=100, **settings):
    """`gaussian_model` with predictions and their targets."""
    return replace(
        gaussian_model(n_rows=n_rows, **settings)[0],
        predict=lambda position, inputs: position["intercept"] + inputs @ position["slopes"],
        as_test=lambda rows: {"inputs": rows["inputs"], "targets": rows["targets"]},
    )


@pytest.mark.parametrize(
    ("make", "fraction"),
    [
        (small_logistic_model, 0.1),
        (small_pmf, 0.29),
        (small_network, 0.29),
        (regression, 0.29),
        (regression, 0.999),
    ],
)
def test_held_out_rows_are_the_last_and_the_others_train(make, fraction):
    """Each row is in one of the two sets, with the same log-likelihood."""
    model = make()
    held = hold_out(model, fraction)
    n_held = int(fraction * model.n_data + 1e-9)
    assert held.n_data == model.n_data - n_held
    assert len(held.test_data["targets"]) == n_held
    position = model.unravel(jnp.asarray(random_draws(model, 1)[0]))
    every = np.asarray(model.log_likelihood(position, model.data))
    left = np.asarray(held.log_likelihood(position, held.data))
    np.testing.assert_allclose(left, every[: held.n_data], rtol=1e-5, atol=1e-5)
    assert metrics.predictive_names(held)
    assert np.isfinite(list(metrics.at_position(held, position).values())).any()
    # The model itself is unchanged, and a second call returns the same object.
    assert model.n_data == held.n_data + n_held
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
    saved = {path.name for path in tmp_path.iterdir()}
    assert saved == {"gaussian.map.npz", "gaussian-without-0.5.map.npz"}
    # In another process it has the same checksum, and so the same mode.
    again = hold_out(regression(data_dir=tmp_path), 0.5)
    assert again is not held
    assert again.checksum == held.checksum != hold_out(model, 0.4).checksum
    # Other rows are held out after another shuffle.
    one, other = (hold_out(regression(shuffle_seed=seed), 0.5) for seed in (0, 1))
    assert len({held.checksum, one.checksum, other.checksum}) == 3


@pytest.mark.parametrize("fraction", [0, 0.0, 1, 1.5, -0.1, float("nan"), True])
def test_a_fraction_must_leave_rows_on_both_sides(fraction):
    with pytest.raises(InputError, match=r"^fraction: .* it must be a number > 0[^\n]*$") as caught:
        hold_out(regression(), fraction)
    assert repr(fraction) in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        # The sum is forgotten.
        ({"log_prior": lambda p: -0.5 * p["slopes"] ** 2}, "log_prior: model 'm' gives .* one number"),
        ({"max_lockstep": 0}, "max_lockstep: 0 is not allowed"),
        ({"task": "ranking"}, "task: 'ranking' is not known"),
    ],
)
def test_a_function_or_a_number_that_cannot_be_is_refused(settings, line):
    model = regression()
    own = {"log_prior": standard_normal, "log_likelihood": gaussian_log_likelihood}
    with pytest.raises(InputError, match=rf"^{line}"):
        define_model("m", data=model.data, init=model.init, **own | settings)


# --- the Gibbs posterior of an inverse temperature ---


@pytest.fixture(scope="module")
def logistic():
    return small_logistic_model(n_data=200, seed=4)


@pytest.mark.parametrize("inverse_temperature", [0.5, 50, 1_000.0])
def test_the_density_is_that_of_gibbs(logistic, inverse_temperature):
    """The density is exp(-lambda R) p with the mean loss R, and scores are its gradients."""
    model = temper(logistic, inverse_temperature)
    rows = np.asarray(logistic.data["signed_inputs"], np.float64)

    def exact(position):
        loss = np.logaddexp(0, -rows @ position).mean()
        return -inverse_temperature * loss - position @ position / 20

    def exact_score(position):
        slope = (rows / (1 + np.exp(rows @ position))[:, None]).mean(axis=0)
        return inverse_temperature * slope - position / 10

    exact_positions = np.array([[0.2, -0.4], [1.5, 1.0]])
    positions = exact_positions.astype(np.float32)
    found = [float(log_posterior(density_of(model), jnp.asarray(one), model.data)) for one in positions]
    assert np.diff(found) == pytest.approx(np.diff([exact(one) for one in exact_positions]), rel=1e-4)
    expected = [exact_score(one) for one in exact_positions]
    np.testing.assert_allclose(scores(model, positions), expected, rtol=1e-3, atol=1e-3)


def test_n_is_the_ordinary_posterior_and_each_model_is_made_once(logistic):
    assert temper(logistic, 200) is logistic
    cold, again = temper(logistic, 400.0), temper(logistic, 400)
    assert cold is again
    assert cold.name != logistic.name
    assert cold.checksum != logistic.checksum
    assert temper(logistic, 300.0).checksum != cold.checksum
    # The same functions and temperature share the compiled programs.
    other = temper(small_logistic_model(n_data=200, seed=5), 400)
    assert other.log_likelihood == cold.log_likelihood
    assert hash(other.log_likelihood) == hash(cold.log_likelihood)


def test_the_mode_and_control_variates_are_those_of_the_tempered_posterior(logistic):
    hot = temper(logistic, 5.0)
    mode = map_position(hot)
    assert np.abs(scores(hot, np.asarray(mode)[None])).max() < 0.01
    assert np.linalg.norm(mode) < np.linalg.norm(map_position(logistic))
    arm = {"gradient": control_variate, "step_size": 0.01, "batch_size": 20, "budget": Budget(steps=5)}
    assert sample(logistic, "sgld", **arm, inverse_temperature=5).model is hot


@pytest.mark.parametrize("value", [0, -1.0, float("nan"), float("inf")])
def test_bad_inverse_temperatures_get_one_line(logistic, value):
    with pytest.raises(InputError, match=r"^inverse_temperature: .* it must be a number > 0$"):
        temper(logistic, value)


# --- the pull to a point ---


def test_a_pull_is_added_to_the_prior_and_keeps_its_strength_at_any_temperature(logistic):
    around = jnp.array([0.4, -1.0])
    pulled = temper(localise(logistic, around, 30.0), 50)
    tempered = temper(logistic, 50)
    positions = np.array([[0.2, -0.4], [1.5, 1.0]], np.float32)
    expected = scores(tempered, positions) - 30 * (positions - np.asarray(around))
    np.testing.assert_allclose(scores(pulled, positions), expected, rtol=1e-5, atol=1e-5)
    again = localise(logistic, np.asarray(around), 30)
    # So that they share compiled programs.
    assert again.log_prior == localise(logistic, around, 30.0).log_prior
    assert again.checksum != localise(logistic, around + 1, 30).checksum != logistic.checksum


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


@pytest.mark.parametrize("preconditioner", ["none", "laplace", "auto"])
def test_a_tuned_run_from_a_saddle(preconditioner):
    """A network of two weights, y = a b x + noise: at a = b = 0 the loss has a saddle, and so has the localised Gibbs
    posterior, exp(-lambda R - strength (a^2 + b^2) / 2), with a curvature of strength - lambda there along a = b. No
    mode is searched for, and the means are those of a sum over a fine grid of the plane."""
    n, temperature, strength = 200, 6.0, 2.0
    rng = np.random.default_rng(0)
    x = rng.normal(size=n)
    x /= np.sqrt(np.mean(x**2))
    noise = rng.normal(size=n)
    noise -= x * np.mean(noise * x)  # so that the loss is least at a b = 1
    model = define_model(
        "two weights",
        log_prior=lambda position: 0.0 * position[0],
        log_likelihood=lambda position, rows: -0.5 * (rows["y"] - position[0] * position[1] * rows["x"]) ** 2,
        data={"x": x.astype(np.float32), "y": (x + noise).astype(np.float32)},
        init=lambda key: jnp.zeros(2),
    )
    saddle = np.zeros(2, np.float32)
    local = temper(localise(model, saddle, strength), temperature)
    # The centre is the position, if it is not given.
    at = {"position": saddle} if preconditioner == "none" else {"position": saddle, "centre": saddle}
    options = {"budget": Budget(steps=20_000), "chains": 4, "preconditioner": preconditioner, "seed": 1}
    run = sgtune.tune_and_sample(local, "sgld", **options, **at)
    assert local.found.mode is None

    a, b = np.meshgrid(*[np.linspace(-6, 6, 1_201)] * 2)
    log_density = -0.5 * temperature * (a * b - 1) ** 2 - 0.5 * strength * (a**2 + b**2)
    weights = np.exp(log_density)
    weights /= weights.sum()
    draws = run.draws.astype(np.float64)
    for function in (lambda a, b: a, lambda a, b: a * b, lambda a, b: a**2 + b**2):
        exact = (weights * function(a, b)).sum()
        sd = np.sqrt((weights * (function(a, b) - exact) ** 2).sum())
        values = function(draws[..., 0], draws[..., 1])
        blocks = values[:, : values.shape[1] // 25 * 25].reshape(4 * 25, -1).mean(axis=1)
        error = blocks.std(ddof=1) / np.sqrt(len(blocks))
        assert error < 0.1 * sd
        # Tuning weighs the step size's bias against noise: the sds may be a seventh too wide.
        assert abs(blocks.mean() - exact) < 4 * error + sd / 7
