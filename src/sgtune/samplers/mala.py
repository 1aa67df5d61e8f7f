"""The Metropolis-adjusted Langevin algorithm, on all data (Roberts and Tweedie 1996; Bieringer et al. 2023, Sect. 3).

A step of SGLD with the exact gradient is a proposal, and the Metropolis-Hastings test takes it or leaves it:

    theta' = theta + e * grad + sqrt(2 e) * N(0, I)                  grad = grad log pi(theta)
    theta <- theta' with probability min(1, pi(theta') q(theta | theta') / (pi(theta) q(theta' | theta)))

with e the ``step_size`` and q(theta' | theta) = N(theta' | theta + e * grad, 2 e I). On rejection all of the state
stays. With d = theta' - theta and grad' = grad log pi(theta') the logarithm of the ratio is

    log pi(theta') - log pi(theta) - (grad + grad') . (d + (e/2) (grad' - grad)) / 2

in which the squares that q has, large in many dimensions, are cancelled by hand and not by float32.

Invariant density: pi, exactly, for every e, but for float32's error in the log density (`sgtune.samplers.target`).
A large e shows in the acceptance rate, which is best near 0.57 in many dimensions (Roberts and Rosenthal 1998).

It is defined on all data: a ratio from a minibatch would leave another density invariant.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from sgtune.samplers.base import Sampler, noise_like
from sgtune.samplers.metropolis import (
    Acceptance,
    acceptance_statistics,
    choose,
    metropolis_test,
    no_acceptance,
)
from sgtune.samplers.target import Target

__all__ = ["MALAState", "mala"]


class MALAState(NamedTuple):
    """The chain's position, the exact log density (less a constant) and gradient there, and the tests' outcomes."""

    position: PyTree
    log_density: Float[Array, ""]
    gradient: PyTree
    acceptance: Acceptance
    estimator: PyTree


def init(
    key: PRNGKeyArray, position: PyTree, estimator: PyTree, target: Target, hyperparameters: dict
) -> MALAState:
    """A chain at ``position``."""
    log_density, gradient = target.log_density_and_gradient(position)
    return MALAState(position, log_density, gradient, no_acceptance(), estimator)


def step(key: PRNGKeyArray, state: MALAState, target: Target, hyperparameters: dict) -> MALAState:
    """One proposal and its test: one evaluation of the log density and its gradient, at the proposal."""
    e = hyperparameters["step_size"]
    noise_key, test_key = jax.random.split(key)
    noise = noise_like(noise_key, state.position)
    position = jax.tree.map(
        lambda x, g, z: x + e * g + jnp.sqrt(2 * e) * z, state.position, state.gradient, noise
    )
    log_density, gradient = target.log_density_and_gradient(position)

    def work(old, new, gradient, new_gradient):
        return jnp.sum((gradient + new_gradient) * (new - old + e / 2 * (new_gradient - gradient))) / 2

    leaves = jax.tree.map(work, state.position, position, state.gradient, gradient)
    log_ratio = log_density - state.log_density - sum(jax.tree.leaves(leaves))
    acceptance = metropolis_test(test_key, log_ratio, state.acceptance)
    proposed = (position, log_density, gradient)
    current = (state.position, state.log_density, state.gradient)
    return MALAState(*choose(acceptance, proposed, current), acceptance, state.estimator)


mala = Sampler(init, step, uses_log_density=True, needs_all_data=True, statistics=acceptance_statistics)
