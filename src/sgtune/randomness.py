"""Every random key is derived from one root seed and from names, never from the order of use."""

from zlib import crc32

import jax
from jaxtyping import PRNGKeyArray

__all__ = ["named_key", "named_seed"]


def named_key(seed: int, *names: object) -> PRNGKeyArray:
    """The key of ``seed`` folded with each name in turn; the same names give the same key everywhere.

    ``named_key(0, "tune", "sgld", 3)`` does not change when another use is added before or after it.
    """
    key = jax.random.key(seed)
    for name in names:
        key = jax.random.fold_in(key, crc32(str(name).encode()))
    return key


def named_seed(seed: int, *names: object) -> int:
    """A root seed below 2^31 from ``seed`` and names, for functions that take a seed and derive their own keys."""
    return crc32(":".join(map(str, (seed, *names))).encode()) >> 1
