"""Labels of the study's samplers, targets and judges, and means with their standard errors."""

from collections.abc import Iterable, Sequence
from math import sqrt
from statistics import fmean, stdev

from sgtune.study.artifacts.labels import MODELS, SAMPLERS, in_order

__all__ = ["JUDGES", "OWN", "mean_of", "middle", "sampler_label", "samplers_in", "target_label", "targets_in"]

OWN = {"adam-mcmc": "AdamMCMC", "mala": "MALA", "hmc": "HMC"}
"""Samplers that the main study does not have, in the order of print."""

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


def middle(values: Iterable[float]) -> float:
    """The middle one of the values, or the smaller of two."""
    ascending = sorted(values)
    return ascending[(len(ascending) - 1) // 2]


def mean_of(values: Sequence[float]) -> tuple[float | None, float | None]:
    """The mean and its standard error: None of no value, and of one."""
    if not values:
        return None, None
    return fmean(values), stdev(values) / sqrt(len(values)) if len(values) > 1 else None
