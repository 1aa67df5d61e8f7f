"""The target of a sampler's step: log densities that float32 can compare, and no unnecessary pass over all data."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small_models import small_logistic_model

from sgtune.model.posterior import density_of
from sgtune.samplers.gradients import minibatch
from sgtune.samplers.target import offset_at, target_of
from sgtune.sampling.arm import Arm
from sgtune.sampling.lockstep import Lockstep

SIGMAS = 4.5


@pytest.fixture(scope="module")
def large():
    return small_logistic_model(n_data=200_000)


def exact_log_density(model, position):
    rows = np.asarray(model.data["signed_inputs"], np.float64)
    position = np.asarray(position, np.float64)
    return -np.logaddexp(0, -rows @ position).sum() - position @ position / 20


def errors_of_differences(model, **options):
    """Errors of the log densities of eight chains on their way from the mode, against float64."""
    chains = Lockstep.at_mode(
        model, "mala", [Arm(1e-5 * (1 + 1e-12 * k), model.n_data) for k in range(8)], **options
    )
    start = np.asarray(chains.states.log_density, np.float64)[0], exact_log_density(model, chains.start)
    errors = []
    for _ in range(2):
        positions = chains.advance_chunk(1, 10)[0]
        found = np.asarray(chains.states.log_density, np.float64) - start[0]
        errors += [found - [exact_log_density(model, position) - start[1] for position in positions]]
    assert np.ptp(found) > 1
    return np.abs(errors).max()


def test_differences_of_the_log_density_are_exact_where_the_log_density_is_large(large):
    """log pi is -107,000, with a float32 spacing of 1/128; the ratio needs differences far below 1."""
    assert errors_of_differences(large) < 5e-4
    # The offset is the reason: with the offset of a position where log pi is 30,000 less, the test would fail.
    assert errors_of_differences(large, centre=np.zeros(2, np.float32)) > 1e-3


KEY = jax.random.key(5)


def target_at(model, centre, batch_size, key=KEY):
    constants = {**minibatch.prepare(model, None), "offset": offset_at(model, centre)}
    return target_of(density_of(model), minibatch, constants, batch_size, partial(jax.random.fold_in, key))


def test_log_density_and_gradient_use_all_data(large):
    centre, position = jnp.array([0.5, 0.5]), jnp.array([0.51, 0.495])
    target = target_at(large, centre, 100)
    difference = exact_log_density(large, position) - exact_log_density(large, centre)
    assert abs(difference) > 10
    found, gradient = target.log_density_and_gradient(position)
    at_centre = target.log_density(centre)
    # The offset, about -1, is rounded to float32 and subtracted N times, which is a constant.
    assert abs(at_centre) < large.n_data * np.finfo(np.float32).eps
    assert found - at_centre == pytest.approx(difference, abs=1e-3)
    assert target.log_density(position) - at_centre == pytest.approx(difference, abs=1e-3)
    rows = np.asarray(large.data["signed_inputs"], np.float64)
    exact = rows.T @ (1 / (1 + np.exp(rows @ np.asarray(position, np.float64)))) - np.asarray(position) / 10
    np.testing.assert_allclose(gradient, exact, rtol=1e-4)


def test_minibatch_log_density_is_unbiased_and_of_the_gradients_minibatch():
    model = small_logistic_model(n_data=120, seed=3)
    centre, position = jnp.array([0.3, -0.2]), jnp.array([1.0, 0.8])
    target = target_at(model, centre, 12)
    values = jax.jit(jax.vmap(lambda i: target.minibatch_log_density(position, i)))(jnp.arange(20_000))
    values = np.asarray(values, np.float64)
    exact = exact_log_density(model, position) - exact_log_density(model, centre)
    error = values.std() / np.sqrt(len(values))
    assert abs(values.mean() - exact) < SIGMAS * error < 0.05 * abs(exact)
    for i in (0, 1, 7):
        np.testing.assert_allclose(
            jax.grad(target.minibatch_log_density)(position, i),
            target.gradient(position, i, ())[0],
            rtol=1e-4,
        )
    all_data = target_at(model, centre, 120)
    assert all_data.minibatch_log_density(position, 0) == pytest.approx(exact, rel=1e-4)
