"""What a table of samplers shows, in sentences made from its cells."""

from collections.abc import Mapping, Sequence
from math import hypot

from sgtune.study.ccadl.names import method_label
from sgtune.study.report.labels import METRICS
from sgtune.study.report.layout import FEWEST_REPLICATES, Cell, Row, format_number

__all__ = ["PAIRS", "SAME", "best_said", "order_of", "pairs_said", "time_said"]

PAIRS = (("ccadl", "sgnht"), ("ccadl", "sghmc"), ("mccadl", "ccadl"))
"""Which sampler is compared with which."""

SAME = "not separated"


def order_of(
    first: tuple[float | None, float | None], second: tuple[float | None, float | None]
) -> str | None:
    """``<``, ``>``, or `SAME` where two means with standard errors are within two standard errors of the difference;
    None where one of them has no standard error."""
    if None in (*first, *second):
        return None
    apart = abs(first[0] - second[0]) > 2 * hypot(first[1], second[1])
    return SAME if not apart else "<" if first[0] < second[0] else ">"


def pairs_said(cells: Mapping[str, Sequence[Mapping[str, Cell]]], metric: str, where: str = "") -> str:
    """Of each of `PAIRS`, in how many columns the first is below and above the second, among columns in which all runs
    of both count; nothing of fewer than `FEWEST_REPLICATES` runs, of which a standard error is hardly known."""

    def numbers(cell: Cell) -> tuple[float | None, float | None]:
        counts = cell.finite == cell.replicates >= FEWEST_REPLICATES
        return (cell.value, cell.se) if counts else (None, None)

    parts = []
    for first, second in PAIRS:
        both = zip(cells.get(first, ()), cells.get(second, ()), strict=False)
        signs = [order_of(numbers(a[metric]), numbers(b[metric])) for a, b in both]
        n = sum(sign is not None for sign in signs)
        if n:
            counts = f"below in {signs.count('<')}, above in {signs.count('>')} of {n} columns"
            parts.append(f"{method_label(first)} against {method_label(second)} {counts}")
    if not parts:
        return ""
    return f"{where}{METRICS[metric].label}, by more than two standard errors: {'; '.join(parts)}."


def best_said(rows: Sequence[Row], metric: str, words: str) -> str:
    """Which sampler is marked as best of ``metric`` in which columns.

    Args:
        words: what the best has, such as "Fewest passes to NUTS".
    """
    own = [row for row in rows if row.labels[-1] == METRICS[metric].label]
    wins = {row.labels[-2]: [cell.detail for cell in row.cells if cell.best] for row in own}
    n = len(own[0].cells)
    none = n - len({detail for details in wins.values() for detail in details})
    parts = [f"{sampler} at {' and '.join(details)}" for sampler, details in wins.items() if details]
    if none:
        parts.append(f"no sampler in {none} of {n} columns")
    return f"{words}, by more than two standard errors: {'; '.join(parts)}."


def time_said(cells: Mapping[str, Sequence[Mapping[str, Cell]]]) -> str:
    """The least passes to NUTS of each sampler all of whose runs get there, times what a pass costs beside one of
    SGNHT; empty without costs."""
    parts = []
    for method, columns in cells.items():
        costs = [
            column["seconds_per_pass"] for column in columns if column["seconds_per_pass"].value is not None
        ]
        reached = [column["passes_to_reference"] for column in columns]
        reached = [
            c for c in reached if c.value is not None and c.se is not None and c.finite == c.replicates
        ]
        if costs and reached:
            least, [cost, *_] = min(reached, key=lambda cell: cell.value), costs
            time = least.value * cost.value
            error = hypot(least.se * cost.value, (cost.se or 0.0) * least.value)
            parts.append(f"{method_label(method)} {format_number(time, 'by error', error)} ({least.detail})")
    if not parts:
        return ""
    return f" Least time to NUTS of the samplers all of whose runs get there, in passes of SGNHT: {'; '.join(parts)}."
