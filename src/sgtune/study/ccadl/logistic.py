"""Logistic regression of nines against sevens by the study's samplers (Sect. 4.2): convergence of predictions, and
errors of long chains against NUTS."""

from collections.abc import Mapping
from itertools import product

import numpy as np
from jaxtyping import Float, Int, PyTree

from sgtune.metrics import xi_rel, xi_white
from sgtune.mode.find import map_position
from sgtune.model import Model
from sgtune.sampling.lockstep import Lockstep
from sgtune.study.ccadl.chains import chains_of, measure_cost, replicated, sampler_of
from sgtune.study.ground_truth.draws import Moments, add_draws
from sgtune.study.pipeline.parts import Parts
from sgtune.support.randomness import named_key

__all__ = ["COORDINATES", "late_means", "sample_curves", "sample_draws", "mean_log_likelihoods"]

COORDINATES = (1, 4)
"""Of the paper's two-dimensional marginals: "dimensions of 2 and 5", counted from 1."""

LAZY = {"sghmc": "sghmc-shang-lazy"}
"""Samplers of `sgtune.samplers` that long chains run in place of the samplers of the curves."""

CHUNK = 1_000
"""Draws that are in memory at a time, of long chains."""


def mean_log_likelihoods(model: Model, positions: Float[np.ndarray, "k d"]) -> Float[np.ndarray, " k"]:
    """Mean over the test data of log p(y | x, position), in float64; nan of a position that is not finite."""
    inputs = np.asarray(model.test_data["inputs"], np.float64)
    signs = 2.0 * np.asarray(model.test_data["targets"]) - 1
    finite = np.isfinite(positions).all(axis=1)
    margins = (np.where(finite[:, None], positions, 0.0) @ inputs.T) * signs
    return np.where(finite, -np.logaddexp(0, -margins).mean(axis=1), np.nan)


def late_means(draws: Float[np.ndarray, "n d"], steps: Int[np.ndarray, " k"]) -> Float[np.ndarray, "k d"]:
    """After each of ``steps`` the mean of the last half of the draws so far: of draws t // 2 + 1 to t."""
    sums = np.concatenate([np.zeros((1, draws.shape[1])), np.cumsum(draws, axis=0, dtype=np.float64)])
    halves = steps // 2
    return (sums[steps] - sums[halves]) / (steps - halves)[:, None]


def sample_curves(method: str, model: Model, settings: Mapping, *, seed: int, parts: Parts) -> dict:
    """Test log-likelihood of the posterior mean so far, against passes over the data, for every (h, A).

    Chains start at a draw of the prior, which is the same for all chains of a replicate. The posterior mean so far is
    over the last half of the draws, which excludes the transient from the start.

    Args:
        settings: the configuration's section ``ccadl.logistic``.
        parts: keeps each replicate while the others are not done.

    Returns:
        ``passes``; and ``cells``, of each (h, A) its ``replicates`` with the ``log_likelihoods``, nan once a chain has
        diverged, and the sampler's ``statistics``; and ``cost`` (`sgtune.study.ccadl.chains.measure_cost`), at the
        middle h and the largest A.
    """
    own = settings["curves"]
    cells = list(product(settings["step_sizes"], settings["frictions"]))
    passes = own["passes"] * np.arange(1, own["points"] + 1) / own["points"]
    steps = np.maximum(np.rint(passes * model.n_data / settings["batch_size"]).astype(np.int64), 1)
    sampler = sampler_of(method, "full")

    def start_of(replicate: int) -> PyTree:
        return model.init(named_key(seed, "ccadl", "logistic", replicate))

    def one(replicate: int) -> tuple[Lockstep, list[dict]]:
        options = {"start": start_of(replicate), "seed": seed, "replicate": f"ccadl curves {replicate}"}
        chains = chains_of(model, sampler, cells, settings["batch_size"], **options)
        draws = chains.advance(int(steps[-1]))
        found = [
            {"log_likelihoods": mean_log_likelihoods(model, late_means(draws[:, i], steps))}
            for i in range(len(cells))
        ]
        return chains, found

    depends_on = _depends_on(method, "curves", model, settings, seed)
    found = replicated(one, own["replicates"], cells, depends_on, parts)
    cost = measure_cost(method, "full", model, settings, start=start_of(0), seed=seed)
    return {"method": method, "passes": passes, "cost": cost, "cells": found}


