"""Every registered sampler against its exact stationary distribution."""

import numpy as np
import pytest
from small_models import gaussian_model

from sgtune.samplers import SAMPLERS, resolve_sampler
from sgtune.sampling.arm import Arm
from sgtune.sampling.lockstep import independent_chains
from sgtune.theory.linear import Directions, stationary_variances

pytestmark = pytest.mark.optimised

PRECISION = np.array([[2.0, -1.2], [-1.2, 1.5]])
MEAN = np.array([0.5, -1.0])
N_DATA, WIDTH = 8, 128

LINEAR = {
    **dict.fromkeys(("sghmc", "sghmc-chen", "sghmc-as-published"), 0.05),
    **dict.fromkeys(("sghmc-shang", "sghmc-shang-diagonal", "sghmc-shang-lazy"), 0.5),
    "sgld": 0.2,
}
"""Step sizes of the samplers that are linear recursions on a Gaussian."""
# Samplers with a Metropolis test are not; their invariant densities are tested in test_invariance.
BIASED = {
    *("sgnht", "sgnht-shang", "ccadl", "ccadl-diagonal", "ccadl-as-published", "mccadl", "mccadl-diagonal"),
    *("adam-mcmc", "adam-mcmc-minibatch"),
}
UNBIASED = {"mala", "hmc", "adam-mcmc-exact"}


def test_every_sampler_of_the_registry_is_tested():
    assert LINEAR.keys() | BIASED | UNBIASED == set(SAMPLERS)
    forms = {name: sampler.covariance for name, sampler in SAMPLERS.items() if sampler.covariance}
    assert forms == {name: "diagonal" if name.endswith("-diagonal") else "full" for name in forms}


def exact(name, arm):
    """The stationary covariance, which the same rotation makes diagonal as the precision: gradients have no noise."""
    curvature, basis = np.linalg.eigh(PRECISION)
    known = "sghmc-shang" if name.startswith("sghmc-shang") else name
    return basis * stationary_variances(known, arm, Directions(curvature, np.zeros(2), N_DATA)) @ basis.T


@pytest.mark.parametrize("name", LINEAR)
def test_covariance_agrees_with_the_linear_recursion(name):
    """The recursions are those of the theory, which test_linear compares with matrix equations."""
    sampler, _ = resolve_sampler(name)
    arm = Arm(LINEAR[name], N_DATA, 4 if sampler.has_leapfrog else None)
    has_estimate = "noise_estimate" in {axis.name for axis in sampler.axes}
    used = Arm(**arm, friction=0.1, noise_estimate=0.04) if has_estimate else arm
    model, start = gaussian_model(PRECISION, MEAN, N_DATA), np.tile(MEAN, (WIDTH, 1))
    chains = independent_chains(model, name, used, start)
    chains.advance(300, 300)
    draws = chains.advance(4_000).astype(np.float64) - MEAN
    each = np.einsum("nwi,nwj->wij", draws, draws) / len(draws)

    def z(covariance):
        return np.abs((each.mean(0) - covariance) / each.std(0, ddof=1)).max() * np.sqrt(WIDTH)

    assert z(exact(name, used)) < 4.5
    # The test can distinguish the samplers, their noise, and each sampler from the target.
    assert z(np.linalg.inv(PRECISION)) > 6
    if has_estimate:
        others = [other for other in LINEAR if other.startswith(name[:5]) and "shang" not in other]
        assert all(z(exact(other, used)) > 6 for other in {*others} - {name})
        assert z(exact(name, Arm(**arm, friction=0.1))) > 6
    means = draws.mean(0)
    assert (np.abs(means.mean(0)) < 4.5 * means.std(0, ddof=1) / np.sqrt(WIDTH)).all()
