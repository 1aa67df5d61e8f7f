"""Many independent chains of one arm, each with its own start: for the density of a chain after a number of steps."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from sgtune.model import Model
from sgtune.model.positions import from_matrix
from sgtune.sampling.arm import Arm
from sgtune.sampling.lockstep import Lockstep, chunk_length
from sgtune.support.errors import InputError
from sgtune.support.randomness import named_key

__all__ = ["independent_chains"]


def independent_chains(
    model: Model,
    sampler: str,
    arm: Arm,
    positions: Float[np.ndarray | Array, "w D"],
    *,
    seed: int = 0,
    replicate: int | str = 0,
    centre: PyTree | None = None,
    own_minibatches: bool = False,
) -> Lockstep:
    """An ensemble of W chains of ``arm`` that start at the rows of ``positions``.

    Their noise is independent, but all use the same i-th minibatch unless they have their own: with a batch size below
    N they are then independent only given the minibatches. Memory: the states of W chains.

    Args:
        own_minibatches: whether each chain has its own minibatches, whose rows are gathered for each.
        centre: as in `Lockstep.at_mode`; the MAP unless given.

    Raises:
        InputError: an argument is not allowed.
    """
    width = len(positions)
    if np.ndim(positions) != 2 or width == 0 or positions.shape[1] != model.dimension:
        raise InputError(
            f"positions: shape {np.shape(positions)} is not allowed; {model.name!r} needs one or more rows of "
            f"{model.dimension}"
        )
    starts = from_matrix(model, np.asarray(positions, np.float32))
    first = jax.tree.map(lambda leaf: leaf[0], starts)
    options = {"seed": seed, "replicate": replicate, "is_started": False}
    ensemble = Lockstep.at_mode(model, sampler, [arm], position=first, centre=centre, **options)
    names = (ensemble.sampler_name, *ensemble.arms[0].key, replicate)
    ensemble.arms = ensemble.arms * width
    ensemble.program = ensemble.program._replace(length=chunk_length(model.dimension, width))
    ensemble.keys = jax.random.split(named_key(seed, "noise", *names, "independent"), width)
    if own_minibatches and arm["batch_size"] < model.n_data:
        ensemble.minibatch_key = jax.random.split(ensemble.minibatch_key, width)
    ensemble.hyperparameters = {
        name: jnp.repeat(number, width) if jnp.ndim(number) else number
        for name, number in ensemble.hyperparameters.items()
    }
    keys = jax.random.split(named_key(seed, "init", *names, "independent"), width)
    ensemble.begin(keys, jax.tree.map(jnp.asarray, starts))
    return ensemble
