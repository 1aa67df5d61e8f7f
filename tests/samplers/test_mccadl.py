"""mCCAdL: each flow against its exact solution, and the composition's order in h."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from known_targets import target_with_noise
from scipy.integrate import solve_ivp
from scipy.linalg import expm
from small_models import gaussian_model

from sgtune import Arm, Budget, InputError, sample
from sgtune.samplers import SAMPLERS
from sgtune.samplers.mccadl import damped, ornstein_uhlenbeck
from sgtune.sampling.lockstep import independent_chains

pytestmark = pytest.mark.optimised


@pytest.mark.parametrize("norm", [0.0, 1e-3, 0.4, 3.0, 70.0])
def test_the_covariance_flow_is_the_matrix_exponential(norm):
    """exp(-M) v for matrices with and without halvings, and for a diagonal M."""
    rng = np.random.default_rng(0)
    factor = rng.standard_normal((7, 4))
    matrix = factor @ factor.T + np.diag(np.arange(7))
    matrix *= norm / np.linalg.norm(matrix, 2)
    vector = rng.standard_normal(7)
    found = damped(jnp.asarray(matrix, jnp.float32), jnp.asarray(vector, jnp.float32))
    np.testing.assert_allclose(found, expm(-matrix) @ vector, atol=3e-5 * np.linalg.norm(vector))
    diagonal = np.diag(matrix)
    of_diagonal = damped(jnp.asarray(diagonal, jnp.float32), jnp.asarray(vector, jnp.float32))
    np.testing.assert_allclose(of_diagonal, np.exp(-diagonal) * vector, rtol=2e-5, atol=1e-12)


@pytest.mark.parametrize("dimension", [50, 400])
def test_halvings_are_by_a_bound_of_the_norm(dimension):
    """The norm of a constant matrix is D times its entries: these alone would ask for no halving."""
    matrix, vector = jnp.full((dimension, dimension), 0.4), jnp.ones(dimension).at[0].set(3.0)
    expected = vector - vector.mean() * (1 - np.exp(-0.4 * dimension))
    np.testing.assert_allclose(damped(matrix, vector), expected, atol=1e-3)


@pytest.mark.parametrize("thermostat", [3.0, 1e-2, 1e-3, 1e-5, 0.0, -1e-5, -1e-2, -2.0])
def test_the_ou_flow_has_the_exact_moments(thermostat):
    """Mean exp(-xi t) p and variance A (1 - exp(-2 xi t)) / xi, for xi above, at (2 A t) and below 0."""
    friction, time = 1.7, 0.3
    arguments = jnp.float32(friction), jnp.float32(thermostat), jnp.float32(time)
    mean = ornstein_uhlenbeck(jnp.array([1.5]), jnp.zeros(1), *arguments)[0]
    sd = ornstein_uhlenbeck(jnp.zeros(1), jnp.ones(1), *arguments)[0]
    assert mean == pytest.approx(1.5 * np.exp(-thermostat * time), rel=1e-6)
    # The integral of exp(-2 xi s) over 0 <= s <= t, by Gauss and Legendre.
    nodes, weights = np.polynomial.legendre.leggauss(20)
    variance = 2 * friction * time / 2 * np.sum(weights * np.exp(-thermostat * time * (nodes + 1)))
    assert sd**2 == pytest.approx(variance, rel=2e-6)


def test_each_chain_has_its_own_number_of_halvings_and_keeps_what_is_not_finite_to_itself():
    factors = np.array([0.0, 0.1, 30.0, np.nan, np.inf])[:, None, None]
    matrices = np.array([[[2.0, 1.0], [1.0, 1.0]]]) * factors
    found = jax.jit(jax.vmap(lambda matrix: damped(matrix, jnp.ones(2))))(jnp.asarray(matrices, jnp.float32))
    for one, matrix in zip(found[:3], matrices[:3], strict=True):
        np.testing.assert_allclose(one, expm(-matrix) @ np.ones(2), atol=3e-5)
    assert not np.isfinite(found[3:]).any()


CURVATURE = np.array([[2.0, -0.8], [-0.8, 1.0]])
DRAG = np.array([[0.6, 0.3], [0.3, 0.4]])
"""(h / 2) Sigma: kept constant for every h."""


def score(position):
    # The score is not linear, so that the flows do not commute at any order.
    return -CURVATURE @ position - 0.3 * position**3


def end_of_trajectory(name, h, time):
    """Position and thermostat of a chain without any noise."""
    sampler = SAMPLERS[name]
    covariance = jnp.asarray(2 / h * DRAG, jnp.float32)
    target = target_with_noise(score, lambda position: covariance)
    numbers = {"step_size": jnp.float32(h), "friction": jnp.float32(1e-12), "kappa": jnp.float32(0)}
    position, momentum = jnp.array([1.0, -0.5]), jnp.array([0.7, 1.1])
    if name == "mccadl":
        # `step` begins after the first half kick of the symmetric step.
        momentum = damped(h**2 / 4 * covariance, momentum + h / 2 * score(position))
    state = sampler.init(jax.random.key(0), position, (), target, numbers)
    state = state._replace(momentum=momentum, thermostat=jnp.float32(0.4))
    step = jax.jit(lambda i, state: sampler.step(jax.random.key(0), state, target, numbers))
    state = jax.lax.fori_loop(0, round(time / h), step, state)
    return np.array([*state.position, state.thermostat], np.float64)


def exact_end(time):
    def slope(_, y):
        theta, p, xi = y[:2], y[2:4], y[4]
        return np.concatenate([p, score(theta) - DRAG @ p - xi * p, [np.mean(p**2) - 1]])

    start = [1.0, -0.5, 0.7, 1.1, 0.4]
    end = solve_ivp(slope, (0, time), start, rtol=1e-11, atol=1e-12).y[:, -1]
    return np.array([*end[:2], end[4]])


def test_trajectories_converge_at_second_order_and_those_of_algorithm_1_at_first():
    """Without noise the error at a fixed time falls to a quarter, or to a half, as h is halved."""
    exact = exact_end(2.0)

    def ratio(name, h):
        errors = [np.linalg.norm(end_of_trajectory(name, step, 2.0) - exact) for step in (h, h / 2)]
        # Errors are above float32 rounding.
        assert errors[1] > 1e-4
        return errors[0] / errors[1]

    assert ratio("mccadl", 0.2) == pytest.approx(4, rel=0.1)
    assert ratio("ccadl", 0.02) == pytest.approx(2, rel=0.1)


def test_a_step_has_the_noise_of_its_friction():
    """A momentum of variance one keeps it, whatever the friction, while the thermostat is at the friction."""
    d, width = 20, 2_000
    model = gaussian_model(1e-6 * np.eye(d), np.zeros(d))
    arm, starts = Arm(0.05, model.n_data, friction=20.0), np.zeros((width, d))
    chains = independent_chains(model, "mccadl", arm, starts, centre=jnp.zeros(d))
    before = np.asarray(chains.states.momentum)
    chains.advance(1)
    after = np.asarray(chains.states.momentum)
    error = np.sqrt(2 / (width * d))
    assert after.var() == pytest.approx(1, abs=5 * error)
    assert np.mean(before * after) == pytest.approx(np.exp(-20 * 0.05), abs=5 * error)


def test_a_batch_of_one_row_has_no_covariance():
    model = gaussian_model(np.eye(2), np.zeros(2))
    for sampler in ("mccadl", "ccadl-diagonal"):
        with pytest.raises(InputError, match=r"^batch_size: 1 is not allowed; the covariance"):
            sample(model, sampler, step_size=0.1, batch_size=1, budget=Budget(steps=5))
