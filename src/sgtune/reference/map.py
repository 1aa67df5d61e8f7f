"""The mode of the posterior (MAP): where chains start and control variates are centred (paper Sect. 4)."""

import logging
import math
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from sgtune.errors import InputError, check_integer, check_number
from sgtune.models.base import Model
from sgtune.posterior import (
    LARGE_DIMENSION,
    Density,
    density_of,
    flatten,
    log_posterior,
    negative_hessian,
    scores,
)
from sgtune.randomness import named_key
from sgtune.reference.adam import descend
from sgtune.reference.kept import keep, read_kept

__all__ = ["MapResult", "find_map", "map_position", "map_result"]

PyTree = Any
logger = logging.getLogger(__name__)

# Steps without progress after which float32 gives no more.
PATIENCE = 30
NEAR = 0.2


class MapResult(NamedTuple):
    """Where `find_map` came to.

    Attributes:
        position: the mode, as a position of the model.
        gradient_norm: of the gradient of log pi over all data; float32 error at an exact mode.
        distance: length of the Newton step from here, in posterior sds; nan where D > 200 or no mode is near.
        steps: of the optimisers, Adam's minibatch steps included.
        negative_log_posterior: without the constants that the model leaves out.
    """

    position: PyTree
    gradient_norm: float
    distance: float
    steps: int
    negative_log_posterior: float


def find_map(
    model: Model, *, position: PyTree | None = None, tolerance: float = 1e-8, max_steps: int = 2000
) -> MapResult:
    """Minimise -log pi / N by L-BFGS (optax, zoom line search) from ``position``, else from ``model.init``.

    With D > 200 and no ``position``, Adam on minibatches (`sgtune.reference.adam`) goes ahead: L-BFGS from a
    random start would spend its steps, each over all data, where Adam passes at once.

    L-BFGS takes at most ``max_steps`` and stops when the norm of the gradient of -log pi / N is at most
    ``tolerance``, or when for 30 steps neither it has shrunk by 10% nor the value by one part in a million. The
    result is the step of the smallest gradient among those whose values float32 cannot tell from the lowest: a
    saddle on the way is none of them. With D > 200 it also stops where the gradient of -log pi is a fifth of
    sqrt(D) long: in coordinates with sds of at most 1, that of a draw is longer than sqrt(D).

    Raises:
        InputError: an argument is out of range, or log pi is not finite at the start.
    """
    tolerance = check_number("tolerance", tolerance, above=0)
    is_large = model.dimension > LARGE_DIMENSION
    max_steps = check_integer("max_steps", max_steps, at_least=1)
    density, n_data = density_of(model), model.n_data
    start = model.init(named_key(0, "map", model.name)) if position is None else position
    start, steps_before = descend(model, start) if is_large and position is None else (start, 0)
    position = jax.tree.map(jnp.asarray, start)
    state = _initial_state(position)
    best, best_value, best_norm = position, math.inf, math.inf
    near = NEAR * math.sqrt(model.dimension) / n_data if is_large else 0.0
    progress_value, progress_norm, last_progress = math.inf, math.inf, 0
    for step in range(1, max_steps + 1):
        position, state, value, norm = _step(density, position, state, model.data)
        value, norm = float(value), float(norm)
        if not (math.isfinite(value) and math.isfinite(norm)):
            break
        resolution = 4 * float(np.finfo(np.float32).eps) * abs(value)
        if value < best_value - resolution or (value <= best_value + resolution and norm < best_norm):
            best, best_value, best_norm = position, value, norm
        if value < progress_value - 1e-6 * abs(value) or norm < 0.9 * progress_norm:
            progress_value, progress_norm = min(value, progress_value), min(norm, progress_norm)
            last_progress = step
        if best_norm <= max(tolerance, near) or step - last_progress >= PATIENCE:
            break
    if not math.isfinite(best_value):
        raise InputError(
            f"position: the log posterior of model {model.name!r} is not finite where L-BFGS starts"
        )
    gradient = scores(model, flatten(best)[None], chunk=1)[0].astype(np.float64)
    result = MapResult(
        position=best,
        gradient_norm=float(np.linalg.norm(gradient)),
        distance=_distance(model, best, gradient),
        steps=steps_before + step,
        negative_log_posterior=best_value * n_data,
    )
    logger.info(
        "MAP of %s: -log pi %.6g, |gradient| %.3g, %.2g sd from the mode, %d steps",
        model.name,
        result.negative_log_posterior,
        result.gradient_norm,
        result.distance,
        result.steps,
    )
    return result


def _optimiser():
    import optax

    return optax.lbfgs()


@jax.jit
def _initial_state(position: PyTree) -> PyTree:
    # A weakly typed leaf would make the first step another program than the rest.
    return jax.tree.map(
        lambda leaf: jax.lax.convert_element_type(leaf, leaf.dtype), _optimiser().init(position)
    )


@partial(jax.jit, static_argnums=0)
def _step(density: Density, position: PyTree, state: PyTree, data: PyTree):
    """One step of L-BFGS, with the value of -log pi / N and the norm of its gradient after it."""
    import optax

    n_data = jax.tree.leaves(data)[0].shape[0]

    def objective(position):
        return -log_posterior(density, position, data) / n_data

    value, gradient = optax.value_and_grad_from_state(objective)(position, state=state)
    updates, state = _optimiser().update(
        gradient, state, position, value=value, grad=gradient, value_fn=objective
    )
    position = optax.apply_updates(position, updates)
    return position, state, optax.tree.get(state, "value"), optax.tree.norm(optax.tree.get(state, "grad"))


def _distance(model: Model, position: PyTree, gradient: np.ndarray) -> float:
    """sqrt(g' H^-1 g): the Newton step's length in the metric of the Laplace approximation."""
    if model.dimension > LARGE_DIMENSION:
        return math.nan
    try:
        half = np.linalg.cholesky(negative_hessian(model, position))
    except np.linalg.LinAlgError:
        return math.nan
    return float(np.linalg.norm(np.linalg.solve(half, gradient)))


def map_result(model: Model) -> MapResult:
    """`find_map` of the model, found once: kept in ``{model.data_dir}/{model.name}.map.npz`` and in memory.

    It is found anew when the data are others (by ``model.checksum``); delete the file when only the functions
    of the model have changed.
    """
    if "map" not in model.cache:
        model.cache["map"] = _kept_or_found(model)
    return model.cache["map"]


def _kept_or_found(model: Model) -> MapResult:
    kept = read_kept(model, "map")
    if kept is not None and kept.get("position", np.empty(0)).shape == (model.dimension,):
        numbers = {name: kept[name].item() for name in MapResult._fields if name != "position"}
        position = model.unravel(jnp.asarray(kept["position"]))
        value = jax.jit(log_posterior, static_argnums=0)(density_of(model), position, model.data)
        if math.isclose(-float(value), numbers["negative_log_posterior"], rel_tol=1e-4, abs_tol=0.1):
            return MapResult(position=position, **numbers)
        logger.warning("MAP of %s: kept one is of another log posterior, found anew", model.name)
    result = find_map(model)
    keep(model, "map", **{**result._asdict(), "position": flatten(result.position)})
    return result


def map_position(model: Model) -> PyTree:
    """The MAP as a position of the model; see `map_result`."""
    return map_result(model).position
