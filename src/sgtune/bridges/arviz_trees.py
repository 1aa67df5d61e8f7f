"""Chains for ArviZ: an `InferenceData` on ArviZ below 1, an `xarray.DataTree` from 1 on."""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Float, PyTree

from sgtune.model import Model
from sgtune.model.derived import weight_of
from sgtune.model.positions import from_matrix
from sgtune.model.posterior import Density, density_of
from sgtune.model.rows import StoredRows
from sgtune.support.errors import InputError, check_integer, import_extra

if TYPE_CHECKING:
    from arviz import InferenceData
    from xarray import DataTree

__all__ = ["constrained", "to_arviz", "unconstrained"]

MOST_BYTES = 2 * 2**30
"""The log-likelihood of every row at every draw may take this much memory."""


def constrained(model: Model, draws: Float[np.ndarray, "n D"]) -> dict[str, np.ndarray]:
    """Flat draws of ``model`` in the user's own terms, by name: ``(n, ...)`` arrays.

    They are what ``model.constrain`` says of each; without it, the leaves of the positions, named by their paths.
    """
    if model.constrain is None:
        leaves = jax.tree_util.tree_flatten_with_path(from_matrix(model, draws))[0]
        named = {
            jax.tree_util.keystr(path, simple=True, separator=".") or "position": leaf
            for path, leaf in leaves
        }
    else:
        positions = jax.tree.map(jnp.asarray, from_matrix(model, draws))
        named = _constrained(model.constrain, positions, model.data)
    return {name: np.asarray(values) for name, values in named.items()}


@partial(jax.jit, static_argnums=0)
def _constrained(constrain: Callable, positions: PyTree, data: PyTree) -> dict[str, jax.Array]:
    # One draw after the other: what is computed from all data for one of them may be large.
    return jax.lax.map(lambda position: constrain(position, data), positions)


def unconstrained(model: Model, values: Mapping[str, ArrayLike]) -> PyTree:
    """Positions of ``model``, which has an ``unconstrain``, from draws in the user's own terms, by name: the inverse of
    `constrained`. The leading axes, one or two, are kept; names that the model does not know are left out.

    Raises:
        InputError: a value is missing, or shapes do not fit.
    """
    shapes = jax.eval_shape(model.constrain, model.position_shape, model.data)
    given = {name: np.asarray(values[name]) for name in shapes if name in values}
    leading = set()
    for name, array in given.items():
        n_leading = array.ndim - len(shapes[name].shape)
        fits = n_leading in (1, 2) and array.shape[n_leading:] == shapes[name].shape
        leading.add(array.shape[:n_leading] if fits else ())
    if len(leading) != 1 or leading == {()}:
        raise InputError(
            f"draws: shapes { {name: np.shape(array) for name, array in values.items()} } are not allowed; "
            f"{model.name!r} needs { {name: leaf.shape for name, leaf in shapes.items()} } with one or two leading axes"
        )
    (lead,) = leading
    flat = {
        name: jnp.asarray(array.reshape(-1, *shapes[name].shape), shapes[name].dtype)
        for name, array in given.items()
    }
    try:
        positions = _unconstrained(model.unconstrain, flat)
    except KeyError as error:
        raise InputError(f"draws: {error} is missing; {model.name!r} needs its values") from None
    return jax.tree.map(lambda leaf: np.asarray(leaf).reshape(*lead, *leaf.shape[1:]), positions)


@partial(jax.jit, static_argnums=0)
def _unconstrained(unconstrain: Callable, values: dict[str, jax.Array]) -> PyTree:
    return jax.lax.map(unconstrain, values)


@jax.jit
def _log_densities(density: Density, positions: PyTree, data: PyTree) -> tuple[jax.Array, jax.Array]:
    def of_one(position):
        return density.log_prior(position), density.log_likelihood(position, data)

    return jax.lax.map(of_one, positions)


