"""Long runs of many chains on N(0, I) with gradient noise whose covariance is supplied exactly."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sgtune.samplers import SAMPLERS
from sgtune.samplers.sghmc_shang import clipped_statistics
from sgtune.samplers.target import Target

pytestmark = [pytest.mark.optimised, pytest.mark.proof]

SIGMAS = 4.5


def target_of(root, key):
    """The target of one step: the score -x plus ``root(x)`` (D, D) times standard normals."""

    def noisy(position):
        return -position + root(position) @ jax.random.normal(key, position.shape)

    def with_covariance(position, i, state, form):
        covariance = root(position) @ root(position).T
        return noisy(position), covariance if form == "full" else jnp.diag(covariance), state

    return Target(
        lambda position, i, state: (noisy(position), state), gradient_with_covariance=with_covariance
    )


@partial(jax.jit, static_argnums=(0, 1, 2, 3, 4, 5, 6))
def run(sampler, root, functions, dimension, n_chains, n_steps, burn_in, hyperparameters):
    """The mean of ``functions(x)`` over the last ``n_steps`` draws of each chain, and the chains' states."""

    def one_chain(key):
        start_key, init_key, step_key, noise_key = jax.random.split(key, 4)
        position = jax.random.normal(start_key, (dimension,))
        state = sampler.init(init_key, position, (), target_of(root, noise_key), hyperparameters)

        def body(t, carry):
            state, total = carry
            target = target_of(root, jax.random.fold_in(noise_key, t))
            state = sampler.step(jax.random.fold_in(step_key, t), state, target, hyperparameters)
            return state, total + jnp.where(t >= burn_in, functions(state.position), 0.0) / n_steps

        zeros = jnp.zeros(jax.eval_shape(functions, position).shape)
        state, mean = jax.lax.fori_loop(0, burn_in + n_steps, body, (state, zeros))
        return mean, state

    return jax.vmap(one_chain)(jax.random.split(jax.random.key(0), n_chains))


def means_and_errors(name, *options, **hyperparameters):
    """Means over chains with standard errors, and the chains' states; ``options`` are those of `run`."""
    numbers = {"friction": 1.0, "kappa": 1.0, **hyperparameters}
    numbers = {name: jnp.float32(number) for name, number in numbers.items()}
    found, states = run(SAMPLERS[name], *options, numbers)
    found = np.asarray(found, np.float64)
    return found.mean(0), found.std(0, ddof=1) / np.sqrt(len(found)), states


STEP_SIZE, HEIGHT = 0.01, 1_000.0
SHAPE_ROOT = np.linalg.cholesky(np.array([[1.0, 0.5], [0.5, 1.0]]))
LARGEST_HALF_NOISE = STEP_SIZE * HEIGHT / 2 * 1.5
"""The supremum of the eigenvalues of h Sigma(theta) / 2."""


def steep_root(position):
    """Correlated, and up to 1,000 times as strong on the right as on the left. At h = 0.01 its heating, h Sigma / 2, is
    up to 7 times the friction A = 1."""
    return jnp.sqrt(HEIGHT * jax.nn.sigmoid(4 * position[0])) * jnp.asarray(SHAPE_ROOT, jnp.float32)


def moments(position):
    return jnp.concatenate([position, position**2, position[:1] * position[1:]])


def deviations(name, **hyperparameters):
    """Deviations of the moments from the target's, in standard errors; and the states."""
    options = (steep_root, moments, 2, 384, 6_000, 1_000)
    mean, error, states = means_and_errors(name, *options, step_size=STEP_SIZE, **hyperparameters)
    return (mean - [0, 0, 1, 1, 0]) / error, states


@pytest.mark.parametrize("name", ["ccadl", "mccadl"])
def test_a_covariance_that_follows_the_chain_keeps_the_target(name):
    assert np.abs(deviations(name)[0]).max() < SIGMAS


def test_sghmc_keeps_the_target_as_long_as_its_friction_suffices():
    z, states = deviations("sghmc-shang", friction=LARGEST_HALF_NOISE)
    assert np.abs(z).max() < SIGMAS
    statistics = clipped_statistics(states)
    assert (statistics["clipped_share"] == 0).all()
