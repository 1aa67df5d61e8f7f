"""Integrated autocorrelation times of many parameters of several chains together."""

import numpy as np
from jaxtyping import Float
from scipy import fft

__all__ = ["effective_share", "jackknife_times", "pooled_time"]

WINDOW = 3
"""The sum ends at this many times itself. What it leaves out of a geometric autocorrelation is exp(-6) of it."""

SHORTEST = 20
"""The least number of lags in the sum: autocorrelations may alternate in sign."""

LEAST_TIMES = 30
"""The covariance at the last lag of the sum is a mean over at least this many autocorrelation times, all independent
parameters of all chains together. A chain of ten must therefore be six of them long, four such chains 3.75, and with
200 a chain must be little longer than `WINDOW`."""


def pooled_time(draws: Float[np.ndarray, "n k"], share: float = 1.0) -> float | None:
    """1 + 2 * the sum of the autocorrelations, c_l the mean over k parameters and over t of x_t x_{t+l}.

    Draws are deviations from the expectation: no mean is subtracted, which would shorten the times of slow chains, and
    c_l is unbiased for chains that start in the target. Of parameters that all have the same law it is the time of
    each; else the mean of their times, weighted by variances. The sum ends at the first lag that is at least `WINDOW`
    times the sum so far (Sokal 1997, "Monte Carlo methods in statistical mechanics"). float64, O(k n log n).

    None if the chain is too short for that lag (`LEAST_TIMES`), if draws are not all finite, or never move.

    Args:
        share: the effective number of parameters over k (`effective_share`). Without it correlated parameters would
            count as independent, and the few chains that pass would be those whose estimate is far too small.
    """
    return _time_of(_lagged_products(draws), share * draws.shape[1])


def jackknife_times(
    draws: Float[np.ndarray, "n w k"], share: float = 1.0
) -> tuple[float | None, list[float | None]]:
    """`pooled_time` of all parameters of W independent chains, and of all chains but the first, the second, ...

    Chains that are too short one by one may be long enough together. No time is known if one of them never moves.
    """
    n_chains, k = draws.shape[1:]
    products = np.stack([_lagged_products(draws[:, i]) for i in range(n_chains)])
    together = _time_of(products.sum(axis=0), n_chains * share * k)
    if n_chains == 1:
        return together, []
    others = [np.delete(products, i, axis=0).sum(axis=0) for i in range(n_chains)]
    return together, [_time_of(own, (n_chains - 1) * share * k) for own in others]


def effective_share(covariance: Float[np.ndarray, "d d"]) -> float:
    """(sum of eigenvalues)^2 / (D x sum of their squares) of the correlation matrix: 1 for independent parameters,
    1 / D for parameters that are all the same. The variance of a mean of squares is larger by its inverse."""
    sds = np.sqrt(np.diagonal(covariance))
    correlation = np.asarray(covariance, np.float64) / np.outer(sds, sds)
    return float(np.trace(correlation) ** 2 / (len(sds) * np.sum(correlation**2)))


def _lagged_products(draws: Float[np.ndarray, "n k"]) -> Float[np.ndarray, " n"]:
    """Of lag l = 0, 1, ... the sum over the k parameters and over t of x_t x_{t+l}; NaN if draws are not all finite, or
    never move."""
    n = len(draws)
    if not np.isfinite(draws).all() or not np.ptp(draws, axis=0).any():
        return np.full(n, np.nan)
    products = np.zeros(n)
    size = fft.next_fast_len(2 * n)
    for column in np.asarray(draws, np.float64).T:
        products += fft.irfft(np.abs(fft.rfft(column, size)) ** 2, size)[:n]
    return products


def _time_of(products: Float[np.ndarray, " n"], k: float) -> float | None:
    n, lags = len(products), np.arange(len(products))
    covariances = products / (n - lags)
    if n < 2 * SHORTEST or not np.isfinite(products).all():
        return None
    times = 2 * np.cumsum(covariances) / covariances[0] - 1
    ends = np.flatnonzero(lags >= np.maximum(WINDOW * times, SHORTEST))
    if not len(ends) or k * (n - ends[0]) < LEAST_TIMES * times[ends[0]]:
        return None
    return float(max(times[ends[0]], 1 / n))
