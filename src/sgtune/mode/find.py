"""The mode of the posterior (MAP): where chains start and control variates are centred (paper Sect. 4).

In small models Newton's method finds it, or L-BFGS where -log pi is not convex on the way. In large models Adam
descends to its neighbourhood on minibatches, and L-BFGS goes on in coordinates scaled by the diagonal of the Hessian.
The mode is saved beside the model's data, with their checksum.
"""

import json
import logging
import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, PyTree

from sgtune.model import Model
from sgtune.model.positions import check_position, flatten, unflatten
from sgtune.model.posterior import (
    LARGE_DIMENSION,
    Density,
    density_of,
    hessian_products,
    log_posterior,
    negative_hessian,
    scores,
    values_and_scores,
)
from sgtune.model.rows import named_faults, number_of_rows, take_rows
from sgtune.samplers.gradients import minibatch
from sgtune.support.errors import DataError, InputError, check_integer, check_number
from sgtune.support.files import atomic_write, read_npz
from sgtune.support.progress import progress_bar, tracked
from sgtune.support.randomness import named_key

__all__ = [
    "MOST_DEPARTURE",
    "N_DRAWS",
    "MapResult",
    "departure",
    "descend",
    "find_map",
    "hutchinson_diagonal",
    "keep",
    "map_position",
    "map_result",
    "read_kept",
]

logger = logging.getLogger(__name__)

# After this many steps without progress the limit of float32 is reached.
PATIENCE = 30

MEMORY = 30
"""Pairs that L-BFGS keeps: three times optax's default, for factorisations whose features collapse along curved
valleys."""

JITTER, MOST_HALVINGS = 2.0, 10
"""In a further start of the search, entries that `init` keeps constant, and up to 200 parameters all entries, are moved
by a uniform number of at most this size, as Stan starts chains, times the entry where that is above 1. Halved until the
log posterior is finite, and at last not moved. Draws of larger models' weights have scales that must not be left."""

CLEARLY_BETTER = 0.1
"""Nats, beside float32's resolution: of two starts that find one mode, the first one's result is the MAP."""

FIRST_ROWS = 256
"""A saved mode is identified by the log prior and the log-likelihoods of this many rows there."""

SMALLEST_GRADIENT = 1e-8
"""Of -log pi / N, in models of up to 200 parameters: a smaller gradient is below float32 noise."""

MOST_NEWTON_STEPS, FINEST, MOST_OF_NEWTON = 30, 1e-4, 10**9
"""Steps of Newton's method, the length in sds of its last one over sqrt(D), and the largest N D^2, which a Hessian
costs: its programs are those of the Laplace approximation and of checks, and L-BFGS needs the dearest of all."""

SHARES_OF_STEP = np.array([1.0, 1 / 4, 1 / 16, 1 / 64])
"""Of a Newton step, tried at once: the first that climbs is taken."""

MOST_DEPARTURE, N_DRAWS = 0.25, 4
"""Of scores from those of the Laplace approximation (`departure`), at so many of its draws, for it to be trusted where
no chain has been: on posteriors of users it was below 0.1 where theory chose as well as the best arm, and above 10 for
a hierarchy at its joint mode."""

MOST_PROBINGS, TINIEST = 4, 1e-30
"""Of `hutchinson_diagonal`."""

LEARNING_RATE, BATCH_SIZE, PIECES = 1e-2, 1_000, 50
"""Of Adam, whose progress is shown after each of so many pieces."""

EPOCHS, TOLERANCE, MAX_STEPS = 500, 0.01, 5_000
"""Of `find_map`."""


class MapResult(NamedTuple):
    """The result of `find_map`.

    Attributes:
        position: the mode, as a position of the model.
        gradient_norm: norm of the gradient of log pi over all data; at an exact mode this is float32 error.
        distance: length of the Newton step from the position, in posterior sds; with D > 200 by the Hessian's diagonal
            alone; nan if the Hessian shows that the position is not a mode.
        converged: whether ``distance`` is at most ``tolerance`` times sqrt(D), the typical distance of draws from the
            mode.
        steps: steps of the optimisers, including Adam's minibatch steps.
        negative_log_posterior: without the constants that the model leaves out.
    """

    position: PyTree
    gradient_norm: float
    distance: float
    converged: bool
    steps: int
    negative_log_posterior: float

    @property
    def doubt(self) -> str:
        """Why the position is not to be trusted as a mode; empty if it is. A mode may still be far from the posterior's
        mean, as the joint mode of a hierarchy is: `find_map` warns of it, and `sgtune.tune` makes a pilot run."""
        if math.isnan(self.distance):
            return "-log pi is not convex where the search ended"
        return "" if self.converged else f"the search ended {self.distance:.2g} posterior sds away"


