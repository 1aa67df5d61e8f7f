"""Draws of a reference sampler as ArviZ InferenceData: conversion, joined chains, moments, files."""

import errno
import json
import os
import shutil
import warnings
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float

from sgtune.model import Model
from sgtune.model.posterior import LARGE_DIMENSION
from sgtune.support.errors import DataError, InputError
from sgtune.support.files import atomic_write

if TYPE_CHECKING:
    from arviz import InferenceData

OVERHEAD = 2**17
"""More bytes than a NetCDF file has besides its arrays."""

# The variable of a position that is one array.
FLAT = "theta"
# Attributes that are summed over chains.
ADDITIVE = {"seconds", "warmup_leapfrogs"}


class Moments(NamedTuple):
    """The moments of all draws of a chain, also of those that thinning discards.

    Attributes:
        n: the number of draws.
        mean: their mean.
        squares: the sum of squared deviations from it.
        products: the sum of outer products of the deviations, whose diagonal is ``squares``; None where D > 200.
    """

    n: int
    mean: Float[np.ndarray, " D"]
    squares: Float[np.ndarray, " D"]
    products: Float[np.ndarray, "D D"] | None = None


def add_draws(moments: Moments | None, draws: Float[np.ndarray, "n D"]) -> Moments:
    """``moments`` updated by a block of draws (Chan, Golub and LeVeque 1983); None stands for no draws so far."""
    draws, (n, dimension) = draws.astype(np.float64), draws.shape
    mean, squares, products = draws.mean(axis=0), draws.var(axis=0) * n, None
    if dimension <= LARGE_DIMENSION:
        deviations = draws - mean
        products = deviations.T @ deviations
    if moments is None:
        return Moments(n, mean, squares, products)
    total, difference = moments.n + n, mean - moments.mean
    weight = moments.n * n / total
    if products is not None:
        products = moments.products + products + weight * np.outer(difference, difference)
    mean = moments.mean + difference * (n / total)
    return Moments(total, mean, moments.squares + squares + weight * difference**2, products)


def arviz_module():
    """ArviZ, imported late because it loads slowly, without the warning that it issues on every import."""
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
    moments: Moments,
    every: int = 1,
    functionals: tuple[Float[np.ndarray, "m K"], Moments] | None = None,
) -> "InferenceData":
    """One chain of flat draws as InferenceData.

    Each leaf of the model's position is a variable of the group ``posterior``; a position of one array is ``theta``.
    The group's attributes are ``attributes``, and ``variables``, the names in the order of `ravel_pytree`. A thinned
    chain keeps the last of every ``every`` draws. The coordinate ``draw`` is the number of the iteration.

    The group ``sample_stats`` has the ``statistics``, one value per iteration, and the ``moments`` of all draws:
    ``posterior_mean`` and ``posterior_variance`` (divisor n), both (chain, parameter) in the order of
    `ravel_pytree`, and where D <= 200 ``posterior_covariance``.

    ``functionals`` are the values at every draw and their moments. They are ``functionals`` (chain, draw, functional)
    in ``sample_stats``, in float32, and ``functionals_mean`` and ``functionals_variance`` (chain, functional).
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
    idata.posterior = idata.posterior.assign_coords(draw=every * np.arange(1, len(draws) + 1) - 1)
    arrays, all_moments = {}, [("posterior", "parameter", moments)]
    if functionals is not None:
        values, their_moments = functionals
        arrays["functionals"] = (("chain", "draw", "functional"), values[None].astype(np.float32))
        all_moments.append(("functionals", "functional", their_moments._replace(products=None)))
    for of, axis, found in all_moments:
        arrays[f"{of}_mean"] = (("chain", axis), found.mean[None])
        arrays[f"{of}_variance"] = (("chain", axis), found.squares[None] / found.n)
        if found.products is not None:
            arrays[f"{of}_covariance"] = (("chain", axis, f"{axis}_2"), found.products[None] / found.n)
    idata.sample_stats = idata.sample_stats.assign(arrays)
    return idata


def combine_chains(chains: "Sequence[InferenceData]") -> "InferenceData":
    """Chains of one model with the same number of draws as one InferenceData.

    Seconds and leapfrogs are summed.
    """
    about = {
        (
            *(chain.posterior.attrs[name] for name in ("model", "variables")),
            chain.sample_stats.sizes["draw"],
            tuple(chain.posterior["draw"].values),
        )
        for chain in chains
    }
    if len(about) > 1:
        raise InputError(
            "chains: they differ in variables or in draws; all must have the same model and settings"
        )
    if len(chains) == 1:
        return chains[0]
    import xarray

    # ArviZ would join them pair by pair, which needs the memory of one more copy of the draws.
    groups = {}
    for group in ("posterior", "sample_stats"):
        joined = xarray.concat([chain[group] for chain in chains], dim="chain", combine_attrs="override")
        groups[group] = joined.assign_coords(chain=np.arange(len(chains)))
    attributes = groups["posterior"].attrs
    for name in ADDITIVE & attributes.keys():
        attributes[name] = sum(chain.posterior.attrs[name] for chain in chains)
    return arviz_module().InferenceData(**groups)


def variables_of(idata: "InferenceData") -> dict[str, np.ndarray]:
    """Each variable as ``(chain, draw, size)``, in the order of `ravel_pytree`."""
    arrays = {name: idata.posterior[name].values for name in json.loads(idata.posterior.attrs["variables"])}
    return {name: array.reshape(*array.shape[:2], prod(array.shape[2:])) for name, array in arrays.items()}


def flat_draws(idata: "InferenceData") -> Float[np.ndarray, "chain draw D"]:
    """The kept draws as flat positions, in the order of `ravel_pytree`."""
    return np.concatenate(list(variables_of(idata).values()), axis=-1)


def functionals_of(idata: "InferenceData") -> Float[np.ndarray, "chain draw K"] | None:
    """The model's functionals at every draw, or None if they are the position itself."""
    return idata.sample_stats["functionals"].values if "functionals" in idata.sample_stats else None


