"""Regret: how much worse than the best arm of its grid is the one a tuner chose."""

# ruff: noqa: RUF001 - tables print Greek letters and signs of mathematics

from math import isclose

from sgtune.axes import AXES, Axis
from sgtune.study import catalogue
from sgtune.study.artifacts.layout import DIVERGED, Cell, Table, lay_out, mark_best
from sgtune.study.artifacts.records import Records, finite, need
from sgtune.study.artifacts.studies import artifact
from sgtune.study.artifacts.tables import SOURCES, identity, missing_of

__all__ = ["regret", "regret_cells"]

ORACLE = "oracle"  # the arm of the grid with the smallest value, which no tuner can know


def _same_arm(row: dict, arm: dict) -> bool:
    """Numbers that are not counts pass through float32 on their way, so they are compared to its precision."""
    return all(_meet(axis, row, arm) for axis in AXES.values())


def _meet(axis: Axis, *records: dict) -> bool:
    """Whether two arms have the same number on ``axis``; one that does not say has the default."""
    one, other = (record.get(axis.name) for record in records)
    one, other = (axis.default if number is None else number for number in (one, other))
    if axis.is_integer or one is None or other is None:
        return one == other
    return isclose(one, other, rel_tol=1e-5)


def _grid(rows: list[dict]) -> list[dict]:
    """The arms of the grid: the heuristic's is one of them only if its step size is the grid's."""
    others = [row for row in rows if not row["is_heuristic"]]
    return others + [
        row
        for row in rows
        if row["is_heuristic"]
        and any(isclose(row["step_size"], other["step_size"], rel_tol=1e-5) for other in others)
    ]


def _smallest(rows: list[dict], key: str) -> float | None:
    values = [finite(row.get(key)) for row in _grid(rows)]
    return min((value for value in values if value is not None), default=None)


def _chosen_row(record: dict, rows: list[dict]) -> dict | None:
    same = [row for row in rows if record["best"] is not None and _same_arm(row, record["best"])]
    if record["tuner"] == "heuristic":
        same = same or [row for row in rows if row["is_heuristic"]]
    return same[0] if same else None


def regret_cells(records: Records, artifact: str = "regret") -> list[Cell]:
    """Per tuner and sampler, for each metric its model's tuners are judged by: regret (the metric of the arm it
    chose over the smallest in the grid) and the metric itself; of the grid's best arm, the metric.

    Every value is of the sweep: one run of every arm, equally long but of ten steps at least. Regret is at
        least 1 for an arm of the grid;
    the heuristic's lies off it and may fall below. An arm that is not in the sweep, and a metric that the sweep
    did not compute, have a dash.
    """
    sweeps = {(sweep["model"], sweep["sampler"]): sweep["rows"] for sweep in need(records, "sweep", artifact)}
    chosen, oracle = [], []
    for record in need(records, "tuning", artifact):
        rows = sweeps.get((record["model"], record["sampler"]), [])
        row = _chosen_row(record, rows)
        for metric in catalogue.MODELS[record["model"]].study.regret:
            key, factor = SOURCES[metric]
            smallest, value = _smallest(rows, key), None if row is None else finite(row.get(key))
            values = {
                f"{metric}_regret": value / smallest if value is not None and smallest else None,
                metric: None if value is None else factor * value,
            }
            lost = row is not None and value is None and smallest is not None
            missing = DIVERGED if lost else missing_of(record)
            chosen += [
                Cell(**identity(record), metric=name, value=number, missing=missing)
                for name, number in values.items()
            ]
    for (model, sampler), rows in sweeps.items():
        for metric in catalogue.MODELS[model].study.regret:
            key, factor = SOURCES[metric]
            smallest = _smallest(rows, key)
            value = None if smallest is None else factor * smallest
            oracle.append(Cell(model=model, sampler=sampler, tuner=ORACLE, metric=metric, value=value))
    return mark_best(chosen) + oracle


def regret(records: Records) -> Table:
    """How much worse than the best arm of its grid is the one a tuner chose."""
    return lay_out(
        regret_cells(records),
        name="regret",
        title=artifact("regret").title,
        caption="Regret: relative error ξ(σ̂) of the arm a tuner chose over the smallest ξ(σ̂) in the "
        "grid, both from the same sweep, in which every arm runs equally long, but ten steps at least; for "
        "a model without ground truth, the same of its ECE and of its log-loss on the test set. 1 is the "
        "best a tuner can do; the heuristic, whose step size is off the grid, may fall below it. Bold: "
        "best of a sampler. “diverged”: the chosen arm did so in the sweep; a dash: the sweep did not have "
        "it.",
        rows=("tuner", "metric"),
        columns=("sampler",),
    )
