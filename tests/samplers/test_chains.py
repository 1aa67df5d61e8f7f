"""Chains: what they depend on."""

import jax.numpy as jnp
import numpy as np
import pytest
from small_models import small_logistic_model

from sgtune.samplers import resolve_sampler
from sgtune.sampling.arm import Arm
from sgtune.sampling.lockstep import Lockstep

NAMES = ["sgld-cv", "sghmc", "sgnht", "mala", "ccadl", "sghmc-shang-lazy", "adam-mcmc-cv"]
"""One of each kind of state."""


@pytest.fixture(scope="module")
def small():
    return small_logistic_model(n_data=200)


def batch_size_of(model, name):
    return model.n_data if resolve_sampler(name)[0].needs_all_data else 20


def arm_of(name, step_size, batch_size):
    return Arm(step_size, batch_size, 4 if resolve_sampler(name)[0].has_leapfrog else None)


@pytest.mark.parametrize("name", NAMES)
def test_a_chain_depends_on_its_own_inputs_only(small, name):
    """A chain depends on seed, replicate and arm, but not on chunks, thinning or other arms in lockstep."""
    arms = [arm_of(name, step_size, batch_size_of(small, name)) for step_size in (1e-3, 2e-3, 3e-3)]
    # Off the mode, because at the mode a gradient with control variates is rounding error, which Adam scales up.
    start = jnp.array([0.9, -0.5])

    def draws(arms, *parts, stride=1, **options):
        chains = Lockstep(small, name, arms, **{"seed": 3, "position": start, **options})
        return np.concatenate([chains.advance(part, stride) for part in parts])

    together = draws(arms, 20)
    assert np.array_equal(draws(arms, 20), together)
    assert np.array_equal(draws(arms, 7, 0, 12, 1), together)
    assert np.array_equal(draws(arms, 20, stride=4), together[3::4])
    others = [arm_of(name, step_size, arms[0].batch_size) for step_size in (5e-4, 2e-3, 2.5e-3)]
    np.testing.assert_allclose(draws(others, 20)[:, 1], together[:, 1], rtol=1e-4, atol=1e-5)
    turned = draws(arms[::-1], 20)
    np.testing.assert_allclose(turned[:, ::-1], together, rtol=1e-4, atol=1e-5)
    for options in ({"seed": 4}, {"replicate": 1}):
        assert np.abs(draws(arms, 20, **options)[-1] - together[-1]).max(axis=1).min() > 1e-4


def test_frictions_are_as_documented_unless_said_otherwise(small):
    """The defaults are friction 0.01 and noise estimate 0, and friction 1 where the momentum has unit scale."""
    expected = {"sgld": {}, "sghmc": {"friction": 0.01, "noise_estimate": 0.0}, "sgnht": {"friction": 0.01}}
    expected |= {name: {"friction": 1.0} for name in ("sgnht-shang", "mccadl")}
    expected |= {name: {"friction": 1.0, "kappa": 0.0} for name in ("ccadl", "sghmc-shang")}
    for name, numbers in expected.items():
        found = Lockstep(small, name, [arm_of(name, 0.05, 20)]).hyperparameters
        own = {key: float(value) for key, value in found.items() if key not in ("step_size", "n_leapfrog")}
        assert own == pytest.approx(numbers)
