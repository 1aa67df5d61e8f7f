"""Proposition 2 of the CCAdL paper: gradient noise whose covariance Sigma(theta), supplied exactly, is not constant.

The target is N(0, I) in two dimensions. The noise is correlated, and up to 1,000 times as strong on the right as on the
left. At h = 0.01 its heating, h Sigma / 2, is up to 7 times the friction A = 1.
"""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from injected_noise import SIGMAS, ensemble_means

from sgtune.samplers import SAMPLERS, check_not_clipped
from sgtune.samplers.sghmc_shang import clipped_statistics

pytestmark = [pytest.mark.optimised, pytest.mark.proof]

STEP_SIZE, HEIGHT = 0.01, 1_000.0
SHAPE_ROOT = np.linalg.cholesky(np.array([[1.0, 0.5], [0.5, 1.0]]))
LARGEST_HALF_NOISE = STEP_SIZE * HEIGHT / 2 * 1.5
"""The supremum of the eigenvalues of h Sigma(theta) / 2."""

EXACT = np.array([0.0, 0.0, 1.0, 1.0, 0.0])


def score(position):
    return -position


def root(position):
    return jnp.sqrt(HEIGHT * jax.nn.sigmoid(4 * position[0])) * jnp.asarray(SHAPE_ROOT, jnp.float32)


def moments(position):
    return jnp.concatenate([position, position**2, position[:1] * position[1:]])


@cache
def deviations(name, n_chains=384, n_steps=6_000, **hyperparameters):
    """Deviations of the moments from the target's, in standard errors; the deviations; and the statistics."""
    mean, error, states = ensemble_means(
        *(SAMPLERS[name], score, root, moments, jnp.zeros(2), n_chains, n_steps, 1_000),
        **{"step_size": STEP_SIZE, "friction": 1.0, "kappa": 1.0, **hyperparameters},
    )
    return (mean - EXACT) / error, mean - EXACT, states


@pytest.mark.parametrize("name", ["ccadl", "mccadl"])
def test_a_covariance_that_follows_the_chain_keeps_the_target(name):
    z, _, _ = deviations(name)
    assert np.abs(z).max() < SIGMAS


def test_sgnht_does_not_keep_the_target():
    """The thermostat cools both sides equally, so the chain moves to the right, and the noise correlates it."""
    z, _, _ = deviations("sgnht-shang")
    assert min(z[0], z[4]) > 3 * SIGMAS


def test_sghmc_keeps_the_target_as_long_as_its_friction_suffices():
    z, _, states = deviations("sghmc-shang", friction=LARGEST_HALF_NOISE)
    assert np.abs(z).max() < SIGMAS
    statistics = clipped_statistics(states)
    assert (statistics["clipped_share"] == 0).all()
    check_not_clipped(statistics)
