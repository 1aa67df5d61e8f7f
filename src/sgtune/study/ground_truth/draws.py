"""Draws of a reference sampler as ArviZ InferenceData: made, joined, summed up, written, read."""

import json
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float

from sgtune.errors import DataError, InputError
from sgtune.files import atomic_write
from sgtune.model import Model

if TYPE_CHECKING:
    from arviz import InferenceData

__all__ = [
    "Moments",
    "add_draws",
    "arviz_module",
    "combine_chains",
    "flat_draws",
    "read_draws",
    "summary",
    "to_inference_data",
    "variables_of",
    "write_draws",
]

# The variable of a position that is one array.
FLAT = "theta"
# Parameters at a time: float64 copies of all draws of a large model would fill the memory.
COLUMNS = 1_000
# Attributes of a chain that add up over chains.
ADDITIVE = ("seconds", "warmup_leapfrogs")


class Moments(NamedTuple):
    """Of all draws of a chain, kept or not: their number, mean and sum of squared deviations."""

    n: int
    mean: Float[np.ndarray, " D"]
    squares: Float[np.ndarray, " D"]


def add_draws(moments: Moments | None, draws: Float[np.ndarray, "n D"]) -> Moments:
    """``moments`` (None: of no draws) joined with those of a block of draws (Chan, Golub, LeVeque 1983)."""
    n, dimension = draws.shape
    mean, squares = np.empty(dimension), np.empty(dimension)
    for start in range(0, dimension, COLUMNS):
        columns = draws[:, start : start + COLUMNS].astype(np.float64)
        mean[start : start + COLUMNS] = columns.mean(axis=0)
        squares[start : start + COLUMNS] = columns.var(axis=0) * n
    if moments is None:
        return Moments(n, mean, squares)
    total, difference = moments.n + n, mean - moments.mean
    return Moments(
        total,
        moments.mean + difference * (n / total),
        moments.squares + squares + difference**2 * (moments.n * n / total),
    )


def arviz_module():
    """ArviZ: slow to load, and it announces its successor on every import."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        import arviz
    return arviz


def to_inference_data(
    model: Model,
    draws: Float[np.ndarray, "n D"],
    statistics: Mapping[str, np.ndarray],
    attributes: Mapping[str, Any],
    *,
    every: int = 1,
    moments: Moments | None = None,
) -> "InferenceData":
    """One chain of flat draws, one variable per leaf of the model's position: ``theta`` if it is one array.

    ``statistics``, one value per iteration, become the group ``sample_stats``; ``attributes`` those of the
    group ``posterior``, among which ``variables`` names the variables in the order of `ravel_pytree`.

    A thinned chain has the last of ``every`` draws; the coordinate ``draw`` numbers them as the iterations,
    so that ``idata.sel(draw=idata.posterior.draw)`` has the statistics of the kept draws alone. The
    ``moments`` of all its draws are ``posterior_mean`` and ``posterior_variance`` (divisor n) in
    ``sample_stats``: (chain, parameter), in the order of `ravel_pytree`.
    """
    paths, _ = jax.tree_util.tree_flatten_with_path(model.position_shape)
    variables, start = {}, 0
    for path, leaf in paths:
        name = jax.tree_util.keystr(path, simple=True, separator=".") or FLAT
        variables[name] = draws[None, :, start : start + leaf.size].reshape(1, len(draws), *leaf.shape)
        start += leaf.size
    idata = arviz_module().from_dict(
        posterior=variables,
        sample_stats={name: values[None] for name, values in statistics.items()},
        posterior_attrs={**attributes, "model": model.name, "variables": json.dumps(list(variables))},
    )
    if every > 1:
        idata.posterior = idata.posterior.assign_coords(draw=every * np.arange(1, len(draws) + 1) - 1)
    if moments is not None:
        both = {"posterior_mean": moments.mean, "posterior_variance": moments.squares / moments.n}
        idata.sample_stats = idata.sample_stats.assign(
            {name: (("chain", "parameter"), values[None]) for name, values in both.items()}
        )
    return idata


def combine_chains(chains: "Sequence[InferenceData]") -> "InferenceData":
    """Chains of one model, of the same number of draws, as one InferenceData; seconds and leapfrogs add up.

    Raises:
        InputError: no chains, or chains of different variables or numbers of draws.
    """
    if not chains:
        raise InputError("chains: none given; at least one is needed")
    sizes = [
        {
            (group, name): array.shape[1:]
            for group in ("posterior", "sample_stats")
            for name, array in chain[group].data_vars.items()
        }
        for chain in chains
    ]
    if any(size != sizes[0] for size in sizes):
        raise InputError(
            "chains: they differ in variables or in draws; all must come from one model and setting"
        )
    if len(chains) == 1:
        return chains[0]
    import xarray

    # Not by ArviZ, which joins them two by two: that needs the memory of one more copy of the draws.
    groups = {}
    for group in ("posterior", "sample_stats"):
        joined = xarray.concat([chain[group] for chain in chains], dim="chain", combine_attrs="override")
        groups[group] = joined.assign_coords(chain=np.arange(joined.sizes["chain"]))
    attributes = groups["posterior"].attrs
    for name in ADDITIVE:
        if name in attributes:
            attributes[name] = sum(chain.posterior.attrs[name] for chain in chains)
    return arviz_module().InferenceData(**groups)


def variables_of(idata: "InferenceData") -> dict[str, np.ndarray]:
    """Each variable as ``(chain, draw, size)``, in the order of `ravel_pytree`."""
    arrays = {name: idata.posterior[name].values for name in json.loads(idata.posterior.attrs["variables"])}
    return {name: array.reshape(*array.shape[:2], -1) for name, array in arrays.items()}


def flat_draws(idata: "InferenceData") -> Float[np.ndarray, "chain draw D"]:
    """The draws that are kept as flat positions in the order of `ravel_pytree`."""
    return np.concatenate(list(variables_of(idata).values()), axis=-1)


def summary(idata: "InferenceData") -> tuple[Float[np.ndarray, " D"], Float[np.ndarray, " D"]]:
    """Posterior mean and sd of each parameter over all draws of all chains, those not kept too.

    Float64, in the order of `ravel_pytree`.
    """
    if "posterior_mean" in idata.sample_stats:
        means = idata.sample_stats["posterior_mean"].values
        n = idata.sample_stats.sizes["draw"]
        squares = n * (
            idata.sample_stats["posterior_variance"].values.sum(0) + len(means) * means.var(axis=0)
        )
        return means.mean(axis=0), np.sqrt(squares / (n * len(means) - 1))
    means, sds = [], []
    for array in variables_of(idata).values():
        for start in range(0, array.shape[-1], COLUMNS):
            columns = array[..., start : start + COLUMNS].astype(np.float64)
            means.append(columns.mean(axis=(0, 1)))
            sds.append(columns.std(axis=(0, 1), ddof=1))
    return np.concatenate(means), np.concatenate(sds)


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
    arviz = arviz_module()
    try:
        with arviz.rc_context({"data.load": "eager"}):
            return arviz.from_netcdf(str(path), engine="h5netcdf")
    except (OSError, ValueError, KeyError) as error:
        raise DataError(f"{path}: not a readable NetCDF file ({' '.join(str(error).split())})") from None
