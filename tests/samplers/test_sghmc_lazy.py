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
