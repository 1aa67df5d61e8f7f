"""R-hat and effective sample sizes of many parameters at once, as Vehtari et al. (2021) define them.

Vehtari, Gelman, Simpson, Carpenter, Bürkner (2021), Rank-Normalization, Folding, and Localization: An
Improved R-hat for Assessing Convergence of MCMC, Bayesian Analysis 16(2). Where the paper leaves a choice
(the truncation of autocorrelations, the quantiles, constant draws), this module follows ArviZ, so that the numbers
equal ``arviz.rhat`` and ``arviz.ess``. ArviZ takes one parameter at a time, which is far slower.

Arrays are ``(k, chain, draw)``, so that sorts, sums and transforms run along contiguous memory.
"""

import numpy as np
from jaxtyping import Bool, Float
from scipy import fft
from scipy.special import ndtri

__all__ = ["FEWEST_DRAWS", "ess_of_mean", "r_hat", "r_hat_and_ess"]

# With fewer draws per chain, R-hat and the two effective sizes are undefined.
FEWEST_DRAWS = 4
# The quantiles whose indicators define the tail ESS (Sect. 4.3).
TAILS = (0.05, 0.95)


def r_hat(draws: Float[np.ndarray, "chain draw k"]) -> Float[np.ndarray, " k"]:
    """Rank-normalised split R-hat of each parameter: the larger of its values for the draws and the folded draws.

    nan for one chain, for fewer than 4 draws per chain, and for a parameter with a nan.
    """
    n_chains, n_draws, size = draws.shape
    if n_chains < 2 or n_draws < FEWEST_DRAWS:
        return np.full(size, np.nan)
    positions = _by_parameter(draws)
    return _without_nan(positions, _worse_r_hat(*_normal_scores(_split(positions))))


def r_hat_and_ess(
    draws: Float[np.ndarray, "chain draw k"],
) -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, " k"], Float[np.ndarray, " k"]]:
    """`r_hat`, bulk ESS and tail ESS of each parameter.

    The bulk ESS is the ESS of the rank-normalised draws. The tail ESS is the smaller ESS of the two indicators
    ``x <= q``, with q the 5 % and the 95 % quantile (Sect. 4.3). Both are nan where R-hat is nan, but are defined
    for one chain. The computation needs about 12 times the memory of ``draws`` in float64.
    """
    n_chains, n_draws, size = draws.shape
    if n_draws < FEWEST_DRAWS:
        return tuple(np.full((3, size), np.nan))
    positions = _by_parameter(draws)
    scores, folded = _normal_scores(_split(positions))
    worse = _worse_r_hat(scores, folded) if n_chains > 1 else np.full(size, np.nan)
    bulk = _effective_size(scores)
    low, high = (
        _effective_size(_split(positions <= quantile[:, None, None]).astype(np.float64))
        for quantile in _quantiles(positions, TAILS)
    )
    return tuple(_without_nan(positions, values) for values in (worse, bulk, np.minimum(low, high)))


def ess_of_mean(draws: Float[np.ndarray, "chain draw k"]) -> Float[np.ndarray, " k"]:
    """ESS of each parameter's mean, from the draws themselves, not their ranks: its standard error is sd / sqrt(ESS).

    nan for fewer than 4 draws per chain, and for a parameter with a nan.
    """
    if draws.shape[1] < FEWEST_DRAWS:
        return np.full(draws.shape[2], np.nan)
    positions = _by_parameter(draws)
    return _without_nan(positions, _effective_size(_split(positions)))


def _by_parameter(draws: Float[np.ndarray, "chain draw k"]) -> Float[np.ndarray, "k chain draw"]:
    return np.ascontiguousarray(np.moveaxis(draws, -1, 0), np.float64)


def _without_nan(
    positions: Float[np.ndarray, "k chain draw"], values: Float[np.ndarray, " k"]
) -> Float[np.ndarray, " k"]:
    return np.where(np.isnan(positions).any(axis=(1, 2)), np.nan, values)


def _split(chains: np.ndarray) -> np.ndarray:
    """``(k, chain, draw)`` as ``(k, 2 chain, draw // 2)``, without the middle draw if their number is odd."""
    half = chains.shape[-1] // 2
    return np.concatenate([chains[..., :half], chains[..., -half:]], axis=1)


