"""Integrated autocorrelation times of long chains."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy import fft

__all__ = ["IntegratedTime", "autocovariance", "batch_means_time", "integrated_time"]


class IntegratedTime(NamedTuple):
    """``time``, in steps: this many draws of the chain determine a mean as well as one independent draw; and ``lags``,
    the number of autocorrelations in the sum."""

    time: float
    lags: int


def autocovariance(draws: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """c_k = (1/n) sum over t of (x_t - mean)(x_{t+k} - mean) for k = 0, ..., n - 1, by FFT in O(n log n), float64."""
    n = len(draws)
    centred = np.asarray(draws, np.float64) - np.mean(draws, dtype=np.float64)
    spectrum = fft.rfft(centred, fft.next_fast_len(2 * n))
    return fft.irfft(np.abs(spectrum) ** 2, fft.next_fast_len(2 * n))[:n] / n


def integrated_time(draws: Float[np.ndarray, " n"]) -> IntegratedTime:
    """1 + 2 * sum of the autocorrelations, up to where Geyer's initial positive sequence ends.

    The code is of this module: ArviZ's effective sample size splits chains and makes the sequence monotone, which
    Geyer's positive sequence does not. Over many chains the two agree (`tests/study/test_ccadl_normal.py`).

    The sums of neighbours, rho_2k + rho_2k+1, are positive and decrease for a reversible chain (Geyer 1992, Practical
    Markov Chain Monte Carlo, Sect. 3.3); the first that is not positive counts as noise, and so do all after it. A
    chain with momenta is not reversible in its positions: where its autocorrelations oscillate the sum ends at their
    first zero, and the result is longer than the integral over all lags (`batch_means_time`).

    nan for fewer than 4 draws, for draws that are all the same, and for draws that are not all finite.
    """
    if len(draws) < 4 or not np.isfinite(draws).all():
        return IntegratedTime(np.nan, 0)
    covariances = autocovariance(draws)
    if not covariances[0] > 0:
        return IntegratedTime(np.nan, 0)
    n_pairs = len(draws) // 2
    pairs = covariances[: 2 * n_pairs].reshape(n_pairs, 2).sum(axis=1) / covariances[0]
    ends = np.flatnonzero(pairs <= 0)
    n_positive = int(ends[0]) if len(ends) else n_pairs
    return IntegratedTime(float(max(2 * pairs[:n_positive].sum() - 1, 0.0)), 2 * n_positive)


def batch_means_time(draws: Float[np.ndarray, " n"], n_batches: int = 100) -> float:
    """The integral over all lags: the variance of the means of ``n_batches`` stretches, times their length, over the
    variance of the draws. Its relative standard error is about sqrt(2 / ``n_batches``).

    nan where `integrated_time` is nan, and for fewer than two draws in a stretch.
    """
    length = len(draws) // n_batches
    if length < 2 or not np.isfinite(draws).all():
        return float("nan")
    stretches = np.asarray(draws[: length * n_batches], np.float64).reshape(n_batches, length)
    variance = np.var(stretches)
    return float(length * np.var(stretches.mean(axis=1), ddof=1) / variance) if variance > 0 else float("nan")
