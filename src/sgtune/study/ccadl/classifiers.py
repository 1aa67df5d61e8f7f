"""The classifiers by the study's samplers: logistic regression of nines against sevens (Sect. 4.2), where predictions
converge and long chains are compared with NUTS, and the discriminative RBM (Sect. 4.3), errors against passes."""

from collections.abc import Mapping
from hashlib import sha256
from itertools import pairwise

import numpy as np
from jaxtyping import Float, Int, PyTree

from sgtune.metrics import mean_prediction, xi_rel, xi_white
from sgtune.mode.find import map_position
from sgtune.model import Model
from sgtune.sampling.lockstep import Lockstep
from sgtune.study.ccadl.chains import measure_cost, replicated, sampler_of
from sgtune.study.ground_truth.draws import Moments, add_draws
from sgtune.study.pipeline.parts import Parts, Task
from sgtune.support.randomness import named_key

COORDINATES = (1, 4)
"""Of the paper's two-dimensional marginals: "dimensions of 2 and 5", counted from 1."""

LAZY = {"sghmc": "sghmc-shang-lazy"}
"""Samplers of `sgtune.samplers` that long chains run in place of the samplers of the curves."""

CHUNK = 1_000
"""Draws that are in memory at a time, of long chains."""

SMALLEST = np.finfo(np.float32).tiny


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


def _settings_of(settings: Mapping, experiment: str) -> dict:
    """The settings of the curves or of the long chains, with those that both have."""
    return {
        **{key: settings[key] for key in ("step_sizes", "frictions", "batch_size")},
        **settings[experiment],
    }


def sample_curves(method: str, model: Model, settings: Mapping, *, seed: int, parts: Parts) -> dict:
    """Test log-likelihood of the posterior mean so far, against passes over the data, for every (h, A);
    ``settings`` are section ``ccadl.logistic``.

    Chains start at a draw of the prior, which is the same for all chains of a replicate. The posterior mean so far is
    over the last half of the draws, which excludes the transient from the start.

    Returns:
        ``passes``; and ``cells``, of each (h, A) its ``replicates`` with the ``log_likelihoods``, nan once a chain has
        diverged, and the sampler's ``statistics``; and ``cost`` (`sgtune.study.ccadl.chains.measure_cost`).
    """
    own = _settings_of(settings, "curves")
    passes = own["passes"] * np.arange(1, own["points"] + 1) / own["points"]
    steps = np.maximum(np.rint(passes * model.n_data / own["batch_size"]).astype(np.int64), 1)

    def start_of(replicate: int) -> PyTree:
        return model.init(named_key(seed, "ccadl", "logistic", replicate))

    def judged(chains: Lockstep) -> list[dict]:
        draws = chains.advance(int(steps[-1]))
        means = [late_means(draws[:, i], steps) for i in range(chains.width)]
        return [{"log_likelihoods": mean_log_likelihoods(model, each)} for each in means]

    task = Task(model, sampler_of(method, "full"), seed=seed, parts=parts)
    found = replicated(judged, task, own, start_of, "ccadl curves")
    cost = measure_cost(method, "full", model, own, start=start_of(0), seed=seed)
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
    own = _settings_of(settings, "draws")
    own["frictions"] = [own["friction"]]
    sampler = LAZY.get(method) or sampler_of(method, "full")
    truth = {
        name: None if reference.get(name) is None else np.asarray(reference[name], np.float64)
        for name in ("mean", "sd", "covariance")
    }

    def judged(chains: Lockstep) -> list[dict]:
        moments: list[Moments | None] = [None] * chains.width
        for done in range(0, own["steps"], CHUNK):
            draws = chains.advance(min(CHUNK, own["steps"] - done))
            with np.errstate(invalid="ignore", over="ignore"):
                moments = [add_draws(known, draws[:, i]) for i, known in enumerate(moments)]
        return [_against(truth, known) for known in moments]

    known = sha256(repr([None if one is None else one.tolist() for one in truth.values()]).encode())
    task = Task(model, sampler, seed=seed, parts=parts, depends_on={"truth": known.hexdigest()})
    found = replicated(judged, task, own, lambda _: map_position(model), "ccadl draws")
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


