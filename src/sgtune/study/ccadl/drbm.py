"""The discriminative RBM by the study's samplers (Sect. 4.3): errors of averaged predictions against passes."""

from collections.abc import Mapping
from itertools import pairwise, product

import numpy as np
from jaxtyping import Float, PyTree

from sgtune.metrics import mean_prediction
from sgtune.model import Model
from sgtune.sampling.lockstep import Lockstep
from sgtune.study.ccadl.chains import chains_of, measure_cost, replicated, sampler_of
from sgtune.study.pipeline.parts import Parts
from sgtune.support.randomness import named_key

__all__ = ["RunningPrediction", "sample_errors", "sizes_of"]

SMALLEST = np.finfo(np.float32).tiny


class RunningPrediction:
    """The mean of class probabilities from one step on; before that, the newest ones alone.

    Args:
        burn_in: readings whose predictions do not enter the mean.
    """

    def __init__(self, targets: np.ndarray, burn_in: int):
        self.targets, self.burn_in = np.asarray(targets, np.int64), burn_in
        self.readings, self.total = 0, np.float64(0)

    def add(self, probabilities: Float[np.ndarray, "m k"]) -> tuple[float | None, float | None]:
        """One reading more: the error rate and the log-loss of what is predicted now; None if it is not finite."""
        self.readings += 1
        mean = probabilities
        if self.readings > self.burn_in:
            self.total = self.total + probabilities
            mean = self.total / (self.readings - self.burn_in)
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
    all passes is not in the average; during the burn-in the error is for the newest draws.

    Args:
        settings: the configuration's section ``ccadl.drbm``.

    Returns:
        ``passes`` and ``burn_in_passes``; and ``cells``, of each (h, A) its ``replicates`` with ``errors`` and
        ``log_losses`` (None once a chain has diverged) and the sampler's ``statistics``; and ``cost``
        (`sgtune.study.ccadl.chains.measure_cost`), at the middle h and the largest A.
    """
    settings = {**settings, "step_sizes": settings["step_sizes"][data_set]}
    cells = list(product(settings["step_sizes"], settings["frictions"]))
    readings = settings["readings"]
    passes = settings["passes"] * np.arange(readings + 1) / readings
    steps = np.maximum(np.rint(passes * model.n_data / settings["batch_size"]), np.arange(readings + 1))
    burn_in = int(np.ceil(settings["burn_in"] * readings))
    targets = np.asarray(model.test_data["targets"])
    sampler = sampler_of(method, "diagonal")

    def start_of(replicate: int) -> PyTree:
        return model.init(named_key(seed, "ccadl", data_set, replicate))

    def one(replicate: int) -> tuple[Lockstep, list[dict]]:
        options = {"start": start_of(replicate), "seed": seed, "replicate": f"ccadl {replicate}"}
        chains = chains_of(model, sampler, cells, settings["batch_size"], **options)
        running = [RunningPrediction(targets, burn_in) for _ in cells]
        read: list[list[tuple]] = [[] for _ in cells]
        for before, after in pairwise(steps.astype(np.int64)):
            n_draws = min(settings["draws_per_reading"], int(after - before))
            kept = before + (np.arange(1, n_draws + 1) * (after - before)) // n_draws
            draws = chains.advance_to(int(after), kept)
            for i, own in enumerate(running):
                read[i].append(own.add(mean_prediction(model, draws[:, i])))
        found = [
            {"errors": [error for error, _ in own], "log_losses": [loss for _, loss in own]} for own in read
        ]
        return chains, found

    own = {**settings, "replicates": None}
    depends_on = {"set": data_set, "method": method, "data": model.checksum, "seed": seed, "settings": own}
    found = replicated(one, settings["replicates"], cells, depends_on, parts)
    return {
        "set": data_set,
        "missing": None,
        "method": method,
        "cost": measure_cost(method, "diagonal", model, settings, start=start_of(0), seed=seed),
        "passes": passes[1:],
        "burn_in_passes": float(passes[burn_in]),
        "cells": found,
    }
