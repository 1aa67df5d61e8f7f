"""Kernel Stein discrepancy (paper Sect. 2.2.1, Eq. 3), the square root of the V-statistic.

Also its estimate from a random subset of the draws, with a standard error; its sums over stretches of a chain; and its
smallest expected value.
"""

from collections.abc import Iterator
from itertools import combinations
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int, PyTree

from sgtune.stein.kernel import Draws, Scale, draw_matrices, imq, squared_distances
from sgtune.stein.quadratic import N_STRETCHES, Stretches, check_stretches, mean_square
from sgtune.support.errors import check_integer, check_number

__all__ = ["KsdEstimate", "ksd", "ksd_estimate", "ksd_floor", "ksd_stretches"]

BLOCK = (1024, 2048)
"""Rows and columns of a tile, which change memory and time, not values."""


def ksd(
    positions: PyTree,
    scores: PyTree,
    scale: Scale = "identity",
    seed: int = 0,
    *,
    n_draws: int | None = None,
) -> float:
    """KSD between the empirical distribution of the draws and the posterior whose scores these are (Eq. 3).

    The root of the mean over all n^2 pairs, the diagonal included, of

        k_pi(x, y) = s_x's_y q^(-1/2) + (s_x - s_y)'(x - y) q^(-3/2) + D q^(-3/2) - 3 |x - y|^2 q^(-5/2),

    q = 1 + |x - y|^2 and s the score, the gradient of the log posterior. n independent draws of N(0, I) have
    E[KSD^2] = 2 D / n.

    With ``n_draws`` > n the given draws are a uniformly random subset, without replacement, of ``n_draws`` draws, and
    the value estimates the KSD of all of them: the root of U + (d - U) / n_draws, d the mean of the diagonal of
    k_pi and U its mean off the diagonal, at least 0 (d if n = 1). Both means are unbiased, even if draws are dependent;
    because a negative U counts as 0, the square is a little too large on average (`ksd_estimate` has the unbiased
    square and its standard error). In many dimensions the diagonal, which falls as 1 / n, is most of the sum, and few
    draws estimate U well; without this correction, few draws of a long chain and all of a short one would have about
    the same value. An evenly spaced subset has no pairs of neighbours, so its value is too low for chains whose
    autocorrelation time is longer than the spacing.

    The value is computed from the Gram matrices X X', S S' and X S', added up in float64; full float64 copies of X
    and S never exist unless ``scale`` is a (D, D) factor. Memory besides the inputs is that of a tile, about 0.25 GB,
    for any n and D. It takes 4 n^2 D floating-point operations (the symmetric half of a 2n x 2n Gram matrix): a second
    for 500 x 79,510 on two cores, seven for 20,000 x 10.

    Args:
        positions: (n, D) array, or a pytree whose leaves share a leading axis n.
        scores: gradients of the log posterior at the positions, of the same structure and shapes.
        scale: ``"identity"`` is the paper's KSD, with a kernel of width 1 in the model's own coordinates; or
            a (D,) array of posterior sds, or a (D, D) factor of the covariance: see `sgtune.stein.rescale`.
        seed: not used: the KSD uses no random numbers (`sgtune.stein.fssd` does).
        n_draws: at least n; None for n.

    Returns:
        The discrepancy, >= 0; infinity if a position or score is not finite.

    Raises:
        InputError: shapes that differ, no draws, one-dimensional input; ``scale`` or ``n_draws`` not allowed.
    """
    n = len(draw_matrices(positions, scores)[0])
    sums = ksd_stretches(positions, scores, np.zeros(n, np.int64), scale)
    return float(np.sqrt(mean_square(sums, n if n_draws is None else n_draws)))


def _stein_blocks(draws: Draws) -> Iterator[tuple[slice, slice, Float[np.ndarray, "a b"]]]:
    """k_pi of the draws a with the draws b, for the blocks on the diagonal, then those above it; it is symmetric."""
    n, dimension = draws.positions.shape
    rows, columns = BLOCK
    blocks = [slice(start, min(start + rows, n)) for start in range(0, n, rows)]
    norms, slopes = np.empty(n), np.empty(n)
    for a, b in [*zip(blocks, blocks, strict=True), *combinations(blocks, 2)]:
        xx, ss, xs, sx = _grams(draws, a, b, columns)
        if a == b:
            norms[a], slopes[a] = np.diagonal(xx), np.diagonal(xs)
        squares = squared_distances(norms[a], norms[b], xx)
        k1, k3, k5 = imq(squares)
        slope = slopes[a][:, None] + slopes[b] - xs - sx + dimension
        yield a, b, ss * k1 + slope * k3 - 3.0 * squares * k5


