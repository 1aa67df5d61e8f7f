"""The Gaussians of the ladder, against dense float64 algebra."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sgtune.metrics import xi_white
from sgtune.mode.curvature import laplace_scale
from sgtune.mode.find import map_position
from sgtune.model.posterior import negative_hessian, scores
from sgtune.study.experiments.ladder_models import CORRELATION, KINDS, gaussian, ladder_model
from sgtune.study.experiments.ladder_runs import xi_along
from sgtune.support.errors import InputError

N_DATA = 200
SIZES = [(kind, dimension) for kind in KINDS for dimension in (2, 13)]


def dense(kind, dimension):
    """The known quantities, Q, and the model."""
    known = gaussian(kind, dimension, N_DATA, seed=3)
    return known, known.across(np.eye(dimension)).T, ladder_model(kind, dimension, N_DATA, seed=3)


@pytest.mark.parametrize(("kind", "dimension"), SIZES)
def test_directions_are_orthogonal_and_the_rotation_has_its_inverse(kind, dimension):
    known, q, _ = dense(kind, dimension)
    np.testing.assert_allclose(q.T @ q, np.eye(dimension), atol=1e-12)
    rows = np.random.default_rng(0).standard_normal((4, dimension))
    np.testing.assert_allclose(known.along(rows), rows @ q, atol=1e-12)
    np.testing.assert_allclose(known.across(known.along(rows)), rows, atol=1e-12)


@pytest.mark.parametrize(("kind", "dimension"), SIZES)
def test_posterior_has_its_mode_at_zero_and_the_precision_that_is_known(kind, dimension):
    known, q, model = dense(kind, dimension)
    precision = q * known.precision @ q.T
    hessian = negative_hessian(model, map_position(model))
    np.testing.assert_allclose(hessian, precision, rtol=0, atol=1e-6 * precision.max())
    # Scores are in units of the root of the precision, so float32 errors of the sum of rows are far below one.
    score = scores(model, np.zeros((1, dimension), np.float32))[0]
    assert np.abs(known.along(score) * known.sd).max() < 1e-3
    half = laplace_scale(model)
    np.testing.assert_allclose(half @ half.T @ precision, np.eye(dimension), atol=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_of_the_data_have_the_same_known_noise_everywhere(kind):
    known, q, model = dense(kind, 13)
    position = np.random.default_rng(1).standard_normal(13).astype(np.float32)
    gradients = jax.jacrev(lambda at: model.log_likelihood(at, model.data))(jnp.asarray(position))
    expected = np.asarray(model.data, np.float64) - q * known.eigenvalues @ q.T @ position
    np.testing.assert_allclose(gradients, expected, atol=1e-5)
    variances = known.along(np.asarray(gradients)).var(axis=0, ddof=1)
    np.testing.assert_allclose(variances, known.eigenvalues, rtol=1e-5)


def test_curvatures_are_what_the_kinds_say():
    axis = gaussian("axis", 100, N_DATA).eigenvalues
    assert axis.max() / axis.min() == pytest.approx(1000)
    np.testing.assert_array_equal(axis, gaussian("rotated", 100, N_DATA).eigenvalues)
    np.testing.assert_allclose(
        gaussian("axis-narrow", 100, N_DATA).precision, 1_000 * gaussian("axis", 100, N_DATA).precision
    )
    known, q, _ = dense("equicorrelated", 13)
    covariance = np.linalg.inv(q * known.eigenvalues @ q.T)
    sd = np.sqrt(np.diag(covariance))
    correlations = covariance / np.outer(sd, sd)
    np.testing.assert_allclose(correlations, np.where(np.eye(13), 1, CORRELATION), atol=1e-10)
    # The prior has at most a thousandth of the precision, in the direction with the least information.
    assert known.precision.min() == pytest.approx(1.001 * N_DATA * known.eigenvalues.min())


def test_rotation_leaves_no_axis_where_it_was():
    """Every direction mixes all parameters, at any D: no entry of Q is above sqrt(2 / D)."""
    known = gaussian("rotated", 1_000, N_DATA)
    some = known.along(np.eye(1_000)[:20])
    assert np.abs(some).max() <= np.sqrt(2 / 1_000) * (1 + 1e-9)


@pytest.mark.parametrize(("kind", "dimension"), SIZES)
def test_marginal_variances_are_the_diagonal(kind, dimension, monkeypatch):
    monkeypatch.setattr("sgtune.study.experiments.ladder_models.CHUNK", 5)
    known, q, _ = dense(kind, dimension)
    variances = np.random.default_rng(2).uniform(0.5, 2, (dimension, 3))
    expected = np.stack([np.diag(q * column @ q.T) for column in variances.T], axis=1)
    np.testing.assert_allclose(known.marginal_variances(variances), expected, rtol=1e-10)


@pytest.mark.parametrize("kind", ["axis", "rotated"])
def test_the_oracles_error_is_xi_white(kind):
    known, q, _ = dense(kind, 13)
    draws = known.across(1.3 * known.sd * np.random.default_rng(5).standard_normal((700, 13))) + 0.01
    expected = xi_white(np.cov(draws.T, bias=True), q / known.precision @ q.T)
    assert xi_along(known, draws) == pytest.approx(expected, rel=1e-6)
    assert xi_along(known, np.zeros((9, 13))) == 1
    assert xi_along(known, np.empty((0, 13))) == xi_along(known, np.full((3, 13), np.nan)) == np.inf


def test_what_is_not_allowed_is_said():
    with pytest.raises(InputError, match="kind: 'round' is not known"):
        gaussian("round", 3, N_DATA)
    with pytest.raises(InputError, match="dimension: 0 is not allowed"):
        ladder_model("axis", 0)
