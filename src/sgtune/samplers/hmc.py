"""Hamiltonian Monte Carlo with L leapfrogs and a Metropolis test, on all data (Duane et al. 1987; Neal 2011).

Each sample draws a fresh momentum v ~ N(0, h I), h the ``step_size``, and makes L leapfrogs from it:

    half kick   v <- v + (h/2) grad                                    grad = grad log pi(theta)
    drift       theta <- theta + v                                     L times, with
    kick        v <- v + h grad                                        between the drifts, and half a kick at the end

    theta', v' is accepted with probability min(1, pi(theta') N(v' | 0, h I) / (pi(theta) N(v | 0, h I)))

Momenta are scaled as in `sgtune.samplers.sghmc`, which is HMC with friction and without a test. h has the unit of a
squared position: it is the square of the leapfrog step in BlackJAX's or Stan's manual.

The sum of all kicks is h k, where k is the mean of the first and the last gradient plus the sum of the others. Then the
logarithm of the ratio is

    log pi(theta') - log pi(theta) - k . (v + (h/2) k)

Here the squares of the momenta, which are large in many dimensions, cancel analytically and not in float32. One
leapfrog is a step of MALA at e = h / 2.

Invariant density: pi, exactly, for every h and L, except for float32's error in the log density
(`sgtune.samplers.target`). The best acceptance rate is near 0.65 in many dimensions (Beskos et al. 2013).

HMC is defined on all data. A sample makes L passes over them; the gradient at its start is kept from the last sample.
"""

import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from sgtune.samplers.base import Sampler, noise_like
from sgtune.samplers.metropolis import MetropolisState, acceptance_statistics, start_chain, take_or_leave
from sgtune.samplers.target import Target

__all__ = ["hmc"]


def step(key: PRNGKeyArray, state: MetropolisState, target: Target, hyperparameters: dict) -> MetropolisState:
    """One sample: L evaluations of the gradient, the last one with the log density, and the test of where it ends."""
    h, n_leapfrog = hyperparameters["step_size"], hyperparameters["n_leapfrog"]
    noise_key, test_key = jax.random.split(key)
    momentum = jax.tree.map(lambda z: jnp.sqrt(h) * z, noise_like(noise_key, state.position))

    def drift(position, kicks):
        return jax.tree.map(lambda x, v, k: x + v + h * k, position, momentum, kicks)

    def leapfrog(i, carry):
        position, kicks = carry
        position = drift(position, kicks)
        # Only the last log density is used, and it costs about half a gradient.
        gradient, _ = target.gradient(position, i, state.estimator)
        return position, jax.tree.map(jnp.add, kicks, gradient)

    half = jax.tree.map(lambda g: g / 2, state.gradient)
    position, kicks = jax.lax.fori_loop(0, n_leapfrog - 1, leapfrog, (state.position, half))
    position = drift(position, kicks)
    log_density, gradient = target.log_density_and_gradient(position)
    kicks = jax.tree.map(lambda k, g: k + g / 2, kicks, gradient)
    work = jax.tree.map(lambda k, v: jnp.sum(k * (v + h / 2 * k)), kicks, momentum)
    log_ratio = log_density - state.log_density - sum(jax.tree.leaves(work))
    return take_or_leave(test_key, log_ratio, state, (position, log_density, gradient))


hmc = Sampler(
    start_chain,
    step,
    has_leapfrog=True,
    largest_step=4.0,
    uses_log_density=True,
    needs_all_data=True,
    statistics=acceptance_statistics,
    when_stuck="try a smaller step_size",
    optimal_acceptance=0.651,
)
