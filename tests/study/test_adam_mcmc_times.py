"""Integrated autocorrelation times of AdamMCMC's study, against those of autoregressions."""

import numpy as np
import pytest
from scipy.signal import lfilter

from sgtune.study.adam_mcmc.autocorrelation import effective_share, jackknife_times, pooled_time


@pytest.mark.parametrize(
    ("a", "n", "k"),
    [(0.8, 20_000, 50), (0.99, 2_000, 50), (0.99, 900, 200), (-0.5, 2_000, 50), (0.0, 200, 10)],
)
def test_time_of_autoregressions_is_theirs(a, n, k):
    """(1 + a) / (1 - a), also of short chains: 2,000 steps of 50 parameters and 900 of 200,
    against a time of 199."""
    noise = np.random.default_rng(0).standard_normal((20, n, k))
    # The first draw has the stationary variance.
    noise[:, 0] /= np.sqrt(1 - a**2)
    times = [pooled_time(lfilter([1], [1, -a], one, axis=0)) for one in noise]
    exact = (1 + a) / (1 - a)
    se = np.std(times, ddof=1) / np.sqrt(len(times))
    # The window leaves out exp(-6) of the sum.
    assert abs(np.mean(times) - exact) < 4 * se + 0.003 * exact
    assert se < 0.05 * exact


def test_the_jackknife_of_chains_has_the_error_of_their_effective_sample_size():
    """Four chains of ten parameters and 2,000 steps, ten autocorrelation times of 199. Over 60 sets the mean of
    1 / time is within 4% of the exact one, less than a third of its sd, and the standard errors are as large as that.
    """
    noise = np.random.default_rng(1).standard_normal((60, 2_000, 4, 10))
    noise[:, 0] /= np.sqrt(1 - 0.99**2)
    estimates, errors = [], []
    for one in noise:
        time, without = jackknife_times(lfilter([1], [1, -0.99], one, axis=0))
        pseudo = 199 * (4 / time - 3 / np.array(without))
        estimates.append(pseudo.mean())
        errors.append(pseudo.std(ddof=1) / 2)
    sd = np.std(estimates, ddof=1)
    assert abs(np.mean(estimates) - 1) < 4 * sd / np.sqrt(60) + 0.04
    # The sd of 60 numbers has a relative standard error of 9%; so has the root of the mean of 60 squares of 3 degrees.
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(sd, rel=0.4)
    assert jackknife_times(noise[0][:, :1])[1] == []


def test_chains_too_short_alone_may_be_long_enough_together():
    noise = np.random.default_rng(2).standard_normal((1_000, 4, 5))
    noise[0] /= np.sqrt(1 - 0.99**2)
    draws = lfilter([1], [1, -0.99], noise, axis=0)
    assert pooled_time(draws[:, 0]) is None
    assert jackknife_times(draws)[0] == pytest.approx(199, rel=0.5)
    # One chain that never moves leaves none.
    draws[:, 0] = 3.0
    assert jackknife_times(draws)[0] is None


def test_correlated_parameters_count_by_their_effective_number():
    """Ten parameters of which one direction has more than half of the variance, and in a random walk nearly all of the
    time, as on the logistic posterior. Of four chains of three times it, those that pass as ten independent parameters
    are those with a far too small estimate; by the effective number, 3.4, few pass. With 12 times it most do."""
    rng, r = np.random.default_rng(3), 0.467
    covariance = (1 - r) * np.eye(10) + r * np.ones((10, 10))
    assert effective_share(np.eye(10)) == pytest.approx(1)
    assert effective_share(np.ones((10, 10))) == pytest.approx(0.1)
    share = effective_share(covariance * np.outer(np.arange(1, 11), np.arange(1, 11)))
    assert share == pytest.approx(1 / (1 + 9 * r**2))
    eigenvalues, directions = np.linalg.eigh(covariance)
    a = 1 - 1 / (40 * eigenvalues)
    exact = np.sum(eigenvalues * (1 + a) / (1 - a)) / np.sum(eigenvalues)

    def times(length, share):
        found = []
        for _ in range(30):
            noise = rng.standard_normal((int(length * exact), 4, 10)) * np.sqrt(1 - a**2)
            noise[0] /= np.sqrt(1 - a**2)
            modes = np.stack(
                [lfilter([1], [1, -b], noise[:, :, k], axis=0) for k, b in enumerate(a)], axis=-1
            )
            found.append(jackknife_times(modes * np.sqrt(eigenvalues) @ directions.T, share)[0])
        return [time for time in found if time is not None]

    too_short = times(3, 1.0)
    assert len(too_short) > 10
    assert np.mean(too_short) < 0.7 * exact
    assert len(times(3, share)) < 0.7 * len(too_short)
    long_enough = times(12, share)
    assert len(long_enough) > 24
    error = np.std(long_enough, ddof=1) / np.sqrt(len(long_enough))
    assert abs(np.mean(long_enough) - exact) < 4 * error


def test_a_run_too_short_for_its_time_has_none():
    walk = np.cumsum(np.random.default_rng(0).standard_normal((400, 5)), axis=0) + 100
    assert pooled_time(walk) is None
    assert pooled_time(np.ones((100, 2))) is None
    assert pooled_time(np.full((100, 2), np.nan)) is None
