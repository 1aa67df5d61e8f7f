"""The error of a chain's means, as standard errors of batch means; scores are not used."""

import numpy as np
from jaxtyping import Int, PyTree

from sgtune.stein.kernel import Scale
from sgtune.stein.quadratic import N_STRETCHES, ChainDraws
from sgtune.stein.virials import TILE
from sgtune.support.errors import check_integer

__all__ = ["mean_error"]


def mean_error(
    positions: PyTree,
    stretch: Int[np.ndarray, " n"],
    scale: Scale = "identity",
    *,
    n_draws: int | None = None,
    target: str = "all directions",
) -> float:
    """The mean over directions of (se_i / sd_i)^2, se_i the standard error of the chain's mean, sd_i its own sd.

    se_i^2 is the variance of the means of the stretches over their number (batch means, Geyer 1992); the first stretch,
    the transient from the mode, is left out. (se_i / sd_i)^2 is 1 / ESS_i of the direction. In expectation it is the
    mean's contribution to `sgtune.metrics.functional_error`, squared, with coordinates in place of functionals, if the
    chain's stationary density has the right mean and sd; if not, `sgtune.stein.virial` sees it. A chain of 50
    autocorrelation times or more has 1 / ESS within a tenth; of ten it has two thirds of it, and the slowest have at
    most about 1 / 5: slow chains are judged too kindly. A direction that never moves has 1.

    Args:
        positions: (n, D) array, or a pytree whose leaves share a leading axis n.
        stretch: of each draw (`sgtune.stein.quadratic.stretch_of`).
        scale: with a (D, D) factor of the posterior's covariance the directions are the eigenvectors of the covariance;
            with any other scale they are the parameters, and the sds in the scale are not used.
        n_draws: N, at least n: the given draws are a uniformly random subset of N draws, and the noise of drawing this
            subset is subtracted.
        target: ``all directions``: the above; ``marginals``: the parameters, for every scale.

    Returns:
        A number from 1 / N, the value of independent draws, to about 1; infinite if a position is not finite, 1 if
        fewer than two of the later stretches have draws.

    Raises:
        InputError: no draws, one-dimensional input; another argument is not allowed.
    """
    draws = ChainDraws.read(positions, positions, stretch, scale, target=target)
    positions, in_stretch = draws.positions, draws.in_stretch
    n, dimension = positions.shape
    n_draws = check_integer("n_draws", n if n_draws is None else n_draws, at_least=n)
    if not draws.are_finite:
        return float("inf")
    turn = None
    if draws.has_factor and target == "all directions":
        turn = np.linalg.eigh(draws.scale @ draws.scale.T)[1]
    sums, squares = np.zeros((2, N_STRETCHES, dimension))
    rows_at_once = max(1, TILE // dimension)
    for start in range(0, n, rows_at_once):
        rows = slice(start, start + rows_at_once)
        # Centred at one of the draws, so that little is lost to rounding.
        x = positions[rows].astype(np.float64) - positions[-1]
        x = x if turn is None else x @ turn
        inside = in_stretch[:, rows].astype(np.float64)
        sums += inside @ x
        squares += inside @ x**2
    counts = draws.counts
    later = np.arange(1, N_STRETCHES)[counts[1:] > 0]
    if len(later) < 2:
        return 1.0
    counts, sums, squares = counts[later], sums[later], squares[later]
    means = sums / counts[:, None]
    between = means.var(axis=0, ddof=1)
    within = np.maximum(squares - counts[:, None] * means**2, 0.0).sum(axis=0) / counts.sum()
    own = within + between
    # The stretch means of a subset are noisy; the means of all draws are exact.
    noise = np.mean(1 / counts) - N_STRETCHES / n_draws
    errors = (between - max(noise, 0.0) * own) / N_STRETCHES
    ratios = np.divide(errors, own, out=np.ones(dimension), where=own > 0)
    return max(float(ratios.mean()), 1 / n_draws)
