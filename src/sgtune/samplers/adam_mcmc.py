"""AdamMCMC: Adam's update as the drift of a proposal, followed by a Metropolis test (Bieringer et al. 2023).

Let g be an estimate of grad(lambda R - log p) = -grad log pi at theta by the sampler's gradient estimator, gamma the
``step_size``, s the ``noise_sd`` (10 gamma unless given), s_d the ``directional_noise``, delta = ``eps`` and k the
number of the step:

    m <- b1 m + (1 - b1) g                        v <- b2 v + (1 - b2) g^2
    u = gamma (m / (1 - b1^k)) / (sqrt(v / (1 - b2^k)) + delta)
    theta' = theta - u + s W + s_d Z u            W ~ N(0, I),  ONE scalar Z ~ N(0, 1)

so that theta' ~ N(theta - u, S), S = s^2 I + s_d^2 u u', prolate along u; ``directional_noise=0`` is the isotropic
proposal. gamma and s have the unit of a position, s_d none. The reverse proposal is N(theta' - u, S) with the SAME u
and S, so the determinants cancel. With the rank-one formula for the inverse of S, the log acceptance ratio is

    log pi(theta') - log pi(theta) + 2 u.(theta' - theta) / (s^2 + s_d^2 |u|^2)

On rejection theta stays; m and v are updated in every step. The term with u has variance
4 |u|^2 / (s^2 + s_d^2 |u|^2), which s_d bounds by 4 / s_d^2 where |u| is much larger than s, as in many dimensions.
(The code of the paper's authors draws one normal per weight along u; this proposal has another covariance than the one
in their acceptance ratio.)

Invariant density of ``adam-mcmc``: pi up to an error that vanishes with gamma / s: m and v depend on theta through g,
and the test ignores this. The paper's Theorem 1 has a factor for it, which its algorithm sets to one. The error is
not monotone in gamma / s, grows with D, can have either sign, and the acceptance rate does not show it: u points to
the mode, and along a ray to the mode the density of the test lacks the ray's r^(D-1), so that draws are too close to
the mode where this effect is the largest. The study ``adam_mcmc`` measures it against gamma / s for several D. The test
takes a pass over all data; gradients are minibatch gradients, or have control variates (``adam-mcmc-cv``). At the mode
itself a noise-free gradient is rounding error, which u scales to the size of a full step.

``adam-mcmc-minibatch`` computes the test, too, from the minibatch of its gradient. This makes it BIASED: the noise of
the estimated log density, of variance O(N^2/n |theta' - theta|^2), heats the chain.

``adam-mcmc-exact`` leaves pi invariant exactly. The moments are Gaussian given theta, with rho_1 = ``momentum_noise``
and rho_2 = ``second_moment_noise``, in the units of g and g^2, and xi, xi' ~ N(0, I):

    m <- b1 m + (1 - b1) g + rho_1 xi             v <- b2 v + (1 - b2) g^2 + rho_2 xi'
    u = gamma m / (sqrt|v| + delta)

with g on all data. These two updates leave N(m; g, t_1^2) N(v; g^2, t_2^2) invariant, t_i^2 = rho_i^2 / (1 - b_i^2);
the initial m and v are draws from it. The acceptance ratio has a further factor: this density at theta' over its value
at theta, for the same m and v. There are no corrections b^k: every step is the same kernel, with the invariant density
pi(theta) N(m; g(theta), t_1^2) N(v; g(theta)^2, t_2^2). The factor compares D components of the gradient, so acceptance
falls with D: use it for small D. The default rho_i give t_1 = 1 / s and t_2 = 1 / s^2: where the posterior has the sd c
in every direction, the logarithm of the factor then varies by about sqrt(D) (s / c)^2 from proposal to proposal.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from sgtune.samplers.base import Sampler, noise_like
from sgtune.samplers.metropolis import Acceptance, acceptance_statistics, metropolis_step, no_acceptance
from sgtune.samplers.target import Target
from sgtune.support.axes import B1, B2, DIRECTIONAL_NOISE, EPS, MOMENTUM_NOISE, NOISE_SD, SECOND_MOMENT_NOISE

__all__ = ["AdamMCMCState", "adam_mcmc", "adam_mcmc_exact", "adam_mcmc_minibatch", "drift"]


class AdamMCMCState(NamedTuple):
    """The state of a chain.

    Attributes:
        position: theta.
        log_density: at ``position``, less a constant; the last minibatch's estimate where the test uses minibatches.
        gradient: the exact gradient of log pi at ``position``; () where each step estimates the gradient.
        m, v: the first and second moment of g, in the shape of the position.
        k: steps so far.
        acceptance: the outcomes of the tests.
        estimator: the state of the gradient estimator.
    """

    position: PyTree
    log_density: Float[Array, ""]
    gradient: PyTree
    m: PyTree
    v: PyTree
    k: Int[Array, ""]
    acceptance: Acceptance
    estimator: PyTree


def _dot(a: PyTree, b: PyTree) -> Float[Array, ""]:
    return sum(jax.tree.leaves(jax.tree.map(lambda x, y: jnp.sum(x * y), a, b)))


def _moments(m: PyTree, v: PyTree, gradient: PyTree, hyperparameters: dict) -> tuple[PyTree, PyTree]:
    """The moving averages of g and g^2, g = -``gradient``."""
    b1, b2 = hyperparameters["b1"], hyperparameters["b2"]
    return (
        jax.tree.map(lambda m, g: b1 * m - (1 - b1) * g, m, gradient),
        jax.tree.map(lambda v, g: b2 * v + (1 - b2) * g**2, v, gradient),
    )


def _update(m: PyTree, v: PyTree, hyperparameters: dict) -> PyTree:
    """u, from moments that are corrected already. (The second moments of ``exact`` may be negative.)"""
    gamma, eps = hyperparameters["step_size"], hyperparameters["eps"]
    return jax.tree.map(lambda m, v: gamma * m / (jnp.sqrt(jnp.abs(v)) + eps), m, v)


def drift(m: PyTree, v: PyTree, k: Int[Array, ""], hyperparameters: dict) -> PyTree:
    """u of step k of ``adam-mcmc``, from its moments; |u| is gamma sqrt(D) in the first step."""
    # 1 - b^k, which float32 would lose for k small and b near 1.
    first, second = (-jnp.expm1(k * jnp.log(hyperparameters[name])) for name in ("b1", "b2"))
    m, v = jax.tree.map(lambda m: m / first, m), jax.tree.map(lambda v: v / second, v)
    return _update(m, v, hyperparameters)


def _propose(key: PRNGKeyArray, position: PyTree, u: PyTree, hyperparameters: dict) -> PyTree:
    """theta' ~ N(theta - u, s^2 I + s_d^2 u u')."""
    isotropic_key, along_key = jax.random.split(key)
    s = hyperparameters["noise_sd"]
    along = hyperparameters["directional_noise"] * jax.random.normal(along_key, (), jnp.float32) - 1
    noise = noise_like(isotropic_key, position)
    return jax.tree.map(lambda x, u, w: x + s * w + along * u, position, u, noise)


def _log_proposal_ratio(
    position: PyTree, proposal: PyTree, u: PyTree, hyperparameters: dict
) -> Float[Array, ""]:
    """log N(theta; theta' - u, S) - log N(theta'; theta - u, S)."""
    variance = hyperparameters["noise_sd"] ** 2 + hyperparameters["directional_noise"] ** 2 * _dot(u, u)
    return 2 * _dot(u, jax.tree.map(jnp.subtract, proposal, position)) / variance


def _init(
    key: PRNGKeyArray,
    position: PyTree,
    estimator: PyTree,
    target: Target,
    hyperparameters: dict,
    of_minibatch: bool,
) -> AdamMCMCState:
    """A chain at ``position``, its moments zero."""
    zeros = jax.tree.map(jnp.zeros_like, position)
    here = target.minibatch_log_density(position, 0) if of_minibatch else target.log_density(position)
    return AdamMCMCState(position, here, (), zeros, zeros, jnp.int32(0), no_acceptance(), estimator)


def _step(
    key: PRNGKeyArray, state: AdamMCMCState, target: Target, hyperparameters: dict, of_minibatch: bool
) -> AdamMCMCState:
    """One proposal and its test, on all data or on the gradient's minibatch."""
    proposal_key, test_key = jax.random.split(key)
    gradient, estimator = target.gradient(state.position, 0, state.estimator)
    m, v = _moments(state.m, state.v, gradient, hyperparameters)
    k = state.k + 1
    u = drift(m, v, k, hyperparameters)
    position = _propose(proposal_key, state.position, u, hyperparameters)
    if of_minibatch:
        here = target.minibatch_log_density(state.position, 0)
        there = target.minibatch_log_density(position, 0)
    else:
        here, there = state.log_density, target.log_density(position)
    log_ratio = there - here + _log_proposal_ratio(state.position, position, u, hyperparameters)
    taken, acceptance = metropolis_step(
        test_key, log_ratio, state.acceptance, (position, there), (state.position, here)
    )
    return AdamMCMCState(*taken, (), m, v, k, acceptance, estimator)


