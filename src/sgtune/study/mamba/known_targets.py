"""Tables of known targets: tuners' choices on the ladder of Gaussians, where every arm's expected error is known, and
how well discrepancies see that draws have a wrong width."""

from collections.abc import Sequence
from dataclasses import replace
from math import sqrt
from statistics import fmean, stdev

from sgtune.study.mamba.regret import AT_LEAST
from sgtune.study.report.records import Records, required
from sgtune.study.report.table import Cell

ESCAPED = 10.0
"""Where records cut an error off (`sgtune.study.experiments.ladder.ESCAPED`)."""

WIDTHS = (0.5, 1.5)
"""Draws of these widths, in sds of the target, are in `signal_of_width`."""


def gaussian_ladder(records: Records) -> list[Cell]:
    """Tuners' choices on Gaussians, all samplers together: expected errors over the oracle's, and arms that escaped or
    are frozen."""
    races: dict[tuple[str, str], list[dict]] = {}
    for record in sorted(required(records, "ladder"), key=lambda record: record["dimension"]):
        for own in record["gaussians"]:
            for run in own["runs"]:
                key = (run["tuner"], f"{own['kind']}, D = {own['dimension']:,}")
                races.setdefault(key, []).append(run | {"smallest": own["smallest"]})
    return [cell for whose, runs in races.items() for cell in _of_races(*whose, runs)]


def _of_races(tuner: str, detail: str, runs: Sequence[dict]) -> list[Cell]:
    """Where some run's error is cut off, all but the counts are lower bounds."""
    about = {"model": "", "sampler": "", "tuner": tuner, "detail": detail}
    over = [run["error"] / run["oracle_error"] for run in runs]
    numbers = {
        "ladder_error": _mean([run["error"] for run in runs]),
        "ladder_over_oracle": _mean(over),
        "ladder_worst": (max(over), None),
        "ladder_over_smallest": _mean([run["error"] / run["smallest"] for run in runs]),
        "ladder_marginal": _mean([run["marginal"] for run in runs]),
    }
    if tuner == "oracle":
        numbers |= dict.fromkeys(("ladder_over_oracle", "ladder_worst"), (None, None))
    cells = [Cell(**about, metric=metric, value=value, se=se) for metric, (value, se) in numbers.items()]
    if any(run["error"] >= ESCAPED for run in runs):
        cells = [
            cell if cell.value is None else replace(cell, text=f"{AT_LEAST} {cell.shown}") for cell in cells
        ]
    counts = {f"ladder_{name}": sum(run[name] for run in runs) for name in ("escaped", "frozen")}
    return cells + [Cell(**about, metric=metric, value=count) for metric, count in counts.items()]


def _mean(values: Sequence[float]) -> tuple[float, float | None]:
    """The mean and its standard error, None of one value."""
    return fmean(values), stdev(values) / sqrt(len(values)) if len(values) > 1 else None


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
