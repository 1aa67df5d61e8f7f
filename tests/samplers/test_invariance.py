"""The invariant densities of samplers with a Metropolis test: a million steps of 512 chains, started at exact draws.

A chain is a batch. If the kernel keeps the target, a chain's mean over 2,000 steps is unbiased at any autocorrelation.
"""

import numpy as np
import pytest
from known_targets import N_DATA, SIGMAS, TARGETS, moments_and_errors

from sgtune.sampling.arm import Arm
from sgtune.sampling.lockstep import independent_chains

pytestmark = pytest.mark.optimised

WIDTH, N_STEPS = 512, 2_000

ADAM = {"batch_size": N_DATA, "noise_sd": 0.5}
# With more noise in the second moment its factor of the correction would be 1, and not be tested.
EXACT = {
    "mala": Arm(0.2, N_DATA),
    "mala with a drift": Arm(0.2, N_DATA, drift=0.1),
    "hmc": Arm(0.2, N_DATA, 3),
    "adam-mcmc-exact": Arm(0.3, **ADAM, b1=0.5, b2=0.9, momentum_noise=4.0, second_moment_noise=2.0),
    "adam-mcmc-exact, isotropic": Arm(
        0.3, **ADAM, b1=0.5, b2=0.9, momentum_noise=4.0, second_moment_noise=2.0, directional_noise=0.0
    ),
    "adam-mcmc-exact, all defaults": Arm(0.3, **ADAM),
}


ALL = ["gaussian", *(pytest.param(name, marks=pytest.mark.proof) for name in ("banana", "mixture"))]


def deviations(target, name, arm, burn_in=0):
    """Differences of the moments from the target's, and their standard errors."""
    start = target.draw(np.random.default_rng(1), WIDTH)
    chains = independent_chains(target.model, name, arm, start, centre=np.zeros(2, np.float32))
    chains.advance(burn_in, max(1, burn_in))
    means, errors = moments_and_errors(target, chains.advance(N_STEPS, 4))
    return means - target.expectations, errors, chains


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize(
    "sampler", [pytest.param(name, marks=pytest.mark.proof if "," in name else ()) for name in EXACT]
)
def test_exact_samplers_keep_the_target(sampler, name):
    arm = EXACT[sampler]
    found, errors, chains = deviations(TARGETS[name], sampler.split(",")[0].split(" ")[0], arm)
    assert (np.abs(found) < SIGMAS * errors).all()
    assert (errors < 0.05).all()
    # The test is not trivial: chains moved, and proposals were rejected.
    assert 0.05 < chains.statistics["acceptance_rate"].mean() < 0.98


SMALL_BIAS = 0.04
"""The relative bias of second moments in the paper's approximation, at gamma = s / 50 and s = half the sd."""


@pytest.mark.parametrize("name", ALL)
def test_the_papers_approximation_has_a_bias_that_grows_with_gamma(name):
    """Biases of E x^2 on the Gaussian at s = 0.5: -0.02 at gamma = 0.01, -0.04 at 0.03, -0.10 at 0.1, -0.11 at 0.3."""
    found = [
        deviations(TARGETS[name], "adam-mcmc", Arm(gamma, **ADAM), burn_in=500)[:2] for gamma in (0.01, 0.1)
    ]
    (small, small_error), (large, large_error) = found
    scale = np.maximum(np.abs(TARGETS[name].expectations), 1.0 if name != "mixture" else 0.41)
    assert (np.abs(small) < SMALL_BIAS * scale + SIGMAS * small_error).all()
    # This many steps distinguish the large bias from the target and from the small bias.
    second = np.argmax(np.abs(large) / large_error)
    # The banana's errors are too large for the first of these.
    assert np.abs(large)[second] > 6 * large_error[second] or name == "banana"
    assert np.abs(large)[second] > np.abs(small)[second] + 3 * np.hypot(small_error, large_error)[second]
