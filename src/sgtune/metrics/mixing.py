"""How well chains mix: effective sample sizes and split R-hat, of many quantities at once."""

import numpy as np
from jaxtyping import Float

__all__ = ["effective_draws", "split_rhat"]

COLUMNS = 2**22
"""The largest number of float64 numbers that are transformed at once."""


def effective_draws(values: Float[np.ndarray, "c n k"]) -> Float[np.ndarray, " k"]:
    """The effective sample size of the mean of each of k quantities, in draws, over c chains of n draws.

    c n / tau, tau = 1 + 2 sum of the autocorrelations up to the end of Geyer's initial monotone sequence, from chains
    that are split in halves, so that chains, or halves, that disagree have few effective draws (Vehtari, Gelman,
    Simpson, Carpenter and Bürkner 2021, Eq. 10 and Sect. 3.2), close to the ``mean`` of ArviZ. Not of ranks. At most
    c n log10(c n), as there. A quantity that never moves has c n; NaN for one that is not finite, and for fewer than
    four draws.
    """
    values = np.asarray(values)
    if values.shape[1] < 4 or values.shape[2] == 0:
        return np.full(values.shape[2], np.nan)
    halves = _halves(values)
    at_once = max(1, COLUMNS // (2 * halves.shape[0] * halves.shape[1]))
    blocks = range(0, values.shape[2], at_once)
    return np.concatenate([_effective(halves[:, :, i : i + at_once]) for i in blocks])


def _halves(values: Float[np.ndarray, "c n k"]) -> Float[np.ndarray, "_ _ k"]:
    n = values.shape[1] // 2
    return np.concatenate([values[:, :n], values[:, -n:]])


def _effective(values: Float[np.ndarray, "c n k"]) -> Float[np.ndarray, " k"]:
    c, n, _ = values.shape
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        x = values.astype(np.float64)
        means = x.mean(axis=1)
        spectrum = np.fft.rfft(x - means[:, None], n=2 * n, axis=1)
        covariances = np.fft.irfft(np.abs(spectrum) ** 2, axis=1)[:, :n].mean(axis=0) / n
        within = covariances[0] * n / (n - 1)
        total = covariances[0] + means.var(axis=0, ddof=1)
        correlations = 1 - (within - covariances * n / (n - 1)) / total
        correlations[0] = 1.0
        # Sums of neighbours are positive and fall with the lag in a reversible chain (Geyer 1992).
        pairs = correlations[: n // 2 * 2].reshape(n // 2, 2, -1).sum(axis=1)
        is_positive = np.logical_and.accumulate(pairs > 0, axis=0)
        initial = np.minimum.accumulate(np.where(is_positive, pairs, 0.0), axis=0)
        tau = np.maximum(2 * initial.sum(axis=0) - 1, 1 / np.log10(c * n))
        found = c * n / tau
    found = np.where(np.ptp(values, axis=(0, 1)) == 0, float(c * n), found)
    return np.where(np.isfinite(values).all(axis=(0, 1)), found, np.nan)


def split_rhat(values: Float[np.ndarray, "c n k"]) -> Float[np.ndarray, " k"]:
    """Split R-hat of each of k quantities over c chains of n draws (Gelman et al. 2013, Sect. 11.4): the root of the
    variance over all halves of chains over that within them. 1 where the halves agree; infinite for chains that never
    move and differ; NaN for a quantity that never moves or is not finite, and for fewer than four draws."""
    values = np.asarray(values)
    if values.shape[1] < 4:
        return np.full(values.shape[2], np.nan)
    halves = _halves(values).astype(np.float64)
    n = halves.shape[1]
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        within = halves.var(axis=1, ddof=1).mean(axis=0)
        between = halves.mean(axis=1).var(axis=0, ddof=1)
        ratio = np.where(within > 0, between / within, np.where(between > 0, np.inf, np.nan))
        return np.sqrt((n - 1) / n + ratio)
