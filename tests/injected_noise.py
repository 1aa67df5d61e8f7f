"""Targets whose gradients have noise of a known covariance, and long runs of many chains on them."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from sgtune.samplers.target import Target

__all__ = ["SIGMAS", "chains", "ensemble_means", "noisy_target"]

SIGMAS = 4.5
"""The largest allowed error of an expectation, in standard errors."""


def noisy_target(score, root, key=None):
    """The target of one step: ``score(x)`` plus ``root(x)`` times standard normals, with its exact covariance.

    Args:
        root: ``x -> (D, D)``; None for exact gradients.
    """

    def noisy(position):
        if root is None:
            return score(position), jnp.zeros((position.size, position.size))
        factor = root(position)
        noise = factor @ jax.random.normal(key, position.shape)
        return score(position) + noise, factor @ factor.T

    def with_covariance(position, i, state, form):
        gradient, covariance = noisy(position)
        return gradient, covariance if form == "full" else jnp.diag(covariance), state

    return Target(
        lambda position, i, state: (noisy(position)[0], state), gradient_with_covariance=with_covariance
    )


@partial(jax.jit, static_argnums=(0, 1, 2, 3, 5, 6, 7))
def chains(sampler, score, root, functions, start, n_chains, n_steps, burn_in, hyperparameters, key):
    """The mean of ``functions(x)`` over the last ``n_steps`` draws of each chain, and the chains' states.

    Args:
        start: ``(D,)``; the start of each chain is this plus a standard normal.
        hyperparameters: numbers, traced.
    """

    def one_chain(key):
        start_key, init_key, step_key, noise_key = jax.random.split(key, 4)
        position = start + jax.random.normal(start_key, start.shape)
        first = noisy_target(score, root, noise_key)
        state = sampler.init(init_key, position, (), first, hyperparameters)

        def body(t, carry):
            state, total = carry
            target = noisy_target(score, root, jax.random.fold_in(noise_key, t))
            state = sampler.step(jax.random.fold_in(step_key, t), state, target, hyperparameters)
            return state, total + jnp.where(t >= burn_in, functions(state.position), 0.0) / n_steps

        zeros = jnp.zeros(jax.eval_shape(functions, position).shape)
        state, mean = jax.lax.fori_loop(0, burn_in + n_steps, body, (state, zeros))
        return mean, state

    return jax.vmap(one_chain)(jax.random.split(key, n_chains))


def ensemble_means(*arguments, seed=0, **hyperparameters):
    """Means over `chains` with standard errors, and the chains' states. Arguments: all of `chains` but the last two."""
    numbers = {name: jnp.float32(number) for name, number in hyperparameters.items()}
    found, states = chains(*arguments, numbers, jax.random.key(seed))
    found = np.asarray(found, np.float64)
    return found.mean(0), found.std(0, ddof=1) / np.sqrt(len(found)), states
