"""The mistakes that each error against a reference detects."""

import numpy as np
import pytest

from sgtune.metrics.spread import functional_error, xi_rel, xi_white


def test_right_sds_of_parameters_can_be_wrong_across_them():
    """The target has correlation 0.9, the draws 0: the ratios of sds along its axes are 1 / sqrt(1.9) and sqrt(10)."""
    reference = np.array([[1.0, 0.9], [0.9, 1.0]])
    assert xi_rel(np.ones(2), np.ones(2)) == 0
    wanted = np.sqrt(((1.9**-0.5 - 1) ** 2 + (10**0.5 - 1) ** 2) / 2)
    assert xi_white(np.eye(2), reference) == pytest.approx(wanted)
    assert xi_white(4 * reference, reference) == pytest.approx(1)
    assert xi_white(np.full((2, 2), np.inf), reference) == np.inf


@pytest.mark.parametrize(("mean", "sd"), [(0.0, 1.0), (2.0, 1.0), (-0.5, 3.0), (1.0, 0.0)])
def test_the_error_of_a_functional_is_the_distance_of_two_gaussians(mean, sd):
    """2-Wasserstein: the root mean square difference of the quantiles, in sds of the reference N(1, 2^2)."""
    from scipy.stats import norm

    # Normal quantiles at the midpoints of equal shares have variance 1 within 1e-4.
    quantiles = norm.ppf((np.arange(100_000) + 0.5) / 100_000)
    distance = np.sqrt(np.mean((mean + sd * quantiles - 1 - 2 * quantiles) ** 2))
    found = functional_error(np.array([mean]), np.array([sd]), np.array([1.0]), np.array([2.0]))
    assert found == pytest.approx(distance / 2, rel=1e-3)
