"""Mean and precision of a normal: the exact posterior, integrated autocorrelation times, and chains with every (h, A).

x_i ~ N(mu, 1/gamma), mu | gamma ~ N(0, 1/gamma), gamma ~ Gamma(1, 1) (Sect. 4.1 of the paper). Given N data the
posterior is Normal-Gamma, mu | gamma ~ N(mu_N, 1/(kappa_N gamma)), gamma ~ Gamma(alpha_N, beta_N). So gamma is Gamma,
and mu is a Student t with 2 alpha_N degrees of freedom, located at mu_N, of scale sqrt(beta_N / (alpha_N kappa_N)).
(The paper prints N(mu | 0, gamma) for the prior; its gradients and its posterior are for a precision gamma.)
"""

from collections.abc import Mapping
from itertools import product
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy import fft
from scipy.special import gammainc, gammaincinv, stdtr, stdtrit

import sgtune
from sgtune.model import Model
from sgtune.sampling.lockstep import Lockstep
from sgtune.study.ccadl.chains import chains_of, replicated, sampler_of
from sgtune.study.pipeline.parts import Parts
from sgtune.support.randomness import named_seed

__all__ = [
    "NAMES",
    "NormalGamma",
    "autocovariance",
    "batch_means_time",
    "integrated_time",
    "normal_data",
    "normal_model",
    "posterior_of",
    "sample_normal",
    "squared_bias",
]

NAMES = ("mu", "gamma")
"""The two parameters, in the order of a position."""