def _noisy(key: PRNGKeyArray, tree: PyTree, sd: Float[Array, ""]) -> PyTree:
    return jax.tree.map(lambda x, z: x + sd * z, tree, noise_like(key, tree))


def _init_exact(
    key: PRNGKeyArray, position: PyTree, estimator: PyTree, target: Target, hyperparameters: dict
) -> AdamMCMCState:
    """A chain at ``position``, its moments drawn from their conditional density given ``position``."""
    log_density, gradient = target.log_density_and_gradient(position)
    first_key, second_key = jax.random.split(key)
    sds = (
        hyperparameters[noise] / jnp.sqrt(1 - hyperparameters[b] ** 2)
        for noise, b in (("momentum_noise", "b1"), ("second_moment_noise", "b2"))
    )
    m = _noisy(first_key, jax.tree.map(jnp.negative, gradient), next(sds))
    v = _noisy(second_key, jax.tree.map(jnp.square, gradient), next(sds))
    return AdamMCMCState(position, log_density, gradient, m, v, jnp.int32(0), no_acceptance(), estimator)


def _log_moments_ratio(
    m: PyTree, v: PyTree, gradient: PyTree, new_gradient: PyTree, hyperparameters: dict
) -> Float[Array, ""]:
    """log of N(m; g, t_1^2) N(v; g^2, t_2^2) at theta' over the same at theta; squares cancel analytically."""

    def ratio(moment, old, new, b, noise):
        precision = (1 - hyperparameters[b] ** 2) / hyperparameters[noise] ** 2
        difference = jax.tree.map(jnp.subtract, new, old)
        residual = jax.tree.map(lambda x, old, new: x - (old + new) / 2, moment, old, new)
        return precision * _dot(difference, residual)

    g, new_g = (jax.tree.map(jnp.negative, tree) for tree in (gradient, new_gradient))
    square, new_square = (jax.tree.map(jnp.square, tree) for tree in (gradient, new_gradient))
    return ratio(m, g, new_g, "b1", "momentum_noise") + ratio(
        v, square, new_square, "b2", "second_moment_noise"
    )


