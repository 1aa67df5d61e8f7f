"""Minibatches: uniform subsets without replacement, fresh for every key."""

from collections import Counter
from itertools import pairwise
from math import comb

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from jax.scipy.special import gammaincc

from sgtune.samplers.minibatch import (
    BLOCK_ROWS,
    ROWS_DRAWN_SINGLY,
    block_rows,
    draw_minibatch,
    subset_indices,
)

# Two-sided significance level of all tests of a family together.
LEVEL = 1e-4


def subsets(n, n_data, n_keys, seed=0):
    """(n_keys, n) indices, one row per key; keys are folded in by step, as in a chain."""
    key = jax.random.key(seed)
    draw = jax.jit(jax.vmap(lambda t: subset_indices(jax.random.fold_in(key, t), n, n_data)))
    return np.concatenate([np.asarray(draw(part)) for part in jnp.split(jnp.arange(n_keys), 10)])


def assert_uniform(counts, expected, variance):
    """Check counts with this expectation and variance: neither a cell nor the sum of squares is an outlier.

    For exchangeable counts with a fixed sum, the sum of squared z over (cells - 1) / cells is about chi-square.
    """
    counts = np.asarray(counts, float).ravel()
    z = (counts - expected) / np.sqrt(variance)
    normal_bound = np.sqrt(2 * np.log(2 * len(counts) / LEVEL))
    assert np.abs(z).max() < normal_bound
    freedom = len(counts) - 1
    square = np.sum(z**2) * freedom / len(counts)
    upper = float(gammaincc(freedom / 2, square / 2))
    assert LEVEL / 2 < upper < 1 - LEVEL / 2


def assert_equally_probable(outcomes, n_outcomes):
    """Check independent outcomes (any hashable) among ``n_outcomes`` by chi-square."""
    counts = np.array([*Counter(outcomes).values()], float)
    expected = len(outcomes) / n_outcomes
    square = np.sum((counts - expected) ** 2) / expected + (n_outcomes - len(counts)) * expected
    upper = float(gammaincc((n_outcomes - 1) / 2, square / 2))
    assert LEVEL / 2 < upper < 1 - LEVEL / 2


TINY = [(2, 1), (3, 2), (4, 2), (5, 3), (7, 4), (13, 12), (31, 10), (101, 50)]


@pytest.mark.parametrize(("n_data", "n"), TINY)
def test_every_row_and_every_pair_is_as_probable_as_another(n_data, n):
    n_keys = 20_000
    indices = subsets(n, n_data, n_keys)
    assert (np.sort(indices, axis=1)[:, 1:] > np.sort(indices, axis=1)[:, :-1]).all()
    assert indices.min() >= 0
    assert indices.max() < n_data
    inside = np.zeros((n_keys, n_data), np.float32)
    np.put_along_axis(inside, indices, 1, axis=1)
    together = inside.T @ inside
    share = n / n_data
    assert_uniform(np.diag(together), n_keys * share, n_keys * share * (1 - share))
    if 1 < n < n_data - 1 and n_data > 3:
        pair = share * (n - 1) / (n_data - 1)
        z = (together[np.triu_indices(n_data, 1)] - n_keys * pair) / np.sqrt(n_keys * pair * (1 - pair))
        assert np.abs(z).max() < np.sqrt(2 * np.log(2 * len(z) / LEVEL))
        # Pairs that share a row are not independent, so that the spread is only near 1.
        assert n_data < 30 or 0.75 < z.std() < 1.25


@pytest.mark.parametrize(
    ("n_data", "n"), [(3, 2), (4, 2), (5, 3), (6, 3), (7, 3), (8, 4), (9, 5), (11, 3), (23, 2)]
)
def test_every_subset_and_every_ordered_pair_is_as_probable_as_another(n_data, n):
    """Also triples and larger subsets where all can be counted, and ordered pairs at the first two places."""
    rows = subsets(n, n_data, 40_000, seed=1)
    assert_equally_probable([*map(tuple, np.sort(rows, axis=1))], comb(n_data, n))
    # The order is irrelevant for a sum. With six rows or fewer its probabilities deviate by a few percent.
    if n_data > 6:
        assert_equally_probable([*map(tuple, rows[:, :2])], n_data * (n_data - 1))


