"""Samplers with a Metropolis test: HMC and MALA step by step, numbers of arms, messages and statistics; their invariant
densities are tested in test_invariance."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from known_targets import SIGMAS
from known_targets import curved as log_density
from known_targets import gradient_of_curved as gradient_of
from small_models import gaussian_model

from sgtune import Arm, Budget, InputError, sample
from sgtune.samplers import SAMPLERS
from sgtune.samplers.metropolis import FEWEST_TESTS, STUCK
from sgtune.samplers.target import Target
from sgtune.sampling.lockstep import Lockstep, data_terms, independent_chains


@pytest.fixture(scope="module")
def gaussian():
    return gaussian_model([[2.0, -1.2], [-1.2, 1.5]], [0.5, -1.0])


def test_missing_numbers_of_an_arm_follow_from_the_given_ones(gaussian):
    """s is 10 gamma; rho_1 and rho_2 are such that the moments' sds are 1 / s and 1 / s^2; MALA's drift is its step."""
    arms = [Arm(0.1, 8), Arm(0.2, 8, noise_sd=0.5), Arm(0.3, 8, noise_sd=0.4, b1=0.6, momentum_noise=7.0)]
    found = Lockstep(gaussian, "adam-mcmc-exact", arms).hyperparameters
    np.testing.assert_allclose(found["noise_sd"], [1.0, 0.5, 0.4])
    np.testing.assert_allclose(found["b1"], [0.9, 0.9, 0.6])
    np.testing.assert_allclose(found["momentum_noise"], [np.sqrt(0.19), np.sqrt(0.19) / 0.5, 7.0])
    second = np.sqrt(1 - 0.999**2) / np.array([1.0, 0.5, 0.4]) ** 2
    np.testing.assert_allclose(found["second_moment_noise"], second, rtol=1e-6)
    assert float(found["directional_noise"]) == 1.0
    given = Lockstep(gaussian, "adam-mcmc", [Arm(0.1, 8)], overrides={"noise_sd": 0.3})
    np.testing.assert_allclose(given.hyperparameters["noise_sd"], 0.3)
    drifts = Lockstep(gaussian, "mala", [Arm(0.3, 8), Arm(0.3, 8, drift=0.2)]).hyperparameters["drift"]
    np.testing.assert_allclose(drifts, [0.3, 0.2])


SETTINGS = {
    "mala": ("step_size", {}),
    "hmc": ("step_size", {"n_leapfrog": 2}),
    "adam-mcmc": ("noise_sd", {}),
    "adam-mcmc-exact": ("momentum_noise", {}),
    "adam-mcmc-minibatch": ("noise_sd", {}),
}


@pytest.mark.parametrize("sampler", SETTINGS)
def test_a_chain_that_accepts_nothing_is_reported_with_the_setting_to_change(gaussian, sampler):
    setting, further = SETTINGS[sampler]
    arm = {"step_size": 1e4, "batch_size": 8, **further}
    with pytest.warns(UserWarning, match="no proposal was accepted") as said:
        stuck = sample(gaussian, sampler, **arm, budget=Budget(steps=STUCK + 200))
    assert (stuck.draws == stuck.draws[0]).all()
    (line,) = stuck.warnings
    assert [str(one.message) for one in said] == [line]
    assert setting in line.split("; ")[1]
    assert f"{setting}=" in line
    # Shorter runs and chains that move have no warning.
    assert sample(gaussian, sampler, **arm, budget=Budget(steps=FEWEST_TESTS - 1)).warnings == []
    moving = sample(gaussian, sampler, **{**arm, "step_size": 0.1}, budget=Budget(steps=STUCK + 200))
    assert moving.warnings == []
    assert moving.statistics["longest_rejection"] < 200


def test_chains_have_minibatches_of_their_own_only_if_asked():
    """Of chains with one start and next to no noise only the minibatches differ."""
    model = gaussian_model(np.eye(2), np.zeros(2), n_data=50)
    arm = Arm(1e-6, 5, noise_sd=1e-6, directional_noise=0.0)
    shared, own = (
        independent_chains(model, "adam-mcmc", arm, np.ones((3, 2)), seed=2, own_minibatches=own)
        for own in (False, True)
    )
    for chains in (shared, own):
        chains.advance(1)
    assert np.all(np.ptp(np.asarray(shared.states.m), axis=0) < 1e-4)
    assert np.all(np.ptp(np.asarray(own.states.m), axis=0) > 0.01)
    # A narrower ensemble keeps the chains' minibatches.
    last = own.narrow([2])
    assert np.allclose(own.advance(1)[:, 2], last.advance(1)[:, 0], atol=1e-7)
    assert np.allclose(own.states.m[2], last.states.m[0], atol=1e-6)


def test_independent_chains_are_independent_and_start_at_the_given_positions(gaussian):
    start = np.random.default_rng(0).standard_normal((5, 2)).astype(np.float32)
    chains = independent_chains(gaussian, "mala", Arm(1e-12, 8), start, seed=2)
    np.testing.assert_allclose(chains.advance(1)[0], start, atol=1e-4)

    def together(**options):
        return independent_chains(gaussian, "mala", Arm(0.3, 8), start[[0, 0, 0]], **options).advance(20)

    draws = together(seed=2)
    assert (np.abs(draws[-1, 0] - draws[-1, 1:]) > 1e-4).all()
    assert (together(seed=2) == draws).all()
    for options in ({"seed": 3}, {"seed": 2, "replicate": 1}):
        assert (np.abs(together(**options)[-1] - draws[-1]) > 1e-4).all()
    # Each chain has its own initial moments in the exact variant.
    exact = independent_chains(gaussian, "adam-mcmc-exact", Arm(0.3, 8), start[[0, 0, 0]])
    assert len(np.unique(np.asarray(exact.states.m)[:, 0])) == 3
    with pytest.raises(InputError, match=r"^positions: shape \(5, 3\) is not allowed.*rows of 2"):
        independent_chains(gaussian, "mala", Arm(0.3, 8), np.zeros((5, 3), np.float32))


MALA = SAMPLERS["mala"]
NAN, INF = np.nan, np.inf


@pytest.mark.parametrize(
    ("value", "slope"),
    [(NAN, 0), (-INF, 0), (INF, 0), (0, NAN), (0, INF), (0, -INF), (INF, INF), (INF, -INF), (-INF, INF)],
)
def test_what_is_not_finite_is_rejected(value, slope):
    """A log density or a component of a gradient is not finite; the same proposals are accepted where both are 0."""

    def target_of(v, s):
        both = jnp.float32(v), jnp.array([0.0, s])
        return Target(None, log_density_and_gradient=lambda position: both)

    numbers, flat = {"step_size": jnp.float32(1)}, target_of(0, 0)
    state = MALA.init(jax.random.key(0), jnp.zeros(2), (), flat, numbers)
    for key in jax.random.split(jax.random.key(1), 3):
        assert MALA.step(key, state, flat, numbers).acceptance.is_accepted
        after = MALA.step(key, state, target_of(value, slope), numbers)
        assert not after.acceptance.is_accepted
        assert after.acceptance.probability == 0
        jax.tree.map(np.testing.assert_array_equal, after[:3], state[:3])


def test_statistics_cover_the_whole_run(gaussian):
    """Statistics include steps that thinning discards; the chain moves in accepted steps only."""
    arm = {"step_size": 0.5, "batch_size": 8}
    chain = sample(gaussian, "mala", **arm, budget=Budget(steps=3_001))
    moved = np.any(np.diff(chain.draws, axis=0) != 0, axis=1)
    rate, probability, longest = chain.statistics.values()
    assert list(chain.statistics) == ["acceptance_rate", "mean_acceptance_probability", "longest_rejection"]
    stood = "".join("-+"[step] for step in moved.astype(int)).split("+")
    assert longest in {max(map(len, stood)), len(stood[0]) + 1}
    assert round(rate * 3_001) in (moved.sum(), moved.sum() + 1)
    assert 0.3 < rate < 0.9
    assert abs(rate - probability) < SIGMAS * np.sqrt(0.25 / 3_001)
    assert rate != probability
    thinned = sample(gaussian, "mala", **arm, budget=Budget(steps=3_001), kept_draws=10)
    assert len(thinned.draws) < 11
    assert thinned.statistics == chain.statistics


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


def leapfrogs(x, v):
    """Leapfrogs in float64, as in a textbook."""
    v = v + H / 2 * gradient_of(x)
    for i in range(LEAPFROGS):
        x = x + v
        v = v + (H if i < LEAPFROGS - 1 else H / 2) * gradient_of(x)
    return x, v


def test_a_sample_is_leapfrogs_of_a_fresh_momentum_and_a_test_of_the_energy():
    numbers = {"step_size": jnp.float32(H), "n_leapfrog": jnp.int32(LEAPFROGS)}
    proposals, tried = steps_of("hmc", numbers, 300)
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
    assert abs(np.mean(noise**2) - 1) < SIGMAS * np.sqrt(2 / noise.size)
    assert abs(noise.mean()) < SIGMAS / np.sqrt(noise.size)

    def log_proposal(x, given):
        return -np.sum((x - given - drift * gradient_of(given)) ** 2) / (4 * e)

    ratios = [
        log_density(there, np) - log_density(here, np) + log_proposal(here, there) - log_proposal(there, here)
        for there in proposals
    ]
    found = np.asarray(tried.acceptance.probability, np.float64)
    np.testing.assert_allclose(found, np.exp(np.minimum(0, ratios)), rtol=2e-3, atol=1e-5)
    assert np.ptp(found) > 0.5


def test_budgets_of_gradients_count_the_data_of_tests(gaussian):
    """A test on all data costs a pass over them; a test on a minibatch evaluates it at both ends of the step."""
    of_two = {"adam-mcmc": 2 + 8, "adam-mcmc-cv": 4 + 8, "adam-mcmc-minibatch": 2 + 4}
    assert {name: data_terms(gaussian, name, Arm(0.1, 2)) for name in of_two} == of_two
    assert [data_terms(gaussian, name, Arm(0.1, 8)) for name in ("mala", "adam-mcmc-exact")] == [8, 8]
    # A covariance of gradients takes as many again, but that of all data is 0.
    of_covariance = {("ccadl", 2): 4, ("ccadl-cv", 2): 8, ("ccadl", 8): 8}
    assert {one: data_terms(gaussian, one[0], Arm(0.1, one[1])) for one in of_covariance} == of_covariance
    assert data_terms(gaussian, "hmc", Arm(0.1, 8, 5)) == 40
    arm = {"step_size": 0.1, "batch_size": 2}
    assert sample(gaussian, "adam-mcmc", **arm, budget=Budget(gradients=101)).n_samples == 10
