"""Shared by the study's tables of samplers: cells of means over replicates, and rows of them."""

from collections.abc import Collection, Mapping, Sequence

from sgtune.study.artifacts.labels import METRICS
from sgtune.study.artifacts.layout import Cell, Row, mark_best
from sgtune.study.ccadl.names import mean_of, method_label, setting

__all__ = ["BOLD", "cell_of", "rows_of"]

BOLD = "Bold: best of a column, if every other is more than two standard errors of the difference away."


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
