"""Every registered sampler against its exact stationary distribution."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small_models import gaussian_model

from sgtune.samplers import SAMPLERS, resolve_sampler
from sgtune.samplers.target import Target
from sgtune.sampling.arm import Arm
from sgtune.sampling.lockstep import Lockstep

pytestmark = pytest.mark.optimised

PRECISION = np.array([[2.0, -1.2], [-1.2, 1.5]])
MEAN = np.array([0.5, -1.0])
COVARIANCE = np.linalg.inv(PRECISION)
N_DATA, WIDTH = 8, 128
N_LEAPFROG = 4


@pytest.fixture(scope="module")
def gaussian():
    return gaussian_model(PRECISION, MEAN, N_DATA)


def arm_of(name, step_size=0.05, batch_size=N_DATA):
    return Arm(step_size, batch_size, N_LEAPFROG if resolve_sampler(name)[0].has_leapfrog else None)


def independent_draws(model, name, arm, *, n_steps, burn_in, overrides=None, seed=0, stride=1):
    """(n, WIDTH, D) draws of independent chains of one step size, relative to the mean.

    A chain's noise depends on its arm. Step sizes that are equal in float32 but not in float64 are one step size for
    the program, but have different noise.
    """
    step_size = float(np.float32(arm.step_size))
    arms = [Arm(**{**arm, "step_size": step_size * (1 + 1e-12 * k)}) for k in range(WIDTH)]
    assert len({np.float32(one.step_size) for one in arms}) == 1
    assert len({one.step_size for one in arms}) == WIDTH
    start = jnp.asarray(MEAN, jnp.float32)
    chains = Lockstep.at_mode(model, name, arms, seed=seed, position=start, overrides=overrides)
    chains.advance(burn_in, burn_in)
    return chains.advance(n_steps, stride).astype(np.float64) - MEAN


def mean_and_error(per_chain):
    """The mean of values (WIDTH, ...) over chains, and its standard error."""
    return per_chain.mean(0), per_chain.std(0, ddof=1) / np.sqrt(len(per_chain))


def covariance_and_error(draws):
    return mean_and_error(np.einsum("nwi,nwj->wij", draws, draws) / len(draws))


def stationary(transition, noise):
    """The solution C of C = A C A' + Q."""
    assert np.abs(np.linalg.eigvals(transition)).max() < 1
    d = len(transition)
    vector = np.linalg.solve(np.eye(d * d) - np.kron(transition, transition), noise.ravel())
    return vector.reshape(d, d)


def sgld_covariance(h, **_):
    return stationary(np.eye(2) - h * PRECISION, 2 * h * np.eye(2))


def sghmc_covariance(order, h, friction=0.01, noise_estimate=0.0):
    """One sample as a linear map of (theta - mean, v), with a new v ~ N(0, h I) and the friction's noise."""
    eye, zero = np.eye(2), np.zeros((2, 2))
    drift = np.block([[eye, eye], [zero, eye]])

    def kick(length):
        matrix = np.block([[eye, zero], [-length * h * PRECISION, (1 - length * friction) * eye]])
        return matrix, length * 2 * (friction - noise_estimate) * h

    transition, noise = np.eye(4), np.zeros((4, 4))

    def apply(matrix, variance=0.0):
        nonlocal transition, noise
        transition, noise = matrix @ transition, matrix @ noise @ matrix.T
        noise[2:, 2:] += variance * eye

    for i in range(N_LEAPFROG):
        if order == "leapfrog":
            apply(*kick(0.5 if i == 0 else 1.0))
            apply(drift)
        elif order == "chen":
            apply(drift)
            apply(*kick(1.0))
        else:
            matrix, variance = kick(1.0)
            matrix[:2, 2:] = eye
            apply(matrix, variance)
    of_theta, of_v = transition[:2, :2], transition[:2, 2:]
    return stationary(of_theta, noise[:2, :2] + h * of_v @ of_v.T)


def langevin_covariance(h, friction=1.0):
    """theta <- theta + h p, p <- p + h grad - h A p + N(0, 2 A h I), where theta is the position of the gradient."""
    eye, zero = np.eye(2), np.zeros((2, 2))
    drift = np.block([[eye, h * eye], [zero, eye]])
    kick = np.block([[eye, zero], [-h * PRECISION, (1 - h * friction) * eye]])
    noise = np.block([[zero, zero], [zero, 2 * friction * h * eye]])
    return stationary(kick @ drift, noise)[:2, :2]


EXACT = {
    "sgld": sgld_covariance,
    "sghmc": lambda h, **others: sghmc_covariance("leapfrog", h, **others),
    "sghmc-chen": lambda h, **others: sghmc_covariance("chen", h, **others),
    "sghmc-as-published": lambda h, **others: sghmc_covariance("as published", h, **others),
    "sghmc-shang": langevin_covariance,
    "sghmc-shang-diagonal": langevin_covariance,
    "sghmc-shang-lazy": langevin_covariance,
}
# Samplers with a Metropolis test are not linear recursions: their invariant densities are tested in test_invariance.
BIASED = {
    *("sgnht", "sgnht-shang", "ccadl", "ccadl-diagonal", "ccadl-as-published", "mccadl", "mccadl-diagonal"),
    *("adam-mcmc", "adam-mcmc-minibatch"),
}
UNBIASED = {"mala", "hmc", "adam-mcmc-exact"}
STEP_SIZES = {"sgld": 0.2, "sghmc-shang": 0.5, "sghmc-shang-diagonal": 0.5, "sghmc-shang-lazy": 0.5}
"""Samplers that are close to the target at step size 0.05."""


