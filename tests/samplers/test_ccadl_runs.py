"""Runs of the CCAdL paper's samplers: shared programs, statistics, errors, and SGHMC that seldom renews its root."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small_models import small_logistic_model

from sgtune import Budget, sample, tune
from sgtune.samplers import (
    SAMPLERS,
    check_not_clipped,
    resolve_sampler,
)
from sgtune.samplers.sghmc_shang import SHARE
from sgtune.sampling.arm import Arm
from sgtune.sampling.lockstep import Lockstep
from sgtune.support.errors import InputError
from sgtune.tuning import Heuristic


@pytest.fixture(scope="module")
def model():
    return small_logistic_model(n_data=200, dimension=3)


@pytest.mark.parametrize("name", ["ccadl", "ccadl-diagonal-cv", "mccadl"])
def test_the_target_gives_the_minibatchs_own_covariance(model, name):
    """A chain's S after one step is the estimator's covariance for the rows of that step, at the chain's position."""
    sampler, _ = resolve_sampler(name)
    chains = Lockstep.at_mode(model, name, [Arm(2e-3, 20)])
    chains.advance(1)
    target = chains.program.target(chains.constants, chains.minibatch_key, 0)
    position = chains.states.position[0]
    gradient, covariance, _ = target.gradient_with_covariance(position, 0, (), sampler.covariance)
    np.testing.assert_allclose(gradient, target.gradient(position, 0, ())[0], rtol=1e-5, atol=1e-4)
    assert covariance.shape == ((3, 3) if sampler.covariance == "full" else (3,))
    assert target.fraction == 0.1
    if name != "mccadl":
        np.testing.assert_allclose(chains.states.noise.covariance[0], covariance, rtol=1e-4)


def test_statistics_name_the_friction_that_sghmc_would_need(model):
    options = {"step_size": 4e-3, "batch_size": 5, "budget": Budget(steps=300)}
    clipped = sample(model, "sghmc-shang", friction=0.5, **options).statistics
    assert clipped["clipped_share"] > 0
    with pytest.raises(InputError, match=r"^friction: .*not positive semi-definite.*A must be at least"):
        check_not_clipped(clipped)
    enough = sample(model, "sghmc-shang", friction=3 * clipped["friction_needed"], **options).statistics
    assert enough["clipped_share"] == 0
    assert enough["friction_needed"] == pytest.approx(3 * clipped["friction_needed"])
    check_not_clipped(enough)


def test_the_heuristic_is_in_units_of_sgld(model):
    """h = 1 / N for SGLD is h^2 = 1 / N where the momentum has unit scale."""
    budget = Budget(steps=1)
    assert tune(model, "sgnht", tuner=Heuristic(), budget=budget).best.step_size == 1 / 200
    for name in ("ccadl", "sgnht-shang"):
        assert tune(model, name, tuner=Heuristic(), budget=budget).best.step_size == pytest.approx(200**-0.5)


def chains_of(frictions, kappa=0.0):
    model = small_logistic_model(dimension=3)
    arms = [Arm(step_size=0.002, batch_size=20, friction=friction, kappa=kappa) for friction in frictions]
    return Lockstep.at_mode(model, "sghmc-shang-lazy", arms, position=jnp.zeros(3), seed=4)


def test_while_the_memory_is_short_every_step_is_a_step_of_sghmc():
    """Up to 100 steps of it, 1% of the memory is a step at most; steps are compared from one state."""
    lazy, plain = SAMPLERS["sghmc-shang-lazy"], SAMPLERS["sghmc-shang"]
    ensemble = chains_of([1.0, 50.0])
    ensemble.advance(60)
    assert (np.asarray(ensemble.states.kept.made_at) == 60).all()
    target = ensemble.program.target(ensemble.constants, ensemble.minibatch_key, 60)
    for chain in (0, 1):
        state = jax.tree.map(lambda leaf, chain=chain: leaf[chain], ensemble.states)
        numbers = {
            name: value[chain] if jnp.ndim(value) else value
            for name, value in ensemble.hyperparameters.items()
        }
        new = lazy.step(jax.random.key(1), state, target, numbers)
        expected = plain.step(jax.random.key(1), state._replace(kept=()), target, numbers)
        for one, other in zip(*map(jax.tree.leaves, (new._replace(kept=()), expected)), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6)
        assert new.n_clipped > 0 or chain == 1


@pytest.mark.parametrize(("kappa", "memory"), [(0.0, 1_000), (0.002, 500)])
def test_the_age_of_a_root_is_at_most_a_hundredth_of_the_memory(kappa, memory):
    ensemble = chains_of([1.0, 50.0], kappa)
    seen = set()
    ensemble.advance(1_000, 1_000)
    for _ in range(25):
        ensemble.advance(1)
        age = np.asarray(ensemble.states.noise.n_steps - ensemble.states.kept.made_at)
        assert (age == age[0]).all()
        seen.add(int(age[0]))
    # The root is recomputed at this age, so ages after a step are smaller, and all of them occur.
    assert max(seen) in {int(np.ceil(SHARE * m)) - 1 for m in (memory, memory + 25)}
    assert 0 in seen
