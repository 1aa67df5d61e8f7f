"""Labels of the study's samplers and settings, and means with their standard errors."""

from collections.abc import Iterable, Sequence
from math import sqrt
from statistics import fmean, stdev

from sgtune.study.ccadl.artifacts import METHODS
from sgtune.study.report.labels import in_order

__all__ = ["mean_of", "method_label", "methods_in", "setting"]


def setting(step_size: float, friction: float) -> str:
    """``h = 0.001, A = 10``."""
    return f"h = {step_size:g}, A = {friction:g}"


def methods_in(records: Iterable[dict]) -> list[str]:
    """The samplers of the records, in the order of print."""
    return in_order((record["method"] for record in records), METHODS)


def method_label(method: str) -> str:
    """A sampler's name in print."""
    return METHODS[method].label


def mean_of(values: Sequence[float]) -> tuple[float | None, float | None]:
    """The mean and its standard error: None of no value, and of one."""
    if not values:
        return None, None
    return fmean(values), stdev(values) / sqrt(len(values)) if len(values) > 1 else None
