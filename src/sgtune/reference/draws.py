"""Draws of a reference sampler as ArviZ InferenceData: made, joined, judged, summed up, written, read."""

import json
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jaxtyping import Float

from sgtune.errors import DataError, InputError
from sgtune.files import atomic_write
from sgtune.models.base import Model

if TYPE_CHECKING:
    from arviz import InferenceData

__all__ = [
    "combine_chains",
    "diagnostics",
    "flat_draws",
    "read_draws",
    "summary",
    "to_inference_data",
    "write_draws",
]

# R-hat and ESS take milliseconds a parameter: of more parameters than this, evenly spaced ones are judged.
MOST_JUDGED = 1_000
# Attributes of a chain that add up over chains.
ADDITIVE = ("seconds", "warmup_leapfrogs")


def _arviz():
    # ArviZ is slow to load, and announces its successor on every import.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        import arviz
    return arviz


def to_inference_data(
    model: Model,
    draws: Float[np.ndarray, "n D"],
    statistics: Mapping[str, np.ndarray],
    attributes: Mapping[str, Any],
) -> "InferenceData":
    """One chain of flat draws, one variable per leaf of the model's position: ``theta`` if it is one array.

    ``statistics`` (n,) become the group ``sample_stats``; ``attributes`` those of the group ``posterior``,
    among which ``variables`` names the variables in the order of `ravel_pytree`.
    """
    paths, _ = jax.tree_util.tree_flatten_with_path(model.position_shape)
    variables, start = {}, 0
    for path, leaf in paths:
        name = jax.tree_util.keystr(path, simple=True, separator=".") or "theta"
        variables[name] = draws[None, :, start : start + leaf.size].reshape(1, len(draws), *leaf.shape)
        start += leaf.size
    return _arviz().from_dict(
        posterior=variables,
        sample_stats={name: values[None] for name, values in statistics.items()},
        posterior_attrs={**attributes, "model": model.name, "variables": json.dumps(list(variables))},
    )


def combine_chains(chains: "Sequence[InferenceData]") -> "InferenceData":
    """Chains of one model, of the same number of draws, as one InferenceData; seconds and leapfrogs add up.

    Raises:
        InputError: no chains, or chains of different variables or numbers of draws.
    """
    if not chains:
        raise InputError("chains: none given; at least one is needed")
    sizes = [{name: array.shape[1:] for name, array in chain.posterior.data_vars.items()} for chain in chains]
    if any(size != sizes[0] for size in sizes):
        raise InputError(
            "chains: they differ in variables or in draws; all must come from one model and setting"
        )
    if len(chains) == 1:
        return chains[0]
    joined = _arviz().concat(*chains, dim="chain")
    attributes = dict(chains[0].posterior.attrs)
    for name in ADDITIVE:
        if name in attributes:
            attributes[name] = sum(chain.posterior.attrs[name] for chain in chains)
    joined.posterior.attrs = attributes
    return joined


def _variables(idata: "InferenceData") -> list[np.ndarray]:
    """Each variable as ``(chain, draw, size)``, in the order of `ravel_pytree`."""
    arrays = [idata.posterior[name].values for name in json.loads(idata.posterior.attrs["variables"])]
    return [array.reshape(*array.shape[:2], -1) for array in arrays]


def flat_draws(idata: "InferenceData") -> Float[np.ndarray, "chain draw D"]:
    """The draws as flat positions in the order of `ravel_pytree`."""
    return np.concatenate(_variables(idata), axis=-1)


def summary(idata: "InferenceData") -> tuple[Float[np.ndarray, " D"], Float[np.ndarray, " D"]]:
    """Posterior mean and sd of each parameter over all chains: float64, in the order of `ravel_pytree`."""
    means, sds = [], []
    for array in _variables(idata):
        # In columns, for a float64 copy of all draws of a network would fill the memory.
        for start in range(0, array.shape[-1], 4_096):
            columns = array[..., start : start + 4_096].astype(np.float64)
            means.append(columns.mean(axis=(0, 1)))
            sds.append(columns.std(axis=(0, 1), ddof=1))
    return np.concatenate(means), np.concatenate(sds)


def diagnostics(idata: "InferenceData") -> dict[str, float | int]:
    """What tells whether the draws can be trusted, the worst over the parameters.

    ``r_hat`` is the rank-normalised split R-hat of Vehtari et al. (2021); a single chain is compared half
    against half. ``ess_bulk`` and ``ess_tail`` are theirs too. Leapfrogs are those after the warm-up;
    ``seconds`` are those of all chains, warm-up and compilation included.
    """
    arviz = _arviz()
    draws = flat_draws(idata)
    n_chains, n_draws, dimension = draws.shape
    judged = np.unique(np.linspace(0, dimension - 1, min(dimension, MOST_JUDGED)).astype(int))
    draws = draws[..., judged]
    whole = arviz.convert_to_dataset({"x": draws})
    half = n_draws // 2
    halves = arviz.convert_to_dataset({"x": np.concatenate([draws[:, :half], draws[:, -half:]])})
    leapfrogs = idata.sample_stats["n_steps"].values
    return {
        "r_hat": float(arviz.rhat(halves if n_chains == 1 else whole)["x"].max()),
        "ess_bulk": float(arviz.ess(whole, method="bulk")["x"].min()),
        "ess_tail": float(arviz.ess(whole, method="tail")["x"].min()),
        "parameters_judged": len(judged),
        "divergences": int(idata.sample_stats["diverging"].values.sum()),
        "leapfrogs": int(leapfrogs.sum()),
        "leapfrogs_per_draw": float(leapfrogs.mean()),
        "chains": n_chains,
        "draws": n_draws,
        "seconds": float(idata.posterior.attrs.get("seconds", np.nan)),
    }


def write_draws(path: str | Path, idata: "InferenceData") -> None:
    """``idata`` as NetCDF, atomically."""
    with atomic_write(path) as temporary:
        idata.to_netcdf(str(temporary), engine="h5netcdf")


def read_draws(path: str | Path) -> "InferenceData":
    """What `write_draws` wrote, in memory.

    Raises:
        DataError: the file is missing or not readable.
    """
    if not Path(path).is_file():
        raise DataError(f"{path}: the file is missing")
    arviz = _arviz()
    try:
        with arviz.rc_context({"data.load": "eager"}):
            return arviz.from_netcdf(str(path), engine="h5netcdf")
    except (OSError, ValueError, KeyError) as error:
        raise DataError(f"{path}: not a readable NetCDF file ({' '.join(str(error).split())})") from None
