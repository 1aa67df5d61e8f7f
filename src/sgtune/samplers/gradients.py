"""Gradient estimators: unbiased estimates of the gradient of the log posterior from a minibatch of n of N data.

Every estimator is a `GradientEstimator`, and a sampler takes any of them: the published name ``sghmc-cv`` stands for
the pair (sghmc, control variate at the MAP), not for another sampler. With n = N each estimate is the exact gradient.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from sgtune.model import Model
from sgtune.model.positions import check_position, flatten, from_matrix, to_matrix, unflatten
from sgtune.model.posterior import (
    Density,
    chunked,
    density_of,
    score,
    score_chunk,
    scores,
    sum_of_gradients,
)
from sgtune.model.rows import first_rows, named_faults, number_of_rows
from sgtune.samplers.covariance import Covariance, check_covariance, no_covariance, noise_covariance
from sgtune.samplers.minibatch import draw_minibatch
from sgtune.support.errors import InputError, check_integer, check_number
from sgtune.support.machine import quick_jit
from sgtune.support.randomness import LARGEST_SEED, named_key

__all__ = [
    "ESTIMATORS",
    "GradientEstimator",
    "control_variate",
    "minibatch",
    "stochastic_scores",
    "subset_rows",
    "subset_scores",
]


class GradientEstimator(NamedTuple):
    """Four pure functions.

    Attributes:
        prepare: ``(model, centre) -> constants``: arrays that all chains share, made once (data, centre, ...).
        init: ``(constants, position) -> state``: the estimator's state in one chain; () if it has none.
        estimate: ``(density, constants, key, position, batch_size, state) -> (gradient, state)``.
        estimate_with_covariance: ``(density, constants, key, position, batch_size, state, covariance) -> (gradient,
            noise covariance, state)``: the same gradient from the same minibatch, and an estimate of the covariance
            of its noise, by `sgtune.samplers.covariance`. ``covariance`` is "diagonal", for variances ``(D,)``, or
            "full", for the matrix ``(D, D)``, in the order of `ravel_pytree`; static, as ``batch_size`` is. Zeros at
            n = N. It evaluates each datum of a minibatch twice as often as ``estimate``. It raises an `InputError`
            for a minibatch of 1 < N, and for "full" where D is too large.
        needs_centre: whether ``prepare`` uses its centre.
        evaluations: how often ``estimate`` evaluates each datum of a minibatch.
    """

    name: str
    prepare: Callable
    init: Callable
    estimate: Callable
    estimate_with_covariance: Callable
    needs_centre: bool = False
    evaluations: int = 1


def _no_state(constants: PyTree, position: PyTree) -> tuple:
    return ()


def _n_data(constants: dict) -> int:
    return number_of_rows(constants["data"])


def _from_batch(
    exact_part: Callable, density: Density, constants: dict, position: PyTree, batch: PyTree
) -> tuple[PyTree, PyTree]:
    """The exact part + (N/n) * the noisy sum, and the noisy sum: a minibatch's gradients, less those at a centre."""
    sums = sum_of_gradients(density, position, batch)
    if "centre" in constants:
        sums = jax.tree.map(jnp.subtract, sums, sum_of_gradients(density, constants["centre"], batch))
    exact = exact_part(density, constants, position)
    weight = _n_data(constants) / number_of_rows(batch)
    return jax.tree.map(lambda e, s: e + weight * s, exact, sums), sums


def _estimate(
    exact_part: Callable,
    density: Density,
    constants: dict,
    key: PRNGKeyArray,
    position: PyTree,
    batch_size: int,
    state: tuple,
) -> tuple[PyTree, tuple]:
    """The gradient estimate from a minibatch; the exact gradient if n = N."""
    if batch_size == _n_data(constants):
        return score(density, position, constants["data"]), state
    batch = draw_minibatch(key, constants["data"], batch_size)
    return _from_batch(exact_part, density, constants, position, batch)[0], state


