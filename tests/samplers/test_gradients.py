"""Gradient estimators: unbiased, with the covariance of sampling without replacement, exact where they should be; the
target's log densities, which float32 can compare."""

from functools import partial
from itertools import product
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from known_targets import SIGMAS, check_moments
from small_models import gaussian_model, logistic_arrays, logistic_model, small_logistic_model

from sgtune.mode.find import map_position
from sgtune.model.posterior import density_of, scores
from sgtune.samplers import SAMPLERS, Sampler
from sgtune.samplers.gradients import CHUNK, ESTIMATORS, minibatch, stochastic_scores, subset_scores
from sgtune.samplers.minibatch import block_rows
from sgtune.samplers.target import offset_at, target_of
from sgtune.sampling.arm import Arm
from sgtune.sampling.lockstep import Lockstep
from sgtune.support.errors import InputError

CENTRE = np.array([0.3, -0.2], np.float32)
NEAR, FAR = CENTRE + np.float32([0.1, 0.05]), np.array([1.0, 0.8], np.float32)


def terms(model, position):
    """The gradients of the log-likelihood of logistic regression for each datum, (N, D), by hand in float64."""
    rows = np.asarray(model.data["signed_inputs"], np.float64)
    return rows / (1 + np.exp(rows @ np.asarray(position, np.float64)))[:, None]


def exact_score(model, position):
    return terms(model, position).sum(0) - np.asarray(position, np.float64) / 10


def covariance_of(model, ending, position, batch_size):
    """(M^2 / m) (1 - m / M) S, with S the finite-population covariance (divisor M - 1) of the sums of the M blocks of
    rows, of which m are drawn. The noise is that of the terms that the estimator sums over a minibatch."""
    own = terms(model, position) - (terms(model, CENTRE) if ending else 0)
    rows = block_rows(batch_size, model.n_data)
    sums = own.reshape(-1, rows, own.shape[1]).sum(1)
    n_blocks, drawn = len(sums), batch_size // rows
    return n_blocks**2 / drawn * (1 - drawn / n_blocks) * np.cov(sums.T, ddof=1)


