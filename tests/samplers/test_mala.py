"""MALA at the edge of a density's support, and its statistics; its steps are tested in test_hmc."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small_models import gaussian_model

from sgtune import Budget, sample
from sgtune.model import define_model
from sgtune.samplers import SAMPLERS
from sgtune.samplers.target import Target
from sgtune.sampling.arm import Arm
from sgtune.sampling.lockstep import Lockstep
from sgtune.support.errors import InputError

MALA = SAMPLERS["mala"]
SIGMAS = 4.5


NAN, INF = np.nan, np.inf


@pytest.mark.parametrize(
    ("value", "slope"),
    [(NAN, 0), (-INF, 0), (INF, 0), (0, NAN), (0, INF), (0, -INF), (INF, INF), (INF, -INF), (-INF, INF)],
)
def test_what_is_not_finite_is_rejected(value, slope):
    """A log density or a component of a gradient is not finite; the same proposals are accepted where both are 0."""
    rejected, accepted = (
        Target(
            None, log_density_and_gradient=lambda position, v=v, s=s: (jnp.float32(v), jnp.array([0.0, s]))
        )
        for v, s in ((value, slope), (0, 0))
    )
    hyperparameters = {"step_size": jnp.float32(1)}
    state = MALA.init(jax.random.key(0), jnp.zeros(2), (), accepted, hyperparameters)
    for key in jax.random.split(jax.random.key(1), 3):
        assert MALA.step(key, state, accepted, hyperparameters).acceptance.is_accepted
        after = MALA.step(key, state, rejected, hyperparameters)
        assert not after.acceptance.is_accepted
        assert after.acceptance.probability == 0
        assert all(
            np.array_equal(*leaves)
            for leaves in zip(*map(jax.tree.leaves, (after[:3], state[:3])), strict=True)
        )


# --- chains ---


def half_line_model(outside):
    """An exponential density on x > 0; ``outside`` is the log density for x <= 0."""
    return define_model(
        "half-line",
        log_prior=lambda position: jnp.where(position[0] > 0, -position[0], outside),
        log_likelihood=lambda position, batch: 0.0 * batch,
        data=np.zeros(4, np.float32),
        init=lambda key: jnp.ones(1),
    )


@pytest.mark.parametrize("outside", [NAN, INF, -INF])
def test_a_chain_stays_on_its_half_line(outside):
    """The chain is exact there: mean and sd of the exponential distribution are 1."""
    arms = [Arm(0.25 * (1 + 1e-12 * k), 4) for k in range(128)]
    one = jnp.ones(1)
    chains = Lockstep.at_mode(half_line_model(outside), "mala", arms, position=one, centre=one)
    chains.advance(200, 200)
    draws = chains.advance(4_000)[..., 0].astype(np.float64)
    assert (draws > 0).all()
    for power, moment in ((1, 1), (2, 2)):
        means = (draws**power).mean(0)
        assert abs(means.mean() - moment) < SIGMAS * means.std(ddof=1) / np.sqrt(len(means))
    assert (chains.statistics["acceptance_rate"] < 0.9).all()


@pytest.mark.parametrize("outside", [NAN, INF, -INF])
def test_a_chain_does_not_start_off_its_half_line(outside):
    model, arm = half_line_model(outside), [Arm(0.25, 4)]
    inside, off = jnp.ones(1), -jnp.ones(1)
    with pytest.raises(InputError, match=r"^position: .*not finite"):
        Lockstep.at_mode(model, "mala", arm, position=off, centre=inside)
    with pytest.raises(InputError, match=r"^centre: .*must be finite"):
        Lockstep.at_mode(model, "mala", arm, position=inside, centre=off)
    with pytest.raises(InputError, match=r"^centre: shape \(3,\)"):
        Lockstep.at_mode(model, "mala", arm, position=inside, centre=jnp.ones(3))
    Lockstep.at_mode(model, "sgld", arm, position=off)


@pytest.fixture(scope="module")
def gaussian():
    return gaussian_model([[2.0, -1.2], [-1.2, 1.5]], [0.5, -1.0])


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
