"""Labels of the study's samplers, targets and judges, and means with their standard errors."""

from collections.abc import Iterable, Sequence
from math import sqrt
from statistics import fmean, stdev

from sgtune.study.report.labels import MODELS, SAMPLERS, in_order

__all__ = [
    "JUDGES",
    "OPTIMAL_SCALE",
    "OWN",
    "SLOW_CURVE",
    "common_middle",
    "mean_of",
    "sampler_label",
    "samplers_in",
    "target_label",
    "targets_in",
]

OWN = {"adam-mcmc": "AdamMCMC", "mala": "MALA", "hmc": "HMC"}
"""Samplers that the main study does not have, in the order of print."""

SLOW_CURVE = "adam-mcmc-exact-slow"
"""The curve of total variation with Adam's own decay rates, which has steps and chains of its own."""

OPTIMAL_SCALE = 2.38
"""s sqrt(T) of the random walk that moves fastest in many dimensions (Roberts, Gelman and Gilks 1997, "Weak convergence
and optimal scaling of random walk Metropolis algorithms")."""

JUDGES = {
    "mamba": "MAMBA (default)",
    "mamba-ksd": "MAMBA-KSD",
    "acceptance": "Acceptance",
    "oracle": "Oracle",
    "random": "Random arm",
    "frozen": "Frozen chain",
}


def sampler_label(name: str) -> str:
    """A sampler's name in print."""
    return (OWN | SAMPLERS).get(name, name)


def samplers_in(records: Iterable[dict]) -> list[str]:
    """The samplers of the records, in the order of print."""
    return in_order((record["sampler"] for record in records), [*OWN, *SAMPLERS])


def target_label(record: dict) -> str:
    """``N(0, I), D = 10``, or a model's name."""
    if record["target"].startswith("gaussian"):
        return f"N(0, I), D = {record['dimension']:,}"
    return MODELS.get(record["target"], record["target"])


def targets_in(records: Iterable[dict]) -> list[dict]:
    """Gaussians by their dimension, then models; every cell has its ``steps``, which older records have only once."""
    found = [
        {**record, "cells": [{"steps": record.get("steps"), **cell} for cell in record["cells"]]}
        for record in records
    ]
    return sorted(
        found, key=lambda record: (not record["target"].startswith("gaussian"), record["dimension"])
    )


def common_middle(scales: Sequence[Iterable[float]]) -> float:
    """The s at which targets are compared: the middle one, or the smaller of two, of those that all targets have.

    Targets without a common s: of the first one's.
    """
    common = set.intersection(*map(set, scales)) or set(scales[0])
    return sorted(common)[(len(common) - 1) // 2]


def mean_of(values: Sequence[float]) -> tuple[float | None, float | None]:
    """The mean and its standard error: None of no value, and of one."""
    if not values:
        return None, None
    return fmean(values), stdev(values) / sqrt(len(values)) if len(values) > 1 else None