def _normal_scores(
    chains: Float[np.ndarray, "k chain draw"],
) -> tuple[Float[np.ndarray, "k chain draw"], Float[np.ndarray, "k chain draw"]]:
    """z = Phi^-1((r - 3/8) / (S + 1/4)) with the ranks r among all S draws, of x and of |x - median| (eq. 14)."""
    pooled = chains.reshape(len(chains), -1)
    n = pooled.shape[1]
    order = np.argsort(pooled, axis=1)
    ascending = np.take_along_axis(pooled, order, axis=1)
    # Tied draws share their mean rank, a multiple of a half, so 2 n - 1 values are transformed at most.
    quantiles = ndtri((np.arange(2 * n - 1) / 2 + 1 - 3 / 8) / (n + 1 / 4))
    scores = np.empty_like(pooled)
    np.put_along_axis(scores, order, quantiles[_twice_ranks(ascending)], axis=1)
    median = (ascending[:, (n - 1) // 2] + ascending[:, n // 2]) / 2
    distances = np.abs(ascending - median[:, None])
    # The distances fall and then rise, so a stable sort only merges two runs.
    by_distance = np.argsort(distances, axis=1, kind="stable")
    ascending = np.take_along_axis(distances, by_distance, axis=1)
    order = np.take_along_axis(order, by_distance, axis=1)
    folded = np.empty_like(pooled)
    np.put_along_axis(folded, order, quantiles[_twice_ranks(ascending)], axis=1)
    return scores.reshape(chains.shape), folded.reshape(chains.shape)


def _twice_ranks(ascending: Float[np.ndarray, "k n"]) -> np.ndarray:
    """For each entry, the first plus the last index (from 0) of the entries equal to it."""
    n = ascending.shape[1]
    index = np.arange(n)
    new = ascending[:, 1:] != ascending[:, :-1]
    if new.all():
        return np.broadcast_to(2 * index, ascending.shape)
    first = np.zeros(ascending.shape, np.intp)
    np.multiply(index[1:], new, out=first[:, 1:])
    last = np.full(ascending.shape, n - 1)
    np.copyto(last[:, :-1], index[:-1], where=new)
    np.maximum.accumulate(first, axis=1, out=first)
    last = np.minimum.accumulate(last[:, ::-1], axis=1)[:, ::-1]
    return first + last


def _worse_r_hat(
    scores: Float[np.ndarray, "k chain draw"], folded: Float[np.ndarray, "k chain draw"]
) -> Float[np.ndarray, " k"]:
    bulk, tail = _plain_r_hat(scores), _plain_r_hat(folded)
    # np.maximum would propagate nan: the folded R-hat of draws with two values is nan.
    return np.where(tail > bulk, tail, bulk)


def _plain_r_hat(chains: Float[np.ndarray, "k chain draw"]) -> Float[np.ndarray, " k"]:
    """sqrt((B / W + n - 1) / n) with n times the variance B of the chains' means and their mean variance W (eq. 4)."""
    n = chains.shape[-1]
    between = n * chains.mean(axis=-1).var(axis=-1, ddof=1)
    within = chains.var(axis=-1, ddof=1).mean(axis=-1)
    # Constant chains at different values have an infinite R-hat; at the same value it is nan.
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.sqrt((between / within + n - 1) / n)


def _quantiles(positions: Float[np.ndarray, "k chain draw"], shares: tuple[float, ...]) -> list[np.ndarray]:
    """Quantiles of all chains together, linear between order statistics (type 7 of Hyndman and Fan 1996).

    The formula is the one in SciPy's ``mquantiles``, which ArviZ uses. Where draws are repeated, rounding in the last
    bit decides on which side of the quantile they are.
    """
    pooled = positions.reshape(len(positions), -1)
    n = pooled.shape[1]
    places = [n * share + (1 - share) for share in shares]
    below = [int(np.clip(place, 1, n - 1)) for place in places]
    pooled = np.partition(pooled, sorted({k + i for k in below for i in (-1, 0)}), axis=1)
    return [
        (1 - (place - k)) * pooled[:, k - 1] + (place - k) * pooled[:, k]
        for place, k in zip(places, below, strict=True)
    ]


def _effective_size(chains: Float[np.ndarray, "k chain draw"]) -> Float[np.ndarray, " k"]:
    """S / tau of the S draws of several chains, from autocorrelations over all chains (eqs. 10 to 13).

    The sums of the autocorrelations at lags 2j and 2j + 1 are added up to the first sum that is not positive
    (Geyer's initial positive sequence). Each is truncated at the smallest sum before it (his monotone sequence).
    """
    _, n_chains, n = chains.shape
    total = n_chains * n
    covariance = _mean_autocovariance(chains)
    within = covariance[:, 0] * n / (n - 1)
    overall = within * (n - 1) / n + chains.mean(axis=-1).var(axis=-1, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        rho = 1 - (within[:, None] - covariance) / overall[:, None]
    rho[:, 0] = 1
    # As in ArviZ, the pair that ends the sequence contributes its even lag once. So does the last pair that fits.
    last = max((n - 3) // 2, 0)
    even = rho[:, : 2 * last + 1 : 2]
    pairs = even + rho[:, 1 : 2 * last + 2 : 2]
    positive = np.logical_and.accumulate(pairs[:, :last] > 0, axis=1)
    pairs_kept = np.where(positive, np.minimum.accumulate(pairs[:, :last], axis=1), 0).sum(axis=1)
    end = positive.sum(axis=1)[:, None]
    even_at_end, pair_at_end = (np.take_along_axis(values, end, axis=1)[:, 0] for values in (even, pairs))
    tau = -1 + 2 * pairs_kept + np.where((even_at_end > 0) | (pair_at_end >= 0), even_at_end, 0)
    # For alternating draws tau is near 0, so the size is capped at S log10(S).
    size = total / np.maximum(tau, 1 / np.log10(total))
    # A constant indicator counts as independent draws.
    return np.where(_is_constant(chains), total, size)


def _mean_autocovariance(chains: Float[np.ndarray, "k chain draw"]) -> Float[np.ndarray, "k lag"]:
    """Mean over chains of sum_t (x_t - m) (x_{t + lag} - m) / n, with each chain's mean m, by FFT."""
    n = chains.shape[-1]
    # Zero padding makes the circular correlation of the FFT linear.
    length = fft.next_fast_len(2 * n, real=True)
    spectrum = fft.rfft(chains - chains.mean(axis=-1, keepdims=True), length)
    power = (np.square(spectrum.real) + np.square(spectrum.imag)).mean(axis=1)
    return fft.irfft(power, length)[:, :n] / n


def _is_constant(chains: Float[np.ndarray, "k chain draw"]) -> Bool[np.ndarray, " k"]:
    return np.ptp(chains, axis=(1, 2)) < np.finfo(np.float64).resolution
