"""The KSD against its naive form, of a random subset of the draws with its error, and the smallest expected one."""

import sys
from itertools import permutations
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_models import gaussian_model
from stein_forms import a_factor, check_stretches, mean_of_pairs, naive_pairs, sizes, some_draws, varied

from sgtune.mode.curvature import hessian_trace, laplace_scale
from sgtune.stein import ksd, ksd_estimate, ksd_floor, ksd_stretches, rescale
from sgtune.stein.quadratic import N_STRETCHES, mean_square

# The package has the function under this name.
MODULE = sys.modules["sgtune.stein.ksd"]


@pytest.mark.parametrize("offset", [0.0, 1e7])
def test_ksd_is_the_double_loop_on_a_narrow_posterior_far_from_zero(offset):
    """In float64 and in units of the sd, so that an error of the squared distances would show."""
    positions = offset + 1e-2 * np.random.default_rng(1).standard_normal((60, 10))
    scores, sds = -(positions - offset) * 1e5, np.full(10, 1e-2)
    for found, pairs in (
        (ksd(positions, scores), naive_pairs(positions, scores)),
        (ksd(positions, scores, sds), naive_pairs(positions / sds, scores * sds)),
    ):
        assert found == pytest.approx(np.sqrt(pairs.mean()), rel=1e-5)


# Tiles of any size, and any kind of scale.
computed = {"rows": st.integers(1, 10), "columns": st.integers(1, 7), "kind": st.integers(0, 2)}


def scale_of(kind, seed, dimension):
    return ("identity", np.linspace(0.5, 2.0, dimension), a_factor(seed, dimension))[kind]


@varied
@given(
    **sizes | computed,
    n_draws=st.integers(10, 1_000),
    offset=st.sampled_from([0.0, 5.0, -1e4]),
    spread=st.sampled_from([1e-2, 1.0, 1e2]),
    size=st.sampled_from([1e-2, 1.0, 1e3]),
)
def test_values_and_sums_over_stretches_are_the_double_loop(
    n, dimension, seed, rows, columns, kind, n_draws, offset, spread, size
):
    draws = some_draws(seed, n, dimension, offset=offset, spread=spread, size=size)
    scale = scale_of(kind, seed, dimension)
    stretch = np.random.default_rng(seed).integers(0, N_STRETCHES, n)
    pairs = naive_pairs(*rescale(*draws, scale))
    with patch.object(MODULE, "BLOCK", (rows, columns)):
        found = ksd_stretches(*draws, stretch, scale)
        assert ksd(*draws, scale, n_draws=n) == ksd(*draws, scale)
        check_stretches(found, pairs, stretch, 1e-6)
        for count in (n, n_draws):
            value = ksd(*draws, scale, n_draws=count)
            assert value == pytest.approx(np.sqrt(mean_of_pairs(pairs, count)), rel=1e-5)
            assert mean_square(found, count) == pytest.approx(value**2, rel=1e-6)


def naive_estimate(positions, scores, n_draws):
    """T and its variance, by float64 loops over all pairs and all pairs of pairs."""
    pairs, n = naive_pairs(positions, scores), len(positions)
    own, off = np.diag(pairs), pairs[~np.eye(n, dtype=bool)]
    square = (off.mean() if n > 1 else own[0]) * (1 - 1 / n_draws) + own.mean() / n_draws
    if n < 4:
        return square, np.inf
    values = (1 - 1 / n_draws) * pairs + (own[:, None] + own) / (2 * n_draws)
    both = np.mean([values[i, j] ** 2 for i, j in permutations(range(n), 2)])
    one = np.mean([values[i, j] * values[i, k] for i, j, k in permutations(range(n), 3)])
    none = np.mean([values[i, j] * values[k, m] for i, j, k, m in permutations(range(n), 4)])
    variance = 4 * (1 / n - 1 / n_draws) * max(one - none, 0.0)
    variance += 2 * (1 / (n * (n - 1)) - 1 / (n_draws * (n_draws - 1))) * (both - 2 * one + none)
    return square, variance


@varied
@given(**sizes | computed | {"n": st.integers(1, 7)}, n_draws=st.integers(8, 1_000))
def test_the_estimate_agrees_with_naive_loops(n, dimension, seed, rows, columns, kind, n_draws):
    draws = some_draws(seed, n, dimension, offset=3.0, size=2.0)
    scale = scale_of(kind, seed, dimension)
    square, variance = naive_estimate(*rescale(*draws, scale), n_draws)
    with patch.object(MODULE, "BLOCK", (rows, columns)):
        found = ksd_estimate(*draws, scale, n_draws=n_draws)
        every = ksd_estimate(*draws, scale, n_draws=n)
    assert found.squared == pytest.approx(square, rel=1e-8, abs=1e-8)
    assert found.value == np.sqrt(max(found.squared, 0.0))
    error = np.sqrt(variance)
    expected = error / (2 * np.sqrt(max(square, error))) if n >= 4 else np.inf
    assert found.se == pytest.approx(expected, rel=1e-3, abs=1e-5)
    assert (every.value, every.se) == (pytest.approx(ksd(*draws, scale), rel=1e-8), 0)
    assert ksd_estimate(*draws, scale) == pytest.approx(every, rel=1e-8)


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