@named_faults()
def find_map(
    model: Model,
    *,
    position: PyTree | None = None,
    epochs: int = EPOCHS,
    tolerance: float = TOLERANCE,
    max_steps: int = MAX_STEPS,
    n_starts: int = 1,
) -> MapResult:
    """Minimise -log pi from ``position``, or from ``model.init``: by Newton's method where D <= 200, N D^2 <= 10^9 and
    it converges, otherwise by L-BFGS (optax, zoom line search) from the same start.

    Newton steps are shortened until log pi grows, and taken until the next one is 10^-4 sqrt(D) posterior sds long, or
    does not halve any more. A search that meets a Hessian of -log pi that is not positive definite, or does not come
    within ``tolerance`` times sqrt(D) sds of a mode in 30 steps, is left to L-BFGS.

    With D > 200 and no ``position``, Adam runs first, on minibatches, for ``epochs`` passes over the data
    (`descend`): from a random start L-BFGS would need many steps over all data for the distance that Adam
    covers quickly. L-BFGS then works in coordinates scaled by the root of the Hessian's diagonal
    (`hutchinson_diagonal`, computed again after every round) until ``distance`` is ``tolerance`` times sqrt(D). It
    takes no step if its start, given or Adam's, is as near.

    L-BFGS takes at most ``max_steps``, which may be 0 with D > 200. It stops at the limit of float32: when the norm of
    the gradient of -log pi / N is 1e-8, or when for 30 steps neither the norm has fallen by 10% nor the value by one
    part in a million. With D <= 200 it stops only there. The result is the step with the smallest gradient among the
    steps whose values equal the lowest value within float32 precision; this excludes saddle points on the way. With
    D <= 200 Newton steps follow where L-BFGS got stuck before that, as on columns of very different scales.

    Up to D = 200 a line of the log warns of a mode that may be far from most of the posterior (`departure`).

    Args:
        n_starts: how many searches to make, each at the cost of one; the best of their modes is returned. The first
            starts where a single one does, further ones at other draws of ``model.init``, with all entries moved at
            random if D <= 200, and otherwise those that it keeps constant. 1 if ``position`` is given.

    Raises:
        InputError: an argument is out of range, the position is of another shape, or log pi is not finite at the start.
    """
    n_starts = check_integer("n_starts", n_starts, at_least=1, at_most=1 if position is not None else None)
    position = position if position is None else check_position("position", model, position)
    budget = {"epochs": epochs, "tolerance": tolerance, "max_steps": max_steps}
    results = [_search(model, position, **budget)]
    results += [_search_again(model, number, results[0], budget) for number in range(1, n_starts)]
    return best_of(results)


def best_of(results: Sequence[MapResult]) -> MapResult:
    """The one with the highest log posterior of those that are not in doubt, the first of equals; else the first."""
    proper = [result for result in results if not result.doubt] or results[:1]
    best = proper[0]
    for other in proper[1:]:
        rounding = 4 * float(np.finfo(np.float32).eps) * abs(best.negative_log_posterior)
        if other.negative_log_posterior < best.negative_log_posterior - CLEARLY_BETTER - rounding:
            best = other
    return best


def _search_again(model: Model, number: int, first: MapResult, budget: dict) -> MapResult:
    """The search from start ``number``; if log pi is not finite on its way, a result in doubt, at the position of
    ``first``, that of another search."""
    try:
        return _search(model, None, number, **budget)
    except InputError as error:
        logger.warning("MAP of %s, start %d: %s", model.name, number, error)
        return MapResult(first.position, math.nan, math.inf, False, 0, math.inf)