def test_every_sampler_of_the_registry_is_tested():
    assert set(EXACT) | BIASED | UNBIASED == set(SAMPLERS)


def overrides_of(name):
    axes = {axis.name for axis in resolve_sampler(name)[0].axes}
    return {"friction": 0.1, "noise_estimate": 0.04} if "noise_estimate" in axes else {}


@pytest.mark.parametrize("name", EXACT)
def test_covariance_agrees_with_the_linear_recursion(gaussian, name):
    step_size, overrides = STEP_SIZES.get(name, 0.05), overrides_of(name)
    draws = independent_draws(
        gaussian, name, arm_of(name, step_size), n_steps=4_000, burn_in=300, overrides=overrides
    )
    covariance, error = covariance_and_error(draws)

    def z(exact):
        return np.abs((covariance - exact) / error).max()

    assert z(EXACT[name](step_size, **overrides)) < 4.5
    # The test can distinguish the samplers, their noise, and each sampler from the target.
    assert z(COVARIANCE) > 6
    if overrides:
        others = [other for other in EXACT if other != name and overrides_of(other)]
        assert all(z(EXACT[other](step_size, **overrides)) > 6 for other in others)
        assert z(EXACT[name](step_size, friction=0.1)) > 6
    mean, error = mean_and_error(draws.mean(0))
    assert (np.abs(mean) < 4.5 * error).all()


@pytest.mark.proof
def test_sgnht_has_a_bias_that_falls_with_the_step_size(gaussian):
    def bias(h):
        draws = independent_draws(gaussian, "sgnht", Arm(h, N_DATA), n_steps=20_000, burn_in=1_000, stride=4)
        per_chain = np.einsum("nwi,ij,nwj->w", draws, PRECISION, draws) / (2 * len(draws)) - 1
        mean, error = mean_and_error(draws.mean(0))
        assert (np.abs(mean) < 4.5 * error).all()
        return mean_and_error(per_chain)

    (small, small_error), (large, large_error) = bias(0.01), bias(0.04)
    assert abs(small) + 5 * np.hypot(small_error, large_error) < abs(large)
    assert abs(small) < 0.04
    # After subtracting a bias linear in h, the target itself remains.
    assert abs((4 * small - large) / 3) < 5 * np.hypot(4 * small_error, large_error) / 3


def test_sgnht_step_is_the_update_of_ding_et_al():
    """v' ~ N(v + h grad - alpha v, 2 a h I), theta' = theta + v', alpha' = alpha + |v'|^2 / D - h, over a pytree."""
    h, friction, n = 0.03, 0.05, 100_000
    hyperparameters = {"step_size": jnp.float32(h), "friction": jnp.float32(friction)}
    position = {"a": jnp.array([1.0, -2.0]), "b": jnp.array([[0.5]])}
    gradient = {"a": jnp.array([3.0, 1.0]), "b": jnp.array([[-4.0]])}
    sampler = SAMPLERS["sgnht"]
    target = Target(lambda position, i, estimator: (gradient, estimator))
    first = sampler.init(jax.random.key(0), position, (), target, hyperparameters)
    assert float(first.thermostat) == pytest.approx(friction)
    momentum = {"a": jnp.array([0.2, -0.3]), "b": jnp.array([[0.1]])}
    state = first._replace(momentum=momentum, thermostat=jnp.float32(0.7))
    step = jax.vmap(lambda key: sampler.step(key, state, target, hyperparameters))
    after = step(jax.random.split(jax.random.key(1), n))

    def flat(tree):
        return np.concatenate([np.asarray(tree["a"]).reshape(-1, 2), np.asarray(tree["b"]).reshape(-1, 1)], 1)

    moved = flat(after.position) - flat(position)
    np.testing.assert_allclose(moved, flat(after.momentum), atol=1e-6)
    expected = 0.7 + np.mean(flat(after.momentum) ** 2, axis=1) - h
    np.testing.assert_allclose(after.thermostat, expected, rtol=1e-5)
    mean = 0.3 * flat(momentum)[0] + h * flat(gradient)[0]
    variance = 2 * friction * h
    assert (np.abs(moved.mean(0) - mean) < 4.5 * np.sqrt(variance / n)).all()
    errors = np.where(np.eye(3), np.sqrt(2 / n), np.sqrt(1 / n)) * variance
    assert (np.abs(np.cov(moved.T) - variance * np.eye(3)) < 4.5 * errors).all()
    starts = jax.vmap(lambda key: sampler.init(key, position, (), target, hyperparameters))(
        jax.random.split(jax.random.key(2), n)
    )
    assert np.abs(np.mean(flat(starts.momentum) ** 2, axis=0) / h - 1).max() < 4.5 * np.sqrt(2 / n)