def summary(
    idata: "InferenceData", of: str = "posterior"
) -> tuple[Float[np.ndarray, " D"], Float[np.ndarray, " D"]]:
    """Mean and sd of each parameter over all draws of all chains, also of those that thinning discards.

    With ``of`` "functionals", the mean and sd of each functional. Float64, in the order of `ravel_pytree`.
    """
    statistics = idata.sample_stats
    means, n = statistics[f"{of}_mean"].values, statistics.sizes["draw"]
    squares = n * (statistics[f"{of}_variance"].values.sum(axis=0) + len(means) * means.var(axis=0))
    return means.mean(axis=0), np.sqrt(squares / (n * len(means) - 1))


def covariance(idata: "InferenceData") -> Float[np.ndarray, "D D"] | None:
    """The posterior covariance, whose diagonal is the square of the sds of `summary`.

    None where D > 200, and where it is not positive definite because there are too few different draws.
    """
    statistics = idata.sample_stats
    if "posterior_covariance" not in statistics:
        return None
    means, n = statistics["posterior_mean"].values, statistics.sizes["draw"]
    apart = means - means.mean(axis=0)
    products = n * (statistics["posterior_covariance"].values.sum(axis=0) + apart.T @ apart)
    found = products / (n * len(means) - 1)
    values = np.linalg.eigvalsh(found)
    return found if values[0] > len(values) * np.finfo(np.float64).eps * values[-1] else None


def write_draws(path: str | Path, idata: "InferenceData") -> None:
    """``idata`` as NetCDF, atomically."""
    n_bytes = sum(idata[group].nbytes for group in idata.groups())
    with atomic_write(path) as temporary:
        # HDF5 may crash its process on a full disk.
        if shutil.disk_usage(temporary.parent).free < n_bytes + OVERHEAD:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        idata.to_netcdf(str(temporary), engine="h5netcdf")


def read_draws(path: str | Path) -> "InferenceData":
    """What `write_draws` wrote, in memory; a DataError if the file is missing or not readable."""
    arviz = arviz_module()
    try:
        with arviz.rc_context({"data.load": "eager"}):
            return arviz.from_netcdf(str(path), engine="h5netcdf")
    except (OSError, ValueError, LookupError, RuntimeError, TypeError, AttributeError) as error:
        raise DataError(f"{path}: not a readable NetCDF file ({' '.join(str(error).split())})") from None
