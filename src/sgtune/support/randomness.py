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

BLOCK = 64
"""Keys that one call of the compiled program derives: with blocks of one size it is compiled once."""


def named_key(seed: int, *names: object) -> PRNGKeyArray:
    """The key of ``seed`` folded with each name in turn; the same names give the same key everywhere.

    ``named_key(0, "tune", "sgld", 3)`` does not change when another use is added before or after it.
    """
    key = jax.random.key(seed)
    for name in names:
        key = jax.random.fold_in(key, _number(name))
    return key


def named_keys(seed: int, names: Sequence[tuple]) -> Key[Array, "n"]:
    """`named_key` of each of ``names``: keys of shape ``(len(names),)``.

    A hundred keys take a millisecond, and a tenth of a second one by one, as names of different lengths do.
    """
    if len({len(one) for one in names}) > 1:
        return jnp.stack([named_key(seed, *one) for one in names])
    numbers = np.array([[_number(name) for name in one] for one in names], np.uint32).T
    root = jax.random.key(seed)
    blocks = [numbers[:, i : i + BLOCK] for i in range(0, len(names), BLOCK)]
    padded = [np.pad(block, ((0, 0), (0, BLOCK - block.shape[1]))) for block in blocks]
    return jnp.concatenate([_folded(root, block) for block in padded])[: len(names)]


def named_seed(seed: int, *names: object) -> int:
    """A root seed below 2^31 from ``seed`` and names, for functions that take a seed and derive their own keys."""
    return crc32(":".join(map(str, (seed, *names))).encode()) >> 1


def _number(name: object) -> int:
    return crc32(str(name).encode())


@jax.jit
def _folded(root: PRNGKeyArray, numbers: UInt32[Array, "n_names block"]) -> Key[Array, "block"]:
    """``root`` folded with each column of ``numbers``."""
    keys = jnp.broadcast_to(root, numbers.shape[1:])
    return jax.lax.scan(lambda keys, row: (jax.vmap(jax.random.fold_in)(keys, row), None), keys, numbers)[0]