@pytest.mark.parametrize(
    ("n_data", "n", "n_keys"),
    [ (60_000, 6_000, 200), (60_000, 30_000, 100), (59_999, 4_000, 200), (800_000, 800, 2_000),
     (800_000, 4_000, 500), (50_000, 5_000, 200)],
)  # fmt: skip
def test_large_subsets_are_uniform_and_their_pairs_uncorrelated(n_data, n, n_keys):
    indices = subsets(n, n_data, n_keys, seed=2)
    inside = np.zeros(n_data, bool)
    lags = (
        1,
        2,
        3,
        16,
        255,
        256,
        *range(int(n_data**0.5) - 8, int(n_data**0.5) + 3),
        n_data // 2,
        n_data - 1,
    )
    near, bins = np.zeros((n_keys, len(lags))), 500
    for row, chosen in enumerate(indices):
        inside[:] = False
        inside[chosen] = True
        assert inside.sum() == n, "an index twice"
        near[row] = [np.count_nonzero(inside[chosen[chosen < n_data - lag] + lag]) for lag in lags]
    assert indices.min() >= 0
    assert indices.max() < n_data
    edges = np.linspace(0, n_data, bins + 1).astype(int)
    sizes = np.diff(edges)
    counts = np.histogram(indices, edges - 0.5)[0] / sizes * sizes.mean()
    width = sizes.mean()
    variance = n_keys * n * width / n_data * (1 - width / n_data) * (n_data - n) / (n_data - 1)
    assert_uniform(counts, n_keys * n * width / n_data, variance)
    # Pairs at a lag: neighbours, powers of two, and about the root of N, the sides of any two-dimensional layout.
    expected = np.array([(n_data - lag) * n * (n - 1) / (n_data * (n_data - 1)) for lag in lags])
    # A lag of N - 1 has one pair, which occurs a few times at most, so its error is Poisson's, not the sample's.
    error = np.maximum(near.std(0, ddof=1), np.sqrt(expected * (1 - n / n_data) ** 2)) / np.sqrt(n_keys)
    z = (near.mean(0) - expected) / error
    assert np.abs(z[:-1]).max() < np.sqrt(2 * np.log(2 * len(lags) / LEVEL))


def test_pairs_drawn_at_random_are_as_probable_as_they_should_be():
    """200 pairs of 60,000 rows, half of the rows drawn: each pair about every fourth time."""
    n_data, n, n_keys = 60_000, 30_000, 1_000
    pairs = np.random.default_rng(0).choice(n_data, (200, 2), replace=False)
    key = jax.random.key(4)

    @jax.jit
    def both(t):
        inside = jnp.zeros(n_data, bool).at[subset_indices(jax.random.fold_in(key, t), n, n_data)].set(True)
        return inside[pairs].all(1)

    counts = np.asarray(jax.lax.map(both, jnp.arange(n_keys))).sum(0)
    pair = n * (n - 1) / (n_data * (n_data - 1))
    z = (counts - n_keys * pair) / np.sqrt(n_keys * pair * (1 - pair))
    assert np.abs(z).max() < np.sqrt(2 * np.log(2 * len(z) / LEVEL))
    assert 0.8 < z.std() < 1.2


@pytest.mark.parametrize(("n_data", "n"), [(1_000, 100), (800_000, 8_000)])
def test_subsets_of_two_keys_are_independent(n_data, n):
    """Two subsets of n have n^2 / N rows in common on average; the places in one are independent of the other's."""
    indices = subsets(n, n_data, 200, seed=5)
    common = np.array([len(np.intersect1d(a, b)) for a, b in pairwise(indices)])
    variance = n * n / n_data * (1 - n / n_data) ** 2
    assert abs(common.mean() - n * n / n_data) < 4.5 * np.sqrt(variance / len(common))
    first, second = indices[:-1].ravel(), indices[1:].ravel()
    assert abs(np.corrcoef(first, second)[0, 1]) < 4.5 / np.sqrt(len(first))
    # Neighbouring places within one subset are also independent.
    assert abs(np.corrcoef(indices[:, :-1].ravel(), indices[:, 1:].ravel())[0, 1]) < 4.5 / np.sqrt(len(first))


