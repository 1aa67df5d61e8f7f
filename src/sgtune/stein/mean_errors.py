"""How far a chain's means are from those of the law that it samples from: standard errors of batch means, no scores."""

import numpy as np
from jaxtyping import Int, PyTree

from sgtune.errors import check_integer
from sgtune.stein.chain_draws import ChainDraws
from sgtune.stein.kernel import Scale
from sgtune.stein.quadratic import N_STRETCHES
from sgtune.stein.virials import TILE

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
    the way from the mode, is left out. It is 1 / ESS_i of the direction, and in expectation the mean's part of
    `sgtune.metrics.functional_error`, squared, of coordinates in place of functionals, as far as the chain's law has
    the right mean and sd: what it has not is for `sgtune.stein.virial` to see. A chain that is longer than its
    autocorrelation time has 1 / ESS; a slower one at most about 1 / 5. A direction that never moves has 1.

    Args:
        positions: (n, D) array, or a pytree whose leaves share a leading axis n.
        stretch: of each draw (`sgtune.stein.quadratic.stretch_of`).
        scale: a (D, D) factor of the posterior's covariance has the eigenvectors that are the directions; of others
            they are the parameters, and their sds have no part in it.
        n_draws: N, at least n, of which the draws given are a uniformly random part, whose own noise is taken off.
        target: ``all directions``, the above, or ``marginals``: the parameters, whatever the scale.

    Returns:
        A number from 1 / N, what independent draws have, to about 1; infinite if a position is not finite, 1 where
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
        # About one of the draws, so that little is lost to rounding.
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
    # Of a part the stretches' means are noisy; of all draws they are what they are.
    noise = np.mean(1 / counts) - N_STRETCHES / n_draws
    errors = (between - max(noise, 0.0) * own) / N_STRETCHES
    ratios = np.divide(errors, own, out=np.ones(dimension), where=own > 0)
    return max(float(ratios.mean()), 1 / n_draws)
