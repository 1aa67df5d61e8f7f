"""Discrepancies whose square is a mean over pairs of draws: their bias, their variance, and a forecast of both.

The draws of a chain are known by the stretch that each is from.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Bool, Float, Int, PyTree, Shaped

from sgtune.stein.kernel import Scale, check_scale, draw_matrices
from sgtune.support.errors import InputError, check_choice, check_integer, check_number

__all__ = [
    "FEWEST_DRAWS",
    "LEAST_SHARE",
    "N_STRETCHES",
    "TARGETS",
    "ChainDraws",
    "Stretches",
    "check_stretches",
    "square_at_horizon",
    "horizon_score",
    "mean_square",
    "squared_bias",
    "stretch_of",
]

N_STRETCHES = 5
"""A chain is cut into this many stretches of equal length. The bias is not estimated from the first stretch, which is
the transient from the mode."""

FEWEST_DRAWS = 10
"""With fewer draws, bias and variance cannot be separated."""

LEAST_SHARE = 0.1
"""The forecast variance is at least this share of the present one: a forecast further ahead would be a guess."""


class Stretches(NamedTuple):
    """Sums of k(x_i, x_j) over pairs of draws, by the stretches of the chain that contain the draws.

    Attributes:
        counts: the number of draws from each stretch.
        sums: over i in stretch a and j in stretch b, the pairs i = j left out; symmetric.
        own: k(x_i, x_i) over the draws of each stretch.
    """

    counts: Int[np.ndarray, " s"]
    sums: Float[np.ndarray, "s s"]
    own: Float[np.ndarray, " s"]


def stretch_of(steps: Int[np.ndarray, " n"], n_steps: int) -> Int[np.ndarray, " n"]:
    """The stretch, 0, ..., 4, of the draws made by the steps 1, ..., ``n_steps`` of a chain."""
    return (np.asarray(steps, np.int64) - 1) * N_STRETCHES // n_steps


def mean_square(stretches: Stretches, n_draws: int) -> float:
    """V = U + (d - U) / N: the squared discrepancy of all N draws, from the sums of a random subset.

    d is the mean of k(x_i, x_i) and U the mean over other pairs. The estimate is unbiased for a uniformly random subset
    (`sgtune.stein.ksd_estimate`). A subset's value is raised to d / N, the average for independent draws, if it is
    below: no sampler of this package does better, and a noisy U must not make an arm look perfect. With all draws
    nothing is estimated, and the value is the mean over all pairs. It is infinite if a sum is not finite.
    """
    n = int(stretches.counts.sum())
    n_draws = check_integer("n_draws", n_draws, at_least=n)
    own, others = float(stretches.own.sum()), float(stretches.sums.sum())
    if not np.isfinite(own + others):
        return float("inf")
    if n == n_draws:
        return max((own + others) / n**2, 0.0)
    diagonal = own / n
    elsewhere = others / (n * (n - 1)) if n > 1 else diagonal
    return max(elsewhere + (diagonal - elsewhere) / n_draws, diagonal / n_draws)


def squared_bias(stretches: Stretches) -> tuple[float, float]:
    """B^2, the squared discrepancy of the chain's stationary density, and its jackknife standard error.

    B^2 is the mean of k over pairs of draws from two different stretches; the first stretch is left out, and
    neighbouring stretches are not paired. It is unbiased if stretches that are not neighbours are independent, and may
    be negative. (0, inf) if too many stretches are empty, or a sum is not finite.
    """
    later = [place for place in range(1, len(stretches.counts)) if stretches.counts[place]]
    pairs = [(a, b) for a in later for b in later if b > a + 1]
    values = [_mean_between(stretches, [pair for pair in pairs if place not in pair]) for place in later]
    if len(later) < 3 or None in values or not np.isfinite(values).all():
        return 0.0, float("inf")
    values = np.array(values)
    n = len(later)
    return float(_mean_between(stretches, pairs)), float(
        np.sqrt((n - 1) / n * np.sum((values - values.mean()) ** 2))
    )


def _mean_between(stretches: Stretches, pairs: list[tuple[int, int]]) -> float | None:
    """The mean of k over pairs of draws from these pairs of stretches; None if there are none."""
    weight = sum(stretches.counts[a] * stretches.counts[b] for a, b in pairs)
    return float(sum(stretches.sums[a, b] for a, b in pairs) / weight) if weight else None


def horizon_score(stretches: Stretches, n_draws: int, share: float) -> float:
    """The squared discrepancy that a chain is expected to have at the horizon (`square_at_horizon`), plus se(B^2).

    B^2 is from `squared_bias` and V from `mean_square`. With fewer than ten draws, bias and variance cannot be
    separated, and the result is V. It is never negative. The standard error is added because the smallest of many noisy
    values tends to be smallest by luck.
    """
    square = mean_square(stretches, n_draws)
    if stretches.counts.sum() < FEWEST_DRAWS:
        return square
    diagonal = float(stretches.own.sum() / stretches.counts.sum())
    bias, error = squared_bias(stretches)
    ahead = square_at_horizon(square, bias, error, least=diagonal / n_draws, share=share)
    return ahead + error if np.isfinite(error) else ahead


def square_at_horizon(square: float, bias: float, error: float, *, least: float, share: float) -> float:
    """B+ + max(V - B+, least) max(T / T_horizon, 1/10), with B+ = max(B^2, 0).

    The bias stays, and the variance falls as one over the time if T is well above the chain's autocorrelation time. For
    a slower chain, part of the variance counts as bias.

    Args:
        square: V, of the draws so far.
        bias, error: B^2 and its standard error; the result is V if the error is not finite, as B^2 is then unknown.
        least: the variance of the same number of independent draws.
        share: T / T_horizon; more than 1 for a chain that has run beyond the horizon.
    """
    share = max(check_number("share", share, above=0), LEAST_SHARE)
    if not np.isfinite(error):
        return square
    bias = max(bias, 0.0)
    return bias + max(square - bias, least) * share


def check_stretches(stretch: Int[np.ndarray, " n"], n: int) -> Int[np.ndarray, " n"]:
    """``stretch`` if it gives one of the five stretches for each of n draws, or an `InputError`."""
    stretch = np.asarray(stretch)
    if stretch.shape != (n,):
        raise InputError(f"stretch: shape {stretch.shape} is not allowed; it must be ({n},)")
    others = stretch[~np.isin(stretch, np.arange(N_STRETCHES))]
    if others.size:
        raise InputError(
            f"stretch: {others[0]} is not allowed; all values must be integers from 0 to {N_STRETCHES - 1}"
        )
    return stretch


TARGETS = ("all directions", "marginals")


class ChainDraws(NamedTuple):
    """Draws and scores, their stretches, scale and centre, all checked.

    Attributes:
        positions, scores: a row for each draw, as given by the caller.
        in_stretch: whether a draw is from a stretch.
        scale: "identity", D sds, or a (D, D) factor.
        centre: zeros if none was given.
    """

    positions: Shaped[np.ndarray, "n d"]
    scores: Shaped[np.ndarray, "n d"]
    in_stretch: Bool[np.ndarray, "s n"]
    scale: str | Float[np.ndarray, "..."]
    centre: Float[np.ndarray, " d"]

    @classmethod
    def read(
        cls,
        positions: PyTree,
        scores: PyTree,
        stretch: Int[np.ndarray, " n"],
        scale: Scale = "identity",
        *,
        centre: ArrayLike | PyTree | None = None,
        target: str = "all directions",
    ) -> "ChainDraws":
        """Arguments as in `sgtune.stein.psd`, and the stretch of each draw (`sgtune.stein.quadratic.stretch_of`).

        Raises:
            InputError: shapes that differ, no draws, one-dimensional input; another argument is not allowed.
        """
        check_choice("target", target, TARGETS)
        positions, scores = draw_matrices(positions, scores)
        n, dimension = positions.shape
        in_stretch = np.arange(N_STRETCHES)[:, None] == check_stretches(stretch, n)
        scale = check_scale(scale, dimension)
        return cls(positions, scores, in_stretch, scale, _check_centre(centre, dimension))

    @property
    def counts(self) -> Int[np.ndarray, " s"]:
        """The draws of each stretch."""
        return self.in_stretch.sum(axis=1)

    @property
    def are_finite(self) -> bool:
        return bool(np.isfinite(self.positions).all() and np.isfinite(self.scores).all())

    @property
    def has_factor(self) -> bool:
        """Whether the scale is a (D, D) factor, which mixes the coordinates."""
        return not isinstance(self.scale, str) and self.scale.ndim == 2

    def to_marginals(self) -> Callable:
        """``(x, score) -> (x / sd, P score / sd)`` for rows of draws: P = L L' of the factor L, sd^2 its diagonal."""
        sds = np.linalg.norm(self.scale, axis=1)
        to_scores = self.scale.T / sds
        return lambda x, score: (x / sds, score @ self.scale @ to_scores)


def _check_centre(centre: ArrayLike | PyTree | None, dimension: int) -> Float[np.ndarray, " d"]:
    if centre is None:
        return np.zeros(dimension)
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(centre)]
    flat = np.concatenate([np.ravel(leaf).astype(np.float64) for leaf in leaves]) if leaves else np.empty(0)
    if len(flat) != dimension or not np.isfinite(flat).all():
        shapes = ", ".join(str(leaf.shape) for leaf in leaves)
        raise InputError(
            f"centre: leaves of shapes {shapes or 'none'} are not allowed; it must have D = {dimension} finite entries"
            if len(flat) != dimension
            else f"centre: {flat[~np.isfinite(flat)][0]} is not allowed; entries must be finite"
        )
    return flat
