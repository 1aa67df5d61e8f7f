"""Every random key is derived from one root seed and from names, never from the order of use."""

from collections.abc import Sequence
from zlib import crc32

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key, PRNGKeyArray, UInt32

__all__ = ["LARGEST_SEED", "named_key", "named_keys", "named_seed"]

LARGEST_SEED = 2**32 - 1
"""JAX keeps the lowest 32 bits of a seed: a larger one would give the same chains as a smaller one."""

THREEFRY = "threefry2x32"
"""JAX's default generator, whose keys NumPy derives as fast as a compiled program, and needs no compilation."""

ROTATIONS, PARITY = ((13, 15, 26, 6), (17, 29, 16, 24)), np.uint32(0x1BD11BDA)
"""Of Threefry-2x32 (Salmon, Moraes, Dror and Shaw 2011)."""


def named_key(seed: int, *names: object) -> PRNGKeyArray:
    """The key of ``seed`` folded with each name in turn; the same names give the same key everywhere.

    ``named_key(0, "tune", "sgld", 3)`` does not change when another use is added before or after it. It is that of
    `jax.random.fold_in`.
    """
    if jax.config.jax_default_prng_impl != THREEFRY:
        return _folded_by_jax(seed, names)
    return jax.random.wrap_key_data(_words(seed, [names])[0], impl=THREEFRY)


def named_keys(seed: int, names: Sequence[tuple]) -> Key[Array, "n"]:
    """`named_key` of each of ``names``: keys of shape ``(len(names),)``."""
    if jax.config.jax_default_prng_impl != THREEFRY:
        return jnp.stack([_folded_by_jax(seed, one) for one in names])
    return jax.random.wrap_key_data(_words(seed, names), impl=THREEFRY)


def named_seed(seed: int, *names: object) -> int:
    """A root seed below 2^31 from ``seed`` and names, for functions that take a seed and derive their own keys."""
    return crc32(":".join(map(str, (seed, *names))).encode()) >> 1


def _number(name: object) -> int:
    return crc32(str(name).encode())


def _folded_by_jax(seed: int, names: tuple) -> PRNGKeyArray:
    key = jax.random.key(seed)
    for name in names:
        key = jax.random.fold_in(key, _number(name))
    return key


def _words(seed: int, names: Sequence[tuple]) -> UInt32[np.ndarray, "n 2"]:
    """The data of `named_keys`."""
    words = np.zeros((2, len(names)), np.uint32)
    words[1] = seed
    lengths = np.array([len(one) for one in names])
    for place in range(lengths.max(initial=0)):
        has = lengths > place
        words[:, has] = _folded(words[:, has], [_number(one[place]) for one in names if len(one) > place])
    return words.T


def _folded(keys: UInt32[np.ndarray, "2 n"], numbers: Sequence[int]) -> UInt32[np.ndarray, "2 n"]:
    """`jax.random.fold_in` of each key with a number: the cipher of the words (0, number) under the key."""
    schedule = (*keys, keys[0] ^ keys[1] ^ PARITY)
    left, right = schedule[0].copy(), schedule[1] + np.array(numbers, np.uint32)
    for i in range(5):
        for bits in ROTATIONS[i % 2]:
            left += right
            right = left ^ ((right << np.uint32(bits)) | (right >> np.uint32(32 - bits)))
        left += schedule[(i + 1) % 3]
        right += schedule[(i + 2) % 3] + np.uint32(i + 1)
    return np.stack([left, right])
