"""Random subsets of a chain: all places are equally likely, and the same name gives the same subset."""

import numpy as np
import pytest

from sgtune.sampling.thinning import random_subset


def test_every_place_and_every_pair_is_equally_likely():
    """4,000 subsets of 20 of 50 places have counts within 4.5 standard errors."""
    counts = np.zeros((50, 50))
    for number in range(4_000):
        places = random_subset(50, 20, 0, "test", number)
        assert len(np.unique(places)) == 20
        assert (np.diff(places) > 0).all()
        counts[np.ix_(places, places)] += 1
    one, two = 20 / 50, 20 * 19 / (50 * 49)
    assert np.abs(np.diag(counts) / 4_000 - one).max() < 4.5 * np.sqrt(one * (1 - one) / 4_000)
    apart = ~np.eye(50, dtype=bool)
    assert np.abs(counts[apart] / 4_000 - two).max() < 4.5 * np.sqrt(two * (1 - two) / 4_000)


def test_subsets_depend_on_seed_and_names():
    first = random_subset(1_000, 10, 0, "table", 3)
    np.testing.assert_array_equal(first, random_subset(1_000, 10, 0, "table", 3))
    for other in ((1, "table", 3), (0, "table", 4), (0, "curve", 3)):
        assert not np.array_equal(first, random_subset(1_000, 10, *other))


@pytest.mark.parametrize("n", [0, 1, 7])
def test_a_short_chain_keeps_all_draws(n):
    np.testing.assert_array_equal(random_subset(n, 7, 0), np.arange(n))
