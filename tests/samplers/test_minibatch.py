"""Minibatches: subsets without replacement, fresh for every key; test_gradients has the covariances of their sums."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sgtune.samplers.minibatch import (
    BLOCK_ROWS,
    ROWS_DRAWN_SINGLY,
    block_rows,
    draw_minibatch,
    subset_indices,
)


@pytest.mark.parametrize(("n_data", "n"), [(2**30, 2_000), (800_000, 800), (60_000, 30_000), (300, 299)])
def test_large_subsets_are_distinct_and_in_range(n_data, n):
    indices = np.asarray(subset_indices(jax.random.key(7), n, n_data))
    assert len(np.unique(indices)) == n
    assert 0 <= indices.min() <= indices.max() < n_data
    # The mean of n places without replacement.
    assert abs(indices.mean() / n_data - 0.5) < 4.5 * np.sqrt((1 - n / n_data) / (12 * n)) + 1 / n_data


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


@pytest.mark.parametrize(
    ("n_data", "n"), [(50, 7), (5_003, 4_000), (16_000, 4_800), (9_000, 4_500), (5_003, 4_001)]
)
def test_arrays_of_a_minibatch_have_the_same_rows_in_whole_blocks(n_data, n):
    number = jnp.arange(n_data)
    data = {"a": number, "b": (jnp.stack([number, -number], 1), 2.0 * number)}
    batch, other = (jax.tree.map(np.asarray, draw_minibatch(jax.random.key(i), data, n)) for i in (3, 4))
    rows, size = batch["a"], block_rows(n, n_data)
    assert rows.shape == (n,)
    assert len(np.unique(rows)) == n
    assert np.array_equal(batch["b"][0], np.stack([rows, -rows], 1))
    assert np.array_equal(batch["b"][1], 2.0 * rows)
    blocks = rows.reshape(-1, size)
    assert (blocks[:, 0] % size == 0).all()
    assert (np.diff(blocks, axis=1) == 1).all()
    assert not np.array_equal(np.sort(blocks[:, 0]), blocks[:, 0]), "blocks come in random order"
    assert not np.array_equal(np.sort(other["a"]), np.sort(rows))
