"""How well chains mix: effective sample sizes and split R-hat, of many quantities at once."""

import numpy as np
from jaxtyping import Float

__all__ = ["effective_draws", "effective_of", "halves_of", "split_rhat"]

COLUMNS = 2**22
"""The largest number of float64 numbers that are transformed at once."""


def effective_draws(values: Float[np.ndarray, "c n k"]) -> Float[np.ndarray, " k"]:
    """The effective sample size of the mean of each of k quantities, in draws, over c chains of n draws.

    `effective_of` chains that are split in halves, so that chains, or halves, that disagree have few effective draws
    (Vehtari, Gelman, Simpson, Carpenter and Bürkner 2021, Sect. 3.2): the ``mean`` of ArviZ. Not of ranks. NaN for a
    quantity that is not finite, and for fewer than four draws.
    """
    values = np.asarray(values)
    c, n, k = values.shape
    if n < 4 or k == 0:
        return np.full(k, np.nan)
    at_once = max(1, COLUMNS // (2 * c * n))
    blocks = [np.moveaxis(values[..., i : i + at_once], -1, 0) for i in range(0, k, at_once)]
    found = np.concatenate([effective_of(halves_of(block.astype(np.float64))) for block in blocks])
    return np.where(np.isfinite(values).all(axis=(0, 1)), found, np.nan)


def halves_of(chains: Float[np.ndarray, "k c n"]) -> Float[np.ndarray, "k h m"]:
    """The halves of all chains, without the middle draw if their number is odd."""
    half = chains.shape[-1] // 2
    return np.concatenate([chains[..., :half], chains[..., -half:]], axis=1)


def effective_of(chains: Float[np.ndarray, "k c n"]) -> Float[np.ndarray, " k"]:
    """c n / tau of k quantities, tau = 1 + 2 sum of the autocorrelations over all chains (Vehtari et al. 2021, Eqs. 10
    to 13), at least two draws a chain; the same numbers as ArviZ's.

    The sums of the autocorrelations at lags 2j and 2j + 1 are added up to the first sum that is not positive (Geyer's
    initial positive sequence), each no larger than those before it (his monotone sequence). At most c n log10(c n), as
    of draws that alternate. A quantity that never moves, but for rounding, has c n.
    """
    from scipy import fft  # here, because most jobs need no SciPy

    _, c, n = chains.shape
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        means = chains.mean(axis=-1)
        # Zeros behind the draws make the circular correlation of a Fourier transform a linear one.
        length = fft.next_fast_len(2 * n, real=True)
        spectrum = fft.rfft(chains - means[..., None], length)
        power = (np.square(spectrum.real) + np.square(spectrum.imag)).mean(axis=1)
        covariances = fft.irfft(power, length)[:, :n] / n
        within = covariances[:, 0] * n / (n - 1)
        total = covariances[:, 0] + means.var(axis=-1, ddof=1)
        correlations = 1 - (within[:, None] - covariances) / total[:, None]
        correlations[:, 0] = 1
        # As in ArviZ, the pair that ends the sequence contributes its even lag once. So does the last pair that fits.
        last = max((n - 3) // 2, 0)
        even = correlations[:, : 2 * last + 1 : 2]
        pairs = even + correlations[:, 1 : 2 * last + 2 : 2]
        is_positive = np.logical_and.accumulate(pairs[:, :last] > 0, axis=1)
        initial = np.where(is_positive, np.minimum.accumulate(pairs[:, :last], axis=1), 0).sum(axis=1)
        end = is_positive.sum(axis=1)[:, None]
        even_at_end, pair_at_end = (np.take_along_axis(of, end, axis=1)[:, 0] for of in (even, pairs))
        tau = -1 + 2 * initial + np.where((even_at_end > 0) | (pair_at_end >= 0), even_at_end, 0)
        found = c * n / np.maximum(tau, 1 / np.log10(c * n))
    scale = np.abs(chains).max(axis=(1, 2))
    return np.where(np.ptp(chains, axis=(1, 2)) <= np.finfo(np.float64).resolution * scale, c * n, found)


def split_rhat(values: Float[np.ndarray, "c n k"]) -> Float[np.ndarray, " k"]:
    """Split R-hat of each of k quantities over c chains of n draws (Gelman et al. 2013, Sect. 11.4): the root of the
    variance over all halves of chains over that within them. 1 where the halves agree; infinite for chains that never
    move and differ; NaN for a quantity that never moves or is not finite, and for fewer than four draws."""
    values = np.asarray(values)
    if values.shape[1] < 4:
        return np.full(values.shape[2], np.nan)
    halves = halves_of(np.moveaxis(values, -1, 0).astype(np.float64))
    n = halves.shape[-1]
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        within = halves.var(axis=-1, ddof=1).mean(axis=-1)
        between = halves.mean(axis=-1).var(axis=-1, ddof=1)
        ratio = np.where(within > 0, between / within, np.where(between > 0, np.inf, np.nan))
        return np.sqrt((n - 1) / n + ratio)
