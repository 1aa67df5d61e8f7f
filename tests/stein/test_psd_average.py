"""Expectations of the polynomial Stein discrepancy: for exact draws, too narrow draws, and subsets of slow chains."""

from importlib import import_module
from unittest.mock import patch

import numpy as np
import pytest
from scipy.signal import lfilter
from stein_forms import a_factor

from sgtune.stein import ksd_stretches, psd, psd_stretches
from sgtune.stein.quadratic import N_STRETCHES, Stretches, mean_square, squared_bias

# In the package the function hides the module of the same name.
MODULE = import_module("sgtune.stein.psd")


def ar1(time, n, dimension, seed=0):
    """Chains with marginals N(0, 1), of integrated autocorrelation time ``time``."""
    correlation = (time - 1) / (time + 1)
    noise = np.random.default_rng(seed).standard_normal((n, dimension))
    noise[1:] *= np.sqrt(1 - correlation**2)
    return lfilter([1], [1, -correlation], noise, axis=0)


@pytest.mark.parametrize("noise", [0.0, 2.0])
@pytest.mark.parametrize("name", ["pairs", "diagonal", "marginals"])
def test_exact_draws_have_mean_zero_with_and_without_noise_of_scores(name, noise):
    """200 replicates of 20 draws: U and B^2 have mean 0, also with scores of noise, within four standard errors.

    The mean over all pairs is d / n, which noise makes larger; without, d is D + 2, about 6, and 3.
    """
    factor = np.diag(np.linspace(0.5, 2, 210)) if name == "diagonal" else a_factor(4, 6)
    scale = np.diag(factor) if name == "diagonal" else factor
    n, dimension, rng = 20, len(factor), np.random.default_rng(0)
    mean, inverse = rng.normal(0, 3, dimension), np.linalg.inv(factor)
    stretch = np.arange(n) * N_STRETCHES // n
    target = "marginals" if name == "marginals" else "all directions"
    z = rng.standard_normal((200 * n, dimension))
    positions, scores = mean + z @ factor.T, (noise * rng.standard_normal(z.shape) - z) @ inverse
    found = []
    for x, s in zip(np.split(positions, 200), np.split(scores, 200), strict=True):
        sums = psd_stretches(x, s, stretch, scale, centre=mean, target=target)
        found.append((sums.sums.sum() / (n * (n - 1)), squared_bias(sums)[0], n * mean_square(sums, n)))
    average, error = np.mean(found, axis=0), np.std(found, axis=0, ddof=1) / np.sqrt(200)
    assert (np.abs(average[:2]) < 4 * error[:2]).all()
    own = {"pairs": dimension + 2, "diagonal": 6 - 2 / dimension, "marginals": 3}[name]
    if noise:
        assert average[2] > own + 8 * error[2]
    else:
        assert abs(average[2] - own) < 4 * error[2]
        assert error[2] < 0.1 * own


def test_centred_at_their_mean_exact_draws_of_a_slow_chain_would_seem_wrong():
    """The reason for the mode as centre: 300 chains of 100 draws with autocorrelation time 30, in one dimension."""
    chains = ar1(30, 100, 300)
    moments = {
        "mode": [1 - np.mean(x * x) for x in chains.T],
        "mean": [1 - np.mean(x * (x - x.mean())) for x in chains.T],
    }
    error = {key: np.std(values) / np.sqrt(300) for key, values in moments.items()}
    assert abs(np.mean(moments["mode"])) < 4 * error["mode"]
    assert np.mean(moments["mean"]) > 4 * error["mean"]
    x = chains[:, :1]
    assert psd(x, -x) == pytest.approx(np.hypot(x.mean(), moments["mode"][0]))


def test_it_detects_wrong_widths_from_few_draws_where_the_ksd_does_not():
    """50 draws in 200 dimensions, each sd 0.9 of what it should be; mean over sd of 60 replicates of the mean off the
    diagonal, with the KSD's kernel as wide as draws are far apart, and with its width of 1."""
    n, dimension, rng, found = 50, 200, np.random.default_rng(0), []
    stretch = np.zeros(n, int)
    for _ in range(60):
        x = 0.9 * rng.standard_normal((n, dimension))
        wide = np.full(dimension, dimension**0.5)
        sums = [
            psd_stretches(x, -x, stretch, centre=None, target="marginals"),
            ksd_stretches(x, -x, stretch, wide),
            ksd_stretches(x, -x, stretch),
        ]
        found.append([each.sums.sum() for each in sums])
    signal = np.mean(found, axis=0) / np.std(found, axis=0)
    assert signal[0] > 5
    # Four standard errors of such a ratio about its mean of less than 0.1.
    assert (np.abs(signal[1:]) < 0.1 + 4 / np.sqrt(60)).all()


# --- subsets of a chain


def sums_of(x):
    return psd_stretches(x, -x, np.zeros(len(x), int), centre=None)


@pytest.mark.parametrize(("time", "n"), [(1, 2_000), (30, 2_000), (300, 6_000)])
@pytest.mark.parametrize("target", ["pairs", "diagonal"])
def test_random_subsets_are_unbiased_and_evenly_spaced_ones_are_too_low(time, n, target):
    """60 chains in three dimensions with three random subsets of 40 draws; paired, within three standard errors."""
    rng, random, even, floored, every = np.random.default_rng(1), [], [], [], []
    with patch.object(MODULE, "PAIRS_UP_TO", 200 if target == "pairs" else 0):
        for chain in range(60):
            x = ar1(time, n, 3, chain)
            every.append(mean_square(sums_of(x), n))
            parts = [sums_of(x[np.sort(rng.choice(n, 40, replace=False))]) for _ in range(3)]
            random.append(np.mean([unbiased_square(part, n) for part in parts]))
            floored.append(np.mean([mean_square(part, n) for part in parts]))
            even.append(unbiased_square(sums_of(x[rng.integers(n // 40) :: n // 40]), n))
    every = np.array(every)
    short = np.array(random) - every
    assert abs(short.mean()) < 3 * short.std(ddof=1) / np.sqrt(60)
    assert np.mean(floored) >= np.mean(random)
    short = np.array(even) - every
    error = short.std(ddof=1) / np.sqrt(60)
    if time > 1:
        assert short.mean() < -4 * error
        assert np.mean(even) < 0.85 * every.mean()
    else:
        assert abs(short.mean()) < 3 * error


def unbiased_square(stretches: Stretches, n_draws):
    """U + (d - U) / N, from the definition; `mean_square` is at least d / N."""
    n = stretches.counts.sum()
    own, others = stretches.own.sum() / n, stretches.sums.sum() / (n * (n - 1))
    value = others + (own - others) / n_draws
    assert mean_square(stretches, n_draws) == pytest.approx(max(value, own / n_draws))
    return value
