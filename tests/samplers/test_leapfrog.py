"""SGHMC's integrator on the paper's logistic posterior."""

import numpy as np
import pytest

from sgtune.metrics import relative_sd_error
from sgtune.mode.curvature import laplace_sd
from sgtune.sampling.arm import Arm
from sgtune.sampling.lockstep import Lockstep
from sgtune.study.posteriors import load_model

pytestmark = pytest.mark.optimised


@pytest.fixture(scope="module")
def paper_posterior(logistic_data_dir):
    model = load_model("logistic", logistic_data_dir)
    return model, laplace_sd(model)


def sd_errors(paper_posterior, name, arms, n_samples, burn_in):
    """xi of each arm without the first ``burn_in`` samples; infinite for a chain that is not finite."""
    model, sd = paper_posterior
    chains = Lockstep.at_mode(model, name, arms)
    chains.advance(burn_in)
    draws = chains.advance(n_samples).astype(np.float64)
    return [relative_sd_error(draws[:, i].std(0), sd) for i in range(len(arms))]


TENTH = 80_000


@pytest.mark.slow
def test_leapfrog_is_stable_where_the_explicit_order_is_not(paper_posterior):
    """10% batches, L = 10, h = 1e-6 and h = 1/N: measured xi 0.47 and 0.66; explicit order 27 and 52."""
    arms = [Arm(1e-6, TENTH, 10), Arm(1 / 800_000, TENTH, 10)]
    leapfrog = sd_errors(paper_posterior, "sghmc", arms, 120, 40)
    assert leapfrog[0] < 0.7
    assert leapfrog[1] < 1
    assert min(sd_errors(paper_posterior, "sghmc-as-published", arms, 60, 40)) > 10


@pytest.mark.slow
def test_leapfrog_with_control_variates_is_close_to_exact(paper_posterior):
    """0.1% batches, L = 10, h = 10^-6.5: measured xi 0.07, most of it Monte Carlo error (0.014 for 20,000 samples)."""
    (error,) = sd_errors(paper_posterior, "sghmc-cv", [Arm(10**-6.5, 800, 10)], 8_000, 0)
    assert error < 0.15
