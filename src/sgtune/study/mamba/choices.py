"""The hyperparameters that tuners tune and choose, from our records: the paper's tables 4 (tuned), 5, 7, 9 (chosen)."""

from collections.abc import Callable, Sequence
from math import log10
from statistics import median_low

from sgtune.study import catalogue
from sgtune.study.config.sections import has_axis
from sgtune.study.report.artifacts import artifact
from sgtune.study.report.layout import NO_ARM, Cell, Table, lay_out
from sgtune.study.report.means import identity
from sgtune.study.report.records import Records, need, of_tuners
from sgtune.study.report.remarks import by_model, meanings, tuning_runs_said
from sgtune.support.axes import AXES, COMMON, Axis

__all__ = ["choice_cells", "choices_table", "table4"]

CHOICES: dict[str, tuple[str, Callable[[float, int], float]]] = {
    "step_size": ("log10_step_size", lambda number, n_data: log10(number)),
    "batch_size": ("batch_percent", lambda number, n_data: 100 * number / n_data),
}
"""Axes that are not printed by their own name and number: the metric, and ``(number, n_data) -> value``."""

WORDS = {"n_leapfrog": "leapfrog steps"}
"""Axes that have another name in captions."""


def _axes_of(record: dict) -> list[Axis]:
    """The axes that a tuner's arms have a place for: the common ones, and those of its arms and of its choices."""
    found = [*(arm for arm in record["arms"] if arm is not None), *record.get("rungs", [])[:1]]
    return [
        axis for axis in AXES.values() if axis in COMMON or any(axis.name in numbers for numbers in found)
    ]


def choice_cells(record: dict) -> list[Cell]:
    """The hyperparameters of the ``arms`` that a tuner chose, each by itself: the median of its tuning runs, of two in
    the middle the lower, in their span; log10 of the step size, batch size in % of N, and all others as they are."""
    arms, cells = [arm for arm in record["arms"] if arm is not None], []
    for axis in _axes_of(record):
        metric, printed = CHOICES.get(axis.name, (axis.name, lambda number, n_data: number))
        numbers = [arm[axis.name] for arm in arms if arm.get(axis.name) is not None]
        values = [printed(number, record["n_data"]) for number in numbers]
        counts = {"finite": len(values), "replicates": len(record["arms"])}
        if values:
            span = (min(values), max(values))
            cells.append(
                Cell(**identity(record), metric=metric, value=median_low(values), span=span, **counts)
            )
        elif not arms and has_axis(record["sampler"], axis.name):
            cells.append(Cell(**identity(record), metric=metric, missing=NO_ARM))
    return cells


def _tunings(records: Sequence[dict]) -> str:
    return tuning_runs_said((record["tuner"], len(record["arms"])) for record in records)


def choices_table(records: Records, *, model: str) -> Table:
    """The hyperparameters each tuner chose (paper, Tables 5, 7 and 9)."""
    name = catalogue.MODELS[model].study.choices
    found = of_tuners(need(records, "tuning", name))
    cells = [cell for record in found for cell in choice_cells(record)]
    shown = {cell.metric for cell in cells}
    further = [axis.name for axis in AXES.values() if axis not in COMMON and axis.name in shown]
    caption = (
        f"n = {_tunings(found)}: the median of each number separately (of two the lower) and, where they "
        "differ, [lowest, highest]; “(k/n)”: k of the runs found an arm. Step size h of θ + h ∇ log π + "
        "√(2h) noise (the "
        "published tables' convention), batch size τ in % of the training data, and leapfrog steps L."
    )
    return lay_out(
        cells,
        name=name,
        title=artifact(name).title,
        caption=f"{caption} {meanings(further)}." if further else caption,
        rows=("sampler", "metric"),
        columns=("tuner",),
    )


def table4(records: Records) -> Table:
    """Which hyperparameters each tuner tunes (paper, Table 4): those of which its arms had several values."""
    cells, named = [], list(COMMON)
    found = of_tuners(need(records, "tuning", "table4"))
    for record in found:
        axes = _axes_of(record)
        arms = {tuple(rung.get(axis.name) for axis in axes) for rung in record["rungs"]}
        tuned = [
            axis.symbol
            for axis, numbers in zip(axes, zip(*arms, strict=True), strict=False)
            if len(set(numbers)) > 1
        ]
        named += [axis for axis in axes if axis not in named]
        text = f"{', '.join(tuned)} ({len(arms)})" if tuned else "fixed"
        cells.append(Cell(**identity(record), metric="n_arms", value=len(arms), text=text))
    symbols = ", ".join(
        f"{axis.symbol} {WORDS.get(axis.name, axis.name.replace('_', ' '))}" for axis in named
    )
    return lay_out(
        cells,
        name="table4",
        title=artifact("table4").title,
        caption=f"Hyperparameters for which a tuner compared several values ({symbols}) and, in brackets, the "
        f"number of its arms, the same in each of its tuning runs ({by_model(found, _tunings)}). “fixed”: it "
        "compares nothing, so it has one run; the paper lists the heuristic, which sets h = 1/N, as tuning "
        "h. A "
        "dash: not run.",
        rows=("sampler",),
        columns=("tuner",),
    )
