"""The paper's tables of accuracy, of our records: 1 to 3 of its text and 6, 8, 10 of its appendix."""

# ruff: noqa: RUF001 - tables print Greek letters and signs of mathematics

from dataclasses import replace

from sgtune.study import catalogue
from sgtune.study.mamba.exact_draws import with_floors
from sgtune.study.report.artifacts import artifact
from sgtune.study.report.layout import Cell, Table, lay_out, mark_best
from sgtune.study.report.means import SOURCES, evaluation_cells, mean_cell
from sgtune.study.report.records import Records, need
from sgtune.study.report.remarks import (
    BOLD,
    CALIBRATION,
    FINITE,
    ONE_TUNING_RUN,
    floor_said,
    meanings,
    not_in_paper_said,
    reference_said,
    roots_said,
    spread_said,
    unmarked_said,
)
from sgtune.study.report.trust import doubted

__all__ = ["long_table", "marked", "short_table", "xi_by_block"]


def short_table(records: Records, *, model: str) -> Table:
    """The tuners by the metrics of the paper's text (its Tables 1 to 3), with ours beside the paper's."""
    name, metrics = catalogue.MODELS[model].study.short
    found = with_floors(records, name)
    floor = floor_said(found) if "ksd" in metrics else ""
    cells, bold = marked(records, name, [c for record in found for c in evaluation_cells(record, metrics)])
    return lay_out(
        cells,
        name=name,
        title=artifact(name).title,
        caption=f"{spread_said(found)} {meanings(metrics)}.{floor}{roots_said(cells)}"
        f"{_remarks(records, name, model, metrics)}"
        f"\n{bold} {FINITE}{not_in_paper_said(found)}",
        rows=("tuner", "metric"),
        columns=("sampler",),
    )


def long_table(records: Records, *, model: str) -> Table:
    """All metrics of all tuners (paper, Tables 6, 8 and 10), with ours beside the paper's."""
    name, metrics = catalogue.MODELS[model].study.long
    found = with_floors(records, name)
    cells, bold = marked(records, name, [c for record in found for c in evaluation_cells(record, metrics)])
    return lay_out(
        cells,
        name=name,
        title=artifact(name).title,
        caption=f"{spread_said(found)} {meanings(metrics)}.{roots_said(cells)}"
        f"{_remarks(records, name, model, metrics)}"
        f"\n{bold} A larger number of samples is not better by itself. {FINITE}{not_in_paper_said(found)}",
        rows=("sampler", "metric"),
        columns=("tuner",),
    )


def marked(records: Records, name: str, cells: list[Cell]) -> tuple[list[Cell], str]:
    """`mark_best`, and the sentences that say what is marked. Nothing is the best by a distance from quantities whose
    reference is not trusted, nor with one tuning run: the errors of its cells are those of its arms, not of the
    tuner."""
    if max(len(record["arms"]) for record in need(records, "evaluation", name)) == 1:
        return cells, f"No tuner is marked as the best, {ONE_TUNING_RUN}."
    doubts = doubted(records, name)
    found = [
        replace(cell, best=cell.best and (cell.model, cell.metric) not in doubts) for cell in mark_best(cells)
    ]
    return found, f"{BOLD}{unmarked_said(cells, doubts)}"


def _remarks(records: Records, name: str, model: str, metrics: tuple[str, ...]) -> str:
    calibration = f"\n{CALIBRATION}" if "ece_percent" in metrics else ""
    return calibration + reference_said(records, name, {model: metrics})


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
        cells += [replace(mean_cell(record, metric, own), detail=block) for block, own in values.items()]
    cells, bold = marked(records, "xi_by_block", cells)
    return lay_out(
        cells,
        name="xi_by_block",
        title=artifact("xi_by_block").title,
        caption="ξ(σ̂) × 10² of the features of users and items (U, V), of their means and of the logarithms of "
        f"their precisions Λ, against NUTS. {spread_said(found)} The blocks differ in size by orders of "
        "magnitude, so the error of all parameters is mostly the error of the largest block."
        f"{reference_said(records, 'xi_by_block', {'pmf': [metric]})}\n{bold} {FINITE}",
        rows=("tuner", "detail"),
        columns=("sampler",),
        stub={"detail": "Block"},
    )
