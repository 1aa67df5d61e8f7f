"""Tables of known targets: tuners' choices on the ladder of Gaussians, where every arm's expected error is known, and
how well discrepancies see that draws have a wrong width."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import sqrt
from statistics import fmean, stdev
from typing import NamedTuple

from sgtune.study.mamba.artifacts import KINDS
from sgtune.study.mamba.regret import AT_LEAST
from sgtune.study.report.labels import TUNERS, in_order
from sgtune.study.report.records import Records, required
from sgtune.study.report.table import Cell

__all__ = ["Choices", "choices_of", "gaussian_ladder", "mean_of", "signal_of_width"]

ESCAPED = 10.0
"""Where records cut an error off (`sgtune.study.experiments.ladder.ESCAPED`)."""

WIDTHS = (0.5, 1.5)
"""Draws of these widths, in sds of the target, are in `signal_of_width`."""


class Choices(NamedTuple):
    """The runs of one tuner on the Gaussians of one dimension and kind, all samplers together, with ``smallest``, the
    least expected error in each one's grid."""

    dimension: int
    kind: str
    tuner: str
    runs: list[dict]

    def over(self, name: str) -> list[float]:
        """Expected errors over those named: ``oracle_error`` or ``smallest``."""
        return [run["error"] / run[name] for run in self.runs]


def choices_of(found: Iterable[dict]) -> list[Choices]:
    """By dimension, kind and tuner, in the order of print; the oracle is last."""
    groups: dict[tuple, list[dict]] = {}
    for record in found:
        for own in record["gaussians"]:
            for run in own["runs"]:
                key = (own["dimension"], own["kind"], run["tuner"])
                groups.setdefault(key, []).append(run | {"smallest": own["smallest"]})
    kinds, tuners = (in_order({key[i] for key in groups}, order) for i, order in ((1, KINDS), (2, TUNERS)))
    ranked = sorted(groups, key=lambda key: (key[0], kinds.index(key[1]), tuners.index(key[2])))
    return [Choices(*key, groups[key]) for key in ranked]


def mean_of(values: Sequence[float]) -> tuple[float, float | None]:
    """The mean and its standard error, None of one value."""
    return fmean(values), stdev(values) / sqrt(len(values)) if len(values) > 1 else None


def gaussian_ladder(records: Records) -> list[Cell]:
    """Tuners' choices on Gaussians: expected errors over the oracle's, and arms that escaped or are frozen."""
    return [cell for own in choices_of(required(records, "ladder")) for cell in _cells(own)]


def _cells(choices: Choices) -> list[Cell]:
    """Where some run's error is cut off, all but the counts are lower bounds."""
    about = {"model": "", "sampler": "", "tuner": choices.tuner}
    about |= {"detail": f"{choices.kind}, D = {choices.dimension:,}"}
    runs, over = choices.runs, choices.over("oracle_error")
    numbers = {
        "ladder_error": mean_of([run["error"] for run in runs]),
        "ladder_over_oracle": mean_of(over),
        "ladder_worst": (max(over), None),
        "ladder_over_smallest": mean_of(choices.over("smallest")),
        "ladder_marginal": mean_of([run["marginal"] for run in runs]),
    }
    if choices.tuner == "oracle":
        numbers |= dict.fromkeys(("ladder_over_oracle", "ladder_worst"), (None, None))
    cells = [Cell(**about, metric=metric, value=value, se=se) for metric, (value, se) in numbers.items()]
    if any(run["error"] >= ESCAPED for run in runs):
        cells = [
            cell if cell.value is None else replace(cell, text=f"{AT_LEAST} {cell.shown}") for cell in cells
        ]
    counts = {f"ladder_{name}": sum(run[name] for run in runs) for name in ("escaped", "frozen")}
    return cells + [Cell(**about, metric=metric, value=count) for metric, count in counts.items()]


def signal_of_width(records: Records) -> list[Cell]:
    """Signal over noise of one value for draws half, and one and a half times, as wide as the target; of the density
    that the draws are from (``square``), and of the draws themselves (``value``)."""
    cells = []
    for row in (row for record in required(records, "sensitivity") for row in record["rows"]):
        if row["perturbation"] != "width" or row["size"] not in WIDTHS:
            continue
        detail = f"{row['judge']}, width {row['size']:g}, D = {row['dimension']}, n = {row['points']}"
        for metric in ("square_signal", "value_signal"):
            cells.append(Cell("", "", "", metric, value=row[metric], se=row[f"{metric}_se"], detail=detail))
    # Details stand in the order in which they come: numbers by size.
    return sorted(cells, key=lambda cell: _numbers(cell.detail))


def _numbers(detail: str) -> list[float]:
    return [float(part.split()[-1]) for part in detail.split(", ")[1:]]
