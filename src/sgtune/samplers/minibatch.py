"""Uniform minibatches WITHOUT replacement, at a cost that grows with n and not with N.

The first n places of a keyed pseudo-random permutation of {0, ..., N-1} are a subset without replacement. The
permutation is a Feistel network over pairs (left, right) with left * right >= N [Black and Rogaway 2002, "Ciphers
with arbitrary finite domains"]: every round is invertible, so no two places have the same value. A value of N or more
is passed through the network again until it is below N. No array of length N is made, and nothing is sorted.
"""

from math import isqrt

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, PRNGKeyArray, PyTree, UInt32

__all__ = ["BLOCK_ROWS", "ROWS_DRAWN_SINGLY", "block_rows", "draw_minibatch", "subset_indices"]


ROWS_DRAWN_SINGLY = 4_000
"""Up to this many rows, every row is drawn by itself; above it, blocks of consecutive rows may be drawn."""

BLOCK_ROWS = 16
"""The largest number of rows in a block."""

N_ROUNDS = 5


def subset_indices(key: PRNGKeyArray, n: int, n_data: int) -> Int[Array, " n"]:
    """``n`` distinct indices below ``n_data``: the first n places of a keyed permutation.

    As a set they are uniform; so is their order, except for deviations of a few percent on fewer than seven data.

    Cost and memory are O(n); ``n_data`` may be up to 2^32 / 4. ``n`` and ``n_data`` are static.
    """
    left_size, right_size = _domain(n_data)
    round_keys = jax.random.bits(key, (N_ROUNDS, 2), jnp.uint32)

    def permute(place):
        # On a CPU a loop, not unrolled rounds: XLA would fuse the whole network into the gather that follows and
        # recompute it for every element it reads (and LLVM would take a quarter of a minute to compile that). On an
        # accelerator recomputing is cheap, and every round of a loop starts kernels of its own.
        return jax.lax.fori_loop(0, N_ROUNDS, feistel_round, place, unroll=jax.default_backend() != "cpu")

    def feistel_round(i, place):
        left, right = place
        right = _add_modulo(right, _hash_below(left ^ round_keys[i, 0], right_size), right_size)
        left = _add_modulo(left, _hash_below(right ^ round_keys[i, 1], left_size), left_size)
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
    n_data = jax.tree.leaves(data)[0].shape[0]
    if n == n_data:
        return data
    rows = block_rows(n, n_data)
    blocks = subset_indices(key, n // rows, n_data // rows)

    def gather(leaf):
        grouped = leaf.reshape(n_data // rows, rows, *leaf.shape[1:]) if rows > 1 else leaf
        return grouped.at[blocks].get(mode="promise_in_bounds").reshape(n, *leaf.shape[1:])

    return jax.tree.map(gather, data)


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
