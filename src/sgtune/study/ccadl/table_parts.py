"""Shared by the study's tables of samplers: cells of means over replicates, and rows of them."""

# ruff: noqa: RUF001 - captions have signs of mathematics

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from math import pi, sqrt

import numpy as np

from sgtune.study.ccadl.names import mean_of, method_label, setting
from sgtune.study.report.labels import METRICS
from sgtune.study.report.layout import Cell, Row, mark_best

__all__ = [
    "BOLD",
    "CLIPPED",
    "CLIPPING",
    "PARTIAL",
    "cell_of",
    "clipping_of",
    "cost_of",
    "relative_cost",
    "rows_of",
]

BOLD = (
    "Bold: the best of a column among the samplers all of whose runs count, if each of the others is more than two "
    "standard errors of the difference away."
)
PARTIAL = "A mean marked (k/n) is over k of n runs, and is not compared."
CLIPPED = (
    "Clipped: steps in which A I − h Σ / 2 has a negative eigenvalue, even if only one of many. A needed: the smallest "
    "A with which no step of a run has one; the Σ of its first step comes from one minibatch; mean over runs."
)

CLIPPING = ("clipped_percent", "friction_needed")
"""The metrics of `clipping_of`."""


def cell_of(
    model: str,
    method: str,
    cell: Mapping,
    metric: str,
    values: Sequence[float | None],
    missing: str = "diverged",
) -> Cell:
    """The mean of ``values``, one per replicate, without the missing ones, with its standard error."""
    finite = [value for value in values if value is not None]
    value, se = mean_of(finite)
    return Cell(
        model,
        method,
        "",
        metric,
        value=value,
        se=se,
        finite=len(finite),
        replicates=len(values),
        detail=setting(cell["step_size"], cell["friction"]),
        missing=missing,
    )


def clipping_of(model: str, method: str, cell: Mapping) -> dict[str, Cell]:
    """By `CLIPPING`, how often SGHMC's noise was clipped, and the least A without that; cells without a value of a
    sampler, or of an old result file, that does not say."""
    statistics = [{} if run.get("diverged") else run.get("statistics", {}) for run in cell["replicates"]]
    shares = [one.get("clipped_share") for one in statistics]
    needed = [one.get("friction_needed") for one in statistics]
    percent = [None if share is None else 100 * share for share in shares]
    made = {
        metric: cell_of(model, method, cell, metric, values, missing="")
        for metric, values in zip(CLIPPING, (percent, needed), strict=True)
    }
    if made["clipped_percent"].value == 0:
        made["friction_needed"] = replace(made["friction_needed"], text=f"≤ {cell['friction']:g}")
    return made


def relative_cost(cost: Mapping) -> tuple[float, float]:
    """The median over rounds of the seconds of a sampler over SGNHT's, and its standard error.

    A round in which another program had the processor is an outlier: the standard error is sqrt(pi / 2) times the sd
    over the root of the number of rounds, with the sd from the median absolute deviation (1.4826 times it).
    """
    ratios = np.asarray(cost["seconds"], np.float64) / np.asarray(cost["baseline_seconds"], np.float64)
    middle = np.median(ratios)
    sd = 1.4826 * np.median(np.abs(ratios - middle))
    return float(middle), float(sqrt(pi / 2) * sd / sqrt(len(ratios)))


def cost_of(model: str, record: Mapping, cell: Mapping) -> Cell:
    """Seconds of a pass over SGNHT's, in the column where they were measured, if the result file has them."""
    cost = record.get("cost")
    value = se = None
    if cost and (cost["step_size"], cost["friction"]) == (cell["step_size"], cell["friction"]):
        value, se = relative_cost(cost)
    where = setting(cell["step_size"], cell["friction"])
    return Cell(model, record["method"], "", "seconds_per_pass", value=value, se=se, detail=where)


def cost_said(records: Iterable[Mapping]) -> str:
    """How costs were measured; empty if no result file has them."""
    costs = [record["cost"] for record in records if record.get("cost")]
    if not costs:
        return ""
    rounds = min(len(cost["seconds"]) for cost in costs)
    return (
        f"Seconds per pass: of one chain over SGNHT's, in the column where it was measured: median of at least "
        f"{rounds} rounds of {costs[0]['steps']} steps in turn with SGNHT, after compilation, beside the other jobs of "
        "the run. "
    )


def rows_of(
    cells: Mapping[str, Sequence[Mapping[str, Cell]]],
    metrics: Sequence[str],
    optional: Collection[str] = (),
    before: tuple[str, ...] = (),
) -> list[Row]:
    """A row per sampler and metric, a cell per setting, the best of each metric and setting marked.

    Args:
        cells: by sampler, of each setting the cells by metric.
        optional: metrics that have no row where there is nothing to say.
        before: labels that stand before the sampler's.
    """
    flat = [column[metric] for columns in cells.values() for column in columns for metric in metrics]
    marked = dict(zip(map(id, flat), mark_best(flat, among="sampler"), strict=True))
    return [
        Row(
            (*before, method_label(method), METRICS[metric].label),
            tuple(marked[id(column[metric])] for column in columns),
        )
        for method, columns in cells.items()
        for metric in metrics
        if metric not in optional or any(column[metric].value is not None for column in columns)
    ]
