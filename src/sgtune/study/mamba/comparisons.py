"""Tables of comparisons: our numbers beside the published ones, and runs by the two clocks."""

# ruff: noqa: RUF001 - tables print Greek letters and signs of mathematics

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain

from sgtune.study import catalogue
from sgtune.study.mamba.choices import choice_cells
from sgtune.study.report.artifacts import artifact
from sgtune.study.report.labels import MODELS, SAMPLERS, TUNERS, in_order, label
from sgtune.study.report.layout import Cell, Table, format_number, lay_out
from sgtune.study.report.means import evaluation_cells, metric_of, ratio_of
from sgtune.study.report.records import Records, need
from sgtune.study.report.remarks import FINITE, by_model, counted, meanings, reference_said, roots_said
from sgtune.support.axes import named

__all__ = ["clocks", "published_comparison"]


def published_comparison(records: Records) -> Table:
    """Our metrics and hyperparameters beside the paper's (its Tables 5 to 10)."""
    papers = {
        (row["table"], row["model"], row["sampler"], row["tuner"], row["metric"]): row["value"]
        for row in need(records, "published", "published_comparison")
    }
    found = need(records, "evaluation", "published_comparison")
    known = reference_said(
        records, "published_comparison", dict.fromkeys(catalogue.MODELS, ("relative_sd_error_x100",))
    )
    studies = {name: entry.study for name, entry in catalogue.MODELS.items()}
    results = [cell for record in found for cell in evaluation_cells(record, studies[record["model"]].paper)]
    cells = []
    for ours in results + [cell for record in found for cell in choice_cells(record)]:
        study = studies[ours.model]
        named_so = study.paper.get(ours.metric)
        table = study.long[0] if named_so else study.choices
        paper = papers.get((table, ours.model, ours.sampler, ours.tuner, named_so or ours.metric))
        cells.append(replace(ours, sd=None, se=None, span=None, detail="ours"))
        if paper is not None:
            numbers = {"paper": (paper, "printed")}
            if named_so and ours.value is not None:
                numbers["ratio"] = (ours.value / paper, "significant")
            cells += [
                replace(
                    cells[-1],
                    value=value,
                    upper=None,
                    square=None,
                    finite=1,
                    replicates=1,
                    detail=detail,
                    text=format_number(value, form),
                )
                for detail, (value, form) in numbers.items()
            ]
            if ours.upper is not None:
                cells.append(replace(cells[-2], upper=ours.upper / paper, detail="ratio"))
    return lay_out(
        cells,
        name="published_comparison",
        title=artifact("published_comparison").title,
        caption=f"Results of this run (means over n = {by_model(found, _runs)}) and hyperparameters (medians of "
        "the tuning runs), the paper's values (its Tables 5 to 10, one run each, ξ as printed, × 10²), and "
        "for results the ratio ours / paper.\nThe paper's RMSE, ECE and MCE have its own definitions, "
        "so compare them with the rows “as published”. Its network's SGNHT was tuned by MAMBA-KSD and "
        f"Grid on the smaller grid. A dash: the paper does not give the number. {FINITE}"
        f"{roots_said(cells)}{known}",
        rows=("tuner", "metric"),
        columns=("sampler", "detail"),
    )


def _runs(records: list[dict]) -> str:
    return counted(max(len(record["table"]) for record in records), "run")


def clocks(records: Records) -> Table:
    """One tuned sampler of each model, run by the steps that measured costs buy and by the wall clock."""
    found = need(records, "clocks", "clocks")
    models = in_order((record["model"] for record in found), MODELS)
    found = sorted(found, key=lambda record: models.index(record["model"]))
    losses = {record["model"]: [metric_of(key) for key in record["losses"]] for record in found}
    # Headline losses of all models before the others: metrics stand in the order in which they come.
    ranks = {metric: rank for of_model in losses.values() for rank, metric in enumerate(of_model)}
    cells = [cell for record in found for cell in _by_clock(record, (*MEASURED, *losses[record["model"]]))]
    return lay_out(
        sorted(cells, key=lambda cell: ranks.get(cell.metric, -1)),
        name="clocks",
        title=artifact("clocks").title,
        caption="The same arm run for the same seconds: converted to steps by the measured cost of a step (by measured "
        "costs), and by the wall clock; mean ± sd over runs, and the ratio of the means ± the standard "
        "error that it would have if the runs were independent. The time taken is the time of the run itself, without "
        "compilation; by measured costs a run "
        "has one core, and other jobs run beside it. Runs of the same number have the same start and the "
        "same random streams, so the steps that both make are identical, and that error is too large. Where the "
        "numbers of samples "
        f"differ, a step of a run does not cost what was measured.\n{'; '.join(map(_case, found))}.\n"
        f"{meanings(dict.fromkeys(chain(*losses.values())))}. {FINITE}{reference_said(records, 'clocks', losses)}",
        rows=("metric",),
        columns=("detail",),
    )


def _by_clock(record: dict, metrics: Iterable[str]) -> Iterator[Cell]:
    """Of each metric the cell by each clock, and their ratio."""
    both = [
        evaluation_cells({**record, "best": record["arm"], "table": record[clock]}, metrics)
        for clock in ("calibrated", "wall")
    ]
    for calibrated, wall in zip(*both, strict=True):
        yield replace(calibrated, detail="calibrated")
        yield replace(wall, detail="wall")
        ratio, se = ratio_of(wall, calibrated)
        if ratio is not None and calibrated.metric not in ("budget_seconds", "wall_seconds"):
            text = format_number(ratio, sd=se)
            yield replace(wall, value=ratio, sd=None, se=se, text=text, detail="wall_over_calibrated")


def _case(record: dict) -> str:
    if record["arm"] is None:
        return (
            f"{label(record['model'], MODELS)}: no tuner of {label(record['sampler'], SAMPLERS)} found an arm"
        )
    runs = dict.fromkeys(len(record[clock]) for clock in ("calibrated", "wall"))
    return (
        f"{label(record['model'], MODELS)}: {label(record['sampler'], SAMPLERS)} as tuned by "
        f"{label(record['tuner'], TUNERS)} ({named(record['arm'])}), n = {' and '.join(map(str, runs))} runs by each"
    )


MEASURED = ("budget_seconds", "wall_seconds", "n_samples")
"""What the rows of `clocks` have of every model."""
