"""The KSD of many draws estimated from a random subset, with its standard error, and the smallest expected KSD."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, PyTree

from sgtune.stein.kernel import Draws, Scale
from sgtune.stein.ksd import BLOCK, check_block, pair_blocks, stein_values
from sgtune.support.errors import check_integer, check_number

__all__ = ["KsdEstimate", "ksd_estimate", "ksd_floor"]


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
    block: tuple[int, int] = BLOCK,
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
        positions, scores, scale, block: as in `sgtune.stein.ksd`; memory and time are the same, too.
        n_draws: N, at least n; None for n.

    Returns:
        The value, infinite if a position or score is not finite; ``se`` is then NaN. ``se`` is infinite for a subset of
        fewer than four draws, which is too small to estimate it.

    Raises:
        InputError: as `sgtune.stein.ksd`.
    """
    rows, columns = check_block(block)
    draws = Draws.read(positions, scores, scale)
    if draws is None:
        return KsdEstimate(float("inf"), float("nan"), float("inf"))
    n = len(draws.positions)
    n_draws = check_integer("n_draws", n if n_draws is None else n_draws, at_least=n)
    own, sums, squares = np.empty(n), np.zeros(n), 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        for pairs in pair_blocks(draws, rows, columns):
            a, b = pairs.a, pairs.b
            if a == b:
                own[a] = np.diagonal(pairs.ss) + pairs.dimension
            values = (1 - 1 / n_draws) * stein_values(pairs) + (own[a][:, None] + own[b]) / (2 * n_draws)
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
