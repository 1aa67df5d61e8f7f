"""The KSD against its naive form, and the KSD of all draws estimated from an evenly spaced subset."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stein_forms import a_factor, check_stretches, naive_ksd, naive_pairs, sizes, some_draws, varied

from sgtune.stein import ksd, ksd_stretches, rescale
from sgtune.stein.quadratic import N_STRETCHES, mean_square


@varied
@given(
    **sizes,
    offset=st.sampled_from([0.0, 5.0, -1e4]),
    spread=st.sampled_from([1e-2, 1.0, 1e2]),
    size=st.sampled_from([1e-2, 1.0, 1e3]),
)
def test_ksd_is_the_double_loop(n, dimension, seed, offset, spread, size):
    positions, scores = some_draws(seed, n, dimension, offset=offset, spread=spread, size=size)
    assert ksd(positions, scores) == pytest.approx(naive_ksd(positions, scores), rel=1e-5)


@pytest.mark.parametrize("offset", [0.0, 1e7])
def test_ksd_is_the_double_loop_on_a_narrow_posterior_far_from_zero(offset):
    """In float64 and in units of the sd, so that an error of the squared distances would show."""
    positions = offset + 1e-2 * np.random.default_rng(1).standard_normal((60, 10))
    scores, sds = -(positions - offset) * 1e5, np.full(10, 1e-2)
    assert ksd(positions, scores) == pytest.approx(naive_ksd(positions, scores), rel=1e-5)
    assert ksd(positions, scores, sds) == pytest.approx(naive_ksd(positions / sds, scores * sds), rel=1e-5)


@varied
@given(**sizes, rows=st.integers(1, 10), columns=st.integers(1, 7), scaled=st.booleans())
def test_tiles_do_not_change_ksd(n, dimension, seed, rows, columns, scaled):
    positions, scores = some_draws(seed, n, dimension, offset=3.0, size=10.0)
    scale = np.linspace(0.5, 2.0, dimension) if scaled else "identity"
    whole = ksd(positions, scores, scale)
    assert ksd(positions, scores, scale, block=(rows, columns)) == pytest.approx(whole, rel=1e-10)


# --- subsets of the draws, and stretches of a chain


@varied
@given(**sizes, n_draws=st.integers(10, 1_000))
def test_more_draws_than_there_are_divide_the_diagonal(n, dimension, seed, n_draws):
    draws = some_draws(seed, n, dimension, size=2.0)
    pairs = naive_pairs(*draws)
    diagonal = np.diag(pairs).mean()
    elsewhere = max(0.0, pairs[~np.eye(n, dtype=bool)].mean()) if n > 1 else diagonal
    expected = np.sqrt(elsewhere + (diagonal - elsewhere) / n_draws)
    assert ksd(*draws, n_draws=n_draws) == pytest.approx(expected, rel=1e-4)
    assert ksd(*draws, n_draws=n) == ksd(*draws)


@varied
@given(**sizes, rows=st.integers(1, 10), columns=st.integers(1, 7), scaled=st.booleans())
def test_sums_over_stretches_agree_with_naive_loops(n, dimension, seed, rows, columns, scaled):
    draws = some_draws(seed, n, dimension, offset=3.0, size=2.0)
    scale = a_factor(seed, dimension) if scaled else "identity"
    stretch = np.random.default_rng(seed).integers(0, N_STRETCHES, n)
    pairs = naive_pairs(*rescale(*draws, scale))
    found = ksd_stretches(*draws, stretch, scale, block=(rows, columns))
    check_stretches(found, pairs, stretch, 1e-6)
    for n_draws in (n, 3 * n):
        square = mean_square(found, n_draws)
        assert square == pytest.approx(ksd(*draws, scale, n_draws=n_draws) ** 2, rel=1e-6)
