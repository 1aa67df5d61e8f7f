"""Polynomial Stein discrepancy (Srinivasan, Sutton, Drovandi and South 2024, arXiv 2412.05135), of second order.

With s the score and any fixed c, draws of the posterior have E[s_i] = 0 and E[s_i (x_j - c_j)] = -1 if i = j, else 0.
The PSD is what the draws' means of these moments are short of that. It has no kernel, and n draws take time and memory
linear in n.
"""

from collections.abc import Iterator, Sequence

import jax
import numpy as np
from jaxtyping import Bool, Float, Int, PyTree

from sgtune.errors import InputError, check_integer
from sgtune.stein.chain_draws import ChainDraws
from sgtune.stein.kernel import Scale, draw_matrices, rescale
from sgtune.stein.quadratic import N_STRETCHES, Stretches, mean_square

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
    """PSD of the draws: the root of the weighted mean square of what their moments are short of.

    In coordinates z of the scale about the centre, z = L^-1 (x - c) and s_z = L' s for a (D, D) factor L, or
    z = (x - c) / sd and s_z = sd s, let m = E[s_z] and M = E[s_z z'] + I, means over the draws. Its square is

        D <= 200:  (|m|^2 + |M|^2) / D;
        D > 200:   (|m|^2 + sum of M_ii^2) / D + mean over blocks of [(e'm)^2 + (sum of M_ij, i != j in it, / D_b)^2],

    where e is 1 / sqrt(D_b) at the D_b coordinates of a block. A chain frozen at the centre has PSD 1. Of the square, a
    coordinate that is frozen costs 1 / D, one with r times its variance (r - 1)^2 / D, and a frozen direction of
    independent coordinates 1 / D with all pairs. The last sum is e'Me less the mean of the diagonal, so that nothing
    counts twice. With it a frozen common mode of one block costs 1 over the number of blocks however large D is, where
    the diagonal alone has 1 / D^2; a common mode of several blocks costs less, each block having but a part of it.

    Off the diagonal there is more noise. n exact independent draws have a mean square of (D + 2) / n with all pairs,
    3 / n on the diagonal, and 3 / n more of common modes; less its mean the square has an sd of about 2 / n, of
    sqrt(10 / D) / n, and of sqrt(10 / B) / n for B blocks. Widths alone ``marginals`` tells from far fewer draws.

    Args:
        positions: (n, D) array, or a pytree whose leaves share a leading axis n.
        scores: gradients of the log posterior at the positions, or unbiased estimates of them from minibatches that are
            fresh at every draw. Moments have no bias then, but their squares do: only products of separate draws are
            without (`psd_stretches`).
        scale: as in `sgtune.stein.ksd`. M_ii of a (D,) scale does not depend on it, so that sds may be rough.
        seed: not used: the PSD draws nothing.
        n_draws: N, at least n, of which the draws given are a uniformly random part (`quadratic.mean_square`).
        centre: c, of D entries: the MAP. Never the draws' mean, which depends on the draws, so that those of an exact
            chain that mixes slowly would seem too narrow. None is the origin: right too on average, but a posterior r
            sds away from it has r times the noise of m in M.
        target: ``all directions``, the above, or ``marginals``: the mean over i of m_i^2 + M_ii^2 with z_i = (x_i -
            c_i) / sd_i and s_z,i = (P s)_i / sd_i, P = L L' and sd_i^2 = P_ii, of any D. It tells errors of the
            marginal sds in the coordinates of the model, for a posterior near N(c, P), with less noise; it does not
            see errors of correlations, which the former does. With a (D,) scale P is diagonal: then M is that of all
            directions, and tells marginal sds only of coordinates that are nearly independent.
        blocks: sizes of the blocks, in the order of the coordinates; None for the leaves of the positions, of which an
            array is one. Blocks of one coordinate have no common mode, and do not count in the mean.

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

    They are products of the stretches' sums of moments, so that pairs of draws are never formed. Memory beside the
    inputs is five (D, D) matrices for all pairs of coordinates, ten (D,) vectors else, and a tile of 1,024 draws,
    of 2,048 columns unless the scale is a (D, D) factor; time is n D^2 in the first case and with a factor, else n D.

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
"""A range of draws, one of coordinates, and z and s_z there."""


def _tiles(draws: ChainDraws, width: int, marginals: bool = False) -> Tiles:
    positions, scores, scale, is_factor = draws.positions, draws.scores, draws.scale, draws.has_factor
    n, dimension = positions.shape
    # A factor mixes the columns.
    width = dimension if is_factor else width
    if is_factor and marginals:
        sds = np.linalg.norm(scale, axis=1)
        to_scores = scale.T / sds
    for start in range(0, n, ROWS):
        rows = slice(start, min(start + ROWS, n))
        for first in range(0, dimension, width):
            columns = slice(first, min(first + width, dimension))
            x = positions[rows, columns].astype(np.float64) - draws.centre[columns]
            s = scores[rows, columns].astype(np.float64)
            if is_factor and marginals:
                yield rows, columns, x / sds, s @ scale @ to_scores
            else:
                part = scale if is_factor or isinstance(scale, str) else scale[columns]
                yield rows, columns, *rescale(x, s, part)


def _all_pairs(
    tiles: Tiles, in_stretch: Bool[np.ndarray, "s n"], dimension: int
) -> tuple[Float[np.ndarray, "s s"], Float[np.ndarray, " n"]]:
    """Sums of k over all pairs of draws by stretches, those of a draw with itself included, and these by draw."""
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
    # Sums of s_z, z and their products over each block's coordinates.
    of_scores, of_positions, of_products = np.zeros((3, n, len(blocks)))
    edges = np.concatenate([[0], np.cumsum(blocks)])
    for rows, columns, z, s in tiles:
        products, inside = s * z, in_stretch[:, rows].astype(np.float64)
        first[:, columns] += inside @ s
        second[:, columns] += inside @ products
        own[rows] += np.einsum("nd,nd->n", s, s) + np.einsum("nd,nd->n", products, products)
        own[rows] += 2 * products.sum(axis=1) + products.shape[1]
        if len(blocks):
            here = slice(
                np.searchsorted(edges, columns.start, "right") - 1, np.searchsorted(edges, columns.stop)
            )
            starts = np.maximum(edges[here], columns.start) - columns.start
            for sums, values in ((of_scores, s), (of_positions, z), (of_products, products)):
                sums[rows, here] += np.add.reduceat(values, starts, axis=1)
    total, own = (first @ first.T + second @ second.T) / dimension, own / dimension
    modes = blocks > 1
    if modes.any():
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
    # An empty leaf of a position is no block.
    sizes = [check_integer("blocks", size, at_least=0) for size in blocks]
    if sum(sizes) != dimension:
        raise InputError(f"blocks: sum {sum(sizes)} is not allowed; the sizes must add up to D = {dimension}")
    return np.array([size for size in sizes if size > 0], np.int64)
