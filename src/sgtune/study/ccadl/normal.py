"""Mean and precision of a normal: the exact posterior, integrated autocorrelation times, and chains with every (h, A).

x_i ~ N(mu, 1/gamma), mu | gamma ~ N(0, 1/gamma), gamma ~ Gamma(1, 1) (Sect. 4.1 of the paper). Given N data the
posterior is Normal-Gamma, mu | gamma ~ N(mu_N, 1/(kappa_N gamma)), gamma ~ Gamma(alpha_N, beta_N). So gamma is Gamma,
and mu is a Student t with 2 alpha_N degrees of freedom, located at mu_N, of scale sqrt(beta_N / (alpha_N kappa_N)).
(The paper prints N(mu | 0, gamma) for the prior; its gradients and its posterior are for a precision gamma.)
"""

from collections.abc import Mapping

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy import stats

import sgtune
from sgtune.model import Model
from sgtune.sampling.lockstep import Lockstep
from sgtune.study.ccadl.chains import replicated, sampler_of
from sgtune.study.ground_truth.draws import arviz_module
from sgtune.study.pipeline.parts import Parts, Task
from sgtune.support.randomness import named_seed

NAMES = ("mu", "gamma")
"""The two parameters, in the order of a position."""

Marginal = stats.distributions.rv_frozen


def posterior_of(data: Float[np.ndarray, " n"]) -> dict[str, Marginal]:
    """The marginal posteriors of mu and gamma given ``data``."""
    data = np.asarray(data, np.float64)
    n, mean = len(data), float(np.mean(data))
    kappa, alpha = 1 + n, 1 + n / 2
    beta = float(1 + np.sum((data - mean) ** 2) / 2 + n * mean**2 / (2 * kappa))
    return {
        "mu": stats.t(2 * alpha, loc=n * mean / kappa, scale=np.sqrt(beta / (alpha * kappa))),
        "gamma": stats.gamma(alpha, scale=1 / beta),
    }


def bins_of(marginal: Marginal, n_bins: int) -> Float[np.ndarray, " m"]:
    """The edges of ``n_bins`` bins of one width over the central 99.9% of a parameter."""
    return np.linspace(*marginal.interval(0.999), n_bins + 1)


def density_in(marginal: Marginal, edges: Float[np.ndarray, " m"]) -> Float[np.ndarray, " n"]:
    """The mean density within each bin: what a histogram of exact draws tends to."""
    return np.diff(marginal.cdf(edges)) / np.diff(edges)


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
    covariances = arviz_module().autocov(np.asarray(draws, np.float64))
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
    """Chains of one sampler with every (h, A), as long as ``steps`` after ``warmup``, in independent replicates;
    ``settings`` are section ``ccadl.normal``.

    Chains of one replicate advance in lockstep on the same minibatches, from the posterior's mean. Memory: some 50
    bytes a step and cell.

    Returns:
        ``data``, ``edges`` of the bins and ``exact`` densities by parameter; and ``cells``, of each (h, A) its
        ``replicates`` and, by parameter, the mean ``density`` of those that are finite, and its `squared_bias`.
    """
    data = normal_data(settings["n_data"], settings["standardised"], seed)
    exact, sampler = posterior_of(data), sampler_of(method, "full")
    edges = {name: bins_of(exact[name], settings["bins"]) for name in NAMES}
    truth = {name: density_in(exact[name], edges[name]) for name in NAMES}

    def judged(chains: Lockstep) -> list[dict]:
        draws = chains.advance(settings["steps"])
        return [_of_chain(draws[:, i].astype(np.float64), exact, edges) for i in range(chains.width)]

    start = np.array([exact[name].mean() for name in NAMES], np.float32)
    task = Task(normal_model(data), sampler, seed=seed, parts=parts)
    found = replicated(judged, task, settings, lambda replicate: start, "ccadl")
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
    draws: Float[np.ndarray, "n 2"], exact: Mapping[str, Marginal], edges: Mapping[str, np.ndarray]
) -> dict[str, object]:
    """Of each parameter: RMSE of the density, times, mean and sd in posterior sds, and the density itself."""
    if not np.isfinite(draws).all():
        return {"diverged": True}
    below = draws[:, 1] < 0
    own = {"diverged": False, "crossings": int(np.count_nonzero(below[1:] != below[:-1]))}
    for name, values in (("mu", draws[:, 0]), ("gamma", np.abs(draws[:, 1]))):
        density = np.histogram(values, edges[name])[0] / (len(draws) * np.diff(edges[name]))
        time, lags = integrated_time(values)
        mean, sd = exact[name].mean(), exact[name].std()
        own[name] = {
            "density_rmse": float(np.sqrt(np.mean((density - density_in(exact[name], edges[name])) ** 2))),
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
    cell |= {"density": {}, "bias": {}}
    whole = [run for run in cell["replicates"] if not run["diverged"]]
    for name in NAMES if whole else ():
        densities = np.array([run[name].pop("density") for run in whole])
        cell["density"][name] = densities.mean(axis=0)
        cell["bias"][name] = squared_bias(densities - truth[name])
    return cell


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
