"""Which cells of a table are printed in bold."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import hypot
from typing import TYPE_CHECKING

from sgtune.study.artifacts.labels import METRICS

if TYPE_CHECKING:
    from sgtune.study.artifacts.layout import Cell

__all__ = ["FEWEST_REPLICATES", "mark_best"]

FEWEST_REPLICATES = 3
"""A marked cell has at least this many runs: two runs hardly determine a standard error."""


def mark_best(cells: Iterable[Cell], among: str = "tuner") -> list[Cell]:
    """The cells, with the best of each (model, sampler, metric, detail) marked, if it differs from all others. Where
    samplers and not tuners are compared, ``among`` is "sampler": the best of each (model, tuner, metric, detail).

    Cells of the same runs (equal value and equal spread) are marked together. Every other cell must be more than two
    standard errors of the difference away, and must print another number; otherwise none is marked. A
    cell of fewer than `FEWEST_REPLICATES` runs is never marked, nor is one with a replicate that is not finite: its
    mean is over the lucky runs only.
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
        if cell.value is not None
        and cell.se is not None
        and cell.finite == cell.replicates >= FEWEST_REPLICATES
    ]
    order = METRICS[group[0].metric].best
    if not order or not eligible:
        return []
    first = order(eligible, key=lambda cell: cell.value)
    alike = [cell for cell in eligible if cell.of_runs == first.of_runs]
    others = [cell for cell in eligible if cell not in alike]
    apart = all(_apart(first, cell) and _number(first) != _number(cell) for cell in others)
    return alike if apart and len(alike) < len(group) else []


def _apart(first: Cell, other: Cell) -> bool:
    """More than two standard errors of the difference."""
    return abs(other.value - first.value) > 2 * hypot(other.se, first.se)


def _number(cell: Cell) -> str:
    """The printed number without its spread: a reader compares these."""
    return re.sub(r" ± <?[\d.,]+", "", cell.shown)
