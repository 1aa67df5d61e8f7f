"""Whether the draws of a reference sampler can be trusted: as a whole, and block by block of the position."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from sgtune.study.ground_truth import R_HAT_TRUSTED
from sgtune.study.ground_truth.draws import FLAT, summary, variables_of
from sgtune.study.ground_truth.effective import FEWEST_DRAWS, r_hat, r_hat_and_ess

if TYPE_CHECKING:
    from arviz import InferenceData

__all__ = ["R_HAT_TRUSTED", "Convergence", "by_block", "convergence", "diagnostics"]

# Draws at a time, of some parameters: what is made of so few stays in the cache, twelve times as many in float64.
VALUES = 2**16


class Convergence(NamedTuple):
    """R-hat and effective sample sizes of all parameters in the order of `ravel_pytree`, by `convergence`.

    Attributes:
        stuck: whether there is a chain in which the parameter never moves: its R-hat is infinite, its ESS 0.
    """

    r_hat: Float[np.ndarray, " D"]
    ess_bulk: Float[np.ndarray, " D"]
    ess_tail: Float[np.ndarray, " D"]
    stuck: Bool[np.ndarray, " D"]


def convergence(idata: "InferenceData") -> Convergence:
    """Rank-normalised split R-hat, bulk and tail ESS of Vehtari et al. (2021) of the draws kept.

    A single chain is compared half against half. The ESS of a thinned chain is that of the draws kept, a
    lower bound for all of them (Geyer 1992). All are nan with fewer than 4 draws a chain, R-hat also where
    a single chain has fewer than 8.
    """
    parts = []
    for array in variables_of(idata).values():
        n_chains, n_draws, size = array.shape
        columns = max(VALUES // (n_chains * n_draws), 1)
        parts += [_of_columns(array[..., start : start + columns]) for start in range(0, size, columns)]
    return Convergence(*(np.concatenate(values) for values in zip(*parts, strict=True)))


def _of_columns(draws: Float[np.ndarray, "chain draw k"]) -> tuple[np.ndarray, ...]:
    n_chains, n_draws, _ = draws.shape
    stuck = np.all(draws == draws[:, :1], axis=1).any(axis=0)
    if n_draws < FEWEST_DRAWS:
        return (*np.full((3, len(stuck)), np.nan), stuck)
    r_hats, bulk, tail = r_hat_and_ess(draws)
    if n_chains == 1:
        half = n_draws // 2
        r_hats = r_hat(np.concatenate([draws[:, :half], draws[:, -half:]]))
    # By the formulas what never moves may have any R-hat, and counts as independent draws.
    return np.where(stuck, np.inf, r_hats), np.where(stuck, 0, bulk), np.where(stuck, 0, tail), stuck


def diagnostics(
    idata: "InferenceData", checked: Convergence | None = None
) -> dict[str, float | int | list[float]]:
    """What tells whether the draws can be trusted; R-hat and ESS are the worst over the parameters.

    ``checked`` is the `convergence` of the draws, if it is known already: R-hat and ESS are those of the
    ``draws_kept``. Leapfrogs, divergences, the share of trajectories that reach the greatest tree depth and
    the energies' Bayesian fraction of missing information, by chain (Betancourt 2016), are those of all
    ``draws`` a chain after the warm-up. ``seconds`` are all chains', warm-up and compilation included.
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
        "seconds": float(idata.posterior.attrs.get("seconds", np.nan)),
    }


def by_block(idata: "InferenceData", checked: Convergence | None = None) -> dict[str, dict[str, float | int]]:
    """How each top-level key of the position was sampled; one array is one block under the model's name.

    ``n`` is the number of parameters, ``sd`` the root mean square of their posterior sds, the rest is bulk
    ESS and R-hat over them. ``checked`` is the `convergence` of the draws, if it is known already.
    """
    checked = convergence(idata) if checked is None else checked
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
            "r_hat_max": float(checked.r_hat[own].max()),
            "r_hat_median": float(np.median(checked.r_hat[own])),
            "ess_min": float(checked.ess_bulk[own].min()),
            "ess_median": float(np.median(checked.ess_bulk[own])),
        }
    return blocks
