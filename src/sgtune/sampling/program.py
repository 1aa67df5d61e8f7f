"""The compiled program: a number of steps of every chain of an ensemble."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import PRNGKeyArray, PyTree

from sgtune.model.posterior import Density
from sgtune.samplers import Sampler
from sgtune.samplers.gradients import GradientEstimator
from sgtune.samplers.target import Target, target_of

__all__ = ["Program", "advance", "initial_states", "mapped_axes"]


BEFORE_THE_FIRST_STEP = 2**32 - 1
"""The step number of a chain's start. No step has this number, because steps are int32."""


class Program(NamedTuple):
    """The static arguments of a compiled program."""

    density: Density
    sampler: Sampler
    estimator: GradientEstimator
    batch_size: int
    length: int
    static: tuple[tuple[str, float | int], ...] = ()
    """Further static hyperparameters: Python numbers, which a sampler may use as array shapes."""

    def target(self, constants: dict, minibatch_key: PRNGKeyArray, step: Any) -> Target:
        """The target of one step of the chains that share ``minibatch_key``; each of its leapfrogs has its own
        minibatch."""
        step_key = jax.random.fold_in(minibatch_key, step)

        def key_of(i):
            return jax.random.fold_in(step_key, i) if self.sampler.has_leapfrog else step_key

        return target_of(self.density, self.estimator, constants, self.batch_size, key_of)


def mapped_axes(hyperparameters: dict) -> dict:
    """The axes for `jax.vmap` over chains: an array has a number for each chain; all chains share other numbers."""
    return {name: 0 if jnp.ndim(number) else None for name, number in hyperparameters.items()}


def initial_states(program: Program, constants, keys, positions, hyperparameters, minibatch_key) -> PyTree:
    """States of chains at ``positions``, with a leading axis. Programs that differ in their length share one."""
    program = program._replace(length=0)
    return _initial_states(program, constants, keys, positions, hyperparameters, minibatch_key)


@partial(jax.jit, static_argnums=0)
def _initial_states(program: Program, constants, keys, positions, hyperparameters, minibatch_key) -> PyTree:
    axes = (0, 0, mapped_axes(hyperparameters), 0 if minibatch_key.ndim else None)

    def one_chain(key, position, hyperparameters, minibatch_key):
        target = program.target(constants, minibatch_key, jnp.uint32(BEFORE_THE_FIRST_STEP))
        estimator_state = program.estimator.init(constants, position)
        return program.sampler.init(
            key, position, estimator_state, target, hyperparameters | dict(program.static)
        )

    return jax.vmap(one_chain, in_axes=axes)(keys, positions, hyperparameters, minibatch_key)


def advance(program: Program, constants, states, hyperparameters, keys, minibatch_key, start, n_draws, gaps):
    """Steps of every chain from step ``start`` on: ``gaps[i]`` steps before the i-th of ``n_draws`` kept positions,
    which are flat. The length of ``gaps`` is the program's number of draws. Chains share the minibatches of one key, or
    each has those of its own."""
    axes = (0, 0, mapped_axes(hyperparameters), 0 if minibatch_key.ndim else None)

    def one_step(t, states):
        def one_chain(key, state, hyperparameters, minibatch_key):
            # What is the same for all chains, such as the rows of a shared minibatch, is computed once.
            target = program.target(constants, minibatch_key, t)
            return program.sampler.step(
                jax.random.fold_in(key, t), state, target, hyperparameters | dict(program.static)
            )

        return jax.vmap(one_chain, in_axes=axes)(keys, states, hyperparameters, minibatch_key)

    def one_draw(i, carry):
        states, draws, done = carry
        states = jax.lax.fori_loop(done, done + gaps[i], one_step, states)
        flat = jax.vmap(lambda position: ravel_pytree(position)[0])(states.position)
        return states, jax.lax.dynamic_update_index_in_dim(draws, flat, i, 0), done + gaps[i]

    flat_shape = jax.eval_shape(jax.vmap(lambda position: ravel_pytree(position)[0]), states.position)
    draws = jnp.zeros((program.length, *flat_shape.shape), jnp.float32)
    return jax.lax.fori_loop(0, n_draws, one_draw, (states, draws, start))[:2]