class NormalGamma(NamedTuple):
    """The posterior's parameters, by the names of the paper."""

    mean: float
    kappa: float
    alpha: float
    beta: float

    @property
    def means(self) -> tuple[float, float]:
        """Of mu and gamma."""
        return self.mean, self.alpha / self.beta

    @property
    def scale(self) -> float:
        """Of mu's Student t."""
        return float(np.sqrt(self.beta / (self.alpha * self.kappa)))

    @property
    def sds(self) -> tuple[float, float]:
        """Of mu, sqrt(beta / (kappa (alpha - 1))), and of gamma, sqrt(alpha) / beta."""
        return (
            float(np.sqrt(self.beta / (self.kappa * (self.alpha - 1)))),
            float(np.sqrt(self.alpha) / self.beta),
        )

    def cdf(self, name: str, values: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """P(parameter <= value) of each value."""
        if name == "mu":
            return stdtr(2 * self.alpha, (values - self.mean) / self.scale)
        return gammainc(self.alpha, self.beta * np.maximum(values, 0.0))

    def quantile(self, name: str, probability: float) -> float:
        """The value below which a parameter is with this probability."""
        if name == "mu":
            return float(self.mean + self.scale * stdtrit(2 * self.alpha, probability))
        return float(gammaincinv(self.alpha, probability) / self.beta)

    def edges(self, name: str, n_bins: int, mass: float = 0.999) -> Float[np.ndarray, " m"]:
        """``n_bins`` bins of one width over a parameter's central ``mass``."""
        tail = (1 - mass) / 2
        return np.linspace(self.quantile(name, tail), self.quantile(name, 1 - tail), n_bins + 1)

    def density(self, name: str, edges: Float[np.ndarray, " m"]) -> Float[np.ndarray, " n"]:
        """The mean density within each bin: what a histogram of exact draws tends to."""
        return np.diff(self.cdf(name, edges)) / np.diff(edges)


def posterior_of(data: Float[np.ndarray, " n"]) -> NormalGamma:
    """The posterior given ``data``: the paper's mu_N, kappa_N, alpha_N and beta_N."""
    data = np.asarray(data, np.float64)
    n, mean = len(data), float(np.mean(data))
    beta = 1 + np.sum((data - mean) ** 2) / 2 + n * mean**2 / (2 * (1 + n))
    return NormalGamma(n * mean / (n + 1), 1.0 + n, 1 + n / 2, float(beta))


def autocovariance(draws: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """c_k = (1/n) sum over t of (x_t - mean)(x_{t+k} - mean) for k = 0, ..., n - 1, by FFT in O(n log n), float64."""
    n = len(draws)
    centred = np.asarray(draws, np.float64) - np.mean(draws, dtype=np.float64)
    spectrum = fft.rfft(centred, fft.next_fast_len(2 * n))
    return fft.irfft(np.abs(spectrum) ** 2, fft.next_fast_len(2 * n))[:n] / n


def integrated_time(draws: Float[np.ndarray, " n"]) -> tuple[float, int]:
    """1 + 2 * sum of the autocorrelations, up to where Geyer's initial positive sequence ends, in steps: so many draws
    determine a mean as well as one independent draw. And the number of autocorrelations in the sum.

    Not by ArviZ: its effective sample size splits chains and makes the sequence monotone, which Geyer's positive
    sequence does not.

    The sums of neighbours, rho_2k + rho_2k+1, are positive and decrease for a reversible chain (Geyer 1992, Practical
    Markov Chain Monte Carlo, Sect. 3.3); the first that is not positive counts as noise, and so do all after it. A
    chain with momenta is not reversible in its positions: where its autocorrelations oscillate the sum ends at their
    first zero, and the result is longer than the integral over all lags (`batch_means_time`).

    nan for fewer than 4 draws, for draws that are all the same, and for draws that are not all finite.
    """
    if len(draws) < 4 or not np.isfinite(draws).all():
        return np.nan, 0
    covariances = autocovariance(draws)
    if not covariances[0] > 0:
        return np.nan, 0
    n_pairs = len(draws) // 2
    pairs = covariances[: 2 * n_pairs].reshape(n_pairs, 2).sum(axis=1) / covariances[0]
    ends = np.flatnonzero(pairs <= 0)
    n_positive = int(ends[0]) if len(ends) else n_pairs
    return float(max(2 * pairs[:n_positive].sum() - 1, 0.0)), 2 * n_positive


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


def normal_data(n_data: int, standardised: bool, seed: int) -> Float[np.ndarray, " n"]:
    """Draws of N(0, 1); ``standardised`` shifts and scales them to the mean 0 and the variance 1 (divisor N).

    The scale of the posterior, and with it the times in steps, follows the data's variance v, whose relative sd is
    sqrt(2 / N): 14% of N = 100. The sd of gamma is proportional to 1/v, and so is the time of a quarter of an
    oscillation; the relaxation time of an overdamped chain is proportional to 1/v^2.
    """
    data = np.random.default_rng(named_seed(seed, "ccadl", "normal")).standard_normal(n_data)
    if standardised:
        data = (data - data.mean()) / data.std()
    return data.astype(np.float32)


def _log_prior(position):
    mu, gamma = position[0], jnp.abs(position[1])
    return 0.5 * jnp.log(gamma) - 0.5 * gamma * mu**2 - gamma


def _log_likelihood(position, batch):
    mu, gamma = position[0], jnp.abs(position[1])
    return 0.5 * jnp.log(gamma) - 0.5 * gamma * (batch["x"] - mu) ** 2


def normal_model(data: Float[np.ndarray, " n"]) -> Model:
    """Position (mu, gamma), of which the density is a function of mu and |gamma|.

    A step may take gamma below 0, where the posterior has no density. Continued evenly, the density has one there, and
    |gamma| is then a chain whose gamma and momentum of gamma are reflected at 0: both have the same law, for nothing
    else in a step tells the two sides apart (but the off-diagonal of a covariance that is averaged over steps, for as
    long as it remembers the other side). Draws of gamma are absolute values. The density vanishes at 0, so that
    no continuous path crosses it; how many steps do is in the results.
    """
    return sgtune.define_model(
        "normal",
        log_prior=_log_prior,
        log_likelihood=_log_likelihood,
        data={"x": np.asarray(data, np.float32)},
        init=lambda key: jnp.array([0.0, 1.0]),
        shuffle_seed=None,
    )


def sample_normal(method: str, settings: Mapping, *, seed: int, parts: Parts) -> dict:
    """Chains of one sampler with every (h, A), as long as ``steps`` after ``warmup``, in independent replicates.

    Chains of one replicate advance in lockstep on the same minibatches, from the posterior's mean. Memory: some 50
    bytes a step and cell.

    Args:
        settings: the configuration's section ``ccadl.normal``.
        parts: keeps each replicate while the others are not done.

    Returns:
        ``data``, ``edges`` of the bins and ``exact`` densities by parameter; and ``cells``, of each (h, A) its
        ``replicates`` and, by parameter, the mean ``density`` of those that are finite, and its `squared_bias`.
    """
    data = normal_data(settings["n_data"], settings["standardised"], seed)
    exact, model, sampler = posterior_of(data), normal_model(data), sampler_of(method, "full")
    edges = {name: exact.edges(name, settings["bins"]) for name in NAMES}
    truth = {name: exact.density(name, edges[name]) for name in NAMES}
    cells = list(product(settings["step_sizes"], settings["frictions"]))

    def one(replicate: int) -> tuple[Lockstep, list[dict]]:
        start = np.array(exact.means, np.float32)
        options = {"start": start, "seed": seed, "replicate": f"ccadl {replicate}"}
        chains = chains_of(model, sampler, cells, settings["batch_size"], **options)
        if settings["warmup"]:
            chains.advance(settings["warmup"], settings["warmup"])
        draws = chains.advance(settings["steps"])
        found = [_of_chain(draws[:, i].astype(np.float64), exact, edges) for i in range(len(cells))]
        return chains, found

    depends_on = {"method": method, "seed": seed, "settings": {**settings, "replicates": None}}
    found = replicated(one, settings["replicates"], cells, depends_on, parts)
    return {
        "method": method,
        "sampler": sampler,
        "data": {"n": len(data), "mean": float(np.mean(data)), "variance": float(np.var(data))},
        "steps": settings["steps"],
        "edges": edges,
        "exact": truth,
        "cells": [_with_mean_density(cell, truth) for cell in found],
    }


def _of_chain(
    draws: Float[np.ndarray, "n 2"], exact: NormalGamma, edges: dict[str, np.ndarray]
) -> dict[str, object]:
    """Of each parameter: RMSE of the density, times, mean and sd in posterior sds, and the density itself."""
    if not np.isfinite(draws).all():
        return {"diverged": True}
    below = draws[:, 1] < 0
    own = {"diverged": False, "crossings": int(np.count_nonzero(below[1:] != below[:-1]))}
    for name, values, mean, sd in zip(
        NAMES, (draws[:, 0], np.abs(draws[:, 1])), exact.means, exact.sds, strict=True
    ):
        density = np.histogram(values, edges[name])[0] / (len(draws) * np.diff(edges[name]))
        time, lags = integrated_time(values)
        own[name] = {
            "density_rmse": float(np.sqrt(np.mean((density - exact.density(name, edges[name])) ** 2))),
            "time": time,
            "lags": lags,
            "batch_means_time": batch_means_time(values),
            "mean_error": float((values.mean() - mean) / sd),
            "sd_ratio": float(values.std() / sd),
            "density": density,
        }
    return own


def _with_mean_density(cell: dict, truth: Mapping[str, np.ndarray]) -> dict:
    """The cell with the mean density of the replicates that are finite in place of one of each replicate."""
    density, bias = {}, {}
    whole = [run for run in cell["replicates"] if not run["diverged"]]
    for name in NAMES if whole else ():
        densities = np.array([run[name]["density"] for run in whole])
        density[name] = densities.mean(axis=0)
        bias[name] = squared_bias(densities - np.asarray(truth[name]))
    replicates = [
        run | {name: _without_density(run[name]) for name in NAMES if name in run}
        for run in cell["replicates"]
    ]
    return cell | {"density": density, "bias": bias, "replicates": replicates}


def _without_density(of_parameter: dict) -> dict:
    return {key: value for key, value in of_parameter.items() if key != "density"}


def squared_bias(errors: Float[np.ndarray, "r b"]) -> dict[str, float | None]:
    """The mean squared error of a density that remains in a long chain: the mean over bins of the square of the
    expected error, from independent replicates.

    The mean over pairs of two different replicates of the mean over bins of the product of their errors is unbiased
    for it, and may be negative; ``se`` is the jackknife's, up to 1.7 times too large of few replicates. None of fewer
    than two (``se``: three) replicates.
    """
    n = len(errors)
    if n < 2:
        return {"value": None, "se": None}
    products = errors @ errors.T / errors.shape[1]
    total, own = products.sum(), np.diag(products)
    value = (total - own.sum()) / (n * (n - 1))
    if n < 3:
        return {"value": float(value), "se": None}
    left = total - own.sum() - 2 * (products.sum(axis=0) - own)
    leave_one_out = left / ((n - 1) * (n - 2))
    se = np.sqrt((n - 1) / n * np.sum((leave_one_out - leave_one_out.mean()) ** 2))
    return {"value": float(value), "se": float(se)}
