"""Stochastic gradient Langevin dynamics (Welling and Teh 2011; paper Eq. 1).

    theta <- theta + e * grad + sqrt(2 e) * N(0, I)

with e the ``step_size`` and grad an unbiased estimate of grad log pi(theta). Only the paper's Eq. (1) uses h = 2 e;
its tables, SGMCMCJax, BlackJAX and this package use e.

Invariant density: pi, as e -> 0. With exact gradients on N(0, S) the chain is the AR(1) process
theta <- (I - e P) theta + sqrt(2 e) N(0, I), P = S^-1, whose stationary covariance (P - e P^2 / 2)^-1 exceeds S by
O(e); gradient noise of covariance V adds O(e V).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray, PyTree

from sgtune.samplers.base import Sampler, noise_like
from sgtune.samplers.target import Target

__all__ = ["SGLDState", "sgld"]


class SGLDState(NamedTuple):
    """The chain's position and the state of its gradient estimator."""

    position: PyTree
    estimator: PyTree


def init(
    key: PRNGKeyArray, position: PyTree, estimator: PyTree, target: Target, hyperparameters: dict
) -> SGLDState:
    """A chain at ``position``."""
    return SGLDState(position, estimator)


def step(key: PRNGKeyArray, state: SGLDState, target: Target, hyperparameters: dict) -> SGLDState:
    """One Euler-Maruyama step of the Langevin diffusion."""
    e = hyperparameters["step_size"]
    gradient, estimator = target.gradient(state.position, 0, state.estimator)
    noise = noise_like(key, state.position)
    position = jax.tree.map(lambda x, g, z: x + e * g + jnp.sqrt(2 * e) * z, state.position, gradient, noise)
    return SGLDState(position, estimator)


sgld = Sampler(init, step)