@settings(max_examples=15, deadline=None, derandomize=True)
@given(st.data())
def test_any_subset_is_distinct_and_in_range(data):
    n_data = data.draw(st.one_of(st.integers(1, 300), st.integers(1, 2**30)), label="N")
    n = data.draw(st.integers(1, min(n_data, 2_000)), label="n")
    seed = data.draw(st.integers(0, 2**31 - 1), label="seed")
    indices = np.asarray(subset_indices(jax.random.key(seed), n, n_data))
    assert indices.shape == (n,)
    assert len(np.unique(indices)) == n
    assert indices.min() >= 0
    assert indices.max() < n_data


@pytest.mark.parametrize("n_data", [1, 2, 3, 997, 65_536, 65_537])
def test_all_rows_are_a_permutation(n_data):
    indices = np.asarray(subset_indices(jax.random.key(1), n_data, n_data))
    assert np.array_equal(np.sort(indices), np.arange(n_data))
    if n_data > 3:
        assert not np.array_equal(indices, np.arange(n_data))


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.integers(1, 2_000_000), st.data())
@example(800_000, None)
def test_block_rows_divide_both_and_are_one_for_small_batches(n_data, data):
    n = 80_000 if data is None else data.draw(st.integers(1, n_data), label="n")
    rows = block_rows(n, n_data)
    assert 1 <= rows <= BLOCK_ROWS <= 16
    assert n % rows == 0
    assert n_data % rows == 0
    if n <= ROWS_DRAWN_SINGLY:
        assert rows == 1
    else:
        assert not any(n % more == 0 and n_data % more == 0 for more in range(rows + 1, BLOCK_ROWS + 1))


def test_paper_batches_have_blocks_of_sixteen():
    assert ROWS_DRAWN_SINGLY == 4_000
    assert [block_rows(n, 800_000) for n in (800, 4_000, 8_000, 80_000)] == [1, 1, 16, 16]


@pytest.mark.parametrize(
    ("n_data", "n"), [(50, 7), (5_003, 4_000), (16_000, 4_800), (9_000, 4_500), (5_003, 4_001)]
)
def test_arrays_of_a_minibatch_have_the_same_rows_in_whole_blocks(n_data, n):
    number = np.arange(n_data)
    data = {
        "a": jnp.asarray(number),
        "b": (jnp.asarray(np.stack([number, -number], 1)), jnp.asarray(2.0 * number)),
    }
    batch = jax.tree.map(np.asarray, draw_minibatch(jax.random.key(3), data, n))
    rows = batch["a"]
    assert rows.shape == (n,)
    assert len(np.unique(rows)) == n
    assert np.array_equal(batch["b"][0], np.stack([rows, -rows], 1))
    assert np.array_equal(batch["b"][1], 2.0 * rows)
    size = block_rows(n, n_data)
    blocks = rows.reshape(-1, size)
    assert (blocks[:, 0] % size == 0).all()
    assert (np.diff(blocks, axis=1) == 1).all()
    assert not np.array_equal(np.sort(blocks[:, 0]), blocks[:, 0]), "blocks come in random order"
    other = np.asarray(draw_minibatch(jax.random.key(4), data, n)["a"])
    assert not np.array_equal(np.sort(other), np.sort(rows))


def test_blocks_are_drawn_uniformly():
    n_data, n, n_keys = 8_000, 4_800, 2_000
    data = jnp.arange(n_data)
    key = jax.random.key(6)
    rows = jax.lax.map(lambda t: draw_minibatch(jax.random.fold_in(key, t), data, n), jnp.arange(n_keys))
    blocks = np.asarray(rows)[:, ::BLOCK_ROWS] // BLOCK_ROWS
    inside = np.zeros((n_keys, n_data // 16), np.float32)
    np.put_along_axis(inside, blocks, 1, axis=1)
    share = n / n_data
    together = inside.T @ inside
    assert_uniform(np.diag(together), n_keys * share, n_keys * share * (1 - share))
    pair = share * (n / 16 - 1) / (n_data / 16 - 1)
    z = (together[np.triu_indices(n_data // 16, 1)] - n_keys * pair) / np.sqrt(n_keys * pair * (1 - pair))
    assert np.abs(z).max() < np.sqrt(2 * np.log(2 * len(z) / LEVEL))


@pytest.mark.parametrize("n_data", [10, 4_800])
def test_full_batches_keep_the_order_of_rows(n_data):
    data = {"x": jnp.arange(n_data), "y": jnp.ones((n_data, 2))}
    assert draw_minibatch(jax.random.key(0), data, n_data) is data
