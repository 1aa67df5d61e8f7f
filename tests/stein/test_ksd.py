"""The KSD against its naive form, of a random subset of the draws with its error, and the smallest expected one."""

import sys
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_models import gaussian_model
from stein_forms import a_factor, check_stretches, naive_ksd, naive_pairs, sizes, some_draws, varied

from sgtune.mode.curvature import hessian_trace, laplace_scale
from sgtune.stein import ksd, ksd_estimate, ksd_floor, ksd_stretches, rescale
from sgtune.stein.quadratic import N_STRETCHES, mean_square

# The package has the function under this name.
MODULE = sys.modules["sgtune.stein.ksd"]


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
    """For tiles of any size."""
    draws = some_draws(seed, n, dimension, offset=3.0, size=2.0)
    scale = a_factor(seed, dimension) if scaled else "identity"
    stretch = np.random.default_rng(seed).integers(0, N_STRETCHES, n)
    pairs = naive_pairs(*rescale(*draws, scale))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MODULE, "BLOCK", (rows, columns))
        found = ksd_stretches(*draws, stretch, scale)
    check_stretches(found, pairs, stretch, 1e-6)
    for n_draws in (n, 3 * n):
        square = mean_square(found, n_draws)
        assert square == pytest.approx(ksd(*draws, scale, n_draws=n_draws) ** 2, rel=1e-6)


def naive_estimate(positions, scores, n_draws):
    """T and its variance, by float64 loops over all pairs and all pairs of pairs."""
    pairs, n = naive_pairs(positions, scores), len(positions)
    own = np.diag(pairs)
    values = (1 - 1 / n_draws) * pairs + (own[:, None] + own) / (2 * n_draws)
    both = np.mean([values[i, j] ** 2 for i, j in permutations(range(n), 2)])
    one = np.mean([values[i, j] * values[i, k] for i, j, k in permutations(range(n), 3)])
    none = np.mean([values[i, j] * values[k, m] for i, j, k, m in permutations(range(n), 4)])
    variance = 4 * (1 / n - 1 / n_draws) * max(one - none, 0.0)
    variance += 2 * (1 / (n * (n - 1)) - 1 / (n_draws * (n_draws - 1))) * (both - 2 * one + none)
    off = pairs[~np.eye(n, dtype=bool)].mean()
    return off + (own.mean() - off) / n_draws, variance


@varied
@given(**sizes | {"n": st.integers(4, 7)}, n_draws=st.integers(8, 1_000))
def test_the_estimate_agrees_with_naive_loops(n, dimension, seed, n_draws):
    draws = some_draws(seed, n, dimension, size=2.0)
    square, variance = naive_estimate(*draws, n_draws)
    found = ksd_estimate(*draws, n_draws=n_draws)
    assert found.value == pytest.approx(np.sqrt(max(square, 0.0)), rel=1e-4, abs=1e-4)
    error = np.sqrt(variance)
    assert found.se == pytest.approx(error / (2 * np.sqrt(max(square, error))), rel=1e-3, abs=1e-5)


@varied
@given(**sizes, rows=st.integers(1, 10), columns=st.integers(1, 7), kind=st.integers(0, 2))
def test_tiles_and_scales_act_as_in_the_ksd(n, dimension, seed, rows, columns, kind):
    positions, scores = some_draws(seed, n, dimension, offset=3.0, size=10.0)
    scale = ("identity", np.linspace(0.5, 2.0, dimension), a_factor(seed, dimension))[kind]
    whole = ksd_estimate(positions, scores, scale, n_draws=n + 5)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MODULE, "BLOCK", (rows, columns))
        tiled = ksd_estimate(positions, scores, scale, n_draws=n + 5)
    assert tiled == pytest.approx(whole, rel=1e-8)
    every = ksd_estimate(positions, scores, scale, n_draws=n)
    assert (every.value, every.se) == (pytest.approx(ksd(positions, scores, scale), rel=1e-8), 0)
    assert ksd_estimate(positions, scores, scale) == every


@pytest.mark.parametrize("scaled", [False, True])
def test_exact_draws_have_the_floor_on_average(scaled):
    """E[KSD^2] of n exact draws, in the model's own coordinates and in those of the Laplace scale; 200 replicates."""
    precision = np.array([[40.0, -12.0, 0.0], [-12.0, 9.0, 2.0], [0.0, 2.0, 4.0]])
    mean, n = [0.5, -1.0, 2.0], 30
    model = gaussian_model(precision, mean)
    trace = hessian_trace(model)
    # The Hessian of 8 rows and a prior is summed in float32.
    assert trace == pytest.approx(np.trace(precision), rel=1e-4)
    scale = laplace_scale(model) if scaled else "identity"
    floor = ksd_floor(3 if scaled else trace, 3, n)
    half = np.linalg.cholesky(np.linalg.inv(precision))
    draws = np.random.default_rng(0).standard_normal((200, n, 3)) @ half.T
    squares = np.array([ksd(mean + x, -x @ precision, scale) ** 2 for x in draws])
    error = squares.std(ddof=1) / np.sqrt(200)
    assert abs(squares.mean() - floor**2) < 4 * error < 0.4 * floor**2
