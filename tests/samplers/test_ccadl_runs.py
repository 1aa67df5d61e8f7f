"""Runs of CCAdL, mCCAdL and the samplers in the same units: shared programs, statistics and errors."""

import numpy as np
import pytest
from small_models import small_logistic_model

from sgtune import Budget, sample, tune
from sgtune.samplers import (
    check_not_clipped,
    resolve_sampler,
)
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