def estimates(model, ending, position, batch_size, n_keys):
    """(n_keys, D) estimates of the gradient, each from its own minibatch."""
    estimator, key = ESTIMATORS[ending], jax.random.key(0)
    constants = estimator.prepare(model, jnp.asarray(CENTRE))
    state = estimator.init(constants, jnp.asarray(position))

    @jax.jit
    def run(constants, position):
        def one(t):
            step_key = jax.random.fold_in(key, t)
            return estimator.estimate(density_of(model), constants, step_key, position, batch_size, state)[0]

        return jax.lax.map(one, jnp.arange(n_keys), batch_size=min(n_keys, 200_000 // batch_size + 1))

    return np.asarray(run(constants, jnp.asarray(position)), np.float64)


@pytest.fixture(scope="module")
def model():
    return small_logistic_model(n_data=120, seed=3)


@pytest.mark.parametrize("ending", ESTIMATORS)
@pytest.mark.parametrize("batch_size", [1, 40, 119])
def test_unbiased_with_the_covariance_of_sampling_without_replacement(model, ending, batch_size):
    assert block_rows(batch_size, model.n_data) == 1
    sample = estimates(model, ending, FAR, batch_size, 20_000)
    covariance = covariance_of(model, ending, FAR, batch_size)
    found, error = check_moments(sample, exact_score(model, FAR), covariance)
    if batch_size >= 40:
        # The test can distinguish the two ways of sampling.
        with_replacement = covariance * (model.n_data - 1) / (model.n_data - batch_size)
        assert (np.abs(np.diag(found - with_replacement)) > 20 * np.diag(error)).all()


@pytest.mark.parametrize("ending", ESTIMATORS)
def test_blocks_have_their_finite_population_covariance(ending):
    """n = 4,096 of N = 8,192: 256 of 512 blocks of 16 rows, in data in the worst order: sorted by the input, so that
    neighbours are similar."""
    batch_size = 4_096
    inputs, targets = logistic_arrays(8_192, 2, seed=4)
    order = np.argsort(inputs[:, 0])
    model = logistic_model(inputs[order], targets[order], shuffle_seed=None)
    assert block_rows(batch_size, model.n_data) == 16
    sample = estimates(model, ending, FAR, batch_size, 2_000)
    check_moments(sample, exact_score(model, FAR), covariance_of(model, ending, FAR, batch_size))


@pytest.mark.parametrize(
    ("ending", "position", "batch_size"),
    [("cv", CENTRE, 1), ("cv", CENTRE, 119), ("", FAR, 120), ("cv", FAR, 120)],
)
def test_control_variates_at_their_centre_and_full_batches_are_exact(model, ending, position, batch_size):
    sample = estimates(model, ending, position, batch_size, 50)
    np.testing.assert_allclose(sample, np.tile(exact_score(model, position), (50, 1)), rtol=1e-5, atol=1e-4)
    assert batch_size < model.n_data or (sample == sample[0]).all()


class ProbeState(NamedTuple):
    position: Any
    estimator: Any


def probe(*places):
    """A probe instead of a sampler: its draws are the gradients of one step at `FAR`, side by side."""

    def init(key, position, estimator, target, hyperparameters):
        return ProbeState(jnp.stack([position] * len(places)), estimator)

    def step(key, state, target, hyperparameters):
        gradients = [target.gradient(FAR, place, state.estimator)[0] for place in places]
        return state._replace(position=jnp.stack(gradients))

    return Sampler(init, step, has_leapfrog=len(places) > 1)


@pytest.mark.parametrize("ending", ["", "-cv"])
@pytest.mark.parametrize("places", [(0,), (0, 1, 2)])
def test_arms_share_each_minibatch_and_no_two_gradients_do(model, monkeypatch, ending, places):
    """All arms at one position have the same gradient; gradients of different steps and leapfrogs differ."""
    monkeypatch.setitem(SAMPLERS, "probe", probe(*places))
    arms = [Arm(step_size, 7, len(places) if len(places) > 1 else None) for step_size in (1e-3, 1e-2, 1e-1)]

    def gradients(**options):
        chains = Lockstep(model, f"probe{ending}", arms, position=FAR, centre=CENTRE, **options)
        return chains.advance_chunk(40).reshape(40, len(arms), len(places), 2)

    drawn = gradients(seed=1)
    np.testing.assert_allclose(drawn, np.repeat(drawn[:, :1], len(arms), axis=1), rtol=1e-5)
    distinct = np.unique(drawn[:, 0].reshape(-1, 2).round(3), axis=0)
    assert len(distinct) == 40 * len(places)
    for options in ({"seed": 2}, {"seed": 1, "replicate": 1}):
        assert np.abs(gradients(**options) - drawn)[:, 0].max(-1).min() > 1e-3
    mean, error = drawn[:, 0].mean((0, 1)), drawn[:, 0].std((0, 1)) / np.sqrt(40 * len(places))
    assert (np.abs(mean - exact_score(model, FAR)) < SIGMAS * error).all()


def test_a_subsets_scores_by_hand(model):
    """Each share of the rows has a correction of its own, which is kept with the mode."""
    positions = np.stack([NEAR, FAR])
    for centre, fraction in product((CENTRE, map_position(model)), (0.25, 0.5, 0.1)):
        found = subset_scores(model, positions, fraction, centre)
        for row, position in zip(found, positions, strict=True):
            first = slice(int(fraction * model.n_data))
            change = (terms(model, position) - terms(model, centre))[first].sum(0) / fraction
            change -= (position.astype(np.float64) - np.asarray(centre)) / 10
            np.testing.assert_allclose(row, exact_score(model, centre) + change, rtol=1e-4, atol=1e-4)


def test_each_position_has_a_minibatch_of_its_own():
    """Repeated scores of one position scatter about the exact score, with the covariance of minibatches."""
    n, batch_size, precision = 4_000, 5, np.array([[2.0, -1.2], [-1.2, 1.5]])
    gaussian = gaussian_model(precision, [0.5, -1.0], n_data=40)
    position = np.array([1.0, 0.5], np.float32)
    for wrong in (0, 41):
        with pytest.raises(InputError, match=f"^batch_size: {wrong} is not allowed"):
            stochastic_scores(gaussian, position[None], wrong)
    found = stochastic_scores(gaussian, np.repeat(position[None], n, 0), batch_size).astype(np.float64)
    # The gradient of a datum is 0.75 / N precision (datum - position).
    of_data = 0.75 / 40 * (np.asarray(gaussian.data, np.float64) - position) @ precision
    covariance = 40**2 / batch_size * (1 - batch_size / 40) * np.cov(of_data.T, ddof=1)
    exact = scores(gaussian, position[None])[0]
    _, error = check_moments(found, exact, covariance)
    assert np.all(np.diag(covariance) > 20 * np.diag(error))
    deviations = found - exact
    # Neighbouring scores are independent, and so are scores in different calls of the program.
    for apart in (1, CHUNK):
        following = np.mean(deviations[apart:] * deviations[:-apart], axis=0) / np.diag(covariance)
        assert np.all(np.abs(following) < SIGMAS / np.sqrt(n - apart))


def exact_log_density(model, position):
    rows = np.asarray(model.data["signed_inputs"], np.float64)
    position = np.asarray(position, np.float64)
    return -np.logaddexp(0, -rows @ position).sum() - position @ position / 20


def errors_of_differences(model, **options):
    """Errors of the log densities of eight chains on their way from the mode, against float64."""
    arms = [Arm(1e-5 * (1 + 1e-12 * k), model.n_data) for k in range(8)]
    chains = Lockstep(model, "mala", arms, **options)
    start = np.asarray(chains.states.log_density, np.float64)[0], exact_log_density(model, chains.start)
    errors = []
    for _ in range(2):
        positions = chains.advance_chunk(1, 10)[0]
        found = np.asarray(chains.states.log_density, np.float64) - start[0]
        errors += [found - [exact_log_density(model, position) - start[1] for position in positions]]
    assert np.ptp(found) > 1
    return np.abs(errors).max()


def test_differences_of_the_log_density_are_exact_where_the_log_density_is_large():
    """log pi is -107,000, with a float32 spacing of 1/128; the ratio needs differences far below 1."""
    large = small_logistic_model(n_data=200_000)
    assert errors_of_differences(large) < 5e-4
    # The offset is the reason: with the offset of a position where log pi is 30,000 less, the test would fail.
    assert errors_of_differences(large, centre=np.zeros(2, np.float32)) > 1e-3


def target_at(model, centre, batch_size):
    constants = {**minibatch.prepare(model, None), "offset": offset_at(model, centre)}
    key_of = partial(jax.random.fold_in, jax.random.key(5))
    return target_of(density_of(model), minibatch, constants, batch_size, key_of)


def test_minibatch_log_density_is_unbiased_and_of_the_gradients_minibatch(model):
    centre, position = jnp.array([0.3, -0.2]), jnp.array([1.0, 0.8])
    target = target_at(model, centre, 12)
    values = jax.jit(jax.vmap(lambda i: target.minibatch_log_density(position, i)))(jnp.arange(20_000))
    values = np.asarray(values, np.float64)
    exact = exact_log_density(model, position) - exact_log_density(model, centre)
    error = values.std() / np.sqrt(len(values))
    assert abs(values.mean() - exact) < SIGMAS * error < 0.05 * abs(exact)
    for i in (0, 1, 7):
        slope = jax.grad(target.minibatch_log_density)(position, i)
        np.testing.assert_allclose(slope, target.gradient(position, i, ())[0], rtol=1e-4)
    all_data = target_at(model, centre, 120)
    assert all_data.minibatch_log_density(position, 0) == pytest.approx(exact, rel=1e-4)