def _start(model: Model, number: int) -> PyTree:
    """Where search ``number`` starts."""
    first = model.init(named_key(0, "map", model.name))
    if number == 0:
        return first
    drawn = flatten(model.init(named_key(0, "map", model.name, number)))
    bits = np.asarray(jax.random.key_data(named_key(0, "map", model.name, number, "jitter")))
    moved = np.random.default_rng(bits).uniform(-JITTER, JITTER, drawn.shape) * np.maximum(1, np.abs(drawn))
    if model.dimension > LARGE_DIMENSION:
        moved = np.where(drawn == flatten(first), moved, 0)
    for share in (*0.5 ** np.arange(MOST_HALVINGS), 0):
        start = unflatten(model, (drawn + share * moved).astype(np.float32))
        if math.isfinite(_value(model, start)):
            break
    return start


def _value(model: Model, position: PyTree) -> float:
    """-log pi over all data."""
    if model.dimension <= LARGE_DIMENSION:
        return -float(values_and_scores(model, flatten(position)[None])[0][0])
    return -float(_log_posterior(density_of(model), position, model.data))


_log_posterior = jax.jit(log_posterior)


def _search(
    model: Model, position: PyTree | None, number: int = 0, *, epochs: int, tolerance: float, max_steps: int
) -> MapResult:
    """One search of `find_map`."""
    epochs = check_integer("epochs", epochs, at_least=1)
    tolerance = check_number("tolerance", tolerance, above=0, at_most=1)
    is_large = model.dimension > LARGE_DIMENSION
    max_steps = check_integer("max_steps", max_steps, at_least=0 if is_large else 1)
    near = tolerance * math.sqrt(model.dimension)
    start = _start(model, number) if position is None else position
    if not is_large:
        if model.n_data * model.dimension**2 <= MOST_OF_NEWTON:
            result, root = _newton(model, start, near, min(max_steps, MOST_NEWTON_STEPS))
            if result.converged:
                return _logged(model, result, root if number == 0 else None)
        start, ones = jax.tree.map(jnp.asarray, start), np.ones(model.dimension)
        found, _, steps, _ = _minimise(model, start, ones, SMALLEST_GRADIENT, max_steps)
        result, root = _newton(model, found, near, MOST_NEWTON_STEPS)
        return _logged(model, result._replace(steps=steps + result.steps), root if number == 0 else None)
    position, steps = descend(model, start, epochs=epochs) if position is None else (start, 0)
    position, value, most = jax.tree.map(jnp.asarray, position), math.inf, steps + max_steps
    sds, gradient, distance = _measured(model, position)
    finished = max_steps == 0 or distance <= near
    while not finished:
        found, lowest, taken, stuck = _minimise(model, position, sds, near / model.n_data, most - steps)
        steps += taken
        stuck = stuck or not lowest < value
        position, value = (found, lowest) if lowest <= value else (position, value)
        sds, gradient, distance = _measured(model, position)
        finished = stuck or distance <= near or steps >= most
    if math.isinf(value):
        value = _value(model, position) / model.n_data
        _check_start(model, value)
    result = MapResult(
        position=position,
        gradient_norm=float(np.linalg.norm(gradient)),
        distance=distance,
        converged=distance <= near,
        steps=steps,
        negative_log_posterior=value * model.n_data,
    )
    return _logged(model, result)


def _logged(model: Model, result: MapResult, root: Float[np.ndarray, "D D"] | None = None) -> MapResult:
    """The result, with a line of the log, and a warning if it has the mode and H^-1 = root root' misleads there."""
    logger.log(
        logging.INFO if result.converged else logging.WARNING,
        "MAP of %s: %s, -log pi %.6g, |gradient| %.3g, %.2g sd from the mode, %d steps",
        model.name,
        "converged" if result.converged else "NOT converged",
        *(result.negative_log_posterior, result.gradient_norm, result.distance, result.steps),
    )
    if root is None or not result.converged:
        return result
    if not (away := departure(model, flatten(result.position), root)) <= MOST_DEPARTURE:
        logger.warning(
            "MAP of %s: scores at draws of the Laplace approximation there differ from a Gaussian's by %.2g of these "
            "(trusted up to %g): the mode may be far from most of the posterior",
            *(model.name, away, MOST_DEPARTURE),
        )
    return result


