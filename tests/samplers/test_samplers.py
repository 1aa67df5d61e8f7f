"""Every registered sampler against its exact stationary distribution."""

import jax.numpy as jnp
import numpy as np
import pytest
from small_models import gaussian_model

from sgtune.samplers import SAMPLERS, resolve_sampler
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
