"""Means over runs as cells, which of them is the best, their ratios, and the standard errors of all."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import hypot, sqrt
from operator import attrgetter
from statistics import fmean, stdev
from typing import NamedTuple

import numpy as np

from sgtune.study.catalogue import TUNERS, cap_of
from sgtune.study.report.labels import METRICS
from sgtune.study.report.records import finite, grouped, looks_at_test_set, mean_of
from sgtune.study.report.table import AT_CAP, DASH, DIVERGED, NO_ARM, NOISE, Cell

SOURCES = {name: (metric.key, metric.factor) for name, metric in METRICS.items() if metric.key}
"""Of a table's metric the key in the rows of results, and a factor; a dot leads into an entry of the row."""

SQUARED = {"ksd": "ksd_squared", "ksd_scaled": "ksd_scaled_squared"}
"""Keys of rows that are roots of an unbiased estimate, which may be negative: the estimate itself is averaged."""

FEWEST_REPLICATES = 3
"""A marked cell has at least this many runs: two runs hardly determine a standard error."""


def metric_of(key: str) -> str:
    """The metric that shows ``key`` of a row; of a loss, for one."""
    return next(metric for metric, (source, _) in SOURCES.items() if source == key)


def identity(record: dict) -> dict:
    """What of a cell says whose it is."""
    own = {key: record[key] for key in ("model", "sampler", "tuner")}
    return own | {"at_test_set": looks_at_test_set(record)}


def _entry(row: dict, key: str) -> float | None:
    """The number of a row under ``key``, or None."""
    for part in key.split("."):
        row = (row or {}).get(part)
    return row


def mean_of_choices(
    numbers: Sequence[tuple[int, float]], n_tunings: int
) -> tuple[float | None, float | None]:
    """The mean of the numbers of some replicates, and its standard error, None of fewer than two.

    It is sd / sqrt(n), but at least the standard error from the means of the tuning runs, each over every
    ``n_tunings``-th replicate: replicates of one arm do not show how much tuning runs differ.
    """
    value, error = mean_of([number for _, number in numbers])
    of_tunings = grouped(numbers, lambda one: one[0] % max(n_tunings, 1))
    means = [fmean(number for _, number in own) for own in of_tunings.values()]
    return value, None if error is None else max(error, mean_of(means)[1] or 0.0)


def mean_cell(record: dict, metric: str, values: list[float | None]) -> Cell:
    """Mean and sd (divisor n - 1) of a replicate's value each, over those that have an arm and stayed finite.

    The standard error is that of `mean_of_choices`.
    """
    numbers = [
        (row["replicate"], SOURCES[metric][1] * value)
        for row, value in zip(record["table"], values, strict=True)
        if not (row.get("diverged") or row.get("no_arm")) and finite(value) is not None
    ]
    kept = [value for _, value in numbers]
    value, error = mean_of_choices(numbers, len(record.get("arms", ())))
    has_spread = len(kept) > 1 and METRICS[metric].has_spread
    missing = NO_ARM if record["best"] is None else DASH
    return Cell(
        **identity(record),
        metric=metric,
        value=value,
        sd=stdev(kept) if has_spread else None,
        se=error if has_spread else None,
        finite=len(kept),
        replicates=len(values),
        missing=DIVERGED if any(row.get("diverged") for row in record["table"]) else missing,
    )


def evaluation_cells(record: dict, metrics: Iterable[str]) -> list[Cell]:
    """A cell per metric: mean and sd over the replicates that stayed finite; of a KSD the root of the mean square,
    or an upper end of it."""
    return [_root_mean_cell(record, metric) for metric in metrics]


