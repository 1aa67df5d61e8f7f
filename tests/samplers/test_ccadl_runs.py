"""Runs of CCAdL, mCCAdL and the samplers in the same units: shared programs, statistics and errors."""

import numpy as np
import pytest
from small_models import logistic_arrays, small_logistic_model

from sgtune import Budget, sample, tune
from sgtune.samplers import (
    SAMPLERS,
    check_not_clipped,
    make_ccadl,
    make_mccadl,
    make_sghmc_shang,
    resolve_sampler,
)
from sgtune.sampling.arm import Arm, check_arm
from sgtune.sampling.lockstep import Lockstep
from sgtune.study.posteriors import logistic
from sgtune.support.errors import InputError
from sgtune.tuning import Heuristic


@pytest.fixture(scope="module")
def model():
    return small_logistic_model(n_data=200, dimension=3)


NAMES = ("ccadl", "ccadl-diagonal", "mccadl", "mccadl-diagonal", "sghmc-shang", "sghmc-shang-diagonal")


@pytest.mark.parametrize("name", ["ccadl", "mccadl-diagonal-cv"])
def test_arms_of_several_frictions_share_one_program(model, name):
    """All numbers are traced; each chain equals the chain run alone."""
    arms = [Arm(h, 20, friction=friction) for h, friction in ((2e-3, 1.0), (4e-3, 10.0), (1e-3, 3.0))]
    together = Lockstep.at_mode(model, name, arms).advance(30)
    assert np.isfinite(together).all()
    for i, arm in enumerate(arms):
        alone = Lockstep.at_mode(model, name, [arm]).advance(30)[:, 0]
        np.testing.assert_allclose(alone, together[:, i], rtol=1e-3, atol=1e-4)


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


@pytest.mark.parametrize("name", NAMES)
def test_full_batches_have_no_noise(model, name):
    chains = Lockstep.at_mode(model, name, [Arm(2e-3, 200)])
    assert np.isfinite(chains.advance(20)).all()
    if "noise" in chains.states._fields:
        assert (chains.states.noise.covariance == 0).all()


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


@pytest.mark.parametrize("name", [*NAMES, "ccadl-cv"])
@pytest.mark.parametrize(
    ("arm", "parts"),
    [
        (Arm(1e-3, 1), ("batch_size: 1 is not allowed", "2 or more")),
        (Arm(1e-3, 201), ("batch_size: 201", "<= 200")),
        (Arm(1e-3, 20, friction=0.0), ("friction: 0.0", "> 0")),
        (Arm(1e-3, 20, friction=-1.0), ("friction: -1.0", "> 0")),
        (Arm(0.0, 20), ("step_size: 0.0", "> 0")),
    ],
)
def test_bad_arms_get_one_line(model, name, arm, parts):
    with pytest.raises(InputError) as caught:
        Lockstep.at_mode(model, name, [arm])
    line = str(caught.value)
    assert "\n" not in line
    assert line.startswith(parts[0])
    assert all(part in line for part in parts)


def test_a_kappa_above_one_gets_one_line(model):
    with pytest.raises(InputError, match=r"^kappa: 1.5 is not allowed; it must be a number >= 0 and <= 1$"):
        check_arm(model, "ccadl", Arm(1e-3, 20, kappa=1.5))
    with pytest.raises(InputError, match=r"^kappa: 0.5 given, but mccadl has no such hyperparameter"):
        check_arm(model, "mccadl", Arm(1e-3, 20, kappa=0.5))


def test_a_full_covariance_of_too_many_parameters_is_refused_before_any_work():
    model = logistic.from_arrays(*logistic_arrays(4, 5_001, seed=1))
    for name in ("ccadl", "mccadl-cv", "sghmc-shang"):
        with pytest.raises(InputError, match=r"^covariance: 'full' is not allowed for D = 5001.* GiB"):
            sample(model, name, step_size=1e-3, batch_size=2, budget=Budget(steps=1))
    assert model.found.mode is None
    check_arm(model, "ccadl-diagonal", Arm(1e-3, 2))


def test_factories_make_the_registered_samplers_and_refuse_what_they_do_not_know():
    assert make_ccadl(covariance="diagonal") is SAMPLERS["ccadl-diagonal"]
    assert make_ccadl(factor="as printed") is SAMPLERS["ccadl-as-published"]
    assert make_mccadl(covariance="full") is SAMPLERS["mccadl"]
    assert make_sghmc_shang(covariance="diagonal") is SAMPLERS["sghmc-shang-diagonal"]
    for make in (make_ccadl, make_mccadl, make_sghmc_shang):
        with pytest.raises(InputError, match=r"^covariance: 'ful' is not known"):
            make(covariance="ful")
    with pytest.raises(InputError, match=r"^factor: 'printed' is not known"):
        make_ccadl(factor="printed")


def test_the_heuristic_is_in_units_of_sgld(model):
    """h = 1 / N for SGLD is h^2 = 1 / N where the momentum has unit scale."""
    budget = Budget(steps=1)
    assert tune(model, "sgnht", tuner=Heuristic(), budget=budget).best.step_size == 1 / 200
    for name in ("ccadl", "sgnht-shang"):
        assert tune(model, name, tuner=Heuristic(), budget=budget).best.step_size == pytest.approx(200**-0.5)