def _newton(
    model: Model, position: PyTree, near: float, max_steps: int
) -> tuple[MapResult, Float[np.ndarray, "D D"] | None]:
    """The nearest to the mode of the positions that Newton steps with backtracking reach, until the next step is
    `FINEST` sqrt(D) posterior sds long, or within ``near`` it does not halve any more: the limit of float32.

    They end where -log pi is not convex (``distance`` is nan if it is not at the start), and where no step climbs. Also
    a root of the inverse Hessian there, None if there is none.
    """
    d = model.dimension
    row, best, root = flatten(position).astype(np.float64), None, None
    with ThreadPoolExecutor(1) as pool:
        # The programs of values and of Hessians are compiled side by side.
        started = pool.submit(negative_hessian, model, position)
        (value,), (gradient,) = values_and_scores(model, row[None])
    hessian = started.result()
    for steps in tracked(range(max_steps + 1), f"mode of {model.name}", "Newton steps"):
        norm = float(np.linalg.norm(gradient))
        try:
            half = np.linalg.cholesky(hessian)
        except np.linalg.LinAlgError:
            best = best or MapResult(unflatten(model, row), norm, math.nan, False, steps, -float(value))
            break
        step = np.linalg.solve(half, gradient.astype(np.float64))
        distance = float(np.linalg.norm(step))
        is_last = best is not None and best.distance <= near and not distance < best.distance / 2
        if best is None or not best.distance <= near or distance < best.distance:
            best = MapResult(unflatten(model, row), norm, distance, distance <= near, steps, -float(value))
            root = np.linalg.inv(half).T
        if is_last or distance <= FINEST * d**0.5:
            break
        step = np.linalg.solve(half.T, step)
        candidates = row + np.multiply.outer(SHARES_OF_STEP, step)
        values, gradients = values_and_scores(model, candidates)
        # Within float32's resolution of the value the step's length tells.
        resolution = 4 * float(np.finfo(np.float32).eps) * abs(float(value))
        climbs = np.isfinite(gradients).all(axis=1) & (values > value - resolution)
        if distance > near:
            climbs &= values > value + 1e-4 * SHARES_OF_STEP * distance**2 - resolution
        if not climbs.any():
            break
        place = int(np.argmax(climbs))
        row, value, gradient = candidates[place], values[place], gradients[place]
        hessian = negative_hessian(model, unflatten(model, row))
    return best, root


def departure(
    model: Model, mode: Float[np.ndarray, " D"] | None = None, root: Float[np.ndarray, "D D"] | None = None
) -> float:
    """How far a posterior is from its Laplace approximation, where z = root^-1 (theta - mode) would be N(0, I): the
    mean of |score(z) + z|^2 over that of |z|^2, at `N_DRAWS` draws z of N(0, I), with all rows. 0 for a Gaussian; not
    finite where a score is not. Without ``root`` the model is in these coordinates."""
    z = np.random.default_rng(0).standard_normal((N_DRAWS, model.dimension)).astype(np.float32)
    draws = z if root is None else (mode + z @ root.T).astype(np.float32)
    found = np.asarray(scores(model, draws), np.float64)
    found = found if root is None else found @ root
    return float(np.sum((found + z) ** 2) / np.sum(np.float64(z) ** 2))


def _measured(model: Model, position: PyTree) -> tuple[np.ndarray | None, np.ndarray, float]:
    """Sds from the Hessian's diagonal, None if no entry is positive; the gradient of log pi; and the length of their
    product: the Newton step in sds, nan without sds."""
    gradient = scores(model, flatten(position)[None])[0].astype(np.float64)
    try:
        sds = 1 / np.sqrt(hutchinson_diagonal(model, position))
    except InputError:
        return None, gradient, math.nan
    return sds, gradient, float(np.linalg.norm(sds * gradient))


