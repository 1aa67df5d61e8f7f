"""Unbiased estimates of the scores of draws, each from its own minibatch."""

from functools import partial

import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, PyTree

from sgtune.model import Model
from sgtune.model.positions import from_matrix
from sgtune.model.posterior import density_of, scores
from sgtune.samplers.gradients import GradientEstimator, minibatch
from sgtune.support.errors import InputError
from sgtune.support.randomness import named_key

__all__ = ["stochastic_scores"]

CHUNK = 64
"""Draws in one call of the compiled program."""


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
        constants: the estimator's constants (`sgtune.sampling.preparation.shared_constants`), with its centre if it
            has one; None: they are prepared here.

    Raises:
        InputError: the estimator has a centre, and ``constants`` is None.
    """
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
    for start in range(0, len(draws), CHUNK):
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


@partial(jax.jit, static_argnums=(0, 1, 2))
def _estimates(density, gradient, batch_size, constants, positions, key, start, n):
    """Flat rows; those beyond ``n`` are not computed."""
    leaves = jax.tree.leaves(positions)
    dimension = sum(leaf.size // CHUNK for leaf in leaves)

    def one(i, rows):
        position = jax.tree.map(lambda leaf: leaf[i], positions)
        own_key = jax.random.fold_in(key, start + i)
        estimate = gradient.estimate(density, constants, own_key, position, batch_size, ())[0]
        return rows.at[i].set(jax.flatten_util.ravel_pytree(estimate)[0])

    return jax.lax.fori_loop(0, n, one, jnp.zeros((CHUNK, dimension), jnp.float32))
