"""The error of a chain's spread in each direction, by the virial: E[-s_i (x_i - c_i)] = 1 under the posterior.

With s the score and any fixed c the virial of each direction is 1 under the posterior (Stein's identity for linear
functions, as in the second-order polynomial Stein discrepancy of Srinivasan, Sutton, Drovandi and South 2024,
arXiv 2412.05135). For a posterior near a Gaussian the virial of draws is their variance over the posterior's variance,
so its root is the ratio of the sds: the quantity that `sgtune.metrics.xi_white` measures, without a reference.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int, PyTree

from sgtune.stein.kernel import Scale, draw_matrices, rescale
from sgtune.stein.quadratic import FEWEST_DRAWS, N_STRETCHES, ChainDraws, square_at_horizon
from sgtune.support.errors import check_integer

__all__ = ["Virials", "squared_error", "virial", "virial_bias", "virial_error", "virial_score", "virial_sums"]

TILE = 2**21
"""The largest number of float64 entries in a tile of draws."""


class Virials(NamedTuple):
    """Sums over draws in D directions, by the stretches of the chain.

    Attributes:
        counts: the number of draws from each stretch.
        virials: sums of -s_i z_i.
        squares: sums of (s_i z_i)^2 over all stretches.
    """

    counts: Int[np.ndarray, " s"]
    virials: Float[np.ndarray, "s d"]
    squares: Float[np.ndarray, " d"]


def virial(
    positions: PyTree,
    scores: PyTree,
    scale: Scale = "identity",
    seed: int = 0,
    *,
    n_draws: int | None = None,
    centre: PyTree | None = None,
    target: str = "all directions",
) -> float:
    """The root of the mean over directions of (sqrt(v_i) - 1)^2, v_i = E[-s_i z_i]; 1 - v_i where v_i < 0.

    Means are over the draws; z = (x - c) / sd and s the score times sd, or for a (D, D) factor L of the posterior's
    covariance the same along the eigenvectors of L L', the directions of `sgtune.metrics.xi_white`. For a Gaussian
    posterior with mean c, v_i is the mean square of the draws in posterior sds, so that this is xi_white about c. A
    frozen direction contributes 1 / D to the square, as much as one with twice the sd; a mean that is off by a sds
    contributes (sqrt(1 + a^2) - 1)^2 / D. v_i does not depend on sd, so the sds may be rough.

    Time and memory are linear in n and D (n D^2 with a factor). The virial does not see errors of correlations between
    the directions, or any other error that leaves all v_i unchanged. Where D is large it hardly sees an error in a
    single direction, which contributes only 1 / D.

    Args:
        positions: (n, D) array, or a pytree whose leaves share a leading axis n.
        scores: gradients of the log posterior at the positions, or unbiased estimates of them from minibatches that are
            fresh at every draw.
        scale: as in `sgtune.stein.ksd`.
        seed: not used.
        n_draws: N, at least n: the given draws are a uniformly random subset of N draws.
        centre: c, the MAP; None is the origin. Do not pass the draws' mean (see `sgtune.stein.psd`).
        target: ``all directions``, or ``marginals``: z_i = (x_i - c_i) / sd_i and (P s)_i / sd_i with P = L L', so
            that v_i is the variance of a single parameter over the posterior's.

    Returns:
        The discrepancy, >= 0; infinity if a position or score is not finite.

    Raises:
        InputError: shapes that differ, no draws, one-dimensional input; another argument is not allowed.
    """
    n = len(draw_matrices(positions, scores)[0])
    sums = virial_sums(positions, scores, np.zeros(n, np.int64), scale, centre=centre, target=target)
    return float(np.sqrt(virial_error(sums, n if n_draws is None else n_draws)))


def virial_sums(
    positions: PyTree,
    scores: PyTree,
    stretch: Int[np.ndarray, " n"],
    scale: Scale = "identity",
    *,
    centre: PyTree | None,
    target: str = "all directions",
) -> Virials:
    """The sums from which all else is computed; all infinite if a position or score is not finite.

    Memory besides the inputs is six (D,) vectors, a (D, D) matrix if the scale is a factor, and a tile of at most
    16 MB, or of one draw if that is larger.

    Args:
        positions, scores, scale, centre, target: as in `virial`.
        stretch: of each draw (`sgtune.stein.quadratic.stretch_of`).

    Raises:
        InputError: as `virial`, or for the stretches.
    """
    draws = ChainDraws.read(positions, scores, stretch, scale, centre=centre, target=target)
    in_stretch, dimension = draws.in_stretch, draws.positions.shape[1]
    sums = Virials(draws.counts, np.zeros((N_STRETCHES, dimension)), np.zeros(dimension))
    if not draws.are_finite:
        return sums._replace(**{name: np.full_like(getattr(sums, name), np.inf) for name in sums._fields[1:]})
    with np.errstate(over="ignore", invalid="ignore"):
        for rows, z, s in _tiles(draws, target):
            inside = in_stretch[:, rows].astype(np.float64)
            virials = -s * z
            np.add(sums.virials, inside @ virials, out=sums.virials)
            np.add(sums.squares, np.einsum("nd,nd->d", virials, virials), out=sums.squares)
    return sums


def _tiles(
    draws: ChainDraws, target: str
) -> Iterator[tuple[slice, Float[np.ndarray, "b d"], Float[np.ndarray, "b d"]]]:
    """A range of draws, z and the scores there."""
    n, dimension = draws.positions.shape
    into = _into(draws, target)
    rows_at_once = max(1, TILE // dimension)
    for start in range(0, n, rows_at_once):
        rows = slice(start, min(start + rows_at_once, n))
        x = draws.positions[rows].astype(np.float64) - draws.centre
        s = draws.scores[rows].astype(np.float64)
        yield rows, *into(x, s)


def _into(draws: ChainDraws, target: str) -> Callable:
    """``(x, score) -> (z, s)``, rows of draws."""
    scale = draws.scale
    if not draws.has_factor:
        return lambda x, s: rescale(x, s, scale)
    if target == "marginals":
        return draws.to_marginals()
    eigenvalues, directions = np.linalg.eigh(scale @ scale.T)
    sds = np.sqrt(eigenvalues)
    return lambda x, s: (x @ directions / sds, s @ directions * sds)


def squared_error(virials: Float[np.ndarray, "*s d"]) -> Float[np.ndarray, "*s"]:
    """The mean over directions of (sqrt(v_i) - 1)^2, or 1 - v_i where v_i < 0.

    A virial far below 0 is of a chain whose scores point away from the centre, as when it leaves the posterior; 0, of a
    frozen one, is not as bad.
    """
    known = np.maximum(virials, 0.0)
    return np.asarray(np.mean((np.sqrt(known) - 1) ** 2 + np.maximum(-virials, 0.0), axis=-1))


def virial_error(sums: Virials, n_draws: int) -> float:
    """V, the square of `virial` of all N draws, from the sums of a uniformly random subset.

    The square for the subset has expectation V + u (1/n - 1/N), to first order, u the mean over directions of
    var(s_i z_i) / (4 v_i^(3/2)); the second term is subtracted. As in `sgtune.stein.quadratic.mean_square`, the result
    is at least u / N, the value of independent draws. Infinite if a sum is not finite.
    """
    n = int(sums.counts.sum())
    n_draws = check_integer("n_draws", n_draws, at_least=n)
    square = float(squared_error(sums.virials.sum(axis=0) / n))
    if not np.isfinite(square):
        return float("inf")
    if n_draws == n:
        return square
    unit = _unit(sums)
    return max(square - unit * (1 / n - 1 / n_draws), unit / n_draws)


def _unit(sums: Virials) -> float:
    """u: n times the expected contribution to the square of the noise of n independent draws like these."""
    n = int(sums.counts.sum())
    virials = sums.virials.sum(axis=0) / n
    variances = np.maximum(sums.squares / n - virials**2, 0.0)
    # A virial below its noise is replaced by the noise, because the derivative of the root is infinite at zero.
    known = np.maximum(virials, np.sqrt(variances / n))
    return float(np.mean(np.divide(variances, 4 * known**1.5, out=np.zeros_like(known), where=known > 0)))


def virial_bias(sums: Virials) -> tuple[float, float]:
    """The square of `virial` of the chain's stationary density, and its jackknife standard error.

    The first stretch, the transient from the mode, is left out. Leaving out each of the others in turn removes the bias
    of order one over the time (Quenouille's jackknife), if stretches are independent. The result may be negative.
    (0, inf) if a stretch is empty or a sum is not finite.
    """
    counts, virials = sums.counts[1:], sums.virials[1:]
    n, k = counts.sum(), len(counts)
    if not counts.all() or not np.isfinite(virials).all():
        return 0.0, float("inf")
    without = squared_error((virials.sum(axis=0) - virials) / (n - counts)[:, None])
    of_all = float(squared_error(virials.sum(axis=0) / n))
    error = np.sqrt((k - 1) / k * np.sum((without - without.mean()) ** 2))
    return float(k * of_all - (k - 1) * without.mean()), float(error)


def virial_score(sums: Virials, n_draws: int, share: float) -> float:
    """The square of `virial` that the chain is expected to have at the horizon
    (`sgtune.stein.quadratic.square_at_horizon`).

    It is computed from `virial_error` and `virial_bias`; with fewer than ten draws it is `virial_error`. No standard
    error is added: the virials of a chain that hardly moves have a tiny standard error, so adding it would favour
    frozen arms over arms that explore.
    """
    square = virial_error(sums, n_draws)
    if sums.counts.sum() < FEWEST_DRAWS or not np.isfinite(square):
        return square
    return square_at_horizon(square, *virial_bias(sums), least=_unit(sums) / n_draws, share=share)