def _minimise(
    model: Model, position: PyTree, sds: np.ndarray | None, goal: float, max_steps: int
) -> tuple[PyTree, float, int, bool]:
    """L-BFGS until the gradient times ``sds`` is ``goal`` long: position, value, steps, and whether it got stuck."""
    density = density_of(model)
    sds = np.ones(model.dimension) if sds is None else sds
    scale = model.unravel(jnp.asarray(sds, jnp.float32))
    state = _initial_state(position)
    best, best_value, best_norm = position, math.inf, math.inf
    progress_value, progress_norm, last_progress = math.inf, math.inf, 0
    stuck = False
    for step in tracked(range(1, max_steps + 1), f"mode of {model.name}", "steps"):
        position, state, value, norm = _step(density, position, scale, state, model.data)
        value, norm = float(value), float(norm)
        stuck = not (math.isfinite(value) and math.isfinite(norm))
        if stuck:
            break
        resolution = 4 * float(np.finfo(np.float32).eps) * abs(value)
        if value < best_value - resolution or (value <= best_value + resolution and norm < best_norm):
            best, best_value, best_norm = position, value, norm
        if value < progress_value - 1e-6 * abs(value) or norm < 0.9 * progress_norm:
            progress_value, progress_norm = min(value, progress_value), min(norm, progress_norm)
            last_progress = step
        stuck = step - last_progress >= PATIENCE
        if stuck or best_norm <= goal:
            break
    _check_start(model, best_value)
    return best, best_value, step, stuck


def _check_start(model: Model, value: float) -> None:
    if not math.isfinite(value):
        raise InputError(
            f"position: the log posterior of model {model.name!r} is not finite where L-BFGS starts: "
            "give another init, and data in the support of the likelihood"
        )


def _optimiser():
    import optax

    return optax.lbfgs(memory_size=MEMORY)


@jax.jit
def _initial_state(position: PyTree) -> PyTree:
    # A weakly typed leaf would make the first step compile a program of its own.
    return jax.tree.map(
        lambda leaf: jax.lax.convert_element_type(leaf, leaf.dtype), _optimiser().init(position)
    )


@jax.jit
def _step(density: Density, position: PyTree, scale: PyTree, state: PyTree, data: PyTree):
    """One step of L-BFGS in position / scale, with the value of -log pi / N and the norm of its gradient there."""
    import optax

    n_data = number_of_rows(data)

    def objective(scaled):
        return -log_posterior(density, jax.tree.map(jnp.multiply, scale, scaled), data) / n_data

    scaled = jax.tree.map(jnp.divide, position, scale)
    value, gradient = optax.value_and_grad_from_state(objective)(scaled, state=state)
    updates, state = _optimiser().update(
        gradient, state, scaled, value=value, grad=gradient, value_fn=objective
    )
    position = jax.tree.map(jnp.multiply, scale, optax.apply_updates(scaled, updates))
    return position, state, optax.tree.get(state, "value"), optax.tree.norm(optax.tree.get(state, "grad"))


@named_faults()
def map_result(model: Model, n_starts: int = 1, **budget: float) -> MapResult:
    """The result of `find_map`, computed once and saved in ``{model.data_dir}/{model.name}.map.npz`` and in memory.

    It is computed again if the data have changed (by ``model.checksum``), or the functions of the model have: their
    values at the mode, of the log prior and the first 256 rows' log-likelihoods, are compared. Each further start is
    searched from once in a process; if one finds a better mode, that is the MAP from then on. ``budget``: ``epochs``,
    ``tolerance`` and ``max_steps`` of `find_map`; if any is given, a mode that another process has saved with another
    budget, from the first start, is found again.
    """
    found = model.found
    if found.mode is None:
        found.mode, number = _kept_or_found(model, budget)
        found.searches[number] = found.mode
    elif not found.searches:
        found.searches[0] = found.mode
    # A single start is any one, such as that of the saved mode.
    missing = [number for number in range(n_starts) if number not in found.searches] if n_starts > 1 else []
    if not missing:
        return found.mode
    defaults = {"epochs": EPOCHS, "tolerance": TOLERANCE, "max_steps": MAX_STEPS}
    for number in missing:
        found.searches[number] = _search_again(model, number, found.mode, {**defaults, **budget})
    best = best_of([found.searches[number] for number in sorted(found.searches)])
    if best is not found.mode:
        # All that was computed at the other mode is of no use.
        found.mode, found.laplace = best, None
        found.at_mode.clear()
        number = next(number for number, one in found.searches.items() if one is best)
        _keep_mode(model, best, number, budget)
    return found.mode


