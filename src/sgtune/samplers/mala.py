"""The Metropolis-adjusted Langevin algorithm, on all data (Roberts and Tweedie 1996; Bieringer et al. 2023, Sect. 3).

The proposal is a step of SGLD with the exact gradient; the Metropolis-Hastings test accepts or rejects it:

    theta' = theta + gamma * grad + s * N(0, I)                      grad = grad log pi(theta)
    theta <- theta' with probability min(1, pi(theta') q(theta | theta') / (pi(theta) q(theta' | theta)))

with s^2 = 2 e, e the ``step_size``, gamma the ``drift``, which is e = s^2 / 2 unless given, and q(theta' | theta) =
N(theta' | theta + gamma * grad, s^2 I). On rejection the whole state stays. With d = theta' - theta and grad' =
grad log pi(theta') the logarithm of the ratio is

    log pi(theta') - log pi(theta) - (gamma / s^2) (grad + grad') . (d + (gamma / 2) (grad' - grad))

Here the squares in q, which are large in many dimensions, cancel analytically and not in float32. (The mean of the
reverse proposal uses the gradient at theta'; in AdamMCMC, `sgtune.samplers.adam_mcmc`, it does not.)

Invariant density: pi, exactly, for every e and gamma, except for float32's error in the log density
(`sgtune.samplers.target`). If gamma is not e, the terms of first order do not cancel, and acceptance falls faster with
e and with D. A too large e shows as a low acceptance rate; the best rate is near 0.57 in many dimensions (Roberts and
Rosenthal 1998).

MALA is defined on all data: with a ratio from a minibatch, another density would be invariant.
"""

import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from sgtune.samplers.base import Sampler, noise_like
from sgtune.samplers.metropolis import MetropolisState, acceptance_statistics, start_chain, take_or_leave
from sgtune.samplers.target import Target
from sgtune.support.axes import DRIFT

__all__ = ["mala"]


def step(key: PRNGKeyArray, state: MetropolisState, target: Target, hyperparameters: dict) -> MetropolisState:
    """One proposal and its test: one evaluation of the log density and its gradient, at the proposal."""
    e = hyperparameters["step_size"]
    gamma = hyperparameters.get("drift", e)
    noise_key, test_key = jax.random.split(key)
    noise = noise_like(noise_key, state.position)
    position = jax.tree.map(
        lambda x, g, z: x + gamma * g + jnp.sqrt(2 * e) * z, state.position, state.gradient, noise
    )
    log_density, gradient = target.log_density_and_gradient(position)

    def work(old, new, gradient, new_gradient):
        return jnp.sum((gradient + new_gradient) * (new - old + gamma / 2 * (new_gradient - gradient)))

    leaves = jax.tree.map(work, state.position, position, state.gradient, gradient)
    log_ratio = log_density - state.log_density - gamma / (2 * e) * sum(jax.tree.leaves(leaves))
    return take_or_leave(test_key, log_ratio, state, (position, log_density, gradient))


mala = Sampler(
    start_chain,
    step,
    (DRIFT,),
    uses_log_density=True,
    needs_all_data=True,
    statistics=acceptance_statistics,
    when_stuck="try a smaller step_size, and a smaller drift if you gave one",
    optimal_acceptance=0.574,
)