def _root_mean_cell(record: dict, metric: str) -> Cell:
    """Of a KSD, with m the mean of its unbiased squares and e the standard error of m: √m, with the sd and the standard
    error of the squares over 2√m (to first order). That has no meaning where a square is negative and m ≤ 2e: there
    the cell has no value but an upper end, √(max(m, 0) + 2e). A negative m is noise, which must not bring the end
    down."""
    key = SOURCES[metric][0]
    floors = [finite(row.get(f"{key}_floor")) for row in record["table"]]
    kept = [floor for floor in floors if floor is not None]
    cell = mean_cell(record, metric, [_entry(row, key) for row in record["table"]])
    cell = replace(cell, floor=fmean(kept) if kept else None)
    of_runs = [finite(row.get(SQUARED.get(key, ""))) for row in record["table"]]
    squares = mean_cell(record, metric, of_runs)
    if cell.value is None or squares.finite < cell.finite:
        return cell
    mean, error = squares.value, squares.se
    is_noise = any(square is not None and square < 0 for square in of_runs)
    if error and is_noise and mean <= 2 * error:
        upper = sqrt(max(mean, 0.0) + 2 * error)
        return replace(cell, value=None, sd=None, se=None, upper=upper, square=(mean, error))
    if mean <= 0:
        return replace(cell, value=None, sd=None, se=None, missing=NOISE)
    root = sqrt(mean)
    if error is None:
        return replace(cell, value=root)
    return replace(cell, value=root, sd=squares.sd / (2 * root), se=error / (2 * root), square=(mean, error))


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
    best = {cell for group in grouped(cells, attrgetter(*common)).values() for cell in _best_of(group)}
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
    if first.text is not None:
        # A lower bound.
        return []
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


def ratio_of(above: Cell, below: Cell) -> tuple[float | None, float | None]:
    """The ratio of two cells of independent runs and its standard error, to first order; None where there is none."""
    if above.value is None or not below.value:
        return None, None
    value = above.value / below.value
    if above.se is None or below.se is None or not above.value:
        return value, None
    return value, abs(value) * sqrt((above.se / above.value) ** 2 + (below.se / below.value) ** 2)


class Estimate(NamedTuple):
    """A number and its standard error, None if there is only one run."""

    value: float
    se: float | None


def chosen_losses(losses: np.ndarray, arms: Sequence[int | None], loss: str) -> np.ndarray:
    """The losses of the arms that tuning runs chose; one that found none counts as the cap of ``loss``.

    ``losses`` (replicates, arms) has a row for each fresh replicate, which every arm has run on the same minibatches.
    """
    cap = np.full(len(losses), cap_of(loss))
    return np.stack([cap if arm is None else losses[:, arm] for arm in arms], axis=1)


def is_of_one_choice(record: Mapping) -> bool:
    """Whether a tuner's record has the choice of one tuning run alone, and another run might choose another arm."""
    return TUNERS[record["tuner"]].is_random and len(record["arms"]) == 1


def best_of(losses: np.ndarray, finalists: Sequence[int]) -> int:
    """The finalist of the smallest mean loss."""
    return min(finalists, key=lambda arm: losses[:, arm].mean())


def ratio(above: np.ndarray, below: np.ndarray, *, same_tunings: bool = True) -> Estimate:
    """The mean of ``above`` over the mean of ``below``, and its standard error.

    Rows are fresh replicates, the same of both, and columns the arms of tuning runs. The variance is the sum of two
    independent parts: from replicates, by the jackknife that leaves replicate i out of both arrays; and from tuning
    runs, by the jackknife over columns: of both arrays at once if they have equally many, which are then of the
    ``same_tunings``, otherwise of each alone. An array of one column has no variance from tuning. (Columns also differ
    by the noise of their means, so the second variance includes some of the first: the sum is slightly too large.)
    """
    value = float(above.mean() / below.mean())
    if len(above) < 2:
        return Estimate(value, None)
    without = ratios_without(above, below, same_tunings=same_tunings)
    variance = sum((len(values) - 1) * values.var() for values in without)
    return Estimate(value, float(np.sqrt(variance)))