def _kept_or_found(model: Model, budget: dict) -> tuple[MapResult, int]:
    """The mode, and the start from which it was found."""
    kept = read_kept(model, "map")
    # The mode of a further start is better than that of the first, by whatever budget.
    is_first = kept is not None and "budget" in kept and kept.get("start", 0) == 0
    if budget and is_first and kept["budget"].item() != _written(budget):
        logger.warning("MAP of %s: the saved one was found with another budget; found again", model.name)
        kept = None
    if kept is not None and not kept.keys() >= {*MapResult._fields, "first_rows"}:
        logger.warning("MAP of %s: the saved one is of another version of sgtune; found again", model.name)
    elif kept is not None and kept["position"].shape == (model.dimension,):
        numbers = {name: kept[name].item() for name in MapResult._fields if name != "position"}
        position = unflatten(model, kept["position"])
        if is_value_of_first_rows(model, position, kept["first_rows"].item()):
            return MapResult(position=position, **numbers), int(kept.get("start", 0))
        logger.warning("MAP of %s: the saved one is of another log posterior; found again", model.name)
    result = find_map(model, **budget)
    _keep_mode(model, result, 0, budget)
    return result, 0


def _written(budget: dict) -> str:
    whole = {"epochs": EPOCHS, "tolerance": TOLERANCE, "max_steps": MAX_STEPS} | budget
    return json.dumps({name: float(number) for name, number in whole.items()}, sort_keys=True)


def _keep_mode(model: Model, result: MapResult, start: int, budget: dict) -> None:
    if model.data_dir is not None:
        arrays = {**result._asdict(), "position": flatten(result.position), "start": start}
        arrays["budget"] = _written(budget)
        keep(model, "map", **arrays, first_rows=value_of_first_rows(model, result.position))


def value_of_first_rows(model: Model, position: PyTree) -> float:
    """The log prior plus the first 256 rows' log-likelihoods: a saved result has it, to be known as this model's."""
    # Every job computes it, so it does not use all data: a changed function changes the value of these rows, too.
    first = take_rows(model.data, np.arange(min(FIRST_ROWS, model.n_data)))
    return float(_log_posterior(density_of(model), position, first))


def is_value_of_first_rows(model: Model, position: PyTree, expected: float) -> bool:
    """Whether `value_of_first_rows` is ``expected`` up to float32's rounding."""
    value = value_of_first_rows(model, position)
    if math.isnan(value) or math.isnan(expected):
        return math.isnan(value) and math.isnan(expected)
    return math.isclose(value, expected, rel_tol=1e-4, abs_tol=1e-2)


def map_position(model: Model) -> PyTree:
    """The MAP as a position of the model; see `map_result`."""
    return map_result(model).position


