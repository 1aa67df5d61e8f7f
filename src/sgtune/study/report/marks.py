"""Which cells of a table are printed in bold."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import hypot
from typing import TYPE_CHECKING

from sgtune.study.report.labels import METRICS

if TYPE_CHECKING:
    from sgtune.study.report.table import Cell

__all__ = ["FEWEST_REPLICATES", "mark_best"]

FEWEST_REPLICATES = 3
"""A marked cell has at least this many runs: two runs hardly determine a standard error."""


def mark_best(cells: Iterable[Cell], among: str = "tuner") -> list[Cell]:
    """The cells, with the best of each (model, sampler, metric, detail) marked, if it differs from all others. Where
    samplers and not tuners are compared, ``among`` is "sampler": the best of each (model, tuner, metric, detail).

    Cells of the same runs (equal value and equal spread) are marked together. Every other cell must be more than two
    standard errors of the difference away, and must print another number; otherwise none is marked. A cell of fewer
    than `FEWEST_REPLICATES` runs is never marked, nor is one with a replicate that is not finite: its mean is over the
    lucky runs only. Roots (`Cell.square`) are compared by their squares, a negative one as 0; a cell that prints
    "< upper" is marked only if its upper end is below the lower ends of all others, two standard errors each. None is
    marked if the best is below its own floor.
    """
    cells = list(cells)
    common = [name for name in ("metric", "model", "sampler", "tuner", "detail") if name != among]
    groups: dict[tuple, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(tuple(getattr(cell, name) for name in common), []).append(cell)
    best = {cell for group in groups.values() for cell in _best_of(group)}
    return [replace(cell, best=cell in best) for cell in cells]


def _best_of(group: Sequence[Cell]) -> list[Cell]:
    """The marked cells of one group, of one metric."""
    eligible = [
        cell
        for cell in group
        if _judged(cell) is not None and cell.finite == cell.replicates >= FEWEST_REPLICATES
    ]
    order = METRICS[group[0].metric].best
    by_squares = {cell.square is not None for cell in eligible}
    if not order or len(by_squares) != 1:
        return []
    first = order(eligible, key=lambda cell: _judged(cell)[0])
    if first.floor is not None and (first.upper if first.value is None else first.value) < first.floor:
        return []
    alike = [cell for cell in eligible if _runs(cell) == _runs(first)]
    others = [cell for cell in eligible if cell not in alike]
    apart = all(_apart(first, cell) and _number(first) != _number(cell) for cell in others)
    return alike if apart and len(alike) < len(group) else []


def _judged(cell: Cell) -> tuple[float, float] | None:
    """The number that a cell is compared by and its standard error, or None. No true square is negative."""
    if cell.square is not None:
        return max(cell.square[0], 0.0), cell.square[1]
    return None if cell.value is None or cell.se is None else (cell.value, cell.se)


def _apart(first: Cell, other: Cell) -> bool:
    """More than two standard errors of the difference; of an upper end, the intervals do not overlap."""
    (ours, error), (theirs, their_error) = _judged(first), _judged(other)
    noise = hypot(error, their_error) if first.upper is None else error + their_error
    return abs(theirs - ours) > 2 * noise


def _runs(cell: Cell) -> tuple:
    """Value and spread, and those of the square: cells in which these agree are from the same runs."""
    return cell.value, cell.se if cell.sd is None else cell.sd, cell.square


def _number(cell: Cell) -> str:
    """The printed number without its spread: a reader compares these."""
    return re.sub(r" ± <?[\d.,]+", "", cell.shown)
