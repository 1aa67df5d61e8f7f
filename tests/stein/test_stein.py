"""The Stein discrepancies against naive forms of Eqs. (3) and (4), and on draws known to be wrong."""

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stein_forms import (
    few_shapes,
    gaussian,
    naive_fssd,
    sizes,
    some_draws,
    varied,
)

from sgtune.stein import fssd, fssd_at, ksd, optimise_locations
from sgtune.stein.fssd import _weighted_fssd

# --- FSSD


@varied
@given(
    **sizes,
    n_locations=st.integers(1, 5),
    offset=st.sampled_from([0.0, 5.0, -1e4]),
    spread=st.sampled_from([1e-2, 1.0, 1e2]),
    size=st.sampled_from([0.0, 1.0, 1e3]),
)
def test_fssd_at_is_the_naive_form(n, dimension, seed, n_locations, offset, spread, size):
    positions, scores = some_draws(seed, n, dimension, offset=offset, spread=spread, size=size)
    locations = some_draws(seed + 1, n_locations, dimension, offset=offset, spread=2 * spread)[0]
    expected = naive_fssd(positions, scores, locations)
    assert fssd_at(positions, scores, locations) == pytest.approx(expected, rel=1e-5)


@varied
@given(**few_shapes | {"n": st.integers(1, 32)})
def test_padding_does_not_change_adams_objective(n, dimension, seed):
    """Float32 against float64: 1e-4. Rows of weight zero have no effect, for any contents."""
    positions, scores = some_draws(seed, 32, dimension)
    locations = some_draws(seed + 1, 3, dimension)[0]
    weights = np.zeros(32, np.float32)
    weights[:n] = 1 / n
    unit = np.float32(0.25)
    padded = jax.jit(_weighted_fssd)(positions, scores * unit, weights, unit, locations)
    expected = naive_fssd(positions[:n], scores[:n], locations)
    assert float(padded) / 0.25 == pytest.approx(expected, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 30])
def test_fssd_chooses_locations_on_the_even_draws_and_scores_the_odd_ones(n):
    positions, scores = some_draws(7, n, 3)
    even, odd = (slice(0, None, 2), slice(1, None, 2)) if n >= 4 else (slice(None), slice(None))
    locations = optimise_locations(positions[even], scores[even], seed=3)
    assert locations.shape == (10, 3)
    assert fssd(positions, scores, seed=3) == fssd_at(positions[odd], scores[odd], locations)
    expected = naive_fssd(positions[odd], scores[odd], locations)
    assert fssd(positions, scores, seed=3) == pytest.approx(expected, rel=1e-9)


def test_locations_start_as_draws_of_the_fitted_gaussian():
    """Mean and covariance of 20,000 of them, each entry within five standard errors of the Gaussian fit's."""
    rng, count = np.random.default_rng(8), 20_000
    positions = 50 + rng.standard_normal((30, 3)) @ rng.normal(size=(3, 3)).T
    start = optimise_locations(positions, -positions, n_locations=count, n_steps=0)
    mean, covariance = positions.mean(0), np.cov(positions.T, bias=True)
    variances = np.diag(covariance)
    assert np.all(np.abs(start.mean(0) - mean) < 5 * np.sqrt(variances / count))
    error = np.sqrt((covariance**2 + np.outer(variances, variances)) / count)
    assert np.all(np.abs(np.cov(start.T) - covariance) < 5 * error)


def wrong_draws(exact):
    return {
        "shrunk to 0.3 sd": 0.3 * exact,
        "stretched to 3 sd": 3 * exact,
        "shifted by 1 sd": exact + 1,
        "point mass at the MAP": 0 * exact,
    }


def test_with_the_posterior_scale_exact_draws_score_lowest():
    """Ten dimensions, 500 draws; FSSD sees all but the stretch."""
    sd = 1e-2
    for seed in range(3):
        exact = np.random.default_rng(seed).standard_normal((500, 10))
        right, scale = gaussian(exact, sd), np.full(10, sd)
        for name, positions in wrong_draws(exact).items():
            wrong = gaussian(positions, sd)
            assert ksd(*right, scale) < 0.5 * ksd(*wrong, scale), name
            if name != "stretched to 3 sd":
                assert fssd(*right, scale=scale) < 0.6 * fssd(*wrong, scale=scale), name