def ratios_without(above: np.ndarray, below: np.ndarray, *, same_tunings: bool = True) -> list[np.ndarray]:
    """For each part of the variance of `ratio` the ratios without each replicate, or without each tuning run."""
    without = [_means_without(above, 0) / _means_without(below, 0)]
    if above.shape[1] == below.shape[1] and same_tunings:
        return [*without, _means_without(above, 1) / _means_without(below, 1)]
    return [*without, _means_without(above, 1) / below.mean(), above.mean() / _means_without(below, 1)]


def at_least(cell: Cell) -> Cell:
    """The cell, marked as a lower bound."""
    return replace(cell, text=f"≥ {cell.shown}")


class FreshRuns:
    """The results of a record's arms in fresh runs of some seconds, by the loss ``key``."""

    def __init__(self, record: dict, seconds: float, key: str):
        runs = {run["arm"]: run for run in record["runs"] if run["seconds"] == seconds}
        ordered = [runs[arm] for arm in range(len(record["arms"]))]
        self.key, self.cap = key, cap_of(key)
        self.losses = np.array([run["losses"][key] for run in ordered], float).T  # (replicates, arms)
        self.diverged = np.array([run["diverged"] for run in ordered], bool).T

    def is_known(self, arms: Sequence[int | None]) -> bool:
        """Whether the mean loss of ``arms`` is: otherwise it is a lower bound, because there is no arm, or because a
        run is at the cap or diverged, whose loss may be any larger number."""
        return all(arm is not None and self.losses[:, arm].max() < self.cap for arm in arms)

    def counts(self, arms: Sequence[int | None]) -> dict[str, int]:
        """How many runs of ``arms`` stayed finite, and of how many; an arm that is None has none that did."""
        kept = sum(int((~self.diverged[:, arm]).sum()) for arm in arms if arm is not None)
        return {"finite": kept, "replicates": len(self.losses) * len(arms)}

    def cell(self, about: dict, estimate: Estimate, arms: Sequence[int | None]) -> Cell:
        """The number of ``arms``, unless none ever stayed finite; marked where it is a lower bound."""
        counts = self.counts(arms)
        if not counts["finite"]:
            missing = NO_ARM if all(arm is None for arm in arms) else DIVERGED
            return Cell(**about, missing=missing, **counts)
        cell = Cell(**about, value=estimate.value, se=estimate.se, **counts)
        return cell if self.is_known(arms) else at_least(cell)

    def over(
        self, about: dict, above: Sequence[int | None], below: Sequence[int | None], **how: bool
    ) -> Cell:
        """The mean loss of the arms ``above`` over that of the arms ``below``."""
        if self.counts(above)["finite"] and not self.is_known(below):
            return Cell(**about, missing=AT_CAP, **self.counts(above))
        losses = [chosen_losses(self.losses, arms, self.key) for arms in (above, below)]
        return self.cell(about, ratio(*losses, **how), above)

    def frozen(self, about: dict, loss: float, below: Sequence[int | None]) -> Cell:
        """The known ``loss`` of a chain that never moves over the mean loss of the arms ``below``."""
        if not self.is_known(below):
            return Cell(**about, tuner="frozen", missing=AT_CAP)
        known = np.full((len(self.losses), 1), loss)
        value, se = ratio(known, chosen_losses(self.losses, below, self.key))
        return Cell(**about, tuner="frozen", value=value, se=se)

    def alone(self, about: dict, arm: int) -> Cell:
        """The mean loss of an ``arm`` by itself, by the metric that shows it."""
        metric = metric_of(self.key)
        losses = SOURCES[metric][1] * self.losses[:, [arm]]
        return self.cell(about | {"metric": metric}, ratio(losses, np.ones_like(losses)), [arm])


def _means_without(losses: np.ndarray, axis: int) -> np.ndarray:
    """The mean of ``losses`` without each of its rows (axis 0) or columns (axis 1); of a single one the mean itself."""
    sums, n = losses.sum(axis=1 - axis), losses.shape[axis]
    return (sums.sum() - sums) / (losses.size - losses.shape[1 - axis]) if n > 1 else sums / losses.size
