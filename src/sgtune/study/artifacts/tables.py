"""The paper's tables, of our records: 1 to 3, 6, 8, 10 (accuracy), 4 (what is tuned), 5, 7, 9 (what is chosen)."""

# ruff: noqa: RUF001 - tables print Greek letters and signs of mathematics

from collections.abc import Callable, Iterable
from dataclasses import replace
from math import log10
from statistics import fmean, stdev

from sgtune.axes import AXES, COMMON, Axis
from sgtune.study import catalogue
from sgtune.study.artifacts.labels import METRICS
from sgtune.study.artifacts.layout import DASH, DIVERGED, NO_ARM, Cell, Table, lay_out, mark_best
from sgtune.study.artifacts.records import Records, finite, need
from sgtune.study.artifacts.studies import artifact
from sgtune.study.config.sections import has_axis

__all__ = [
    "FINITE",
    "SOURCES",
    "choice_cells",
    "choices_table",
    "evaluation_cells",
    "identity",
    "missing_of",
    "long_table",
    "short_table",
    "table4",
    "xi_by_block",
]

# metric of a table: (key of a result's rows, factor); a dot leads into an entry of the row
SOURCES = {
    "relative_sd_error_x100": ("relative_sd_error", 100),
    "ksd": ("ksd", 1),
    "ksd_scaled": ("ksd_scaled", 1),
    "rmse": ("rmse", 1),
    "rmse_as_published": ("rmse_published", 1),
    "ece_percent": ("ece", 100),
    "mce_percent": ("mce", 100),
    "ece_as_published_percent": ("ece_published", 100),
    "mce_as_published_percent": ("mce_published", 100),
    "accuracy_percent": ("accuracy", 100),
    "log_loss": ("log_loss", 1),
    "n_samples": ("n_samples", 1),
    "entropy_test": ("ood.entropy_test", 1),
    "entropy_ood": ("ood.entropy_ood", 1),
    "auroc": ("ood.auroc", 1),
}
FINITE = "“(k/n)”: mean of the k of n replicates that are finite, which is never marked; “diverged”: of none."
SPREAD = "mean ± sd over replicates where there are several"


def identity(record: dict) -> dict:
    return {key: record[key] for key in ("model", "sampler", "tuner")}


def missing_of(record: dict) -> str:
    """What stands in a tuner's cell that has no number: that it found no arm, or a dash."""
    return NO_ARM if record["best"] is None else DASH


def _entry(row: dict, key: str) -> float | None:
    entry = row
    for part in key.split("."):
        entry = (entry or {}).get(part)
    return entry


def _mean_cell(record: dict, metric: str, values: list[float | None]) -> Cell:
    """Mean and sd (divisor n - 1) of a replicate's value each, over those that stayed finite."""
    lost = [bool(row.get("diverged")) for row in record["table"]]
    kept = [
        SOURCES[metric][1] * value
        for value, diverged in zip(values, lost, strict=True)
        if not diverged and finite(value) is not None
    ]
    return Cell(
        **identity(record),
        metric=metric,
        value=fmean(kept) if kept else None,
        sd=stdev(kept) if len(kept) > 1 else None,
        finite=len(kept),
        replicates=len(values),
        missing=DIVERGED if any(lost) else missing_of(record),
    )


def evaluation_cells(record: dict, metrics: Iterable[str]) -> list[Cell]:
    """A cell per metric: mean and sd over the replicates that stayed finite."""
    return [
        _mean_cell(record, metric, [_entry(row, SOURCES[metric][0]) for row in record["table"]])
        for metric in metrics
    ]


CHOICES: dict[str, tuple[str, Callable[[float, int], float]]] = {
    "step_size": ("log10_step_size", lambda number, n_data: log10(number)),
    "batch_size": ("batch_percent", lambda number, n_data: 100 * number / n_data),
}
"""Axes that are printed otherwise than by their name and number: the metric, and ``(number, n_data) -> value``."""


def _axes_of(record: dict) -> list[Axis]:
    """The axes that a tuner's arms have a place for: the common ones, and those of its arms and of its choice."""
    found = [record["best"] or {}, *record.get("rungs", [])[:1]]
    return [
        axis for axis in AXES.values() if axis in COMMON or any(axis.name in numbers for numbers in found)
    ]


