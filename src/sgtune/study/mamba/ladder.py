"""The table of the ladder of Gaussians: tuners' choices where the expected error of every arm is known."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import sqrt
from statistics import fmean, stdev
from typing import NamedTuple

from sgtune.study.report.artifacts import artifact
from sgtune.study.report.labels import METRICS, SAMPLERS, TUNERS, in_order, label
from sgtune.study.report.layout import Cell, Row, Table
from sgtune.study.report.records import Records, need
from sgtune.study.report.remarks import counted, meanings

__all__ = ["BOUND", "KINDS", "Choices", "choices_of", "gaussian_ladder", "mean_of", "runs_said"]

KINDS = {
    "axis": "Along the axes",
    "axis-narrow": "Along the axes, narrow",
    "rotated": "Rotated",
    "equicorrelated": "Equicorrelated",
}
"""The labels of the kinds of Gaussians, in the order of print."""

CURVATURES = {
    "axis": "over three decades",
    "axis-narrow": "the same a thousand times as large, as in other units",
    "rotated": "over three decades, rotated so that all marginal sds are nearly equal",
    "equicorrelated": "all parameters correlated by 0.9",
}
"""What the table says of them."""

BOUND = 1.25
"""The bound for a good tuner, in units of the oracle's expected error."""

ESCAPED = 10.0
"""Where records cut an error off (`sgtune.study.experiments.ladder.ESCAPED`)."""

COLUMNS = (
    *("ladder_error", "ladder_over_oracle", "ladder_worst", "ladder_over_smallest", "ladder_marginal"),
    *("ladder_escaped", "ladder_frozen"),
)


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

    @property
    def is_cut_off(self) -> bool:
        """Whether some run lies where errors are cut off."""
        return any(run["error"] >= ESCAPED for run in self.runs)

    def count(self, name: str) -> int:
        """Runs that are ``escaped`` or ``frozen``."""
        return sum(run[name] for run in self.runs)


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


def _cells(choices: Choices) -> tuple[Cell, ...]:
    """One per column."""
    is_oracle = choices.tuner == "oracle"
    numbers: dict[str, tuple[float | None, float | None]] = {
        "ladder_error": mean_of([run["error"] for run in choices.runs]),
        "ladder_over_oracle": (None, None) if is_oracle else mean_of(choices.over("oracle_error")),
        "ladder_worst": (None if is_oracle else max(choices.over("oracle_error")), None),
        "ladder_over_smallest": mean_of(choices.over("smallest")),
        "ladder_marginal": mean_of([run["marginal"] for run in choices.runs]),
        "ladder_escaped": (choices.count("escaped"), None),
        "ladder_frozen": (choices.count("frozen"), None),
    }
    detail = f"{choices.kind}, D = {choices.dimension:,}"
    cells = [
        Cell("", "", choices.tuner, name, value=numbers[name][0], se=numbers[name][1], detail=detail)
        for name in COLUMNS
    ]
    counts = ("ladder_escaped", "ladder_frozen")
    return tuple(
        replace(cell, text=f"≥ {cell.shown}")
        if choices.is_cut_off and cell.value is not None and cell.metric not in counts
        else cell
        for cell in cells
    )


def _curvatures(found: Sequence[Choices]) -> str:
    """What the kinds of Gaussians are."""
    kinds = in_order({choices.kind for choices in found}, KINDS)
    return f"Curvatures: {'; '.join(f'“{KINDS[kind]}”, {CURVATURES[kind]}' for kind in kinds)}."


def _above(found: Sequence[Choices]) -> str:
    """How many of the Gaussians each tuner is above the bound on, in the mean."""

    def said(tuner: str) -> str:
        own = [choices for choices in found if choices.tuner == tuner]
        above = sum(fmean(choices.over("oracle_error")) > BOUND for choices in own)
        return f"{label(tuner, TUNERS)} on {above} of {len(own)}"

    tuners = dict.fromkeys(choices.tuner for choices in found if choices.tuner != "oracle")
    return f"Above {BOUND:g} times the oracle's in the mean: {', '.join(map(said, tuners))} Gaussians."


def runs_said(found: Sequence[dict]) -> str:
    """The samplers and races behind every mean, and the budget of the races."""
    own = [one for record in found for one in record["gaussians"]]
    samplers = in_order((one["sampler"] for one in own), SAMPLERS)
    races = 1 + max(run["replicate"] for one in own for run in one["runs"])
    budgets = ", ".join(dict.fromkeys(f"{record['seconds']:g}" for record in found))
    each = " of each" if len(samplers) > 1 else ""
    names = ", ".join(label(name, SAMPLERS) for name in samplers)
    return f"{names}; {counted(races, 'race')}{each} of R = {budgets} s by a given clock"


def gaussian_ladder(records: Records) -> Table:
    """Tuners' choices on Gaussians: expected errors over the oracle's, and arms that escaped or are frozen."""
    found = need(records, "ladder", "gaussian_ladder")
    choices = choices_of(found)
    return Table(
        name="gaussian_ladder",
        title=artifact("gaussian_ladder").title,
        caption=f"{runs_said(found)}; N = {found[0]['n_data']:,}. Errors are the expected errors of an arm after R by "
        "linear theory, exact and without a run; ± one standard error over several races and samplers. "
        f"{_above(choices)}\nThe oracle runs the race of MAMBA and sees the true error of its own draws. "
        f"{_curvatures(choices)}\n{meanings(COLUMNS)}.\n“≥”: some error is above "
        f"{ESCAPED:g}, or a race ended without an arm; both count as {ESCAPED:g}.",
        stub=("Dimension", "Curvatures", "Tuner"),
        columns=tuple(("", METRICS[name].label) for name in COLUMNS),
        rows=tuple(
            Row((f"D = {one.dimension:,}", label(one.kind, KINDS), label(one.tuner, TUNERS)), _cells(one))
            for one in choices
        ),
    )
