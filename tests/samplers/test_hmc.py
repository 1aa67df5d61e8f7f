"""HMC step by step, and MALA with another drift; their invariant densities are tested in test_invariance."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from known_targets import curved as log_density
from known_targets import gradient_of_curved as gradient_of
from small_models import gaussian_model

from sgtune import Budget, sample
from sgtune.samplers import SAMPLERS
from sgtune.samplers.target import Target
from sgtune.sampling.arm import Arm
from sgtune.sampling.lockstep import data_terms

START = jnp.array([0.9, -1.4, 0.6])
H, LEAPFROGS = 0.05, 4


def steps_of(name, numbers, n_steps, seed=1):
    """The proposals and the states after one step each from the same state."""
    gradient = jax.grad(log_density)
    target = Target(
        lambda x, i, state: (gradient(x), state), log_density_and_gradient=jax.value_and_grad(log_density)
    )
    sampler = SAMPLERS[name]
    start = jax.jit(lambda: sampler.init(jax.random.key(0), START, (), target, numbers))()
    # With a modified log density at the start, every proposal is accepted, so states show the proposals.
    lower = start._replace(log_density=jnp.float32(-1e6))
    keys = jax.random.split(jax.random.key(seed), n_steps)
    step = jax.jit(jax.vmap(lambda key, state: sampler.step(key, state, target, numbers), (0, None)))
    tried, taken = step(keys, start), step(keys, lower)
    assert taken.acceptance.is_accepted.all()
    return np.asarray(taken.position, np.float64), tried


def hmc_numbers(h=H, n_leapfrog=LEAPFROGS):
    return {"step_size": jnp.float32(h), "n_leapfrog": jnp.int32(n_leapfrog)}


def leapfrogs(x, v, n_leapfrog=LEAPFROGS):
    """Leapfrogs in float64, as in a textbook."""
    v = v + H / 2 * gradient_of(x)
    for i in range(n_leapfrog):
        x = x + v
        v = v + (H if i < n_leapfrog - 1 else H / 2) * gradient_of(x)
    return x, v


def test_a_sample_is_leapfrogs_of_a_fresh_momentum_and_a_test_of_the_energy():
    proposals, tried = steps_of("hmc", hmc_numbers(), 300)
    here = np.asarray(START, np.float64)
    keys = jax.random.split(jax.random.key(1), 300)
    noise = jax.jit(jax.vmap(lambda key: jax.random.normal(jax.random.split(key)[0], (3,))))(keys)
    probabilities = []
    for normal, proposal in zip(np.asarray(noise, np.float64), proposals, strict=True):
        momentum = np.sqrt(H) * normal
        x, v = leapfrogs(here, momentum)
        np.testing.assert_allclose(proposal, x, atol=2e-5)
        energy = (v @ v - momentum @ momentum) / (2 * H) - log_density(x, np) + log_density(here, np)
        probabilities.append(min(1.0, np.exp(-energy)))
    found = np.asarray(tried.acceptance.probability, np.float64)
    np.testing.assert_allclose(found, probabilities, rtol=1e-3)
    assert np.ptp(probabilities) > 0.1


@pytest.mark.parametrize("drift", [0.05, 0.6])
def test_mala_with_a_separate_drift(drift):
    """The probability is computed in float64 from both proposal densities N(theta + drift grad, 2 e I)."""
    e = 0.3
    numbers = {"step_size": jnp.float32(e), "drift": jnp.float32(drift)}
    proposals, tried = steps_of("mala", numbers, 300)
    here = np.asarray(START, np.float64)
    noise = (proposals - here - drift * gradient_of(here)) / np.sqrt(2 * e)
    assert abs(np.mean(noise**2) - 1) < 4.5 * np.sqrt(2 / noise.size)
    assert abs(noise.mean()) < 4.5 / np.sqrt(noise.size)

    def log_proposal(x, given):
        return -np.sum((x - given - drift * gradient_of(given)) ** 2) / (4 * e)

    ratios = [
        log_density(there, np) - log_density(here, np) + log_proposal(here, there) - log_proposal(there, here)
        for there in proposals
    ]
    found = np.asarray(tried.acceptance.probability, np.float64)
    np.testing.assert_allclose(found, np.exp(np.minimum(0, ratios)), rtol=2e-3, atol=1e-5)
    assert np.ptp(found) > 0.5


def test_the_drift_of_mala_is_its_step_size_unless_given():
    """The default gives the same draws as drift = step_size."""
    model = gaussian_model([[2.0, -1.2], [-1.2, 1.5]], [0.5, -1.0])
    options = {"step_size": 0.3, "batch_size": 8, "budget": Budget(steps=50)}
    plain = sample(model, "mala", **options)
    assert (sample(model, "mala", drift=0.3, **options).draws == plain.draws).all()
    assert (sample(model, "mala", drift=0.2, **options).draws != plain.draws).any()


def test_budgets_of_gradients_count_the_data_of_tests():
    """A test on all data costs a pass over them; a test on a minibatch evaluates it at both ends of the step."""
    model = gaussian_model([[2.0, -1.2], [-1.2, 1.5]], [0.5, -1.0])
    assert data_terms(model, "mala", Arm(0.1, 8)) == 8
    assert data_terms(model, "hmc", Arm(0.1, 8, 5)) == 40
    assert data_terms(model, "adam-mcmc-exact", Arm(0.1, 8)) == 8
    assert data_terms(model, "adam-mcmc", Arm(0.1, 2)) == 2 + 8
    assert data_terms(model, "adam-mcmc-cv", Arm(0.1, 2)) == 4 + 8
    assert data_terms(model, "adam-mcmc-minibatch", Arm(0.1, 2)) == 2 + 4
    assert (
        sample(model, "adam-mcmc", step_size=0.1, batch_size=2, budget=Budget(gradients=101)).n_samples == 10
    )
