"""Whether the draws of a reference sampler can be trusted: as a whole, and block by block of the position."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from sgtune.study.ground_truth.accuracy import StandardErrors, columns_of, relative_error, standard_errors
from sgtune.study.ground_truth.draws import FLAT, functionals_of, summary, variables_of
from sgtune.study.ground_truth.effective import FEWEST_DRAWS, r_hat, r_hat_and_ess

if TYPE_CHECKING:
    from arviz import InferenceData

__all__ = ["Convergence", "by_block", "convergence", "diagnostics", "of_functionals"]


class Convergence(NamedTuple):
    """R-hat and effective sample sizes of all parameters in the order of `ravel_pytree`, by `convergence`.

    Attributes:
        stuck: whether there is a chain in which the parameter never moves: its R-hat is infinite, its ESS 0.
    """

    r_hat: Float[np.ndarray, " D"]
    ess_bulk: Float[np.ndarray, " D"]
    ess_tail: Float[np.ndarray, " D"]
    stuck: Bool[np.ndarray, " D"]


def convergence(arrays: "InferenceData | Iterable[np.ndarray]") -> Convergence:
    """Rank-normalised split R-hat, bulk and tail ESS of Vehtari et al. (2021) of the draws kept.

    Or of arrays (chain, draw, k) of draws, one after the other.

    For a single chain its two halves are compared. The ESS of a thinned chain is for the kept draws, a
    lower bound for all of them (Geyer 1992). All are nan with fewer than 4 draws a chain, R-hat also where
    a single chain has fewer than 8.
    """
    if hasattr(arrays, "posterior"):
        arrays = variables_of(arrays).values()
    parts = [_of_columns(draws) for draws in columns_of(arrays)]
    return Convergence(*(np.concatenate(values) for values in zip(*parts, strict=True)))


def _of_columns(draws: Float[np.ndarray, "chain draw k"]) -> tuple[np.ndarray, ...]:
    n_chains, n_draws, _ = draws.shape
    stuck = np.all(draws == draws[:, :1], axis=1).any(axis=0) & (n_draws > 0)
    if n_draws < FEWEST_DRAWS:
        return (*np.full((3, len(stuck)), np.nan), stuck)
    r_hats, bulk, tail = r_hat_and_ess(draws)
    if n_chains == 1:
        half = n_draws // 2
        r_hats = r_hat(np.concatenate([draws[:, :half], draws[:, -half:]]))
    # For a constant chain the formulas give an arbitrary R-hat, and the ESS of independent draws.
    return np.where(stuck, np.inf, r_hats), np.where(stuck, 0, bulk), np.where(stuck, 0, tail), stuck


def diagnostics(
    idata: "InferenceData", checked: Convergence | None = None
) -> dict[str, float | int | list[float]]:
    """Diagnostics of the draws; R-hat and ESS are the worst over the parameters.

    ``checked`` is the `convergence` of the draws, if the caller has it: R-hat and ESS are for the
    ``draws_kept``. Leapfrogs, divergences, the share of trajectories that reach the greatest tree depth and
    the energies' Bayesian fraction of missing information, by chain (Betancourt 2016), are for all
    ``draws`` of a chain after the warm-up. ``draws_lost`` counts the draws of all chains that are missing because a
    chain continued from a saved state. ``seconds`` sums over chains, including warm-up and compilation.
    """
    checked = convergence(idata) if checked is None else checked
    statistics = idata.sample_stats
    leapfrogs = statistics["n_steps"].values
    energy = statistics["energy"].values.astype(np.float64)
    n_chains, n_draws = leapfrogs.shape
    deepest = idata.posterior.attrs.get("max_tree_depth", 10)
    with np.errstate(divide="ignore", invalid="ignore"):
        e_bfmi = np.square(np.diff(energy, axis=1)).sum(axis=1) / (n_draws * energy.var(axis=1))
    return {
        "r_hat": float(checked.r_hat.max()),
        "ess_bulk": float(checked.ess_bulk.min()),
        "ess_tail": float(checked.ess_tail.min()),
        "n_parameters_checked": len(checked.r_hat),
        "n_parameters_stuck": int(checked.stuck.sum()),
        "divergences": int(statistics["diverging"].values.sum()),
        "max_tree_depth_share": float(np.mean(leapfrogs >= 2**deepest - 1)),
        "e_bfmi": e_bfmi.tolist(),
        "leapfrogs": int(leapfrogs.sum()),
        "leapfrogs_per_draw": float(leapfrogs.mean()),
        "chains": n_chains,
        "draws": n_draws,
        "draws_kept": idata.posterior.sizes["draw"],
        "draws_lost": int(idata.posterior.attrs.get("draws_lost", 0)),
        "seconds": float(idata.posterior.attrs.get("seconds", np.nan)),
    }


def by_block(
    idata: "InferenceData", checked: Convergence | None = None, errors: StandardErrors | None = None
) -> dict[str, dict[str, float | int]]:
    """How each top-level key of the position was sampled; one array is one block under the model's name.

    ``n`` is the number of parameters, ``sd`` the root mean square of their posterior sds, ``sd_error`` their
    Monte Carlo error (`relative_error`), the rest is bulk ESS and R-hat over them. ``checked`` and ``errors`` are
    the `convergence` and `standard_errors` of the draws, if they are known already.
    """
    checked = convergence(idata) if checked is None else checked
    errors = standard_errors(idata) if errors is None else errors
    variables = variables_of(idata)
    names = [idata.posterior.attrs["model"] if name == FLAT else name.split(".")[0] for name in variables]
    block_of = np.repeat(names, [array.shape[-1] for array in variables.values()])
    _, sds = summary(idata)
    blocks = {}
    for name in dict.fromkeys(names):
        own = block_of == name
        blocks[name] = {
            "n": int(own.sum()),
            "sd": float(np.sqrt(np.mean(np.square(sds[own])))),
            "sd_error": relative_error(errors.sd[own], sds[own]),
            **_over_all(checked.r_hat[own], checked.ess_bulk[own]),
        }
    return blocks


def of_functionals(
    idata: "InferenceData", checked: Convergence | None = None, errors: StandardErrors | None = None
) -> dict[str, float | int | np.ndarray]:
    """Diagnostics of the quantities that tuners are judged by, the model's functionals at every draw, as in `by_block`.

    ``mean`` and ``sd`` are those of each functional. The position is its own functionals where the model
    states none; mean and sd are then left out, and ``checked`` and ``errors`` are as there.
    """
    draws = functionals_of(idata)
    if draws is None:
        checked = convergence(idata) if checked is None else checked
        errors = standard_errors(idata) if errors is None else errors
        (_, sd), moments = summary(idata), {}
    else:
        checked, errors = convergence([draws]), standard_errors([draws])
        mean, sd = summary(idata, "functionals")
        moments = {"mean": mean, "sd": sd}
    sizes = {"n": len(sd), "sd_error": relative_error(errors.sd, sd)}
    return sizes | moments | _over_all(checked.r_hat, checked.ess_bulk)


def _over_all(r_hats: Float[np.ndarray, " k"], ess: Float[np.ndarray, " k"]) -> dict[str, float]:
    return {
        "r_hat_max": float(r_hats.max()),
        # The least R-hat that 99 % are at most: nothing between a number and infinity.
        "r_hat_p99": float(np.quantile(r_hats, 0.99, method="inverted_cdf")),
        "r_hat_median": float(np.median(r_hats)),
        "ess_min": float(ess.min()),
        "ess_median": float(np.median(ess)),
    }
