"""The hyperparameters that tuners tune and choose, from our records: the paper's tables 4 (tuned), 5, 7, 9 (chosen)."""

from collections.abc import Callable
from math import log10
from statistics import median_low

from sgtune.study.config.sections import has_axis
from sgtune.study.report.means import identity
from sgtune.study.report.records import Records, of_tuners, required
from sgtune.study.report.table import NO_ARM, Cell
from sgtune.support.axes import AXES, COMMON, Axis

__all__ = ["choice_cells", "chosen", "tuned"]

PRINTED: dict[str, tuple[str, Callable[[float, int], float]]] = {
    "step_size": ("log10_step_size", lambda number, n_data: log10(number)),
    "batch_size": ("batch_percent", lambda number, n_data: 100 * number / n_data),
}
"""Axes that are not printed by their own name and number: the metric, and ``(number, n_data) -> value``."""


def _axes_of(record: dict) -> list[Axis]:
    """The axes that a tuner's arms have a place for: the common ones, and those of its arms and of its choices."""
    found = [*(arm for arm in record["arms"] if arm is not None), *record.get("rungs", [])[:1]]
    return [
        axis for axis in AXES.values() if axis in COMMON or any(axis.name in numbers for numbers in found)
    ]


def choice_cells(record: dict, detail: str = "") -> list[Cell]:
    """The hyperparameters of the ``arms`` that a tuner chose, each by itself: the median of its tuning runs, of two in
    the middle the lower, in their span; log10 of the step size, batch size in % of N, and all others as they are."""
    arms, cells = [arm for arm in record["arms"] if arm is not None], []
    for axis in _axes_of(record):
        metric, printed = PRINTED.get(axis.name, (axis.name, lambda number, n_data: number))
        about = identity(record) | {"metric": metric, "detail": detail}
        numbers = [arm[axis.name] for arm in arms if arm.get(axis.name) is not None]
        values = [printed(number, record["n_data"]) for number in numbers]
        counts = {"finite": len(values), "replicates": len(record["arms"])}
        if values:
            span = (min(values), max(values))
            cells.append(Cell(**about, value=median_low(values), span=span, **counts))
        elif not arms and has_axis(record["sampler"], axis.name):
            cells.append(Cell(**about, missing=NO_ARM))
    return cells


def chosen(records: Records) -> list[Cell]:
    """The hyperparameters each tuner chose (paper, Tables 5, 7 and 9)."""
    return [cell for record in of_tuners(required(records, "tuning")) for cell in choice_cells(record)]


def tuned(records: Records) -> list[Cell]:
    """Which hyperparameters each tuner tunes (paper, Table 4): those of which its arms had several values."""
    cells = []
    for record in of_tuners(required(records, "tuning")):
        axes = _axes_of(record)
        arms = {tuple(rung.get(axis.name) for axis in axes) for rung in record["rungs"]}
        columns = zip(axes, zip(*arms, strict=True), strict=False)
        symbols = [axis.symbol for axis, numbers in columns if len(set(numbers)) > 1]
        text = f"{', '.join(symbols)} ({len(arms)})" if symbols else "fixed"
        cells.append(Cell(**identity(record), metric="n_arms", value=len(arms), text=text))
    return cells
