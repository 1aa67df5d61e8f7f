"""Stochastic gradient Nose-Hoover thermostat (Ding et al. 2014, Alg. 2; preprint Eq. 7).

Let h be the ``step_size``, a the ``friction`` (0.01) and D the number of parameters. A chain starts with v ~ N(0, h I)
and alpha = a:

    v     <- v + h grad - alpha v + N(0, 2 a h I)
    theta <- theta + v
    alpha <- alpha + |v|^2 / D - h

One thermostat alpha serves the whole parameter vector: it adapts to the friction that balances gradient noise of
unknown size.

Invariant density, as h -> 0: pi(theta) N(v | 0, h I) N(alpha | a + B, ...), where B is the (isotropic) gradient noise
in units of the friction. The Euler discretisation leaves an O(h) bias.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from sgtune.samplers.base import Sampler, noise_like
from sgtune.samplers.target import Target
from sgtune.support.axes import FRICTION

__all__ = ["SGNHTState", "sgnht"]


class SGNHTState(NamedTuple):
    """Position, momentum in the shape of the position, scalar thermostat, and the gradient estimator's state."""

    position: PyTree
    momentum: PyTree
    thermostat: Float[Array, ""]
    estimator: PyTree


def init(
    key: PRNGKeyArray, position: PyTree, estimator: PyTree, target: Target, hyperparameters: dict
) -> SGNHTState:
    """A chain at ``position`` with v ~ N(0, h I) and alpha = a."""
    root_h = jnp.sqrt(hyperparameters["step_size"])
    momentum = jax.tree.map(lambda z: root_h * z, noise_like(key, position))
    return SGNHTState(position, momentum, jnp.asarray(hyperparameters["friction"], jnp.float32), estimator)


def step(key: PRNGKeyArray, state: SGNHTState, target: Target, hyperparameters: dict) -> SGNHTState:
    """One step of the thermostat."""
    h = hyperparameters["step_size"]
    noise_sd = jnp.sqrt(2 * hyperparameters["friction"] * h)
    gradient, estimator = target.gradient(state.position, 0, state.estimator)
    momentum = jax.tree.map(
        lambda v, g, z: v + h * g - state.thermostat * v + noise_sd * z,
        state.momentum,
        gradient,
        noise_like(key, state.momentum),
    )
    position = jax.tree.map(jnp.add, state.position, momentum)
    leaves = jax.tree.leaves(momentum)
    mean_square = sum(jnp.sum(v**2) for v in leaves) / sum(v.size for v in leaves)
    return SGNHTState(position, momentum, state.thermostat + mean_square - h, estimator)


sgnht = Sampler(init, step, (FRICTION,))