class RunningPrediction:
    """The mean of class probabilities from one step on; before that, the newest ones alone.

    Args:
        burn_in: the number of first predictions that do not enter the mean.
    """

    def __init__(self, targets: np.ndarray, burn_in: int):
        self.targets, self.burn_in = np.asarray(targets, np.int64), burn_in
        self.count, self.total = 0, np.float64(0)

    def add(self, probabilities: Float[np.ndarray, "m k"]) -> tuple[float | None, float | None]:
        """One prediction more: the error rate and the log-loss of what is predicted now; None if it is not finite."""
        self.count += 1
        mean = probabilities
        if self.count > self.burn_in:
            self.total = self.total + probabilities
            mean = self.total / (self.count - self.burn_in)
        if not np.isfinite(mean).all():
            return None, None
        own = np.take_along_axis(mean, self.targets[:, None], axis=1)[:, 0]
        wrong = np.mean(mean.argmax(axis=1) != self.targets)
        return float(wrong), float(-np.mean(np.log(np.maximum(own, SMALLEST))))


def sizes_of(model: Model) -> dict[str, int]:
    """What Table 2 has of a data set and its model, counted."""
    shapes = model.position_shape
    return {
        "n_train": model.n_data,
        "n_test": len(model.test_data["targets"]),
        "n_classes": shapes["U"].shape[1],
        "n_features": shapes["W"].shape[1],
        "n_hidden": shapes["W"].shape[0],
        "n_parameters": model.dimension,
    }


def sample_errors(
    data_set: str, method: str, model: Model, settings: Mapping, *, seed: int, parts: Parts
) -> dict:
    """Test error of averaged predictions against passes over the data, for every (h, A); diagonal covariance.

    Chains start at a draw of ``model.init``, which is the same for all chains of a replicate. The first ``burn_in`` of
    all passes is not in the average; during the burn-in the error is for the newest draws. ``settings``: section
    ``ccadl.drbm``.

    Returns:
        ``passes`` and ``burn_in_passes``; and ``cells``, of each (h, A) its ``replicates`` with ``errors`` and
        ``log_losses`` (None once a chain has diverged) and the sampler's ``statistics``; and ``cost``
        (`sgtune.study.ccadl.chains.measure_cost`).
    """
    settings = {**settings, "step_sizes": settings["step_sizes"][data_set]}
    readings = settings["readings"]
    passes = settings["passes"] * np.arange(readings + 1) / readings
    steps = np.maximum(np.rint(passes * model.n_data / settings["batch_size"]), np.arange(readings + 1))
    burn_in = int(np.ceil(settings["burn_in"] * readings))
    targets = np.asarray(model.test_data["targets"])

    def start_of(replicate: int) -> PyTree:
        return model.init(named_key(seed, "ccadl", data_set, replicate))

    def judged(chains: Lockstep) -> list[dict]:
        running = [RunningPrediction(targets, burn_in) for _ in range(chains.width)]
        found = [{"errors": [], "log_losses": []} for _ in running]
        for before, after in pairwise(steps.astype(np.int64)):
            n_draws = min(settings["draws_per_reading"], int(after - before))
            kept = before + (np.arange(1, n_draws + 1) * (after - before)) // n_draws
            draws = chains.advance_to(int(after), kept)
            for i, (own, mean) in enumerate(zip(found, running, strict=True)):
                error, loss = mean.add(mean_prediction(model, draws[:, i]))
                own["errors"].append(error)
                own["log_losses"].append(loss)
        return found

    task = Task(model, sampler_of(method, "diagonal"), seed=seed, parts=parts)
    return {
        "set": data_set,
        "missing": None,
        "method": method,
        "passes": passes[1:],
        "burn_in_passes": float(passes[burn_in]),
        "cells": replicated(judged, task, settings, start_of, "ccadl"),
        "cost": measure_cost(method, "diagonal", model, settings, start=start_of(0), seed=seed),
    }