def _estimate_with_covariance(
    exact_part: Callable,
    density: Density,
    constants: dict,
    key: PRNGKeyArray,
    position: PyTree,
    batch_size: int,
    state: tuple,
    covariance: str,
) -> tuple[PyTree, Covariance, tuple]:
    """`_estimate`, and an estimate of the covariance of its noise."""
    n_data = _n_data(constants)
    dimension = sum(leaf.size for leaf in jax.tree.leaves(position))
    check_covariance(covariance, batch_size, n_data, dimension)
    if batch_size == n_data:
        return score(density, position, constants["data"]), no_covariance(covariance, dimension), state
    batch = draw_minibatch(key, constants["data"], batch_size)
    gradient, sums = _from_batch(exact_part, density, constants, position, batch)
    noise = noise_covariance(density, position, batch, n_data, sums, covariance, constants.get("centre"))
    return gradient, noise, state


def _prior_gradient(density: Density, constants: dict, position: PyTree) -> PyTree:
    """The exact part of grad log prior + (N/n) * sum over the batch of grad log-likelihood (paper Sect. 2.1)."""
    return jax.grad(density.log_prior)(position)


def _prepare_control_variate(model: Model, centre: PyTree) -> dict:
    at_centre = unflatten(model, scores(model, flatten(centre)[None])[0])
    return {"data": model.data, "centre": centre, "gradient_at_centre": at_centre}


def _gradient_at_centre(density: Density, constants: dict, position: PyTree) -> PyTree:
    """The exact part of grad U(centre) + (minibatch gradient at the position - the same minibatch's at the centre).

    Preprint Eq. (8), Baker et al. (2019): exact at the centre, and its noise shrinks with the distance from it. The
    prior's difference is exact.
    """
    return jax.tree.map(
        lambda full, prior, prior_centre: full + prior - prior_centre,
        constants["gradient_at_centre"],
        jax.grad(density.log_prior)(position),
        jax.grad(density.log_prior)(constants["centre"]),
    )


minibatch = GradientEstimator(
    name="minibatch",
    prepare=lambda model, centre: {"data": model.data},
    init=_no_state,
    estimate=partial(_estimate, _prior_gradient),
    estimate_with_covariance=partial(_estimate_with_covariance, _prior_gradient),
)
"""grad log prior + (N/n) * the minibatch's sum."""

control_variate = GradientEstimator(
    name="control-variate",
    prepare=_prepare_control_variate,
    init=_no_state,
    estimate=partial(_estimate, _gradient_at_centre),
    estimate_with_covariance=partial(_estimate_with_covariance, _gradient_at_centre),
    needs_centre=True,
    evaluations=2,
)
"""The minibatch estimate minus its error at the centre (Baker et al. 2019)."""

ESTIMATORS = {"": minibatch, "cv": control_variate}
"""Estimators by the suffix of the sampler's published name: ``sgld`` and ``sgld-cv``."""


@jax.jit
def _subset_scores(density: Density, positions: PyTree, rows: PyTree, weight: Array) -> PyTree:
    def one(position):
        prior = jax.grad(density.log_prior)(position)
        return jax.tree.map(lambda p, g: p + weight * g, prior, sum_of_gradients(density, position, rows))

    return jax.vmap(one)(positions)


def subset_rows(fraction: float, n_data: int) -> int:
    """The rows behind a score of a ``fraction`` of the data: at least one.

    Raises:
        InputError: the fraction is not in (0, 1].
    """
    return max(1, round(check_number("fraction", fraction, above=0, at_most=1) * n_data))


