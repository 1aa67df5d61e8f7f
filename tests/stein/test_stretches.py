"""Sums of the KSD's kernel over stretches of a chain."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stein_forms import a_factor, naive_pairs, sizes, some_draws, varied

from sgtune.stein import ksd, ksd_stretches, rescale
from sgtune.stein.quadratic import N_STRETCHES, mean_square


@varied
@given(**sizes, rows=st.integers(1, 10), columns=st.integers(1, 7), scaled=st.booleans())
def test_they_agree_with_naive_loops(n, dimension, seed, rows, columns, scaled):
    draws = some_draws(seed, n, dimension, offset=3.0, size=2.0)
    scale = a_factor(seed, dimension) if scaled else "identity"
    stretch = np.random.default_rng(seed).integers(0, N_STRETCHES, n)
    pairs = naive_pairs(*rescale(*draws, scale))
    found = ksd_stretches(*draws, stretch, scale, block=(rows, columns))
    sums, own = np.zeros((N_STRETCHES, N_STRETCHES)), np.zeros(N_STRETCHES)
    for i, a in enumerate(stretch):
        own[a] += pairs[i, i]
        for j, b in enumerate(stretch):
            sums[a, b] += pairs[i, j] * (i != j)
    np.testing.assert_array_equal(found.counts, np.bincount(stretch, minlength=N_STRETCHES))
    np.testing.assert_allclose(found.own, own, rtol=1e-6)
    np.testing.assert_allclose(found.sums, sums, rtol=1e-6, atol=1e-6 * own.sum())
    for n_draws in (n, 3 * n):
        square = mean_square(found, n_draws)
        assert square == pytest.approx(ksd(*draws, scale, n_draws=n_draws) ** 2, rel=1e-6)


def test_draws_that_are_not_finite_are_infinitely_far():
    positions, scores = some_draws(0, 10, 2)
    positions[3, 1] = np.nan
    for lost in ((positions, scores), (np.full((10, 2), 1e200), np.full((10, 2), 1e200))):
        assert mean_square(ksd_stretches(*lost, np.arange(10) // 2), 30) == np.inf
