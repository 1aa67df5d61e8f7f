"""Mean and precision of a normal, sampled with every (h, A) and compared with the exact posterior (Sect. 4.1)."""

from collections.abc import Callable, Mapping
from itertools import product

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

import sgtune
from sgtune.model import Model
from sgtune.study.ccadl.autocorrelation import batch_means_time, integrated_time
from sgtune.study.ccadl.ensembles import ensemble_of, records_of
from sgtune.study.ccadl.methods import sampler_of
from sgtune.study.ccadl.normal_exact import NAMES, NormalGamma, posterior_of
from sgtune.study.ccadl.replicates import replicated
from sgtune.study.pipeline.parts import Parts
from sgtune.support.randomness import named_seed

__all__ = ["normal_data", "normal_model", "sample_normal", "squared_bias"]


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


def sample_normal(
    method: str,
    settings: Mapping,
    *,
    seed: int = 0,
    parts: Parts,
    report: Callable[[str], None] = lambda line: None,
) -> dict:
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
    exact, model = posterior_of(data), normal_model(data)
    edges = {name: exact.edges(name, settings["bins"]) for name in NAMES}
    truth = {name: exact.density(name, edges[name]) for name in NAMES}
    cells = list(product(settings["step_sizes"], settings["frictions"]))

    def one(replicate: int) -> list[dict]:
        return _replicate(method, model, cells, settings, replicate, seed, exact, edges)

    depends_on = {"method": method, "seed": seed, "settings": {**settings, "replicates": None}}
    runs = replicated(one, settings["replicates"], depends_on, parts, report)
    return {
        "method": method,
        "sampler": sampler_of(method, "full"),
        "data": {"n": len(data), "mean": float(np.mean(data)), "variance": float(np.var(data))},
        "steps": settings["steps"],
        "edges": edges,
        "exact": truth,
        "cells": [
            _of_replicates(step_size, friction, [run[i] for run in runs], truth)
            for i, (step_size, friction) in enumerate(cells)
        ],
    }


def _replicate(
    method: str,
    model: Model,
    cells: list[tuple[float, float]],
    settings: Mapping,
    replicate: int,
    seed: int,
    exact: NormalGamma,
    edges: dict[str, np.ndarray],
) -> list[dict]:
    """One chain of each cell, and its record."""
    ensemble = ensemble_of(
        model,
        sampler_of(method, "full"),
        cells,
        batch_size=settings["batch_size"],
        start=np.array([exact.mean, exact.alpha / exact.beta], np.float32),
        seed=seed,
        replicate=f"ccadl {replicate}",
    )
    if settings["warmup"]:
        ensemble.advance(settings["warmup"], settings["warmup"])
    draws = ensemble.advance(settings["steps"])
    found = [_of_chain(draws[:, i].astype(np.float64), exact, edges) for i in range(len(cells))]
    return records_of(ensemble, replicate, found)


def _of_chain(
    draws: Float[np.ndarray, "n 2"], exact: NormalGamma, edges: dict[str, np.ndarray]
) -> dict[str, object]:
    """Of each parameter: RMSE of the density, times, mean and sd in posterior sds, and the density itself."""
    if not np.isfinite(draws).all():
        return {"diverged": True}
    below = draws[:, 1] < 0
    said = {"diverged": False, "crossings": int(np.count_nonzero(below[1:] != below[:-1]))}
    draws = np.column_stack([draws[:, 0], np.abs(draws[:, 1])])
    centres = (exact.mean, exact.alpha / exact.beta)
    for i, name in enumerate(NAMES):
        counts = np.histogram(draws[:, i], edges[name])[0]
        density = counts / (len(draws) * np.diff(edges[name]))
        time = integrated_time(draws[:, i])
        said[name] = {
            "density_rmse": float(np.sqrt(np.mean((density - exact.density(name, edges[name])) ** 2))),
            "time": time.time,
            "lags": time.lags,
            "batch_means_time": batch_means_time(draws[:, i]),
            "mean_error": float((draws[:, i].mean() - centres[i]) / exact.sds[i]),
            "sd_ratio": float(draws[:, i].std() / exact.sds[i]),
            "density": density,
        }
    return said


def _of_replicates(step_size: float, friction: float, runs: list[dict], truth: dict) -> dict:
    """The replicates of one cell, with the densities of those that are finite averaged and not one by one."""
    whole = [run for run in runs if not run["diverged"]]
    cell = {"step_size": step_size, "friction": friction, "density": {}, "bias": {}}
    for name in NAMES:
        densities = np.array([run[name]["density"] for run in whole])
        if len(whole):
            cell["density"][name] = densities.mean(axis=0)
            cell["bias"][name] = squared_bias(densities - np.asarray(truth[name]))
    without = [
        {key: _without_density(value) if key in NAMES else value for key, value in run.items()}
        for run in runs
    ]
    return cell | {"replicates": without}


def _without_density(of_parameter: dict) -> dict:
    return {name: value for name, value in of_parameter.items() if name != "density"}


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