@named_faults()
def subset_scores(
    model: Model, positions: Float[np.ndarray, "n D"], fraction: float, centre: PyTree
) -> Float[np.ndarray, "n D"]:
    """Scores from the first ``fraction`` of the rows (they are in random order), corrected at ``centre``.

    score(centre) + (score of the subset at the position - score of the subset at the centre): exact at the centre; near
    it the error is the error of the subset's curvature. All positions use the same subset, so all arms that are
    compared have the same error. ``fraction`` = 1 gives `scores`.

    Args:
        positions: flat positions, one per row.
        fraction: a share of the data in (0, 1]; at least one row is used.
        centre: a position, not flat, such as the MAP.

    Raises:
        InputError: the fraction is not in (0, 1], or the centre is of another shape.
    """
    n_rows = subset_rows(fraction, model.n_data)
    if n_rows == model.n_data:
        return scores(model, positions)
    rows = first_rows(model.data, n_rows)
    weight = jnp.float32(model.n_data / n_rows)

    def run(matrix):
        return to_matrix(_subset_scores(density_of(model), from_matrix(model, matrix), rows, weight))

    def correction(at: PyTree) -> Float[np.ndarray, "1 D"]:
        at = flatten(check_position("centre", model, at))[None]
        # One position at a time: the program that finds the mode has computed the score there with this one.
        return scores(model, at) - chunked(run, at, score_chunk(model))

    return chunked(run, np.asarray(positions, np.float32), score_chunk(model)) + _at_centre(
        model, centre, f"correction of the scores of {n_rows} rows", correction
    )


def _at_centre(model: Model, centre: PyTree, name: str, make: Callable[[PyTree], PyTree]) -> PyTree:
    """``make(centre)``, kept by ``name`` if the centre is the model's mode, where races need it in every rung."""
    found = model.found
    if found.mode is None or centre is not found.mode.position:
        return make(centre)
    return found.once_at_mode(name, lambda: make(centre))


CHUNK = 64
"""Draws in one call of the compiled program."""


@named_faults()
def stochastic_scores(
    model: Model,
    draws: Float[np.ndarray, "n d"],
    batch_size: int,
    seed: int = 0,
    *,
    gradient: GradientEstimator = minibatch,
    constants: PyTree = None,
) -> Float[np.ndarray, "n d"]:
    """An estimate of the score at each draw, from a fresh minibatch for every draw (Gorham et al. 2020).

    The noise of two draws is independent, so products of scores of different draws are unbiased. The scores are
    computed one draw at a time; with ``batch_size`` = N they are exact, and computed many at a time.

    Args:
        gradient: the estimator; with `sgtune.gradients.control_variate` the noise is small near the mode.
        constants: the estimator's constants (`sgtune.sampling.lockstep.shared_constants`), with its centre if it
            has one; None: they are prepared here.

    Raises:
        InputError: the estimator has a centre, and ``constants`` is None; or ``batch_size`` or ``seed`` is not allowed.
    """
    check_integer("batch_size", batch_size, at_least=1, at_most=model.n_data)
    check_integer("seed", seed, at_least=0, at_most=LARGEST_SEED)
    if constants is None and gradient.needs_centre:
        raise InputError(
            f"constants: None is not allowed; {gradient.name!r} needs the constants of its centre"
        )
    if batch_size == model.n_data:
        return scores(model, draws)
    if constants is None:
        constants = gradient.prepare(model, None)
    key = named_key(seed, "stochastic scores", batch_size)
    result = np.empty((len(draws), model.dimension), np.float32)
    # Without draws the program is compiled, and computes nothing.
    for start in range(0, max(1, len(draws)), CHUNK):
        rows = np.asarray(draws[start : start + CHUNK], np.float32)
        padded = np.pad(rows, ((0, CHUNK - len(rows)), (0, 0)))
        estimates = _estimates(
            density_of(model),
            gradient,
            batch_size,
            constants,
            from_matrix(model, padded),
            key,
            start,
            len(rows),
        )
        result[start : start + CHUNK] = np.asarray(estimates)[: len(rows)]
    return result


@partial(quick_jit, static_argnums=(1, 2))
def _estimates(density, gradient, batch_size, constants, positions, key, start, n):
    """Flat rows; those beyond ``n`` are not computed."""
    leaves = jax.tree.leaves(positions)
    dimension = sum(leaf.size // CHUNK for leaf in leaves)

    def one(i, rows):
        position = jax.tree.map(lambda leaf: leaf[i], positions)
        own_key = jax.random.fold_in(key, start + i)
        state = gradient.init(constants, position)
        estimate = gradient.estimate(density, constants, own_key, position, batch_size, state)[0]
        return rows.at[i].set(jax.flatten_util.ravel_pytree(estimate)[0])

    return jax.lax.fori_loop(0, n, one, jnp.zeros((CHUNK, dimension), jnp.float32))
