"""Scores from fresh minibatches: each position has its own, without bias, and products of two are unbiased."""

import numpy as np
import pytest
from small_models import gaussian_model, small_logistic_model

from sgtune.mode.find import map_position
from sgtune.model.positions import flatten
from sgtune.model.posterior import scores
from sgtune.samplers.gradients import CHUNK, control_variate, stochastic_scores

PRECISION, MEAN = np.array([[2.0, -1.2], [-1.2, 1.5]]), np.array([0.5, -1.0])
SIGMAS = 4.5


@pytest.fixture(scope="module")
def model():
    return gaussian_model(PRECISION, MEAN, n_data=40)


@pytest.fixture(scope="module")
def logistic():
    return small_logistic_model(n_data=200, dimension=2)


@pytest.fixture(scope="module")
def at_mode(logistic):
    """Options for control variates at the MAP."""
    return {
        "gradient": control_variate,
        "constants": control_variate.prepare(logistic, map_position(logistic)),
    }


def test_each_position_has_a_minibatch_of_its_own(model):
    """Repeated scores of one position scatter about the exact score, with the covariance of minibatches."""
    n, batch_size = 4_000, 5
    position = np.array([1.0, 0.5], np.float32)
    found = stochastic_scores(model, np.repeat(position[None], n, 0), batch_size).astype(np.float64)
    # The gradient of a datum is 0.75 / N precision (datum - position).
    of_data = 0.75 / 40 * (np.asarray(model.data, np.float64) - position) @ PRECISION
    covariance = 40**2 / batch_size * (1 - batch_size / 40) * np.cov(of_data.T, ddof=1)
    exact = scores(model, position[None])[0]
    assert np.all(np.abs(found.mean(0) - exact) < SIGMAS * np.sqrt(np.diag(covariance) / n))
    deviations = found - exact
    products = deviations[:, :, None] * deviations[:, None, :]
    error = products.std(0) / np.sqrt(n)
    assert np.all(np.abs(products.mean(0) - covariance) < SIGMAS * error)
    assert np.all(np.diag(covariance) > 20 * np.diag(error))
    # Neighbouring scores are independent, and so are scores in different calls of the program.
    for apart in (1, CHUNK):
        following = np.mean(deviations[apart:] * deviations[:-apart], axis=0) / np.diag(covariance)
        assert np.all(np.abs(following) < SIGMAS / np.sqrt(n - apart))


@pytest.mark.parametrize("far", [0.2, 2.0])
def test_control_variates_leave_no_bias_and_less_noise(logistic, at_mode, far):
    """Uses one position near the mode and one further away. The noise of two draws is independent."""
    n, batch_size = 4_000, 10
    position = flatten(map_position(logistic)) + np.float32(far) * np.ones(2, np.float32)
    draws = np.repeat(position[None], n, 0)
    exact = scores(logistic, position[None])[0].astype(np.float64)
    found, plain = (
        stochastic_scores(logistic, draws, batch_size, **options).astype(np.float64) - exact
        for options in (at_mode, {})
    )
    noise = found.std(axis=0)
    assert np.all(np.abs(found.mean(axis=0)) < SIGMAS * noise / np.sqrt(n))
    for apart in (1, CHUNK):
        following = np.mean(found[apart:] * found[:-apart], axis=0) / noise**2
        assert np.all(np.abs(following) < SIGMAS / np.sqrt(n - apart))
    assert np.all(noise > 0)
    # To first order the noise grows with the distance from the mode.
    assert np.all(noise < far * plain.std(axis=0))


def test_full_batch_scores_are_exact(logistic, at_mode):
    draws = np.random.default_rng(0).standard_normal((70, 2)).astype(np.float32)
    for options in ({}, at_mode):
        np.testing.assert_allclose(
            stochastic_scores(logistic, draws, 200, **options), scores(logistic, draws)
        )
