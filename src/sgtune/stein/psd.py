"""Polynomial Stein discrepancy (Srinivasan, Sutton, Drovandi and South 2024, arXiv 2412.05135), of second order.

With s the score and any fixed c, draws of the posterior have E[s_i] = 0 and E[s_i (x_j - c_j)] = -1 if i = j, else 0.
The PSD is the deviation of the draws' means of these moments from these values. It has no kernel, and its time and
memory are linear in the number of draws.
"""

from collections.abc import Iterator, Sequence

import jax
import numpy as np
from jaxtyping import Bool, Float, Int, PyTree

from sgtune.stein.kernel import Scale, draw_matrices, rescale
from sgtune.stein.quadratic import N_STRETCHES, ChainDraws, Stretches, mean_square
from sgtune.support.errors import InputError, check_integer

__all__ = ["PAIRS_UP_TO", "psd", "psd_stretches"]

PAIRS_UP_TO = 200
"""All pairs of coordinates up to so many dimensions: `sgtune.mode.curvature.laplace_scale` is a factor as far."""

ROWS, COLUMNS = 1024, 2048


def psd(
    positions: PyTree,
    scores: PyTree,
    scale: Scale = "identity",
    seed: int = 0,
    *,
    n_draws: int | None = None,
    centre: PyTree | None = None,
    target: str = "all directions",
    blocks: Sequence[int] | None = None,
) -> float:
    """PSD of the draws: the root of the weighted mean square of the deviations of their moments.

    In coordinates z of the scale about the centre, z = L^-1 (x - c) and s_z = L' s for a (D, D) factor L, or
    z = (x - c) / sd and s_z = sd s, let m = E[s_z] and M = E[s_z z'] + I, means over the draws. Its square is

        D <= 200:  (|m|^2 + |M|^2) / D;
        D > 200:   (|m|^2 + sum of M_ii^2) / D + mean over blocks of [(e'm)^2 + (sum of M_ij, i != j in it, / D_b)^2],

    where e is 1 / sqrt(D_b) at the D_b coordinates of a block. A chain frozen at the centre has PSD 1. Contributions to
    the square: a frozen coordinate 1 / D; a coordinate with r times its variance (r - 1)^2 / D; a frozen direction of
    independent coordinates, with all pairs, 1 / D. The last sum is e'Me less the mean of the diagonal, so that nothing
    counts twice. It makes a frozen common mode of one block contribute 1 over the number of blocks for any D; the
    diagonal alone has 1 / D^2. A common mode of several blocks contributes less, because each block has only a share.

    The moments off the diagonal add noise. The mean square of n exact independent draws is (D + 2) / n with all pairs,
    3 / n for the diagonal, and 3 / n more for common modes; the sd of the square is about 2 / n, sqrt(10 / D) / n and
    sqrt(10 / B) / n for B blocks. ``marginals`` estimates errors of the sds alone, from far fewer draws.

    Args:
        positions: (n, D) array, or a pytree whose leaves share a leading axis n.
        scores: gradients of the log posterior at the positions, or unbiased estimates of them from minibatches that are
            fresh at every draw. The moments are then unbiased, but not their squares: only products of different draws
            are (`psd_stretches`).
        scale: as in `sgtune.stein.ksd`. With a (D,) scale M_ii does not depend on the sds, so they may be rough.
        seed: not used: the PSD uses no random numbers.
        n_draws: N, at least n: the given draws are a uniformly random subset of N draws (`quadratic.mean_square`).
        centre: c, of D entries: the MAP. Do not pass the draws' mean: it depends on the draws, and an exact chain that
            mixes slowly would look too narrow. None is the origin, which is also right on average; but if the posterior
            is r sds away from it, M has r times the noise of m.
        target: ``all directions``: the above; ``marginals``: the mean over i of m_i^2 + M_ii^2 with z_i = (x_i -
            c_i) / sd_i and s_z,i = (P s)_i / sd_i, P = L L' and sd_i^2 = P_ii, for any D. For a posterior near N(c, P)
            it measures errors of the marginal sds in the coordinates of the model, with less noise; unlike
            ``all directions`` it does not see errors of correlations. With a (D,) scale P is diagonal: M is then the
            same as for ``all directions``, and gives marginal sds only for nearly independent coordinates.
        blocks: sizes of the blocks, in the order of the coordinates; None: the leaves of the positions (an array is one
            leaf). Blocks of one coordinate have no common mode, and do not count in the mean.

    Returns:
        The discrepancy, >= 0; infinity if a position or score is not finite.

    Raises:
        InputError: shapes that differ, no draws, one-dimensional input; another argument is not allowed.
    """
    blocks = _leaf_sizes(positions) if blocks is None else blocks
    positions, scores = draw_matrices(positions, scores)
    n = len(positions)
    stretch = np.zeros(n, np.int64)
    stretches = psd_stretches(positions, scores, stretch, scale, centre=centre, target=target, blocks=blocks)
    return float(np.sqrt(mean_square(stretches, n if n_draws is None else n_draws)))


