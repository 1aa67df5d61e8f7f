"""The forecast of a discrepancy at the horizon, from its present bias and variance."""

import numpy as np
import pytest
from scipy.signal import lfilter

from sgtune.stein.quadratic import (
    LEAST_SHARE,
    N_STRETCHES,
    Stretches,
    foreseen,
    horizon_score,
    mean_square,
    squared_bias,
    stretch_of,
)
from sgtune.support.errors import InputError


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        # All variance, with a quarter of the time; half bias, with any standard error.
        ({"square": 4.0, "bias": 0.0, "error": 0.0, "share": 0.25}, 1.0),
        ({"square": 4.0, "bias": 2.0, "error": 0.0, "share": 0.25}, 2.5),
        ({"square": 4.0, "bias": 2.0, "error": 0.5, "share": 0.25}, 2.5),
        # A negative bias counts as 0, and the present variance is at least the variance of independent draws.
        ({"square": 4.0, "bias": -3.0, "error": 0.0, "share": 0.25}, 1.0),
        ({"square": 4.0, "bias": 5.0, "error": 0.0, "share": 0.5, "least": 0.2}, 5.1),
        # At most ten times as far, and also backwards from beyond the horizon.
        ({"square": 4.0, "bias": 0.0, "error": 0.0, "share": 1e-6}, 4.0 * LEAST_SHARE),
        ({"square": 4.0, "bias": 1.0, "error": 0.0, "share": 2.0}, 7.0),
        # Where bias and variance cannot be separated, there is no forecast.
        ({"square": 4.0, "bias": 0.0, "error": np.inf, "share": 0.25}, 4.0),
        ({"square": np.inf, "bias": 0.0, "error": np.inf, "share": 0.25}, np.inf),
    ],
)
def test_bias_stays_and_variance_falls(arguments, expected):
    assert foreseen(**({"least": 0.0} | arguments)) == pytest.approx(expected)


def test_scores_of_kernels_add_the_standard_error_of_the_bias():
    """Uses sums that differ between stretches. For sums that give no bias, the score is V."""
    sums = np.random.default_rng(1).uniform(50, 150, (N_STRETCHES, N_STRETCHES))
    stretches = Stretches(np.full(N_STRETCHES, 10), sums + sums.T, np.full(N_STRETCHES, 40.0))
    square, (bias, error) = mean_square(stretches, 50), squared_bias(stretches)
    assert 0 < error < np.inf
    expected = foreseen(square, bias, error, least=4 / 50, share=0.3) + error
    assert horizon_score(stretches, 50, 0.3) == pytest.approx(expected)
    single = stretches._replace(counts=np.array([50, 0, 0, 0, 0]))
    assert horizon_score(single, 50, 0.3) == mean_square(single, 50)


def test_the_bias_is_from_pairs_of_later_stretches_that_are_not_neighbours():
    """By hand: B^2 = (3 + 5 + 4) / (1 + 1 + 2) of the pairs (1, 3), (1, 4) and (2, 4).

    Without stretch 1, 2, 3 or 4 it is 4 / 2, 8 / 2, 9 / 3 or 3 / 1. The other sums are wrong by far, and not used.
    """
    sums = np.full((N_STRETCHES, N_STRETCHES), 1e6)
    for (a, b), value in {(1, 3): 3.0, (1, 4): 5.0, (2, 4): 4.0}.items():
        sums[a, b] = sums[b, a] = value
    stretches = Stretches(np.array([2, 1, 2, 1, 1]), sums, np.full(N_STRETCHES, 1e6))
    bias, error = squared_bias(stretches)
    assert bias == pytest.approx(3.0)
    assert error == pytest.approx(np.sqrt(3 / 4 * 2))


def test_the_bias_of_a_slow_chain_with_a_transient_is_unbiased():
    """k(x, y) = x y for 4,000 AR(1) chains of mean 0.3 with stretches of two autocorrelation times.

    Pairs of neighbouring stretches would add a third of 3 / 100, more than six standard errors; the first stretch, far
    away, would add more.
    """
    rng, correlation, length, mean = np.random.default_rng(2), 0.9, 40, 0.3
    noise = rng.standard_normal((4_000, N_STRETCHES * length))
    noise[:, 1:] *= np.sqrt(1 - correlation**2)
    chains = mean + lfilter([1], [1, -correlation], noise, axis=1)
    chains[:, :length] += 5.0
    counts = np.full(N_STRETCHES, length)
    found, with_neighbours = [], []
    for parts in chains.reshape(-1, N_STRETCHES, length).sum(axis=2):
        sums = np.outer(parts, parts)
        found.append(squared_bias(Stretches(counts, sums, np.zeros(N_STRETCHES)))[0])
        with_neighbours.append(
            np.mean([sums[a, b] for a in range(1, 5) for b in range(a + 1, 5)]) / length**2
        )
    error = np.std(found, ddof=1) / np.sqrt(len(found))
    # Stretches that are not neighbours are correlated by less than 0.9^40, a sixtieth.
    assert abs(np.mean(found) - mean**2) < 4 * error
    assert np.mean(with_neighbours) > mean**2 + 4 * error


def test_it_predicts_longer_chains():
    """2,000 AR(1) chains with a wrong mean: the squared mean of 400 draws is predicted from the first 100.

    The variance falls as one over the time, up to 5% from the correlation at the ends.
    """
    rng, correlation, bias = np.random.default_rng(0), 0.8, 0.3
    noise = rng.standard_normal((2_000, 400))
    noise[:, 1:] *= np.sqrt(1 - correlation**2)
    chains = bias + lfilter([1], [1, -correlation], noise, axis=1)
    early, late = (chains[:, :n].mean(axis=1) ** 2 for n in (100, 400))
    forecast = foreseen(early.mean(), bias**2, 0.0, least=0.01, share=0.25)
    error = np.hypot(early.std() / 4, late.std()) / np.sqrt(2_000)
    assert abs(forecast - late.mean()) < 4 * error + 0.05 * (late.mean() - bias**2)
    assert early.mean() - late.mean() > 8 * error


@pytest.mark.parametrize("share", [0.0, -1.0, np.nan, np.inf])
def test_a_bad_share_gets_one_line(share):
    with pytest.raises(InputError, match=r"^share: .* is not allowed; it must be .*> 0") as raised:
        foreseen(1.0, 0.0, 0.0, least=0.0, share=share)
    assert "\n" not in str(raised.value)


def test_stretches_are_fifths_of_the_steps():
    stretches = stretch_of(np.arange(1, 101), 100)
    assert np.bincount(stretches).tolist() == [20] * 5
    assert (np.diff(stretches) >= 0).all()
    # A random subset of a chain whose length is not a multiple of five.
    assert stretch_of(np.array([1, 3, 5, 7, 12]), 12).tolist() == [0, 0, 1, 2, 4]
