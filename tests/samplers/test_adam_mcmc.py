"""AdamMCMC step by step, against float64 by hand; its invariant density is tested in test_invariance."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from known_targets import SIGMAS
from known_targets import curved as log_density
from known_targets import gradient_of_curved as gradient_of
from scipy.stats import multivariate_normal, norm

from sgtune.samplers import SAMPLERS
from sgtune.samplers.target import Target

START = {"a": jnp.array([0.9, -1.4]), "b": jnp.array([[0.6]])}
NUMBERS = {
    **{"step_size": 0.3, "noise_sd": 0.4, "directional_noise": 1.5, "b1": 0.7, "b2": 0.8, "eps": 0.05},
    **{"momentum_noise": 2.0, "second_moment_noise": 3.0},
}
GAMMA, S, S_D, B1, B2, DELTA, RHO_1, RHO_2 = NUMBERS.values()
TRACED = {name: jnp.float32(number) for name, number in NUMBERS.items()}
# The error of the gradient's estimate: not zero, so that a test can distinguish it from the exact gradient.
ESTIMATE_IS_OFF = np.array([0.3, -0.2, 0.5])


def float64(position):
    return np.asarray(ravel_pytree(position)[0], np.float64)


def unravel(flat):
    return ravel_pytree(START)[1](jnp.asarray(flat, jnp.float32))


@jax.jit
def value_and_gradient(position):
    return jax.value_and_grad(lambda position: log_density(ravel_pytree(position)[0]))(position)


def recording_target(asked):
    """A target that adds its calls to ``asked``; log densities of minibatches have a linear error, another one for each
    minibatch."""

    def recorded(kind, function):
        def ask(position):
            asked.append((kind, position))
            return function(position)

        return ask

    def estimate(position, i, estimator):
        return jax.tree.map(jnp.add, value_and_gradient(position)[1], unravel(ESTIMATE_IS_OFF)), estimator

    def value(position):
        return value_and_gradient(position)[0]

    return Target(
        estimate,
        recorded("full", value),
        recorded("with gradient", value_and_gradient),
        lambda position, i: recorded("minibatch", value)(position) + 0.4 * (1 + i) * position["a"][0],
    )


def steps_of(name, n_steps):
    """(state before, calls during the step, state after) of steps along one chain."""
    asked, sampler = [], SAMPLERS[name]
    target = recording_target(asked)
    state = sampler.init(jax.random.key(0), START, (), target, TRACED)
    made = []
    for key in jax.random.split(jax.random.key(1), n_steps):
        asked.clear()
        after = sampler.step(key, state, target, TRACED)
        made.append((state, list(asked), after))
        state = after
    return made


@pytest.fixture(scope="module", params=["adam-mcmc", "adam-mcmc-minibatch", "adam-mcmc-exact"])
def chain(request):
    return request.param, steps_of(request.param, 80)


def moments_by_hand(before, name):
    """m and v after the step (without noise for the exact sampler), and g."""
    here = float64(before.position)
    g = -gradient_of(here) - (0 if name == "adam-mcmc-exact" else ESTIMATE_IS_OFF)
    return B1 * float64(before.m) + (1 - B1) * g, B2 * float64(before.v) + (1 - B2) * g**2


def update_by_hand(after, name):
    m, v, k = float64(after.m), float64(after.v), int(after.k)
    if name == "adam-mcmc-exact":
        return GAMMA * m / (np.sqrt(np.abs(v)) + DELTA)
    return GAMMA * (m / (1 - B1**k)) / (np.sqrt(v / (1 - B2**k)) + DELTA)


def test_moments_are_adams(chain):
    """The moments of the exact variant have additional noise with sds rho_1 and rho_2."""
    name, made = chain
    assert all(after.k == before.k + 1 for before, _, after in made)
    found = np.array([[float64(after.m), float64(after.v)] for _, _, after in made])
    residuals = found - [moments_by_hand(before, name) for before, _, _ in made]
    if name != "adam-mcmc-exact":
        np.testing.assert_allclose(residuals, 0, atol=1e-4)
        return
    for noise in (residuals[:, 0] / RHO_1, residuals[:, 1] / RHO_2):
        assert abs(np.mean(noise**2) - 1) < SIGMAS * np.sqrt(2 / noise.size)
        assert abs(noise.mean()) < SIGMAS / np.sqrt(noise.size)


def test_the_acceptance_probability_agrees_with_dense_covariances_in_float64(chain):
    """The proposals' ratio is N(theta; tau - u, S) / N(tau; theta - u, S) with the matrix S = s^2 I + s_d^2 u u'."""
    name, made = chain
    found, expected, without_proposals = [], [], []
    for before, asked, after in made:
        kinds = {
            "adam-mcmc": ["full"],
            "adam-mcmc-minibatch": ["minibatch"] * 2,
            "adam-mcmc-exact": ["with gradient"],
        }
        assert [kind for kind, _ in asked] == kinds[name]
        here, there = float64(before.position), float64(asked[-1][1])
        u = update_by_hand(after, name)
        covariance = S**2 * np.eye(3) + S_D**2 * np.outer(u, u)
        back = multivariate_normal(there - u, covariance).logpdf(here)
        forth = multivariate_normal(here - u, covariance).logpdf(there)
        difference = log_density(there, np) - log_density(here, np)
        if name == "adam-mcmc-minibatch":
            difference += 0.4 * (there[0] - here[0])
        if name == "adam-mcmc-exact":
            for place, sign in ((there, 1), (here, -1)):
                g = -gradient_of(place)
                difference += sign * norm(g, RHO_1 / np.sqrt(1 - B1**2)).logpdf(float64(after.m)).sum()
                difference += sign * norm(g**2, RHO_2 / np.sqrt(1 - B2**2)).logpdf(float64(after.v)).sum()
        found.append(float(after.acceptance.probability))
        expected.append(np.exp(min(0.0, difference + back - forth)))
        without_proposals.append(np.exp(min(0.0, difference)))
    np.testing.assert_allclose(found, expected, rtol=2e-3, atol=1e-5)
    # In these steps the ratio differs from the ratio of the densities alone, and some probabilities are not 0 or 1.
    assert np.abs(np.array(expected) - without_proposals).max() > 0.3
    assert sum(0.02 < probability < 0.98 for probability in found) > 10


def test_theta_moves_or_stays_and_the_moments_are_always_updated(chain):
    name, made = chain
    accepted = [bool(after.acceptance.is_accepted) for _, _, after in made]
    assert 5 < sum(accepted) < len(made) - 5
    since = 0
    for before, asked, after in made:
        moved = after.acceptance.is_accepted
        expected = asked[-1][1] if moved else before.position
        np.testing.assert_array_equal(float64(after.position), float64(expected))
        assert np.abs(float64(after.m) - float64(before.m)).min() > 0
        since = 0 if moved else since + 1
        assert after.acceptance.n_since == since
        if name != "adam-mcmc-minibatch":
            assert after.log_density == pytest.approx(log_density(float64(after.position), np), abs=1e-5)
        if name == "adam-mcmc-exact":
            np.testing.assert_allclose(
                float64(after.gradient), gradient_of(float64(after.position)), atol=1e-4
            )
    assert made[-1][2].acceptance.longest == max(int(after.acceptance.n_since) for _, _, after in made)


@pytest.mark.parametrize("s_d", [0.0, 1.5])
def test_a_proposal_has_one_normal_along_the_update(s_d):
    """20,000 proposals from one state have the moments of N(theta - u, s^2 I + s_d^2 u u')."""
    g = np.array([0.5, -1.0, 2.0])
    seen = Target(lambda position, i, estimator: (unravel(-g), estimator), lambda position: jnp.float32(0))
    sampler, numbers = SAMPLERS["adam-mcmc"], {**TRACED, "directional_noise": jnp.float32(s_d)}
    state = sampler.init(jax.random.key(0), START, (), seen, numbers)
    step = jax.jit(jax.vmap(lambda key: sampler.step(key, state, seen, numbers)))
    after = step(jax.random.split(jax.random.key(3), 20_000))
    # At the first step u = gamma g / (|g| + delta).
    u = GAMMA * g / (np.abs(g) + DELTA)
    covariance = S**2 * np.eye(3) + s_d**2 * np.outer(u, u)
    flat = np.concatenate([np.asarray(after.position["a"]), np.asarray(after.position["b"])[:, :, 0]], axis=1)
    off = flat.astype(np.float64) - float64(START) + u
    # Rejected proposals are not in the chain: weight accepted ones by 1 / probability.
    weights = np.asarray(after.acceptance.is_accepted) / np.asarray(after.acceptance.probability, np.float64)
    products = (off[:, :, None] * off[:, None, :] - covariance).reshape(-1, 9)
    weighted = weights[:, None] * np.column_stack([off, products])
    error = weighted.std(axis=0) / np.sqrt(len(weighted))
    assert (np.abs(weighted.mean(axis=0)) < SIGMAS * error).all()
