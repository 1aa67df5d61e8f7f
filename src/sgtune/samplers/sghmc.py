"""Stochastic gradient Hamiltonian Monte Carlo (Chen, Fox and Guestrin 2014, Eq. 15; preprint Eq. 6).

Each sample draws a fresh momentum v ~ N(0, h I) and makes L leapfrog steps with h the ``step_size``, a the
``friction`` (0.01) and b the ``noise_estimate`` (0):

    half kick   v <- v + (h/2) grad - (a/2) v + N(0, (a - b) h I)        once, at the start
    drift       theta <- theta + v                                       L times
    kick        v <- v + h grad - a v + N(0, 2 (a - b) h I)              between the drifts, at the new position

The last half kick is omitted, because the next sample draws a new v: L gradients a sample.

Invariant density: pi(theta) N(v | 0, h I), as h -> 0 and with exact gradients; gradient noise of covariance V heats the
chain by O(h V / a), and b compensates for it.

Two more orders exist only for the audit of published results:

* ``chen``: drift, then a full kick at the new position, as Chen et al. print it. With v redrawn every L steps its
  variance tends to L / (L - 1) times the target's variance even as h -> 0, so it is not defined for L = 1.
* ``as_published``: the kick takes the gradient from BEFORE the drift (explicit Euler), as the code behind the paper
  does. It gains energy at every step and is unstable at step sizes where the leapfrog is not.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray, PyTree

from sgtune.samplers.base import Sampler, noise_like
from sgtune.samplers.target import Target
from sgtune.support.axes import FRICTION, NOISE_ESTIMATE

__all__ = ["SGHMCState", "sghmc", "sghmc_as_published", "sghmc_chen"]


class SGHMCState(NamedTuple):
    """The chain's position and the state of its gradient estimator; the momentum exists only within a step."""

    position: PyTree
    estimator: PyTree


def init(
    key: PRNGKeyArray, position: PyTree, estimator: PyTree, target: Target, hyperparameters: dict
) -> SGHMCState:
    """A chain at ``position``."""
    return SGHMCState(position, estimator)


def _fresh_momentum(key: PRNGKeyArray, position: PyTree, hyperparameters: dict) -> PyTree:
    root_h = jnp.sqrt(hyperparameters["step_size"])
    return jax.tree.map(lambda z: root_h * z, noise_like(key, position))


def _kick(key: PRNGKeyArray, momentum: PyTree, gradient: PyTree, hyperparameters: dict, length=1.0) -> PyTree:
    """``length`` times the deterministic part of a kick, with ``length`` times the variance of its noise."""
    h, friction = hyperparameters["step_size"], hyperparameters["friction"]
    noise_sd = jnp.sqrt(length * 2 * (friction - hyperparameters["noise_estimate"]) * h)
    noise = noise_like(key, momentum)
    return jax.tree.map(
        lambda v, g, z: v + length * (h * g - friction * v) + noise_sd * z, momentum, gradient, noise
    )


def _drift(position: PyTree, momentum: PyTree) -> PyTree:
    return jax.tree.map(jnp.add, position, momentum)


def step(
    order: str, key: PRNGKeyArray, state: SGHMCState, target: Target, hyperparameters: dict
) -> SGHMCState:
    """One sample: a fresh momentum, then L drifts and kicks in the ``order`` ``leapfrog``, ``chen`` or
    ``as_published``."""
    momentum_key, kick_key = jax.random.split(key)

    def body(i, carry):
        position, momentum, estimator = carry
        if order == "chen":
            position = _drift(position, momentum)
        gradient, estimator = target.gradient(position, i, estimator)
        length = jnp.where(i == 0, 0.5, 1.0) if order == "leapfrog" else 1.0
        kicked = _kick(jax.random.fold_in(kick_key, i), momentum, gradient, hyperparameters, length)
        if order != "chen":
            position = _drift(position, kicked if order == "leapfrog" else momentum)
        return position, kicked, estimator

    carry = (state.position, _fresh_momentum(momentum_key, state.position, hyperparameters), state.estimator)
    position, _, estimator = jax.lax.fori_loop(0, hyperparameters["n_leapfrog"], body, carry)
    return SGHMCState(position, estimator)


HYPERPARAMETERS = (FRICTION, NOISE_ESTIMATE)

sghmc, sghmc_chen, sghmc_as_published = (
    Sampler(
        init,
        partial(step, order),
        HYPERPARAMETERS,
        has_leapfrog=True,
        least_leapfrog=2 if order == "chen" else 1,
        largest_step=4.0,
    )
    for order in ("leapfrog", "chen", "as_published")
)
