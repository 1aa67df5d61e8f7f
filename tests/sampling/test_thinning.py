"""Draws that are chosen from a chain: every n-th, evenly spaced, and at random."""

import numpy as np
import pytest

from sgtune.sampling.thinning import evenly_spaced, random_subset, thin_draws


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
    """1,000 subsets of 20 of 50 places have counts within 4.5 standard errors."""
    counts = np.zeros((50, 50))
    for number in range(1_000):
        places = random_subset(50, 20, 0, "test", number)
        assert (np.diff(places) > 0).all()
        counts[np.ix_(places, places)] += 1
    one, two = 20 / 50, 20 * 19 / (50 * 49)
    assert np.abs(np.diag(counts) / 1_000 - one).max() < 4.5 * np.sqrt(one * (1 - one) / 1_000)
    apart = ~np.eye(50, dtype=bool)
    assert np.abs(counts[apart] / 1_000 - two).max() < 4.5 * np.sqrt(two * (1 - two) / 1_000)


def test_subsets_depend_on_seed_and_names():
    first = random_subset(1_000, 10, 0, "table", 3)
    np.testing.assert_array_equal(first, random_subset(1_000, 10, 0, "table", 3))
    for other in ((1, "table", 3), (0, "table", 4), (0, "curve", 3)):
        assert not np.array_equal(first, random_subset(1_000, 10, *other))
    np.testing.assert_array_equal(random_subset(7, 7, 0), np.arange(7))
