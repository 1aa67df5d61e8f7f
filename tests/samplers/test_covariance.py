"""The covariance of a gradient's noise: of one minibatch against a sum by hand, and as accurate as float32 allows."""

from dataclasses import replace
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from predictive_models import small_network, small_pmf
from small_models import logistic_arrays, logistic_model, small_logistic_model

from sgtune.model import Found, define_model
from sgtune.model.posterior import density_of
from sgtune.samplers.covariance import LARGEST_FULL_DIMENSION
from sgtune.samplers.gradients import ESTIMATORS
from sgtune.samplers.minibatch import subset_indices
from sgtune.support.errors import InputError
from sgtune.support.machine import full_precision

MODELS = {
    "logistic": cache(partial(small_logistic_model, n_data=120, dimension=3, seed=3)),
    "pmf": small_pmf,
    "bnn": small_network,
}
FORMS = ("diagonal", "full")
N_ROWS = 30
"""The batch size of most tests, so that they share compiled programs."""


def places(model):
    """A position and a centre, far from each other, with every parameter away from zero."""
    rng = np.random.default_rng(6)
    return [model.unravel(jnp.asarray(rng.normal(0.3, 0.7, model.dimension), jnp.float32)) for _ in range(2)]


@full_precision
def terms(model, position):
    """The gradients of the log-likelihood of each datum, (N, D), from a Jacobian."""
    flat, unravel = ravel_pytree(position)
    jacobian = jax.jacfwd(lambda flat: model.log_likelihood(unravel(flat), model.data))(flat)
    return np.asarray(jacobian, np.float64)


@cache
def prepared(model, ending):
    """``(key, position, batch_size, form) -> (flat gradient, covariance)``, compiled, and the position."""
    position, centre = places(model)
    estimator = ESTIMATORS[ending]
    constants = estimator.prepare(model, centre)

    @partial(jax.jit, static_argnums=(3, 4))
    def run(constants, key, position, batch_size, form):
        arguments = (density_of(model), constants, key, position, batch_size, ())
        if form is None:
            gradient, state = estimator.estimate(*arguments)
            return ravel_pytree(gradient)[0], state
        gradient, covariance, state = estimator.estimate_with_covariance(*arguments, form)
        assert state == ()
        return ravel_pytree(gradient)[0], covariance

    return partial(run, constants), position


def assert_close(found, expected, rtol=1e-4):
    """Compare with ``rtol`` times each element's scale from the variances: small elements are not more accurate."""
    found, expected = np.asarray(found, np.float64), np.asarray(expected, np.float64)
    assert found.shape == expected.shape
    variances = np.diag(expected) if expected.ndim == 2 else expected
    scale = np.sqrt(np.outer(variances, variances)) if expected.ndim == 2 else expected
    # Where all gradients are equal except for rounding, as for parameters that no datum depends on.
    assert (np.abs(found - expected) <= rtol * scale + 1e-6 * rtol * variances.max()).all()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("name", "ending"), [("logistic", ""), ("logistic", "cv"), ("pmf", ""), ("bnn", "cv")]
)
def test_the_minibatchs_own_covariance_by_hand(name, ending, form):
    """(N^2 / n) (1 - n / N) V, with NumPy's V of the rows that this key draws; and the gradient of `estimate`."""
    model, n = MODELS[name](), N_ROWS
    run, position = prepared(model, ending)
    # The noise is that of the terms that the estimator sums over a minibatch.
    of_terms = terms(model, position) - (terms(model, places(model)[1]) if ending else 0)
    for seed in range(3):
        key = jax.random.key(seed)
        gradient, covariance = run(key, position, n, form)
        np.testing.assert_array_equal(gradient, run(key, position, n, None)[0])
        rows = np.asarray(subset_indices(key, n, model.n_data))
        expected = model.n_data**2 / n * (1 - n / model.n_data) * np.cov(of_terms[rows].T, ddof=1)
        assert_close(covariance, expected if form == "full" else np.diag(expected))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("ending", ESTIMATORS)
def test_a_mean_far_above_the_sd_costs_no_digits(ending, form):
    """Gradients of 3,000 +- 1, whose variance is lost in a float32 sum of squares."""
    numbers = np.float32(3_000) + np.random.default_rng(13).standard_normal((90, 2)).astype(np.float32)
    model = define_model(
        "linear",
        log_prior=lambda position: -0.5 * position @ position,
        log_likelihood=lambda position, batch: (batch * position + 0.5 * batch * position**2).sum(1),
        data=numbers,
        init=lambda key: jnp.zeros(2),
        shuffle_seed=None,
    )
    run, position = prepared(model, ending)
    key, n = jax.random.key(14), 60
    # A datum's gradient is its number times 1 + theta; control variates subtract the gradient at their centre.
    slope = np.asarray(position, np.float64) - (np.asarray(places(model)[1], np.float64) if ending else -1)
    rows = numbers[np.asarray(subset_indices(key, n, 90))].astype(np.float64) * slope
    expected = 90 * 30 / n * np.cov(rows.T, ddof=1)
    # The remaining error is the rounding of a gradient, 1e-4.
    assert_close(run(key, position, n, form)[1], expected if form == "full" else np.diag(expected), rtol=2e-3)


@pytest.mark.parametrize("ending", ESTIMATORS)
def test_full_batches_have_no_noise(ending):
    model, key = MODELS["logistic"](), jax.random.key(16)
    run, position = prepared(model, ending)
    for form, shape in (("diagonal", (3,)), ("full", (3, 3))):
        gradient, covariance = run(key, position, model.n_data, form)
        np.testing.assert_array_equal(gradient, run(key, position, model.n_data, None)[0])
        np.testing.assert_array_equal(covariance, np.zeros(shape, np.float32), strict=True)
    single = replace(model, data=jax.tree.map(lambda leaf: leaf[:1], model.data), found=Found())
    run, position = prepared(single, ending)
    assert (run(key, position, 1, "full")[1] == 0).all()


def test_a_full_matrix_of_too_many_parameters_is_refused():
    """At one parameter too many; the message gives the memory of a matrix, and the diagonal is still allowed."""
    dimension = LARGEST_FULL_DIMENSION + 1
    run, position = prepared(logistic_model(*logistic_arrays(4, dimension, seed=18)), "")
    gigabytes = dimension**2 * 4 / 2**30
    line = rf"^covariance: 'full' is not allowed for D = {dimension}.* {gigabytes:.2g}\d* GiB"
    with pytest.raises(InputError, match=line):
        run(jax.random.key(0), position, 2, "full")
    assert run(jax.random.key(0), position, 2, "diagonal")[1].shape == (dimension,)