def descend(model: Model, position: PyTree, *, epochs: int) -> tuple[PyTree, int]:
    """Minimise -log pi / N by Adam (optax) on minibatches of 1,000; the learning rate falls from 0.01 to 0
    along a cosine, so that the minibatches' noise vanishes at the end.

    Returns:
        the position, and the number of steps.
    """
    batch_size = min(model.n_data, BATCH_SIZE)
    n_steps = epochs * -(-model.n_data // batch_size)
    constants = minibatch.prepare(model, None)
    key = named_key(0, "map", model.name, "minibatches")
    every, carry = max(1, n_steps // PIECES), (position, jax.jit(_adam(n_steps).init)(position))
    with progress_bar(f"descent of {model.name}", n_steps, "steps") as done:
        for first in range(0, n_steps, every):
            until = min(first + every, n_steps)
            carry = _descend(density_of(model), batch_size, n_steps, first, until, carry, constants, key)
            jax.block_until_ready(carry)
            done(until - first)
    return carry[0], n_steps


def _adam(n_steps: int):
    import optax

    return optax.adam(optax.cosine_decay_schedule(LEARNING_RATE, n_steps))


@partial(jax.jit, static_argnums=(1, 2))
def _descend(density, batch_size, n_steps, first, until, carry, constants, key):
    """Steps from ``first`` on, before ``until``."""
    import optax

    n_data = number_of_rows(constants["data"])

    def step(i, carry):
        position, state = carry
        gradient, _ = minibatch.estimate(
            density, constants, jax.random.fold_in(key, i), position, batch_size, ()
        )
        descent = jax.tree.map(lambda leaf: -leaf / n_data, gradient)
        updates, state = _adam(n_steps).update(descent, state, position)
        return optax.apply_updates(position, updates), state

    return jax.lax.fori_loop(first, until, step, carry)


def _path(model: Model, kind: str) -> Path | None:
    return None if model.data_dir is None else model.data_dir / f"{model.name}.{kind}.npz"


def keep(model: Model, kind: str, **arrays: object) -> None:
    """Write ``arrays`` as ``{model.data_dir}/{model.name}.{kind}.npz``; nothing without a folder."""
    path = _path(model, kind)
    if path is not None:
        with atomic_write(path) as temporary:
            np.savez(temporary, checksum=model.checksum, **arrays)


def read_kept(model: Model, kind: str) -> dict[str, np.ndarray] | None:
    """The arrays that `keep` wrote; None if there are none, they are for other data, or the file is not readable."""
    path = _path(model, kind)
    if path is None or not path.is_file():
        return None
    try:
        arrays = read_npz(path)
    except DataError:
        logger.warning("%s: not readable; computed again", path)
        return None
    if str(arrays.pop("checksum", "")) != model.checksum:
        logger.warning("%s: computed from other data; computed again", path)
        return None
    return arrays


def hutchinson_diagonal(
    model: Model, position: PyTree, n_probes: int = 32, seed: int = 0
) -> Float[np.ndarray, " D"]:
    """Diagonal of the Hessian of -log pi: the mean of z * (H z) over Rademacher probes z (Hutchinson).

    The contribution of a prior of independent parameters is exact; the likelihood's contribution to entry i has the
    variance sum over j != i of H_ij^2 / n_probes, which on raw columns drowns the small entries. As long as one is
    below three of its standard errors, the probes are drawn again in coordinates that the last estimates scale, at most
    `MOST_PROBINGS` times, and no more if that mends less than half of these entries; each entry is the estimate with
    the smallest standard error.

    Entries below the prior's curvature, which are impossible with a concave likelihood, are raised to it; entries that
    are still <= 0 are set to the smallest positive entry.

    Raises:
        InputError: no entry is positive.
    """
    n_probes = check_integer("n_probes", n_probes, at_least=1)
    asked = (flatten(position).tobytes(), n_probes, seed)
    if model.found.hessian_diagonal is not None and model.found.hessian_diagonal[0] == asked:
        return model.found.hessian_diagonal[1]
    rng, scale = np.random.default_rng(seed), np.ones(model.dimension)
    diagonal, error = np.zeros(model.dimension), np.full(model.dimension, np.inf)
    prior_diagonal, n_drowned = None, math.inf
    for _ in range(MOST_PROBINGS):
        signs = 2 * rng.integers(0, 2, (n_probes, model.dimension)) - 1
        probes = (signs * scale).astype(np.float32)
        likelihood, prior = hessian_products(model, position, probes)
        if prior_diagonal is None:
            prior_diagonal = -np.mean(probes * prior, axis=0, dtype=np.float64)
        products = -signs * (likelihood / scale)
        own_error = np.std(products, axis=0) / n_probes**0.5
        diagonal = np.where(own_error < error, np.mean(products, axis=0), diagonal)
        error = np.minimum(own_error, error)
        drowned = prior_diagonal + diagonal < 3 * error
        if not 0 < drowned.sum() <= n_drowned / 2:
            break
        n_drowned = drowned.sum()
        scale = 1 / np.sqrt(np.maximum(np.maximum(prior_diagonal + diagonal, error), TINIEST))
    diagonal = prior_diagonal + diagonal
    diagonal = np.where((prior_diagonal > 0) & (diagonal < prior_diagonal), prior_diagonal, diagonal)
    positive = diagonal > 0
    if not positive.any():
        raise InputError(
            f"position: -log pi of model {model.name!r} has no direction of positive curvature there"
        )
    diagonal = np.where(positive, diagonal, diagonal[positive].min())
    diagonal.setflags(write=False)
    # `find_map` ends with the diagonal that the Laplace scale needs; it takes tens of seconds for a network.
    model.found.hessian_diagonal = (asked, diagonal)
    return diagonal