def _grams(draws: Draws, a: slice, b: slice, columns: int) -> tuple[Float[np.ndarray, "a b"], ...]:
    """X_a X_b', S_a S_b', X_a S_b', S_a X_b', one tile of columns at a time."""
    n_a, n_b = a.stop - a.start, b.stop - b.start
    gram = np.zeros((2 * n_a, 2 * n_b))
    if a == b:
        for _, x, s in draws.tiles(a, columns):
            stacked = np.concatenate([x, s])
            # NumPy computes Z Z' of one array as a symmetric rank-k update, in half the operations.
            gram += stacked @ stacked.T
    else:
        for (_, x_a, s_a), (_, x_b, s_b) in zip(
            draws.tiles(a, columns), draws.tiles(b, columns), strict=True
        ):
            gram += np.concatenate([x_a, s_a]) @ np.concatenate([x_b, s_b]).T
    return gram[:n_a, :n_b], gram[n_a:, n_b:], gram[:n_a, n_b:], gram[n_a:, :n_b]


class KsdEstimate(NamedTuple):
    """A KSD and its standard error from drawing the random subset alone: 0 if the subset has all draws.

    ``squared`` is an unbiased estimate of KSD^2, and may be negative. Its root, the value, is biased: average
    ``squared`` over runs, not the value.
    """

    value: float
    se: float
    squared: float


def ksd_estimate(
    positions: PyTree,
    scores: PyTree,
    scale: Scale = "identity",
    *,
    n_draws: int | None = None,
) -> KsdEstimate:
    """The KSD of ``n_draws`` draws, estimated from n of them that were drawn uniformly without replacement.

    KSD^2 of all N draws is U + (d - U) / N, with d the mean of the diagonal of k_pi (`sgtune.stein.ksd`) and U its mean
    off the diagonal. The means over the subset are unbiased for the means over all draws, even if the draws are
    dependent. The value is the root of T = U + (d - U) / N of the subset, or 0 if T < 0. An evenly spaced subset has
    no pairs of neighbours, and its value is too low where a chain mixes slowly.

    T is the mean over pairs of f_ij = (1 - 1/N) k_pi(x_i, x_j) + (d_i + d_j) / (2 N). With A, B, C the means of
    f_ij f_kl over pairs that share both indices, one, or none,

        var T = 4 (1/n - 1/N) (B - C) + 2 (1/(n (n-1)) - 1/(N (N-1))) (A - 2 B + C),

    exactly (Hoeffding 1948; for finite populations Nandi and Sen 1963). The first term is the first-order projection.
    The second is the variance of pairs alone, which dominates for a chain that mixes well: single draws then all have
    nearly the same projection. The estimates of A, B and C from the subset are unbiased; a negative B - C counts as 0.
    ``se`` is sqrt(var T) / (2 sqrt(T)), with T replaced by sqrt(var T) if that is larger.

    Args:
        positions, scores, scale: as in `sgtune.stein.ksd`; memory and time are the same, too.
        n_draws: N, at least n; None for n.

    Returns:
        The value, infinite if a position or score is not finite; ``se`` is then NaN. ``se`` is infinite for a subset of
        fewer than four draws, which is too small to estimate it.

    Raises:
        InputError: as `sgtune.stein.ksd`.
    """
    draws = Draws.read(positions, scores, scale)
    if draws is None:
        return KsdEstimate(float("inf"), float("nan"), float("inf"))
    n = len(draws.positions)
    n_draws = check_integer("n_draws", n if n_draws is None else n_draws, at_least=n)
    own, sums, squares = np.empty(n), np.zeros(n), 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        for a, b, values in _stein_blocks(draws):
            if a == b:
                own[a] = np.diagonal(values)
            values = (1 - 1 / n_draws) * values + (own[a][:, None] + own[b]) / (2 * n_draws)
            if a == b:
                np.fill_diagonal(values, 0.0)
                squares += np.vdot(values, values)
            else:
                sums[b] += values.sum(axis=0)
                squares += 2.0 * np.vdot(values, values)
            sums[a] += values.sum(axis=1)
        square = sums.sum() / (n * (n - 1)) if n > 1 else own[0]
        error = np.sqrt(_variance(sums, float(squares), n_draws))
        largest = np.sqrt(max(square, error))
        se = error / (2 * largest) if 0 < error < np.inf else error
    if not np.isfinite(square):
        return KsdEstimate(float("inf"), float("nan"), float("inf"))
    return KsdEstimate(float(np.sqrt(max(square, 0.0))), float(se), float(square))