def sample_draws(
    method: str, model: Model, reference: Mapping, settings: Mapping, *, seed: int, parts: Parts
) -> dict:
    """Moments of long chains from the MAP with every h at one friction, against NUTS.

    SGHMC recomputes the root of its noise only as its covariance changes: for clipped noise each root needs
    eigenvectors, which take tens of times as long as the rest of a step.

    Args:
        reference: of NUTS (`sgtune.study.ground_truth.diagnostics.reference_record`); without a ``covariance`` of so
            few draws that it is not positive definite.
        settings: as of `sample_curves`.

    Returns:
        ``coordinates`` of the two-dimensional marginals, from 0; ``truth_log_likelihood``, of the test data at the
        mean of NUTS; and ``cells``, of each h its ``replicates``: of the chain's whole covariance ``xi_white`` (None
        without the covariance of NUTS), of the sds ``xi_rel``, ``mean_error`` (root mean square over parameters, in
        sds), ``mean`` and ``covariance`` of the two coordinates, and the sampler's ``statistics`` since the chain's
        start.
    """
    own = settings["draws"]
    cells = [(step_size, own["friction"]) for step_size in settings["step_sizes"]]
    sampler = LAZY.get(method) or sampler_of(method, "full")
    truth = {
        name: None if reference.get(name) is None else np.asarray(reference[name], np.float64)
        for name in ("mean", "sd", "covariance")
    }

    def one(replicate: int) -> tuple[Lockstep, list[dict]]:
        options = {"start": map_position(model), "seed": seed, "replicate": f"ccadl draws {replicate}"}
        chains = chains_of(model, sampler, cells, settings["batch_size"], **options)
        if own["warmup"]:
            chains.advance(own["warmup"], own["warmup"])
        moments: list[Moments | None] = [None] * len(cells)
        for done in range(0, own["steps"], CHUNK):
            draws = chains.advance(min(CHUNK, own["steps"] - done))
            with np.errstate(invalid="ignore", over="ignore"):
                moments = [add_draws(known, draws[:, i]) for i, known in enumerate(moments)]
        return chains, [_against(truth, known) for known in moments]

    depends_on = _depends_on(method, "draws", model, settings, seed)
    found = replicated(one, own["replicates"], cells, depends_on, parts)
    return {
        "method": method,
        "steps": own["steps"],
        "sampler": sampler,
        "coordinates": COORDINATES,
        "truth_log_likelihood": float(mean_log_likelihoods(model, truth["mean"][None])[0]),
        "cells": found,
    }


def _against(truth: Mapping, moments: Moments) -> dict:
    """The record of one chain."""
    if not np.isfinite(moments.squares).all():
        return {"diverged": True}
    covariance = moments.products / (moments.n - 1)
    return {
        "diverged": False,
        "xi_white": None if truth["covariance"] is None else xi_white(covariance, truth["covariance"]),
        "xi_rel": xi_rel(np.sqrt(np.diag(covariance)), truth["sd"]),
        "mean_error": float(np.sqrt(np.mean(((moments.mean - truth["mean"]) / truth["sd"]) ** 2))),
        "mean": moments.mean[list(COORDINATES)],
        "covariance": covariance[np.ix_(COORDINATES, COORDINATES)],
    }


def _depends_on(method: str, what: str, model: Model, settings: Mapping, seed: int) -> dict:
    """The settings that one replicate depends on."""
    own = {**settings, what: {**settings[what], "replicates": None}}
    return {"method": method, "what": what, "data": model.checksum, "seed": seed, "settings": own}
