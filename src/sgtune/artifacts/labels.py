"""What names in files are called in print, and the order in which they are printed."""

# ruff: noqa: RUF001 - tables print Greek letters and signs of mathematics

from collections.abc import Iterable
from typing import NamedTuple

__all__ = ["COMPARED", "METRICS", "MODELS", "SAMPLERS", "TUNERS", "Metric", "in_order", "label"]

MODELS = {"logistic": "Logistic regression", "pmf": "PMF", "nn": "Neural network"}

SAMPLERS = {
    "sgld": "SGLD",
    "sgld-cv": "SGLD-CV",
    "sghmc": "SGHMC",
    "sghmc-cv": "SGHMC-CV",
    "sgnht": "SGNHT",
    "sgnht-cv": "SGNHT-CV",
}

TUNERS = {
    "mamba-ksd": "MAMBA-KSD",
    "mamba-fssd": "MAMBA-FSSD",
    "grid": "Grid",
    "heuristic": "Heuristic",
    "grid-ksd": "Grid-KSD",
    "mamba-ksd-scaled": "MAMBA-KSD scaled",
    "oracle": "Best of the grid",
}


class Metric(NamedTuple):
    """How one number of a table is printed and judged.

    ``form``: "significant" (3 significant digits), "general" (the same without trailing zeros, for values of
    a grid), "count" (whole) or "printed" (every digit a paper gives). ``best``: `min`, `max`, or None where
    neither end is a merit.
    """

    label: str
    form: str = "significant"
    best: object = None


METRICS = {
    "ksd": Metric("KSD", best=min),
    "ksd_scaled": Metric("KSD scaled", best=min),
    "relative_sd_error_x100": Metric("ξ(σ̂) × 10²", best=min),
    "accuracy_percent": Metric("Pred. acc. (%)", best=max),
    "n_samples": Metric("# of samples", "count"),
    "log10_step_size": Metric("log₁₀(h)", "general"),
    "batch_percent": Metric("τ (%)", "general"),
    "n_leapfrog": Metric("L", "count"),
    "regret": Metric("Regret", best=min),
    "n_arms": Metric("Tuned (arms)", "count"),
    "wall_seconds": Metric("Wall time (s)"),
    "nominal_seconds": Metric("Budget T (s)"),
    "gradient_evaluations_x1e-9": Metric("Data terms (10⁹)"),
    "wall_ratio": Metric("Wall time / MAMBA-KSD"),
    "nominal_ratio": Metric("Budget / MAMBA-KSD"),
}

COMPARED = ("ksd", "relative_sd_error_x100", "log10_step_size", "batch_percent", "n_leapfrog")
for _metric in COMPARED:
    METRICS[f"{_metric}_published"] = Metric(METRICS[_metric].label, "printed")
    METRICS[f"{_metric}_ratio"] = Metric(METRICS[_metric].label)


def label(name: str, labels: dict[str, str]) -> str:
    """The printed name; a name that has none yet is shown in capitals."""
    return labels.get(name, name.upper())


def in_order(names: Iterable[str], order: Iterable[str]) -> list[str]:
    """The distinct ``names``: those of ``order`` first, in its order, then the others by the alphabet."""
    names, order = set(names), list(order)
    return [name for name in order if name in names] + sorted(names - set(order))