def choice_cells(record: dict) -> list[Cell]:
    """The hyperparameters a tuner chose: log10 of the step size, batch size in % of N, and all others as they are."""
    best, cells = record["best"], []
    for axis in _axes_of(record):
        metric, printed = CHOICES.get(axis.name, (axis.name, lambda number, n_data: number))
        if best is None and has_axis(record["sampler"], axis.name):
            cells.append(Cell(**identity(record), metric=metric, missing=NO_ARM))
        elif best is not None and best.get(axis.name) is not None:
            value = printed(best[axis.name], record["n_data"])
            cells.append(Cell(**identity(record), metric=metric, value=value))
    return cells


def _meanings(metrics: Iterable[str]) -> str:
    return "; ".join(f"{METRICS[metric].label}: {METRICS[metric].meaning}" for metric in metrics)


def short_table(records: Records, *, model: str) -> Table:
    """The tuners by the metrics of the paper's text (its Tables 1 to 3), with ours beside the paper's."""
    name, metrics = catalogue.MODELS[model].study.short
    cells = [
        cell for record in need(records, "evaluation", name) for cell in evaluation_cells(record, metrics)
    ]
    return lay_out(
        mark_best(cells),
        name=name,
        title=artifact(name).title,
        caption=f"{_meanings(metrics)}; {SPREAD}. Bold: best of a sampler and metric, tuners that the paper does "
        f"not have included. {FINITE}",
        rows=("tuner", "metric"),
        columns=("sampler",),
    )


def long_table(records: Records, *, model: str) -> Table:
    """All metrics of all tuners (paper, Tables 6, 8 and 10), with ours beside the paper's."""
    name, metrics = catalogue.MODELS[model].study.long
    cells = [
        cell for record in need(records, "evaluation", name) for cell in evaluation_cells(record, metrics)
    ]
    return lay_out(
        mark_best(cells),
        name=name,
        title=artifact(name).title,
        caption=f"{_meanings(metrics)}; {SPREAD}. Bold: best of a row; the number of samples, which is no merit by "
        f"itself, is not marked. {FINITE}",
        rows=("sampler", "metric"),
        columns=("tuner",),
    )


def choices_table(records: Records, *, model: str) -> Table:
    """The hyperparameters each tuner chose (paper, Tables 5, 7 and 9)."""
    name = catalogue.MODELS[model].study.choices
    cells = [cell for record in need(records, "tuning", name) for cell in choice_cells(record)]
    shown = {cell.metric for cell in cells}
    further = [axis.name for axis in AXES.values() if axis not in COMMON and axis.name in shown]
    caption = (
        "Step size h of θ + h ∇ log π + √(2h) noise (the published tables' convention), batch "
        "size τ in % of the training data, and leapfrog steps L."
    )
    return lay_out(
        cells,
        name=name,
        title=artifact(name).title,
        caption=f"{caption} {_meanings(further)}." if further else caption,
        rows=("sampler", "metric"),
        columns=("tuner",),
    )


def table4(records: Records) -> Table:
    """Which hyperparameters each tuner tunes (paper, Table 4): those of which its arms had several values."""
    cells, named = [], list(COMMON)
    for record in need(records, "tuning", "table4"):
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
        caption=f"Hyperparameters of which a tuner compared several values ({symbols}) and, in brackets, the number of "
        "its arms. “fixed”: it compares nothing; the "
        "paper lists the heuristic, which sets h = 1/N, as tuning h. A dash: not run.",
        rows=("sampler",),
        columns=("tuner",),
    )


WORDS = {"n_leapfrog": "leapfrog steps"}
"""Axes that captions call otherwise than by their name."""


def xi_by_block(records: Records) -> Table:
    """xi of each block of the parameters, and of all of them."""
    metric = "relative_sd_error_x100"
    key = SOURCES[metric][0]
    found = need(records, "evaluation", "xi_by_block")
    rows = [row for record in found for row in record["table"]]
    blocks = dict.fromkeys(block for row in rows for block in row.get(f"{key}_by_block") or ())
    cells = []
    for record in found:
        values = {
            block: [(row.get(f"{key}_by_block") or {}).get(block) for row in record["table"]]
            for block in blocks
        }
        values["all parameters"] = [row.get(key) for row in record["table"]]
        cells += [replace(_mean_cell(record, metric, own), detail=block) for block, own in values.items()]
    return lay_out(
        mark_best(cells),
        name="xi_by_block",
        title=artifact("xi_by_block").title,
        caption="ξ(σ̂) × 10² of the features of users and items (U, V), of their means and of the logarithms of "
        f"their precisions Λ, against NUTS; {SPREAD}. The blocks differ in size by orders of magnitude, so that "
        f"of all parameters is mostly that of the largest. Bold: best of a sampler and block. {FINITE}",
        rows=("tuner", "detail"),
        columns=("sampler",),
        stub={"detail": "Block"},
    )
