"""Uniform minibatches WITHOUT replacement, at a cost that grows with n and not with N.

The first n places of a keyed pseudo-random permutation of {0, ..., N-1} are a subset without replacement. The
permutation is a Feistel network over pairs (left, right) with left * right >= N [Black and Rogaway 2002, "Ciphers
with arbitrary finite domains"]: every round is invertible, so no two places have the same value. A value of N or more
is passed through the network again until it is below N. No array of length N is made, and nothing is sorted.
"""

from collections.abc import Sequence
from math import isqrt
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, PRNGKeyArray, PyTree, UInt32

from sgtune.model.rows import RowSource, StoredRows, number_of_rows

__all__ = [
    "BLOCK_ROWS",
    "MOST_BYTES",
    "ROWS_DRAWN_SINGLY",
    "block_rows",
    "draw_minibatch",
    "minibatch_places",
    "round_keys",
    "subset_indices",
]


ROWS_DRAWN_SINGLY = 4_000
"""Up to this many rows, every row is drawn by itself; above it, blocks of consecutive rows may be drawn."""

BLOCK_ROWS = 16
"""The largest number of rows in a block."""

N_ROUNDS = 5

MOST_BYTES = 2**26
"""A minibatch of rows that are not in memory is read as a whole up to so many bytes, otherwise tile by tile."""


def round_keys(key: PRNGKeyArray) -> UInt32[Array, "rounds 2"]:
    """The random numbers on which the permutation of a minibatch's key depends."""
    return jax.random.bits(key, (N_ROUNDS, 2), jnp.uint32)


