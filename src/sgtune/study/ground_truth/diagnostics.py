"""Whether the draws of a reference can be trusted, and the Monte Carlo error of its own means and sds.

R-hat and effective sample sizes are those of Vehtari, Gelman, Simpson, Carpenter, Bürkner (2021), Rank-Normalization,
Folding, and Localization: An Improved R-hat for Assessing Convergence of MCMC, Bayesian Analysis 16(2). Where the paper
leaves a choice (the truncation of autocorrelations, constant draws), this module follows ArviZ, so that
the numbers equal ``arviz.rhat`` and ``arviz.ess``. ArviZ takes one parameter at a time: three minutes for the 52,580 of
a factorisation with 40 draws, which take a second here.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from scipy.linalg import hadamard
from scipy.special import ndtri
from scipy.stats import rankdata

from sgtune.metrics.mixing import effective_of, halves_of
from sgtune.study.ground_truth import ESS_TRUSTED, R_HAT_TRUSTED, is_trusted
from sgtune.study.ground_truth.draws import (
    FLAT,
    covariance,
    flat_draws,
    functionals_of,
    summary,
    variables_of,
)

if TYPE_CHECKING:
    from arviz import InferenceData

FEWEST_DRAWS = 4
"""With fewer draws per chain, R-hat and effective sizes are undefined."""

VALUES = 2**16
"""Draws at a time, of some parameters: what is made of so few stays in the cache, twelve times as many in float64."""

PIECES = 16
"""Pieces of the draws whose halves are compared: 15 ways to divide 16 pieces are independent of each other."""


def reference_record(idata: "InferenceData") -> dict:
    """The record of all chains that `combine_nuts` writes.

    ``mean``, ``sd`` and, where D <= 200, ``covariance`` of the position; ``functionals``, the diagnostics of the
    quantities that tuners are judged by, the model's functionals at every draw, with their mean and sd (of a model
    without functionals the position, whose moments are not written twice); whether these are ``trusted``; the
    ``monte_carlo_error``; the ``diagnostics``; and those of the ``blocks``, the top-level keys of the position.

    The Monte Carlo errors are the expected errors of exact moments against this reference. Every error of a tuned chain
    includes this contribution of the reference; infinitely many exact draws would have it, too. It is the root mean
    square over references (the mean is a little smaller: by 2 % for the xi of ten parameters) of ``relative_sd_error``
    and ``xi_rel``, and where they are defined ``xi_white`` (D <= 200) and ``functional_error`` (of a model with
    functionals). All are for the kept draws. For chains that have not mixed they are too small, because effective
    sample sizes do not include regions that the chains have not visited.
    """
    (mean, sd), whole = summary(idata), covariance(idata)
    variables = variables_of(idata)
    found = per_parameter(variables.values())
    errors = {
        "relative_sd_error": relative_error(found.sd_error, sd),
        "xi_rel": float(np.sqrt(np.mean(np.square(found.sd_error / sd)))),
    }
    if whole is not None:
        errors["xi_white"] = _white_error(flat_draws(idata).astype(np.float64))
    functionals = _over(found, sd)
    if (draws := functionals_of(idata)) is not None:
        judged, (of_mean, of_sd) = per_parameter([draws]), summary(idata, "functionals")
        functionals = {"mean": of_mean, "sd": of_sd} | _over(judged, of_sd)
        squares = np.square(judged.mean_error / of_sd) + np.square(judged.sd_error / of_sd)
        errors["functional_error"] = float(np.sqrt(np.mean(squares)))
    record = {
        "mean": mean,
        "sd": sd,
        "covariance": whole,
        "functionals": functionals,
        "trusted": is_trusted(functionals),
        "monte_carlo_error": errors,
        "diagnostics": _diagnostics(idata, found),
        "blocks": {},
    }
    names = [idata.posterior.attrs["model"] if name == FLAT else name.split(".")[0] for name in variables]
    block_of = np.repeat(names, [array.shape[-1] for array in variables.values()])
    for name in dict.fromkeys(names):
        own = block_of == name
        of_block = PerParameter(*(values[own] for values in found))
        record["blocks"][name] = {"sd": float(np.sqrt(np.mean(sd[own] ** 2)))} | _over(of_block, sd[own])
    return {name: value for name, value in record.items() if value is not None}


def doubts(record: dict) -> str | None:
    """Why a reference is not trusted, with the numbers; None if it is."""
    if record["trusted"]:
        return None
    found = record["functionals"]
    return (
        f"the 99th percentile of R-hat is {found['r_hat_p99']:.3g} (trusted up to {R_HAT_TRUSTED}), the median "
        f"effective sample size {found['ess_median']:,.0f} (trusted from {ESS_TRUSTED})"
    )


def _over(found: "PerParameter", sd: Float[np.ndarray, " k"]) -> dict[str, float]:
    """Number of quantities, the Monte Carlo error of their sds, R-hat and bulk ESS over them."""
    return {
        "n": len(sd),
        "sd_error": relative_error(found.sd_error, sd),
        "r_hat_max": float(found.r_hat.max()),
        # The least R-hat that 99 % are at most: nothing between a number and infinity.
        "r_hat_p99": float(np.quantile(found.r_hat, 0.99, method="inverted_cdf")),
        "r_hat_median": float(np.median(found.r_hat)),
        "ess_min": float(found.ess_bulk.min()),
        "ess_median": float(np.median(found.ess_bulk)),
    }


def _diagnostics(idata: "InferenceData", found: "PerParameter") -> dict[str, float | int | list[float]]:
    """R-hat and ESS, the worst over the parameters, are for the ``draws_kept``; all else for all ``draws`` of a chain
    after the warm-up. ``e_bfmi``: the energies' Bayesian fraction of missing information, by chain (Betancourt 2016).
    ``seconds``: of all chains, with warm-up and compilation."""
    statistics, attributes = idata.sample_stats, idata.posterior.attrs
    leapfrogs = statistics["n_steps"].values
    energy = statistics["energy"].values.astype(np.float64)
    n_chains, n_draws = leapfrogs.shape
    deepest = attributes.get("max_tree_depth", 10)
    with np.errstate(divide="ignore", invalid="ignore"):
        e_bfmi = np.square(np.diff(energy, axis=1)).sum(axis=1) / (n_draws * energy.var(axis=1))
    return {
        "r_hat": float(found.r_hat.max()),
        "ess_bulk": float(found.ess_bulk.min()),
        "n_parameters_checked": len(found.r_hat),
        "n_parameters_stuck": int(found.stuck.sum()),
        "divergences": int(statistics["diverging"].values.sum()),
        "max_tree_depth_share": float(np.mean(leapfrogs >= 2**deepest - 1)),
        "e_bfmi": e_bfmi.tolist(),
        "leapfrogs": int(leapfrogs.sum()),
        "leapfrogs_per_draw": float(leapfrogs.mean()),
        "chains": n_chains,
        "draws": n_draws,
        "draws_kept": idata.posterior.sizes["draw"],
        "seconds": float(attributes.get("seconds", np.nan)),
    }


def relative_error(errors: Float[np.ndarray, " k"], sd: Float[np.ndarray, " k"]) -> float:
    """|errors| / |sd|: for standard errors of sds, the expected xi of sds with such errors."""
    return float(np.linalg.norm(errors) / np.linalg.norm(sd))


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
    along = per_parameter([(draws - pooled.mean(axis=0)) @ vectors]).sd_error
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


class PerParameter(NamedTuple):
    """What `per_parameter` finds of each parameter.

    Attributes:
        r_hat: rank-normalised split R-hat: the larger of its values for the draws and the folded draws. For a single
            chain its two halves are compared.
        ess_bulk: ESS of the rank-normalised draws.
        stuck: whether there is a chain in which the parameter never moves: its R-hat is infinite, its ESS 0.
        mean_error: standard error of the mean: sd / sqrt(ESS of the draws).
        sd_error: of the sd, by the delta method: s / (2 sd sqrt(ESS of the squared deviations)) with the sd s of the
            squared deviations (sd / sqrt(2 ESS) if the draws are Gaussian). Both errors are infinite where the
            parameter never moved.
    """

    r_hat: Float[np.ndarray, " k"]
    ess_bulk: Float[np.ndarray, " k"]
    stuck: Bool[np.ndarray, " k"]
    mean_error: Float[np.ndarray, " k"]
    sd_error: Float[np.ndarray, " k"]


def per_parameter(arrays: Iterable[np.ndarray]) -> PerParameter:
    """Of the parameters of arrays (chain, draw, k), one after the other, in the memory of some parameters at a time.

    All but ``stuck`` is nan with fewer than 4 draws a chain and for a parameter with a nan, R-hat also where a single
    chain has fewer than 8. What is found of a thinned chain is for the kept draws: of its ESS a lower bound for all of
    them (Geyer 1992), of its errors an upper one.
    """
    parts = []
    for array in arrays:
        n_chains, n_draws, size = array.shape
        columns = max(VALUES // max(n_chains * n_draws, 1), 1)
        parts += [_of_columns(array[..., start : start + columns]) for start in range(0, size, columns)]
    return PerParameter(*(np.concatenate(values) for values in zip(*parts, strict=True)))


def _of_columns(draws: Float[np.ndarray, "chain draw k"]) -> PerParameter:
    n_chains, n_draws, size = draws.shape
    # Sorts, sums and transforms run along contiguous memory.
    x = np.ascontiguousarray(np.moveaxis(draws, -1, 0), np.float64)
    stuck = np.all(x == x[..., :1], axis=-1).any(axis=-1) & (n_draws > 0)
    if n_draws < FEWEST_DRAWS:
        r_hat, bulk, mean_error, sd_error = np.full((4, size), np.nan)
        return PerParameter(r_hat, bulk, stuck, mean_error, sd_error)
    halves = halves_of(x)
    r_hat = _r_hat(halves if n_chains > 1 else halves_of(halves))
    bulk = effective_of(_normal_scores(halves))
    squares = np.square(x - x.mean(axis=(1, 2), keepdims=True))
    sd = np.sqrt(squares.mean(axis=(1, 2)))
    with np.errstate(divide="ignore", invalid="ignore"):
        mean_error = sd / np.sqrt(effective_of(halves))
        sd_error = squares.std(axis=(1, 2)) / (2 * sd * np.sqrt(effective_of(halves_of(squares))))
    # For a constant chain the formulas give an arbitrary R-hat, and the ESS of independent draws.
    found = [np.where(stuck, np.inf, r_hat), np.where(stuck, 0, bulk)]
    found += [np.where(sd == 0, np.inf, error) for error in (mean_error, sd_error)]
    broken = np.isnan(x).any(axis=(1, 2))
    r_hat, bulk, mean_error, sd_error = (np.where(broken, np.nan, values) for values in found)
    return PerParameter(r_hat, bulk, stuck, mean_error, sd_error)


def _normal_scores(chains: Float[np.ndarray, "k chain draw"]) -> Float[np.ndarray, "k chain draw"]:
    """z = Phi^-1((r - 3/8) / (S + 1/4)) with the ranks r among all S draws (eq. 14)."""
    pooled = chains.reshape(len(chains), -1)
    return ndtri((rankdata(pooled, axis=1) - 3 / 8) / (pooled.shape[1] + 1 / 4)).reshape(chains.shape)


def _r_hat(chains: Float[np.ndarray, "k chain draw"]) -> Float[np.ndarray, " k"]:
    """The larger R-hat, sqrt((B / W + n - 1) / n) with n times the variance B of the chains' means and their mean
    variance W (eq. 4), of the normal scores of x and of |x - median|."""
    n = chains.shape[-1]
    if n < FEWEST_DRAWS // 2:
        return np.full(len(chains), np.nan)
    folded = np.abs(chains - np.median(chains, axis=(1, 2), keepdims=True))
    found = []
    for scores in (_normal_scores(chains), _normal_scores(folded)):
        between = n * scores.mean(axis=-1).var(axis=-1, ddof=1)
        within = scores.var(axis=-1, ddof=1).mean(axis=-1)
        # Constant chains at different values have an infinite R-hat; at the same value it is nan.
        with np.errstate(divide="ignore", invalid="ignore"):
            found.append(np.sqrt((between / within + n - 1) / n))
    # The folded R-hat of draws with two values is nan.
    return np.where(found[1] > found[0], found[1], found[0])
