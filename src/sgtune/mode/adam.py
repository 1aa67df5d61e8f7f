"""Stochastic descent to the neighbourhood of a mode: the first half of `sgtune.mode.find` for large models."""

from functools import partial

import jax
from jaxtyping import PyTree

from sgtune.model import Model
from sgtune.model.posterior import density_of
from sgtune.samplers.gradients import minibatch
from sgtune.support.randomness import named_key

__all__ = ["descend"]


LEARNING_RATE = 1e-2
BATCH_SIZE = 1_000


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
    return _descend(density_of(model), batch_size, n_steps, position, constants, key), n_steps


@partial(jax.jit, static_argnums=(0, 1, 2))
def _descend(density, batch_size, n_steps, position, constants, key):
    import optax

    n_data = jax.tree.leaves(constants["data"])[0].shape[0]
    optimiser = optax.adam(optax.cosine_decay_schedule(LEARNING_RATE, n_steps))

    def step(i, carry):
        position, state = carry
        gradient, _ = minibatch.estimate(
            density, constants, jax.random.fold_in(key, i), position, batch_size, ()
        )
        descent = jax.tree.map(lambda leaf: -leaf / n_data, gradient)
        updates, state = optimiser.update(descent, state, position)
        return optax.apply_updates(position, updates), state

    return jax.lax.fori_loop(0, n_steps, step, (position, optimiser.init(position)))[0]
