"""The Monte Carlo error of a reference's own means and standard deviations."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.linalg import hadamard

from sgtune.study.ground_truth.draws import covariance, flat_draws, functionals_of, summary, variables_of
from sgtune.study.ground_truth.effective import ess_of_mean

if TYPE_CHECKING:
    from arviz import InferenceData

__all__ = ["StandardErrors", "columns_of", "monte_carlo_error", "relative_error", "standard_errors"]

# Draws at a time, of some parameters: what is made of so few stays in the cache, twelve times as many in float64.
VALUES = 2**16
# Pieces of the draws whose halves are compared: 15 ways to divide 16 pieces are independent of each other.
PIECES = 16


class StandardErrors(NamedTuple):
    """Of the posterior mean and sd of each parameter, in the order of `ravel_pytree`; infinite where it never moved."""

    mean: Float[np.ndarray, " D"]
    sd: Float[np.ndarray, " D"]


def columns_of(arrays: Iterable[np.ndarray]) -> Iterable[np.ndarray]:
    """The draws (chain, draw, k) of some parameters at a time, of arrays of any k."""
    for array in arrays:
        n_chains, n_draws, size = array.shape
        columns = max(VALUES // max(n_chains * n_draws, 1), 1)
        yield from (array[..., start : start + columns] for start in range(0, size, columns))


def standard_errors(arrays: "InferenceData | Iterable[np.ndarray]") -> StandardErrors:
    """Standard errors of the mean and the sd of draws, or of arrays (chain, draw, k) of them, by the delta method.

    Of the mean sd / sqrt(ESS of the draws), of the sd s / (2 sd sqrt(ESS of the squared deviations)) with the sd s of
    the squared deviations (sd / sqrt(2 ESS) if the draws are Gaussian). nan with fewer than 4 draws a chain.

    The errors are for the draws that are kept. For the mean and sd of all draws, including those lost by thinning or
    with a machine, they are upper bounds.
    """
    if hasattr(arrays, "posterior"):
        arrays = variables_of(arrays).values()
    parts = [_of_columns(draws.astype(np.float64)) for draws in columns_of(arrays)]
    return StandardErrors(*(np.concatenate(values) for values in zip(*parts, strict=True)))


def _of_columns(draws: Float[np.ndarray, "chain draw k"]) -> tuple[np.ndarray, np.ndarray]:
    if not draws.shape[1]:
        return tuple(np.full((2, draws.shape[2]), np.nan))
    squares = np.square(draws - draws.mean(axis=(0, 1)))
    sd = np.sqrt(squares.mean(axis=(0, 1)))
    with np.errstate(divide="ignore", invalid="ignore"):
        of_mean = sd / np.sqrt(ess_of_mean(draws))
        of_sd = squares.std(axis=(0, 1)) / (2 * sd * np.sqrt(ess_of_mean(squares)))
    return np.where(sd == 0, np.inf, of_mean), np.where(sd == 0, np.inf, of_sd)


def relative_error(errors: Float[np.ndarray, " D"], sd: Float[np.ndarray, " D"]) -> float:
    """|errors| / |sd|: for standard errors of sds, the expected xi of sds with such errors."""
    return float(np.linalg.norm(errors) / np.linalg.norm(sd))


def monte_carlo_error(idata: "InferenceData", errors: StandardErrors | None = None) -> dict[str, float]:
    """The expected errors of exact moments against this reference.

    Every error of a tuned chain includes this contribution of the reference; infinitely many exact draws would have it,
    too. It is the root mean square over references (the mean is a little smaller: by 2 % for the xi of ten parameters)
    of ``relative_sd_error`` and ``xi_rel``, and where they are defined ``xi_white`` (D <= 200) and ``functional_error``
    (of a model with functionals). ``errors`` are the `standard_errors` of the draws, if the caller has them; all
    errors are for the kept draws. For chains that have not mixed it is too small, because effective sample sizes do
    not include regions that the chains have not visited.
    """
    errors = standard_errors(idata) if errors is None else errors
    _, sd = summary(idata)
    found = {
        "relative_sd_error": relative_error(errors.sd, sd),
        "xi_rel": float(np.sqrt(np.mean(np.square(errors.sd / sd)))),
    }
    if covariance(idata) is not None:
        found["xi_white"] = _white_error(flat_draws(idata).astype(np.float64))
    if (draws := functionals_of(idata)) is not None:
        of_mean, of_sd = standard_errors([draws])
        _, sd = summary(idata, "functionals")
        found["functional_error"] = float(np.sqrt(np.mean(np.square(of_mean / sd) + np.square(of_sd / sd))))
    return found


def _white_error(draws: Float[np.ndarray, "chain draw D"]) -> float:
    """Of exact sds along the eigen-directions of the covariance of ``draws``.

    Along fixed directions the standard errors would give it. But where eigenvalues of the truth are close to each
    other, eigenvalues of draws repel each other: their eigenvectors are where the draws err most, and the error is up
    to sqrt((D + 1) / 2) times as large. So it is measured: one half of the draws judges the other half, whose own
    error, along directions that are not its own, is given by the standard errors. The square of the remaining error is
    the square for half as many draws.
    """
    n_chains, n_draws, dimension = draws.shape
    length = n_chains * n_draws // PIECES
    if length == 0:
        return float("nan")
    pooled = draws.reshape(-1, dimension)
    centred = pooled - pooled.mean(axis=0)
    values, vectors = np.linalg.eigh(centred.T @ centred)
    along = standard_errors([(draws - pooled.mean(axis=0)) @ vectors]).sd
    with np.errstate(divide="ignore", invalid="ignore"):
        fixed = np.mean(np.square(along) / (values / len(pooled)))
        # Chains one after the other: pieces, but for one or two, are of one chain.
        pieces = centred[: PIECES * length].reshape(PIECES, length, dimension)
        first = pieces.mean(axis=1)
        second = np.einsum("pki,pkj->pij", pieces, pieces, optimize=True) / length
        halves = [row > 0 for sign in (1, -1) for row in sign * hadamard(PIECES)[1:]]
        measured = np.mean([_judged(first, second, half) for half in halves])
        return float(np.sqrt(np.maximum((measured - 2 * fixed) / 2, fixed)))


def _judged(first: np.ndarray, second: np.ndarray, half: np.ndarray) -> float:
    """Mean square error of the sds of the pieces not in ``half`` along the eigen-directions of those that are."""
    own, other = (
        second[chosen].mean(axis=0) - np.outer(first[chosen].mean(axis=0), first[chosen].mean(axis=0))
        for chosen in (half, ~half)
    )
    values, vectors = np.linalg.eigh(own)
    along = np.einsum("ji,jk,ki->i", vectors, other, vectors, optimize=True)
    return float(np.mean(np.square(np.sqrt(along / values) - 1)))