def _step_exact(
    key: PRNGKeyArray, state: AdamMCMCState, target: Target, hyperparameters: dict
) -> AdamMCMCState:
    """Noisy moments, one proposal and its test: one evaluation of log density and gradient, at the proposal."""
    proposal_key, test_key, first_key, second_key = jax.random.split(key, 4)
    m, v = _moments(state.m, state.v, state.gradient, hyperparameters)
    m = _noisy(first_key, m, hyperparameters["momentum_noise"])
    v = _noisy(second_key, v, hyperparameters["second_moment_noise"])
    u = _update(m, v, hyperparameters)
    position = _propose(proposal_key, state.position, u, hyperparameters)
    log_density, gradient = target.log_density_and_gradient(position)
    log_ratio = (
        log_density
        - state.log_density
        + _log_proposal_ratio(state.position, position, u, hyperparameters)
        + _log_moments_ratio(m, v, state.gradient, gradient, hyperparameters)
    )
    proposed = (position, log_density, gradient)
    current = (state.position, state.log_density, state.gradient)
    taken, acceptance = metropolis_step(test_key, log_ratio, state.acceptance, proposed, current)
    return AdamMCMCState(*taken, m, v, state.k + 1, acceptance, state.estimator)


RANDOM_WALK = 0.234
"""The acceptance rate to aim at: the optimum of a random walk (Roberts, Gelman and Gilks 1997). Both directions use the
same u, so the terms of first order do not cancel as they do in MALA, and s must fall as 1 / sqrt(D)."""

HYPERPARAMETERS = (NOISE_SD, DIRECTIONAL_NOISE, B1, B2, EPS)


_COMMON = {
    "uses_log_density": True,
    "statistics": acceptance_statistics,
    "optimal_acceptance": RANDOM_WALK,
    "step_size_power": 2,
    # The default sd of the noise is ten times the step size.
    "largest_step": 1.0,
}
_WHEN_STUCK = "try a smaller noise_sd, and a step_size smaller still"

adam_mcmc, adam_mcmc_minibatch = (
    Sampler(
        partial(_init, of_minibatch=of_minibatch),
        partial(_step, of_minibatch=of_minibatch),
        HYPERPARAMETERS,
        log_density_terms=terms,
        when_stuck=_WHEN_STUCK,
        **_COMMON,
    )
    # The minibatch's log density is computed at both ends of the step.
    for of_minibatch, terms in ((False, lambda n, n_data: n_data), (True, lambda n, n_data: 2 * n))
)
adam_mcmc_exact = Sampler(
    _init_exact,
    _step_exact,
    (*HYPERPARAMETERS, MOMENTUM_NOISE, SECOND_MOMENT_NOISE),
    needs_all_data=True,
    when_stuck=f"{_WHEN_STUCK}, or more momentum_noise and second_moment_noise",
    **_COMMON,
)