def _variance(sums: Float[np.ndarray, " n"], squares: float, n_draws: int) -> float:
    """var T from the sums over j of f_ij, j other than i, and the sum of all f_ij^2."""
    n = len(sums)
    if n == n_draws:
        return 0.0
    if n < 4:
        return float("inf")
    # Centred, which does not change the variance: products of means would be far larger than the differences.
    n_pairs = n * (n - 1)
    mean = sums.sum() / n_pairs
    sums, squares = sums - (n - 1) * mean, squares - n_pairs * mean**2
    by_draw = sums @ sums
    both = squares / n_pairs
    one = (by_draw - squares) / (n_pairs * (n - 2))
    none = (2 * squares - 4 * by_draw) / (n_pairs * (n - 2) * (n - 3))
    of_draws = 4 * (1 / n - 1 / n_draws) * max(one - none, 0.0)
    of_pairs = 2 * (1 / n_pairs - 1 / (n_draws * (n_draws - 1))) * max(both - 2 * one + none, 0.0)
    return float(of_draws + of_pairs)


def ksd_floor(model_trace: float, dimension: int, n: int) -> float:
    """The root of E[KSD^2] of ``n`` independent exact draws: sqrt((trace + D) / n).

    The diagonal of k_pi has mean E|score|^2 + D; off the diagonal the mean is 0. A smaller value does not mean better
    draws: draws of the posterior reach it only if they repel each other, and draws that are too narrow can be far
    below.

    Args:
        model_trace: E|score|^2, the trace of the posterior mean of the Hessian of -log pi. Laplace's approximation is
            the trace at the mode (`sgtune.mode.curvature.hessian_trace`), and D in coordinates of the Laplace scale.
        dimension: D.
        n: draws in the KSD.

    Raises:
        InputError: the trace is negative or not finite, or a number is < 1.
    """
    model_trace = check_number("model_trace", model_trace, at_least=0)
    dimension, n = check_integer("dimension", dimension, at_least=1), check_integer("n", n, at_least=1)
    return float(np.sqrt((model_trace + dimension) / n))


def ksd_stretches(
    positions: PyTree,
    scores: PyTree,
    stretch: Int[np.ndarray, " n"],
    scale: Scale = "identity",
) -> Stretches:
    """Sums over stretches of a chain of k_pi, whose mean over all pairs is KSD^2 (`sgtune.stein.ksd`).

    Args:
        positions, scores, scale: as in `sgtune.stein.ksd`; memory and time are the same, too.
        stretch: of each draw (`sgtune.stein.quadratic.stretch_of`).

    Returns:
        The sums, all infinite if a position or score is not finite.

    Raises:
        InputError: as `sgtune.stein.ksd`, or for the stretches.
    """
    positions, scores = draw_matrices(positions, scores)
    in_stretch = np.arange(N_STRETCHES)[:, None] == check_stretches(stretch, len(positions))
    counts, in_stretch = in_stretch.sum(axis=1), in_stretch.astype(np.float64)
    draws = Draws.read(positions, scores, scale)
    if draws is None:
        return Stretches(counts, np.full((N_STRETCHES, N_STRETCHES), np.inf), np.full(N_STRETCHES, np.inf))
    sums, own = np.zeros((N_STRETCHES, N_STRETCHES)), np.zeros(N_STRETCHES)
    with np.errstate(over="ignore", invalid="ignore"):
        for a, b, values in _stein_blocks(draws):
            if a == b:
                own += in_stretch[:, a] @ np.diagonal(values)
                np.fill_diagonal(values, 0.0)
            once = in_stretch[:, a] @ values @ in_stretch[:, b].T
            sums += once if a == b else once + once.T
    return Stretches(counts, sums, own)
