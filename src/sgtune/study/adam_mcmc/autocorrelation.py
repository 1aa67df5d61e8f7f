"""Integrated autocorrelation times of many parameters of one chain together."""

import numpy as np
from jaxtyping import Float
from scipy import fft

__all__ = ["pooled_time"]

WINDOW = 3
"""The sum ends at this many times itself. What it leaves out of a geometric autocorrelation is exp(-6) of it."""

SHORTEST = 20
"""The least number of lags in the sum: autocorrelations may alternate in sign."""


def pooled_time(draws: Float[np.ndarray, "n k"]) -> float | None:
    """1 + 2 * the sum of the autocorrelations, c_l the mean over k parameters and over t of x_t x_{t+l}.

    Draws are deviations from the expectation: no mean is subtracted, which would shorten the times of slow chains, and
    c_l is unbiased for chains that start in the target. Of parameters that all have the same law it is the time of
    each; else the mean of their times, weighted by variances. The sum ends at the first lag that is at least `WINDOW`
    times the sum so far (Sokal 1997, "Monte Carlo methods in statistical mechanics"). float64, O(k n log n).

    None if that lag is beyond half of the chain, if draws are not all finite, or never move.
    """
    n = len(draws)
    if n < 2 * SHORTEST or not np.isfinite(draws).all() or not np.ptp(draws, axis=0).any():
        return None
    size = fft.next_fast_len(2 * n)
    covariances = np.zeros(n // 2 + 1)
    for column in np.asarray(draws, np.float64).T:
        covariances += fft.irfft(np.abs(fft.rfft(column, size)) ** 2, size)[: n // 2 + 1]
    lags = np.arange(n // 2 + 1)
    covariances /= n - lags
    times = 2 * np.cumsum(covariances) / covariances[0] - 1
    ends = np.flatnonzero(lags >= np.maximum(WINDOW * times, SHORTEST))
    if not len(ends):
        return None
    return float(max(times[ends[0]], 1 / n))