def subset_indices(key: PRNGKeyArray, n: int, n_data: int) -> Int[Array, " n"]:
    """``n`` distinct indices below ``n_data``: the first n places of a keyed permutation.

    As a set they are uniform; so is their order, except for deviations of a few percent on fewer than seven data.

    Cost and memory are O(n); ``n_data`` may be up to 2^32 / 4. ``n`` and ``n_data`` are static.
    """
    left_size, right_size = _domain(n_data)
    keys = round_keys(key)

    def permute(place):
        # On a CPU a loop, not unrolled rounds: XLA would fuse the whole network into the gather that follows and
        # recompute it for every element it reads (and LLVM would take a quarter of a minute to compile that). On an
        # accelerator recomputing is cheap, and every round of a loop starts kernels of its own.
        return jax.lax.fori_loop(0, N_ROUNDS, feistel_round, place, unroll=jax.default_backend() != "cpu")

    def feistel_round(i, place):
        left, right = place
        right = _add_modulo(right, _hash_below(left ^ keys[i, 0], right_size), right_size)
        left = _add_modulo(left, _hash_below(right ^ keys[i, 1], left_size), left_size)
        return left, right

    def outside(place):
        return place[0] + place[1] * left_size >= n_data

    def walk_on(place):
        further = permute(place)
        return tuple(jnp.where(outside(place), new, old) for new, old in zip(further, place, strict=True))

    first = jnp.arange(n, dtype=jnp.uint32)
    place = permute((first % left_size, first // left_size))
    if left_size * right_size > n_data:
        place = jax.lax.while_loop(lambda place: jnp.any(outside(place)), walk_on, place)
    return (place[0] + place[1] * left_size).astype(jnp.int32)


def block_rows(n: int, n_data: int) -> int:
    """Rows in a block of consecutive data: 1 up to `ROWS_DRAWN_SINGLY`, else the largest common divisor <= 16."""
    if n <= ROWS_DRAWN_SINGLY:
        return 1
    return max(rows for rows in range(1, BLOCK_ROWS + 1) if n % rows == 0 and n_data % rows == 0)


def draw_minibatch(key: PRNGKeyArray, data: PyTree, n: int) -> PyTree:
    """``n`` rows of every leaf of ``data``, uniformly without replacement; all rows as they are if n = N.

    Above `ROWS_DRAWN_SINGLY` the subset is made of whole blocks of `block_rows` consecutive rows, drawn without
    replacement. The data must then be in random order; averaged over this order, a minibatch is a uniform subset.
    """
    n_data = number_of_rows(data)
    if n == n_data:
        return data
    if isinstance(data, StoredRows):
        known_key, known = data.minibatch
        if key is known_key:
            return known
        drawn = _StoredMinibatch(data.ticket, round_keys(key), n, n_data, data.kind)
        return drawn.between(np.int32(0), n) if n * data.row_bytes <= MOST_BYTES else drawn
    rows = block_rows(n, n_data)
    blocks = subset_indices(key, n // rows, n_data // rows)

    def gather(leaf):
        grouped = leaf.reshape(n_data // rows, rows, *leaf.shape[1:]) if rows > 1 else leaf
        return grouped.at[blocks].get(mode="promise_in_bounds").reshape(n, *leaf.shape[1:])

    return jax.tree.map(gather, data)


@jax.tree_util.register_pytree_node_class
class _StoredMinibatch(StoredRows):
    """A minibatch of stored rows that is itself not in memory."""

    def __init__(self, ticket: Any, keys: Any, n_rows: int, n_data: int, kind: tuple):
        self.ticket, self.keys, self.n_rows, self.n_data, self.kind = ticket, keys, n_rows, n_data, kind

    def tree_flatten(self) -> tuple[tuple, tuple]:
        return (self.ticket, self.keys), (self.n_rows, self.n_data, self.kind)

    @classmethod
    def tree_unflatten(cls, fixed: tuple, leaves: tuple) -> "_StoredMinibatch":
        return cls(*leaves, *fixed)

    def between(self, start: Any, n: int) -> PyTree:
        """n of its rows, from the number ``start`` on."""

        def read(source: RowSource, n: int, keys: np.ndarray, start: np.ndarray) -> Sequence[np.ndarray]:
            return source.take(minibatch_places(keys, self.n_rows, self.n_data, int(start), n))

        return self.asked(read, n, self.keys, start)


def minibatch_places(
    keys: UInt32[np.ndarray, "*lead rounds 2"], n: int, n_data: int, start: int = 0, length: int | None = None
) -> Int[np.ndarray, "*lead k"]:
    """The places of the rows of minibatches of n of N, from row ``start`` of each on: those that `draw_minibatch`
    gathers, computed by NumPy, for rows that are read on the host.

    Args:
        keys: `round_keys` of the minibatches' keys.
        length: how many rows; None: all of them.
    """
    length = n - start if length is None else length
    rows = block_rows(n, n_data)
    first, last = start // rows, -(-(start + length) // rows)
    blocks = _permuted(
        keys.reshape(-1, *keys.shape[-2:]), np.arange(first, last, dtype=np.uint32), n_data // rows
    )
    places = (blocks[..., None] * rows + np.arange(rows)).reshape(len(blocks), -1)
    return places[:, start - first * rows :][:, :length].reshape(*keys.shape[:-2], length)


def _permuted(
    keys: UInt32[np.ndarray, "m rounds 2"], places: UInt32[np.ndarray, " k"], n_data: int
) -> Int[np.ndarray, "m k"]:
    """The permutations of `subset_indices` at ``places``."""
    left_size, right_size = map(np.uint32, _domain(n_data))
    todo = np.arange(len(keys) * len(places))
    which = todo // len(places)
    left, right = (np.tile(part, len(keys)) for part in (places % left_size, places // left_size))
    result = np.empty(len(todo), np.int64)
    while len(todo):
        for i in range(N_ROUNDS):
            right = _sum_modulo(right, _number_below(left ^ keys[which, i, 0], right_size), right_size)
            left = _sum_modulo(left, _number_below(right ^ keys[which, i, 1], left_size), left_size)
        found = left + right * left_size
        result[todo] = found
        outside = found >= n_data
        todo, which, left, right = (part[outside] for part in (todo, which, left, right))
    return result.reshape(len(keys), -1)


def _number_below(x: UInt32[np.ndarray, " k"], bound: np.uint32) -> UInt32[np.ndarray, " k"]:
    """`_hash_below` by NumPy."""
    x = (x ^ (x >> np.uint32(16))) * np.uint32(0x7FEB352D)
    x = (x ^ (x >> np.uint32(15))) * np.uint32(0x846CA68B)
    return ((x ^ (x >> np.uint32(16))) >> np.uint32(16)) * bound >> np.uint32(16)


def _sum_modulo(
    x: UInt32[np.ndarray, " k"], y: UInt32[np.ndarray, " k"], modulus: np.uint32
) -> UInt32[np.ndarray, " k"]:
    total = x + y
    return np.where(total >= modulus, total - modulus, total)


def _domain(n_data: int) -> tuple[int, int]:
    """Two nearly equal factors whose product is at least N and as small as possible, so few values reach N or more."""
    root = isqrt(n_data - 1) + 1 if n_data > 1 else 2
    root = max(root, 2)
    candidates = [(left, -(-n_data // left)) for left in range(max(2, -(-7 * root // 8)), root + 1)]
    return min(candidates, key=lambda sizes: (sizes[0] * sizes[1], -sizes[0]))


def _hash_below(x: UInt32[Array, " n"], bound: int) -> UInt32[Array, " n"]:
    """A pseudo-random number in {0, ..., bound - 1}: the finaliser of `lowbias32` (Wellons), scaled down."""
    x = (x ^ (x >> 16)) * jnp.uint32(0x7FEB352D)
    x = (x ^ (x >> 15)) * jnp.uint32(0x846CA68B)
    return ((x ^ (x >> 16)) >> 16) * jnp.uint32(bound) >> 16


def _add_modulo(x: UInt32[Array, " n"], y: UInt32[Array, " n"], modulus: int) -> UInt32[Array, " n"]:
    total = x + y
    return jnp.where(total >= modulus, total - modulus, total)
