"""Keys by name: the same name gives the same key, alone or among others."""

import jax
import numpy as np
import pytest

from sgtune.support.randomness import BLOCK, named_key, named_keys


def numbers_of(keys):
    return np.asarray(jax.random.key_data(keys))


@pytest.mark.parametrize("n", [1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 3])
def test_keys_of_many_names_are_those_of_each_name(n):
    names = [("noise", "sgld", 10.0**-i, None, i % 3) for i in range(n)]
    keys = named_keys(7, names)
    assert keys.shape == (n,)
    np.testing.assert_array_equal(
        numbers_of(keys), [numbers_of(named_key(7, *name)) for name in names], strict=True
    )


def test_names_of_different_lengths_have_their_keys_too():
    names = [("noise", 0.1), ("noise", 0.1, "noise_sd", 0.5)]
    np.testing.assert_array_equal(
        numbers_of(named_keys(7, names)), [numbers_of(named_key(7, *name)) for name in names]
    )


def test_other_names_and_seeds_have_other_keys():
    keys = numbers_of(named_keys(0, [("a", i) for i in range(100)] + [("b", i) for i in range(100)]))
    others = numbers_of(named_keys(1, [("a", i) for i in range(100)]))
    assert len({tuple(key) for key in [*keys, *others]}) == 300
