"""The studies of the discrepancies: stochastic scores of fresh minibatches, and draws of known width."""

import numpy as np
import pytest
from small_models import gaussian_model

from sgtune.mode.curvature import laplace_scale
from sgtune.posterior import scores
from sgtune.stein import fssd, ksd
from sgtune.study.discrepancies import measure_widths, stochastic_scores

PRECISION, MEAN = np.array([[2.0, -1.2], [-1.2, 1.5]]), np.array([0.5, -1.0])
SIGMAS = 4.5


@pytest.fixture(scope="module")
def model():
    return gaussian_model(PRECISION, MEAN, n_data=40)


def test_each_position_has_a_minibatch_of_its_own(model):
    """Scores of one position over and over scatter about the exact one, with the covariance of minibatches."""
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
    # Those next to each other are independent.
    following = np.mean(deviations[1:] * deviations[:-1], axis=0) / np.diag(covariance)
    assert np.all(np.abs(following) < SIGMAS / np.sqrt(n - 1))


def test_widths_are_in_posterior_sds(model):
    rng = np.random.default_rng(0)
    draws = rng.multivariate_normal(MEAN, np.linalg.inv(PRECISION), 60).astype(np.float32)
    widths = [0, 0.5, 1, 2]
    rows = measure_widths(model, draws, widths=widths, points=60)
    assert [row["width"] for row in rows[::4]] == widths
    for row in rows:
        centre = draws.mean(axis=0, dtype=np.float64)
        points = (centre + row["width"] * (draws - centre)).astype(np.float32)
        if row["width"] == 0:
            # A chain that stays at the mode.
            points = np.repeat(MEAN[None].astype(np.float32), 60, 0)
        scale = laplace_scale(model) if row["scale"] == "laplace" else "identity"
        measure = {"ksd": ksd, "fssd": fssd}[row["discrepancy"]]
        options = {} if row["discrepancy"] == "ksd" else {"seed": 0}
        expected = measure(points, scores(model, points), scale=scale, **options)
        assert row["value"] == pytest.approx(expected, rel=1e-3, abs=1e-3)
        assert row["n_points"] == 60