def psd_stretches(
    positions: PyTree,
    scores: PyTree,
    stretch: Int[np.ndarray, " n"],
    scale: Scale = "identity",
    *,
    centre: PyTree | None,
    target: str = "all directions",
    blocks: Sequence[int] | None = None,
) -> Stretches:
    """Sums over stretches of a chain of k(x, y), the product of the weighted moments of x and y: PSD^2 is its mean.

    They are products of the stretches' sums of moments, so pairs of draws are never formed. Memory besides the inputs
    is five (D, D) matrices for all pairs of coordinates, otherwise ten (D,) vectors, and one such matrix for marginals
    with a (D, D) factor; and a tile of 1,024 draws by 2,048 columns, or by D columns with a factor. Time is n D^2 with
    all pairs or a factor, otherwise n D.

    Args:
        positions, scores, scale, centre, target, blocks: as in `psd`.
        stretch: of each draw (`sgtune.stein.quadratic.stretch_of`).

    Returns:
        The sums, all infinite if a position or score is not finite.

    Raises:
        InputError: as `psd`, or for the stretches.
    """
    blocks = _leaf_sizes(positions) if blocks is None else blocks
    draws = ChainDraws.read(positions, scores, stretch, scale, centre=centre, target=target)
    in_stretch, dimension = draws.in_stretch, draws.positions.shape[1]
    blocks = _check_blocks(blocks, dimension)
    if not draws.are_finite:
        nothing = np.full((N_STRETCHES, N_STRETCHES), np.inf)
        return Stretches(draws.counts, nothing, np.full(N_STRETCHES, np.inf))
    with np.errstate(over="ignore", invalid="ignore"):
        if target == "marginals":
            tiles = _tiles(draws, COLUMNS, marginals=True)
            total, own = _diagonal(tiles, in_stretch, dimension, np.empty(0, np.int64))
        elif dimension <= PAIRS_UP_TO:
            tiles = _tiles(draws, dimension)
            total, own = _all_pairs(tiles, in_stretch, dimension)
        else:
            tiles = _tiles(draws, COLUMNS)
            total, own = _diagonal(tiles, in_stretch, dimension, blocks)
        own = in_stretch @ own
        return Stretches(draws.counts, total - np.diag(own), own)


Tiles = Iterator[tuple[slice, slice, Float[np.ndarray, "b c"], Float[np.ndarray, "b c"]]]
"""A range of draws, a range of coordinates, and z and s_z for them."""


def _tiles(draws: ChainDraws, width: int, marginals: bool = False) -> Tiles:
    positions, scores, scale, is_factor = draws.positions, draws.scores, draws.scale, draws.has_factor
    n, dimension = positions.shape
    # A factor mixes the columns.
    width = dimension if is_factor else width
    into_marginals = draws.to_marginals() if is_factor and marginals else None
    for start in range(0, n, ROWS):
        rows = slice(start, min(start + ROWS, n))
        for first in range(0, dimension, width):
            columns = slice(first, min(first + width, dimension))
            x = positions[rows, columns].astype(np.float64) - draws.centre[columns]
            s = scores[rows, columns].astype(np.float64)
            if into_marginals:
                yield rows, columns, *into_marginals(x, s)
            else:
                part = scale if is_factor or isinstance(scale, str) else scale[columns]
                yield rows, columns, *rescale(x, s, part)


