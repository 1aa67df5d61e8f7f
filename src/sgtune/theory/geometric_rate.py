"""The rate of convergence of a chain: total variation distance to its target against the number of steps.

Theorem 2 of Bieringer et al. (2023): where gradients are bounded, the law of a chain with a Metropolis test converges
to its target in total variation as (1 - eps)^k after k steps, a straight line in log scale. This module computes the
distance:

* of a chain with one parameter, from its transition matrix on a grid (`mala_matrix`, `distances_of_matrix`): no draws;
* of any sampler, from histograms of one coordinate of many chains (`distances_of_chains`); for AdamMCMC, whose state
  is (theta, m, v), it is the distance of theta's law from the posterior. It cannot fall below `monte_carlo_floor`.

The total variation of laws p and q on bins is (1/2) sum |p - q|. float64.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from sgtune.model import Model
from sgtune.sampling.lockstep import independent_chains
from sgtune.support.axes import Arm
from sgtune.support.errors import InputError, check_integer, check_number

__all__ = [
    "GeometricFit",
    "distances_of_chains",
    "distances_of_matrix",
    "geometric_fit",
    "mala_matrix",
    "metropolis_matrix",
    "monte_carlo_floor",
    "total_variation",
]


def total_variation(p: Float[np.ndarray, "k n"], q: Float[np.ndarray, " n"]) -> Float[np.ndarray, " k"]:
    """(1/2) sum |p - q|, in [0, 1], of k laws and one, all probabilities of the same n bins."""
    return np.abs(p - q).sum(axis=-1) / 2


def metropolis_matrix(
    log_density: Float[np.ndarray, " n"], log_proposal: Float[np.ndarray, "n n"]
) -> Float[np.ndarray, "n n"]:
    """P[i, j], the probability to go from point i to point j by a proposal and a Metropolis test.

    Exactly reversible with respect to exp(log_density). If the proposals of a row sum to less than 1, the chain stays
    where it is with the remaining probability.

    Args:
        log_density: of the target at the points, up to a constant.
        log_proposal: [i, j]: log of the probability that j is proposed from i; rows sum to at most 1.
    """
    log_flow = log_density[:, None] + log_proposal
    matrix = np.exp(log_proposal + np.minimum(0.0, log_flow.T - log_flow))
    np.fill_diagonal(matrix, 0.0)
    np.fill_diagonal(matrix, 1 - matrix.sum(axis=1))
    return matrix


def mala_matrix(
    grid: Float[np.ndarray, " n"],
    log_density: Callable[[Float[np.ndarray, " n"]], Float[np.ndarray, " n"]],
    score: Callable[[Float[np.ndarray, " n"]], Float[np.ndarray, " n"]],
    step_size: float,
    drift: float | None = None,
) -> Float[np.ndarray, "n n"]:
    """The transition matrix of MALA (`sgtune.samplers.mala`) for one parameter, on equally spaced points.

    A proposal is N(x + drift * score(x), 2 step_size) on the points. The grid must be finer than its sd, and wide
    enough for the target.

    Args:
        log_density, score: of the target, up to a constant, and its derivative.
        drift: the step size unless given.

    Raises:
        InputError: the step size or the drift is not > 0, or the grid is not finer than the proposal's sd.
    """
    check_number("step_size", step_size, above=0)
    drift = step_size if drift is None else check_number("drift", drift, above=0)
    spacing, variance = float(grid[1] - grid[0]), 2 * step_size
    if not spacing < variance**0.5:
        raise InputError(
            f"grid: a spacing of {spacing:.3g} is not allowed; it must be < {variance**0.5:.3g}, the proposal's sd"
        )
    residual = grid[None, :] - (grid + drift * score(grid))[:, None]
    log_proposal = -(residual**2) / (2 * variance) - np.log(2 * np.pi * variance) / 2 + np.log(spacing)
    # Points stand for cells: a row's sum may exceed 1 by rounding.
    log_proposal -= np.log(np.maximum(1.0, np.exp(log_proposal).sum(axis=1)))[:, None]
    return metropolis_matrix(log_density(grid), log_proposal)


def distances_of_matrix(
    matrix: Float[np.ndarray, "n n"],
    start: Float[np.ndarray, " n"],
    target: Float[np.ndarray, " n"],
    n_steps: int,
) -> Float[np.ndarray, " k"]:
    """Total variation to ``target`` after 0, 1, ..., ``n_steps`` steps from the law ``start``."""
    laws = [start]
    for _ in range(check_integer("n_steps", n_steps, at_least=1)):
        laws.append(laws[-1] @ matrix)
    return total_variation(np.array(laws), target)


def monte_carlo_floor(target: Float[np.ndarray, " n"], n_chains: int) -> float:
    """The expected distance of a histogram of so many exact draws: (1/2) sum sqrt(2 p (1 - p) / (pi n_chains)),
    where every bin has many of them."""
    return float(np.sqrt(2 * target * (1 - target) / (np.pi * n_chains)).sum() / 2)


def distances_of_chains(
    model: Model,
    sampler: str,
    arm: Arm,
    *,
    start: Float[np.ndarray, " D"],
    edges: Float[np.ndarray, " e"],
    target: Float[np.ndarray, " n"],
    n_chains: int,
    n_steps: int,
    window: int = 1,
    coordinate: int = 0,
    seed: int = 0,
    replicate: int | str = 0,
) -> Float[np.ndarray, " k"]:
    """Total variation of one coordinate's law from ``target`` at the start, and after each of ``n_steps`` steps.

    From histograms of ``n_chains`` independent chains, all from ``start`` and with gradients of all data. If the law
    equals ``target``, the distance is about the `monte_carlo_floor`.

    Args:
        arm: must have the batch size N, because chains that share minibatches are not independent.
        edges: of the bins, ascending: n - 1 numbers for n bins; the first and the last bin are unbounded.
        target: probabilities of the bins.
        window: the steps whose mean law is compared, 1 for each step's own: window i has the steps i window + 1 to
            (i + 1) window, and steps after the last whole one do not count. A longer window has less Monte Carlo
            error, and shows only slow changes.

    Raises:
        InputError: an argument is not allowed.
    """
    if arm.batch_size != model.n_data:
        raise InputError(
            f"batch_size: {arm.batch_size!r} is not allowed; it must be {model.n_data}, all data"
        )
    if len(target) != len(edges) + 1:
        raise InputError(
            f"target: {len(target)} bins are not allowed; {len(edges)} edges have {len(edges) + 1}"
        )
    check_integer("n_chains", n_chains, at_least=1)
    check_integer("window", window, at_least=1)
    check_integer("n_steps", n_steps, at_least=window)
    positions = np.tile(np.asarray(start, np.float32), (n_chains, 1))
    chains = independent_chains(model, sampler, arm, positions, seed=seed, replicate=replicate)

    def counts(draws):
        return np.bincount(np.searchsorted(edges, draws[:, coordinate]), minlength=len(target))

    laws = [counts(positions)]
    while len(laws) <= n_steps:
        laws += [counts(draws) for draws in chains.advance_chunk(n_steps + 1 - len(laws))]
    after = np.array(laws[1 : n_steps // window * window + 1], np.float64)
    means = after.reshape(-1, window, len(target)).mean(axis=1)
    return total_variation(np.vstack([laws[:1], means]) / n_chains, np.asarray(target, np.float64))


class GeometricFit(NamedTuple):
    """log distance = log constant + k log rate, by least squares.

    Attributes:
        rate: the factor by which the distance falls in one step.
        constant: the line's distance at k = 0.
        first, last: the places of the first and the last distance of the fit.
        misfit: the largest |log distance - line| there.
    """

    rate: float
    constant: float
    first: int
    last: int
    misfit: float


def geometric_fit(
    distances: Float[np.ndarray, " k"],
    floor: float = 0.0,
    *,
    first: int = 1,
    margin: float = 3.0,
    steps: Float[np.ndarray, " k"] | None = None,
) -> GeometricFit:
    """The straight line in log scale through the distances from place ``first`` on, down to ``margin`` times ``floor``.

    Args:
        steps: how many steps are behind each distance; 0, 1, ... unless given.

    Raises:
        InputError: fewer than three distances are above that.
    """
    below = np.flatnonzero(distances[first:] <= max(margin * floor, 0.0))
    last = first + (int(below[0]) if len(below) else len(distances) - first) - 1
    if last - first < 2:
        raise InputError(
            f"distances: {max(0, last - first + 1)} from place {first} on are above {margin:g} times the floor of "
            f"{floor:.3g}; a line needs 3"
        )
    steps = (np.arange(len(distances)) if steps is None else np.asarray(steps))[first : last + 1]
    logs = np.log(distances[first : last + 1])
    slope, intercept = np.polyfit(steps, logs, 1)
    misfit = float(np.abs(logs - intercept - slope * steps).max())
    return GeometricFit(float(np.exp(slope)), float(np.exp(intercept)), first, last, misfit)
