"""SGHMC that recomputes the matrix root of its noise only as the running covariance changes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small_models import small_logistic_model

from sgtune.samplers import SAMPLERS
from sgtune.samplers.sghmc_shang import SHARE
from sgtune.sampling.arm import Arm
from sgtune.sampling.lockstep import Lockstep


@pytest.fixture(scope="module")
def model():
    return small_logistic_model(dimension=3)


def chains_of(model, name, frictions, kappa=0.0):
    arms = [Arm(step_size=0.002, batch_size=20, friction=friction, kappa=kappa) for friction in frictions]
    return Lockstep.at_mode(model, name, arms, position=jnp.zeros(3), seed=4)


def test_while_the_memory_is_short_every_step_recomputes_the_root_and_agrees_with_sghmc(model):
    """Up to 100 steps of it, 1% of the memory is a step at most; the noise keys are those of the name, so two chains of
    one sampler differ only by that: steps are compared from one state."""
    lazy, plain = SAMPLERS["sghmc-shang-lazy"], SAMPLERS["sghmc-shang"]
    ensemble = chains_of(model, "sghmc-shang-lazy", [1.0, 50.0])
    ensemble.advance(60)
    assert (np.asarray(ensemble.states.made_at) == 60).all()
    target = ensemble.program.target(ensemble.constants, ensemble.minibatch_key, 60)
    for chain in (0, 1):
        state = jax.tree.map(lambda leaf, chain=chain: leaf[chain], ensemble.states)
        numbers = {
            name: value[chain] if jnp.ndim(value) else value
            for name, value in ensemble.hyperparameters.items()
        }
        known = type(plain.init(jax.random.key(0), state.position, (), target, numbers))
        same = known(*(getattr(state, field) for field in known._fields))
        new = lazy.step(jax.random.key(1), state, target, numbers)
        expected = plain.step(jax.random.key(1), same, target, numbers)
        for field in known._fields:
            for one, other in zip(
                *map(jax.tree.leaves, (getattr(new, field), getattr(expected, field))), strict=True
            ):
                np.testing.assert_allclose(one, other, rtol=1e-6)


@pytest.mark.parametrize(("kappa", "memory"), [(0.0, 1_000), (0.002, 500)])
def test_the_age_of_a_root_is_at_most_a_hundredth_of_the_memory(model, kappa, memory):
    ensemble = chains_of(model, "sghmc-shang-lazy", [1.0, 50.0], kappa)
    seen = set()
    for _ in range(30):
        ensemble.advance(1)
    ensemble.advance(970)
    for _ in range(25):
        ensemble.advance(1)
        age = np.asarray(ensemble.states.noise.n_steps - ensemble.states.made_at)
        assert (age == age[0]).all()
        seen.add(int(age[0]))
    # The root is recomputed at this age, so ages after a step are smaller, and all of them occur.
    assert (
        max(seen) == int(np.ceil(SHARE * memory)) - 1 or max(seen) == int(np.ceil(SHARE * (memory + 25))) - 1
    )
    assert 0 in seen


def test_its_statistics_agree_with_sghmc(model):
    lazy, plain = (chains_of(model, name, [1.0, 400.0]) for name in ("sghmc-shang-lazy", "sghmc-shang"))
    for ensemble in (lazy, plain):
        ensemble.advance(400, 400)
    assert (lazy.statistics["clipped_share"] == plain.statistics["clipped_share"]).all()
    assert lazy.statistics["clipped_share"].tolist() == [1.0, 0.0]
    needed = lazy.statistics["friction_needed"]
    assert (needed[0] > 1.0, needed[1]) == (True, 400.0)