def _all_pairs(
    tiles: Tiles, in_stretch: Bool[np.ndarray, "s n"], dimension: int
) -> tuple[Float[np.ndarray, "s s"], Float[np.ndarray, " n"]]:
    """Sums of k over all pairs of draws by stretches, including pairs of a draw with itself, and k of these by draw."""
    n_stretches, n = in_stretch.shape
    first, own = np.zeros((n_stretches, dimension)), np.empty(n)
    second = in_stretch.sum(axis=1)[:, None, None] * np.eye(dimension)
    for rows, _, z, s in tiles:
        for place, inside in enumerate(in_stretch[:, rows]):
            first[place] += inside @ s
            second[place] += s[inside].T @ z[inside]
        # |s z' + I|^2 = |s|^2 |z|^2 + 2 s'z + D
        slopes = np.einsum("nd,nd->n", s, s)
        own[rows] = slopes * (1 + np.einsum("nd,nd->n", z, z)) + 2 * np.einsum("nd,nd->n", s, z) + dimension
    second = second.reshape(n_stretches, -1)
    return (first @ first.T + second @ second.T) / dimension, own / dimension


def _diagonal(
    tiles: Tiles, in_stretch: Bool[np.ndarray, "s n"], dimension: int, blocks: Int[np.ndarray, " b"]
) -> tuple[Float[np.ndarray, "s s"], Float[np.ndarray, " n"]]:
    """As `_all_pairs`, of the diagonal and of the blocks' common modes."""
    n_stretches, n = in_stretch.shape
    first, own = np.zeros((n_stretches, dimension)), np.zeros(n)
    second = np.repeat(in_stretch.sum(axis=1)[:, None].astype(np.float64), dimension, axis=1)
    # Sums over each block's coordinates of s_z, z and their products. A block of one coordinate has no common mode;
    # with as many blocks as coordinates these sums would take more memory than the draws.
    modes = blocks > 1
    has_modes = bool(modes.any())
    of_scores, of_positions, of_products = np.zeros((3, n, len(blocks) if has_modes else 0))
    edges = np.concatenate([[0], np.cumsum(blocks)])
    for rows, columns, z, s in tiles:
        products, inside = s * z, in_stretch[:, rows].astype(np.float64)
        first[:, columns] += inside @ s
        second[:, columns] += inside @ products
        own[rows] += np.einsum("nd,nd->n", s, s) + np.einsum("nd,nd->n", products, products)
        own[rows] += 2 * products.sum(axis=1) + products.shape[1]
        if has_modes:
            here = slice(
                np.searchsorted(edges, columns.start, "right") - 1, np.searchsorted(edges, columns.stop)
            )
            starts = np.maximum(edges[here], columns.start) - columns.start
            for sums, values in ((of_scores, s), (of_positions, z), (of_products, products)):
                sums[rows, here] += np.add.reduceat(values, starts, axis=1)
    total, own = (first @ first.T + second @ second.T) / dimension, own / dimension
    if has_modes:
        sizes = blocks[modes]
        of_scores, of_positions, of_products = (
            sums[:, modes] for sums in (of_scores, of_positions, of_products)
        )
        moments = np.concatenate(
            [of_scores / np.sqrt(sizes), (of_scores * of_positions - of_products) / sizes], axis=1
        )
        moments /= np.sqrt(len(sizes))
        sums = in_stretch.astype(np.float64) @ moments
        total, own = total + sums @ sums.T, own + np.square(moments).sum(axis=1)
    return total, own


def _leaf_sizes(positions: PyTree) -> list[int]:
    return [int(np.prod(np.shape(leaf)[1:])) for leaf in jax.tree.leaves(positions)]


def _check_blocks(blocks: Sequence[int], dimension: int) -> Int[np.ndarray, " b"]:
    # An empty leaf of a position is not a block.
    sizes = [check_integer("blocks", size, at_least=0) for size in blocks]
    if sum(sizes) != dimension:
        raise InputError(f"blocks: sum {sum(sizes)} is not allowed; the sizes must add up to D = {dimension}")
    return np.array([size for size in sizes if size > 0], np.int64)
