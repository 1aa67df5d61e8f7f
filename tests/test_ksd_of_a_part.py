"""The KSD of all draws, told from an evenly thinned part of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stein_forms import naive_pairs, sizes, some_draws, varied

from sgtune.errors import InputError
from sgtune.stein import ksd


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


def test_tiles_do_not_change_it():
    draws = some_draws(0, 23, 11)
    assert ksd(*draws, n_draws=99, block=(5, 3)) == pytest.approx(ksd(*draws, n_draws=99), rel=1e-10)


def chain(correlation, n, dimension):
    """AR(1) with marginals N(0, I)."""
    noise = np.random.default_rng(5).standard_normal((n, dimension))
    positions = noise.copy()
    for before, after, fresh in zip(positions[:-1], positions[1:], noise[1:], strict=True):
        after[:] = correlation * before + np.sqrt(1 - correlation**2) * fresh
    return positions


def test_a_part_of_independent_draws_tells_the_ksd_of_all():
    """E[KSD^2] of all is 2 D / n; the part alone would give 20 times that."""
    n, dimension = 400, 2_000
    positions = chain(0.0, n, dimension)
    parts = [positions[start::20] for start in range(20)]
    told = np.array([ksd(part, -part, n_draws=n) ** 2 for part in parts])
    every = ksd(positions, -positions) ** 2
    # U is the mean over 190 pairs of terms with mean 0 and, q being 1 + 2 D, variance D / (2 D) + ... of order 1;
    # where it is below 0 it counts as 0.
    assert np.abs(told - every).max() < 4.5 / np.sqrt(190) + 2 * dimension / n * 0.05
    assert min(ksd(part, -part) ** 2 for part in parts) > 15 * every


def test_a_part_ranks_chains_as_all_their_draws_would():
    """A long chain that is correlated, a short one that is not, and one that stays put."""
    chains = [chain(0.9, 2_000, 500), chain(0.0, 60, 500), np.tile(chain(0.0, 1, 500), (2_000, 1))]
    every = [ksd(draws, -draws) for draws in chains]
    parts = [draws[:: len(draws) // 20] for draws in chains]
    told = [ksd(part, -part, n_draws=len(draws)) for part, draws in zip(parts, chains, strict=True)]
    assert list(np.argsort(told)) == list(np.argsort(every)) == [0, 1, 2]
    alone = [ksd(part, -part) for part in parts]
    # Without their number, the long chain's draws look no better than the short one's.
    assert alone[0] > 0.95 * alone[1]


@pytest.mark.parametrize("n_draws", [4, 0])
def test_fewer_draws_than_there_are_is_refused(n_draws):
    with pytest.raises(InputError, match=rf"^n_draws: {n_draws} is not allowed; it must be an integer >= 5$"):
        ksd(*some_draws(0, 5, 3), n_draws=n_draws)
