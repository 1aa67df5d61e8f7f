"""Integrated autocorrelation times of many parameters of one chain together."""

import numpy as np
from jaxtyping import Float
from scipy import fft

__all__ = ["pooled_time"]


def pooled_time(draws: Float[np.ndarray, "n k"]) -> float | None:
    """1 + 2 * the sum of the autocorrelations, c_l the mean over k parameters of (1/n) sum over t of x_t x_{t+l}.

    Draws are deviations from the expectation: no mean is subtracted, which would shorten the times of slow chains. Of
    parameters that all have the same law it is the time of each; else the mean of their times, weighted by variances.
    The sum ends with Geyer's initial positive sequence. float64, O(k n log n).

    None if the sequence has not ended after half of the chain, if draws are not all finite, or never move.
    """
    n = len(draws)
    if n < 8 or not np.isfinite(draws).all() or not np.ptp(draws, axis=0).any():
        return None
    size = fft.next_fast_len(2 * n)
    covariances = np.zeros(n)
    for column in np.asarray(draws, np.float64).T:
        covariances += fft.irfft(np.abs(fft.rfft(column, size)) ** 2, size)[:n]
    n_pairs = n // 4
    pairs = covariances[: 2 * n_pairs].reshape(n_pairs, 2).sum(axis=1) / covariances[0]
    ends = np.flatnonzero(pairs <= 0)
    if not len(ends):
        return None
    return float(max(2 * pairs[: ends[0]].sum() - 1, 1 / n))
