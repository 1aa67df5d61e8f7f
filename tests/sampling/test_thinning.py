"""Draws that are chosen from a chain: every n-th, evenly spaced, and at random, also while the chain grows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sgtune.sampling import thinning
from sgtune.sampling.thinning import FEWEST_POINTS, Reservoir, evenly_spaced, random_subset, thin_draws


@pytest.mark.parametrize(
    ("n", "thin", "first", "stride"),
    [(100, 10, 10, 10), (105, 10, 10, 10), (45, 10, 4, 4), (9, 10, 1, 1), (30, 1, 1, 1)],
)
def test_every_nth_draw_but_at_least_ten(n, thin, first, stride):
    found = thin_draws(np.arange(1, n + 1), thin)
    np.testing.assert_array_equal(found, np.arange(first, n + 1, stride))
    assert len(found) >= min(10, n)


@pytest.mark.parametrize(("n", "at_most"), [(100, 7), (7, 100), (7, 7), (1_000, 1)])
def test_evenly_spaced_draws_include_the_last(n, at_most):
    found = evenly_spaced(np.arange(n), at_most)
    assert (len(found), found[-1]) == (min(n, at_most), n - 1)
    assert np.ptp(np.diff(found, prepend=-1)) <= 1


def test_every_place_and_every_pair_is_equally_likely():
    """500 subsets of 20 of 50 places have counts within 4.5 standard errors."""
    counts = np.zeros((50, 50))
    for number in range(500):
        places = random_subset(50, 20, 0, "test", number)
        assert (np.diff(places) > 0).all()
        counts[np.ix_(places, places)] += 1
    one, two = 20 / 50, 20 * 19 / (50 * 49)
    assert np.abs(np.diag(counts) / 500 - one).max() < 4.5 * np.sqrt(one * (1 - one) / 500)
    apart = ~np.eye(50, dtype=bool)
    assert np.abs(counts[apart] / 500 - two).max() < 4.5 * np.sqrt(two * (1 - two) / 500)


def test_subsets_depend_on_seed_and_names():
    first = random_subset(1_000, 10, 0, "table", 3)
    np.testing.assert_array_equal(first, random_subset(1_000, 10, 0, "table", 3))
    for other in ((1, "table", 3), (0, "table", 4), (0, "curve", 3)):
        assert not np.array_equal(first, random_subset(1_000, 10, *other))
    np.testing.assert_array_equal(random_subset(7, 7, 0), np.arange(7))


def grow(seed, parts, at_most, thin=1):
    """A reservoir after parts of a chain whose draw i is i, and the kept draws."""
    reservoir, kept = Reservoir(seed, thin=thin), np.empty(0, int)
    for n_steps in parts:
        first = reservoir.n_steps + 1
        stay, new = reservoir.extend(n_steps, at_most)
        assert ((new >= first) & (new < first + n_steps)).all()
        kept = np.concatenate([kept[stay], new])
        np.testing.assert_array_equal(kept, reservoir.steps)
    return reservoir


@settings(deadline=None, derandomize=True)
@given(
    parts=st.lists(st.integers(0, 60), min_size=1, max_size=6),
    at_most=st.integers(1, 50),
    thin=st.sampled_from([1, 3, 10]),
    piece=st.integers(1, 20),
)
def test_it_keeps_no_more_than_it_may_and_only_what_counts_in_any_division_of_the_chain(
    parts, at_most, thin, piece
):
    n_steps = sum(parts)
    reservoir, undivided = grow(3, parts, at_most, thin), grow(3, [n_steps], at_most, thin)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(thinning, "PIECE", piece)
        in_pieces = grow(3, parts, at_most, thin)
    assert len(reservoir.steps) <= at_most + (FEWEST_POINTS if thin > 1 else 0)
    places, n_draws = reservoir.part(min(7, at_most))
    expected = n_steps // thin if n_steps >= FEWEST_POINTS * thin else min(FEWEST_POINTS, n_steps)
    assert n_draws == expected
    assert len(places) == min(7, at_most, n_draws)
    assert (np.diff(reservoir.steps[places]) > 0).all()
    if n_steps >= FEWEST_POINTS * thin:
        assert (reservoir.steps[places] % thin == 0).all()
    for other in (in_pieces, undivided):
        np.testing.assert_array_equal(other.steps[other.part(5)[0]], reservoir.steps[reservoir.part(5)[0]])
    np.testing.assert_array_equal(in_pieces.ranks, reservoir.ranks)
    assert in_pieces.limit == reservoir.limit


@pytest.mark.parametrize("parts", [pytest.param((40,), marks=pytest.mark.proof), (7, 13, 20)])
def test_every_draw_is_as_likely_as_any_other(parts):
    """10 of 40 draws in parts, so that the reservoir overflows in between; chi-square over 1,000 seeds."""
    counts = np.zeros(40)
    n_seeds = 1_000
    for seed in range(n_seeds):
        reservoir = grow(seed, parts, at_most=12)
        places, _ = reservoir.part(10)
        counts[reservoir.steps[places] - 1] += 1
    expected = n_seeds * 10 / 40
    # Without replacement each count has the variance n p (1 - p), and counts add up to a constant.
    statistic = ((counts - expected) ** 2).sum() / (expected * (1 - 10 / 40)) * 39 / 40
    assert abs(statistic - 39) < 4 * np.sqrt(2 * 39)
