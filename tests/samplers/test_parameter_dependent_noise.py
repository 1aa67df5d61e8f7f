"""Long runs of many chains on N(0, I) with gradient noise whose covariance is supplied exactly."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from known_targets import SIGMAS, target_with_noise

from sgtune.samplers import SAMPLERS
from sgtune.samplers.sghmc_shang import clipped_statistics

pytestmark = [pytest.mark.optimised, pytest.mark.proof]

STEP_SIZE, HEIGHT = 0.01, 1_000.0
SHAPE_ROOT = np.linalg.cholesky(np.array([[1.0, 0.5], [0.5, 1.0]]))
LARGEST_HALF_NOISE = STEP_SIZE * HEIGHT / 2 * 1.5
"""The supremum of the eigenvalues of h Sigma(theta) / 2."""
N_CHAINS, N_STEPS, BURN_IN = 384, 6_000, 1_000


def root_at(position):
    """Correlated, and up to 1,000 times as strong on the right as on the left. At h = 0.01 its heating, h Sigma / 2, is
    up to 7 times the friction A = 1."""
    return jnp.sqrt(HEIGHT * jax.nn.sigmoid(4 * position[0])) * jnp.asarray(SHAPE_ROOT, jnp.float32)


def target_of(key):
    """The target of one step: the score -x plus the root times standard normals."""
    return target_with_noise(
        lambda position: -position + root_at(position) @ jax.random.normal(key, position.shape),
        lambda position: root_at(position) @ root_at(position).T,
    )


def moments(position):
    return jnp.concatenate([position, position**2, position[:1] * position[1:]])


def deviations(name, friction=1.0):
    """Deviations of the moments from the target's, in standard errors over chains; and the chains' states."""
    sampler, numbers = SAMPLERS[name], {"step_size": STEP_SIZE, "friction": friction, "kappa": 1.0}

    @jax.jit
    @jax.vmap
    def run(key, numbers):
        start_key, init_key, step_key, noise_key = jax.random.split(key, 4)
        position = jax.random.normal(start_key, (2,))
        state = sampler.init(init_key, position, (), target_of(noise_key), numbers)

        def body(t, carry):
            state, total = carry
            target = target_of(jax.random.fold_in(noise_key, t))
            state = sampler.step(jax.random.fold_in(step_key, t), state, target, numbers)
            return state, total + jnp.where(t >= BURN_IN, moments(state.position), 0.0) / N_STEPS

        return jax.lax.fori_loop(0, BURN_IN + N_STEPS, body, (state, jnp.zeros(5)))

    each = {name: jnp.full(N_CHAINS, number, jnp.float32) for name, number in numbers.items()}
    states, found = run(jax.random.split(jax.random.key(0), N_CHAINS), each)
    found = np.asarray(found, np.float64)
    error = found.std(0, ddof=1) / np.sqrt(N_CHAINS)
    return (found.mean(0) - [0, 0, 1, 1, 0]) / error, states


@pytest.mark.parametrize("name", ["ccadl", "mccadl"])
def test_a_covariance_that_follows_the_chain_keeps_the_target(name):
    assert np.abs(deviations(name)[0]).max() < SIGMAS


def test_sghmc_keeps_the_target_as_long_as_its_friction_suffices():
    z, states = deviations("sghmc-shang", friction=LARGEST_HALF_NOISE)
    assert np.abs(z).max() < SIGMAS
    assert (clipped_statistics(states)["clipped_share"] == 0).all()