def to_arviz(
    chains: Sequence[Any], *, log_likelihood: bool = False, tuning: Any = None, kept_draws: int | None = None
) -> "InferenceData | DataTree":
    """Chains of one model as groups of ArviZ.

    * ``posterior``: `constrained` draws, ``(chain, draw, ...)``. Chains of different lengths give their last draws, as
      many as the shortest has.
    * ``sample_stats``: ``step_size`` and ``diverging`` (whether a draw is not finite), ``acceptance_rate`` of the whole
      chain if the sampler has a Metropolis test, and ``lp``, the log density up to a constant, with ``log_likelihood``.
    * ``log_likelihood``, on request: ``(chain, draw, row)``, rows in the order of the data as they were given. It takes
      one pass over all data for each draw. Those of a tempered model are of its data at temperature 1.

    The attributes of the posterior have the sampler, its hyperparameters and the warnings, and ``tuning``, the record
    of a `sgtune.TuningResult` as JSON.

    Args:
        chains: one or more `sgtune.Chain`, with as many draws as ArviZ shall have.
        log_likelihood: whether to compute it.
        tuning: the `sgtune.TuningResult` that chose the hyperparameters.
        kept_draws: so many of each chain, evenly spaced; None: all.

    Raises:
        InputError: ArviZ is not installed, there is no chain, chains differ in their model, or the log-likelihood would
            take more than 2 GB, or is of the rows of a `sgtune.RowSource`.
    """
    arviz = import_extra("arviz", "arviz")
    if not chains or len({id(chain.model) for chain in chains}) > 1:
        raise InputError(f"chains: {len(chains)} given; there must be at least one, and all of one model")
    model, n_kept = chains[0].model, min(len(chain.draws) for chain in chains)
    draws = np.stack([chain.draws[len(chain.draws) - n_kept :] for chain in chains])
    if kept_draws is not None and check_integer("kept_draws", kept_draws, at_least=1) < n_kept:
        draws = draws[:, np.arange(1, kept_draws + 1) * n_kept // kept_draws - 1]
        n_kept = kept_draws
    shape = draws.shape[:2]
    flat = draws.reshape(-1, draws.shape[-1])
    posterior = {
        # Sites of a network or of a scope have names like net/bias, which would be a group of the file.
        name.replace("/", "."): values.reshape(*shape, *values.shape[1:])
        for name, values in constrained(model, flat).items()
    }
    stats = {
        "step_size": [chain.arm["step_size"] for chain in chains],
        "acceptance_rate": [chain.statistics.get("acceptance_rate", np.nan) for chain in chains],
    }
    stats = {name: np.repeat(np.asarray(each)[:, None], n_kept, axis=1) for name, each in stats.items()}
    if np.isnan(stats["acceptance_rate"]).all():
        del stats["acceptance_rate"]
    groups = {"posterior": posterior, "sample_stats": {**stats, "diverging": ~np.isfinite(draws).all(axis=2)}}
    coords, dims = {}, {}
    if log_likelihood:
        if isinstance(model.data, StoredRows):
            raise InputError("log_likelihood: not allowed for the rows of a source; they are not in memory")
        n_bytes = 4 * len(flat) * model.n_data
        if n_bytes > MOST_BYTES:
            raise InputError(
                f"log_likelihood: {len(flat)} draws of N={model.n_data} rows are {n_bytes / 2**30:.1f} GB; at most "
                f"{MOST_BYTES / 2**30:.0f} are allowed: keep fewer draws (kept_draws)"
            )
        prior, rows = _log_densities(density_of(model), from_matrix(model, flat), model.data)
        rows = np.asarray(rows)
        groups["sample_stats"]["lp"] = (np.asarray(prior) + rows.sum(axis=1, dtype=np.float64)).reshape(shape)
        numbers = np.arange(model.n_data) if model.row_numbers is None else model.row_numbers
        order = np.argsort(numbers)
        # Dimensions are by names in all groups.
        name = "rows" if "rows" not in posterior else "log_likelihood"
        groups["log_likelihood"] = {name: (rows[:, order] / weight_of(model)).reshape(*shape, -1)}
        coords, dims = {"row": numbers[order]}, {name: ["row"]}
    attributes = _attributes(chains, tuning)
    if int(arviz.__version__.partition(".")[0]) < 1:
        result = arviz.from_dict(**groups, coords=coords, dims=dims)
    else:
        result = arviz.from_dict(groups, coords=coords, dims=dims)
    result["posterior"].attrs.update(attributes)
    return result


def _attributes(chains: Sequence[Any], tuning: Any) -> dict[str, str | int | float]:
    """Numbers and lines that a netCDF file can keep."""
    first = chains[0]
    # A preconditioner by its short form.
    arm = {
        name: repr(value) if name == "preconditioner" else np.asarray(value).item()
        for name, value in first.arm.items()
    }
    found = {
        "inference_library": "sgtune",
        "model": first.model.name,
        "sampler": first.sampler,
        **arm,
        "stride": first.stride,
        "n_samples": sum(chain.n_samples for chain in chains),
        "sampling_time": sum(chain.seconds for chain in chains),
        "warnings": "\n".join(dict.fromkeys(line for chain in chains for line in chain.warnings)),
    }
    return found if tuning is None else {**found, "tuning": json.dumps(tuning.to_dict())}
