"""What tuners tune and choose, as in the paper's tables 4, 5, 7 and 9; our numbers and settings beside the paper's; and
runs by the two clocks."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from math import log10
from statistics import median_low

from sgtune.study.catalogue import has_axis
from sgtune.study.config.sections import leaves, model_settings
from sgtune.study.report.labels import MODELS, in_order
from sgtune.study.report.means import SOURCES, evaluation_cells, identity, metric_of, ratio_of
from sgtune.study.report.records import Records, of_tuners, required
from sgtune.study.report.table import NO_ARM, Cell, format_number
from sgtune.support.axes import AXES, COMMON, Axis

PRINTED: dict[str, tuple[str, Callable[[float, int], float]]] = {
    "step_size": ("log10_step_size", lambda number, n_data: log10(number)),
    "batch_size": ("batch_percent", lambda number, n_data: 100 * number / n_data),
}
"""Axes that are not printed by their own name and number: the metric, and ``(number, n_data) -> value``."""

IN_PAPER = {
    "logistic": ("ksd", "relative_sd_error_x100", "accuracy_percent", "n_samples"),
    "pmf": ("ksd", "relative_sd_error_x100", "rmse_as_published", "n_samples"),
    "bnn": ("ece_as_published_percent", "mce_as_published_percent", "accuracy_percent", "n_samples"),
}
"""Our results that the paper has as well, of each model, by its definitions."""

OF_TUNERS = {"grid": "grid", "grid_ksd": "grid-ksd", "heuristic": "heuristic"}
"""Sections of one tuner, which concern only a run that has it."""

MEASURED = ("budget_seconds", "wall_seconds", "n_samples")
"""What the rows of `clocks` have of every model."""


def _axes_of(record: dict) -> list[Axis]:
    """The axes that a tuner's arms have a place for: the common ones, and those of its arms and of its choices."""
    found = [*(arm for arm in record["arms"] if arm is not None), *record.get("rungs", [])[:1]]
    return [
        axis for axis in AXES.values() if axis in COMMON or any(axis.name in numbers for numbers in found)
    ]


def choice_cells(record: dict, detail: str = "") -> list[Cell]:
    """The hyperparameters of the ``arms`` that a tuner chose, each by itself: the median of its tuning runs, of two in
    the middle the lower, in their span; log10 of the step size, batch size in % of N, and all others as they are."""
    arms, cells = [arm for arm in record["arms"] if arm is not None], []
    for axis in _axes_of(record):
        metric, printed = PRINTED.get(axis.name, (axis.name, lambda number, n_data: number))
        about = identity(record) | {"metric": metric, "detail": detail}
        numbers = [arm[axis.name] for arm in arms if arm.get(axis.name) is not None]
        values = [printed(number, record["n_data"]) for number in numbers]
        counts = {"finite": len(values), "replicates": len(record["arms"])}
        if values:
            span = (min(values), max(values))
            cells.append(Cell(**about, value=median_low(values), span=span, **counts))
        elif not arms and has_axis(record["sampler"], axis.name):
            cells.append(Cell(**about, missing=NO_ARM, **counts))
    return cells


def chosen(records: Records) -> list[Cell]:
    """The hyperparameters each tuner chose (paper, Tables 5, 7 and 9)."""
    return [cell for record in of_tuners(required(records, "tuning")) for cell in choice_cells(record)]


def tuned(records: Records) -> list[Cell]:
    """Which hyperparameters each tuner tunes (paper, Table 4): those of which its arms had several values."""
    cells = []
    for record in of_tuners(required(records, "tuning")):
        axes = _axes_of(record)
        arms = {tuple(rung.get(axis.name) for axis in axes) for rung in record["rungs"]}
        columns = zip(axes, zip(*arms, strict=True), strict=False)
        symbols = [axis.symbol for axis, numbers in columns if len(set(numbers)) > 1]
        text = f"{', '.join(symbols)} ({len(arms)})" if symbols else "fixed"
        cells.append(Cell(**identity(record), metric="n_arms", value=len(arms), text=text))
    return cells


def published_comparison(records: Records) -> list[Cell]:
    """Our metrics and hyperparameters beside the paper's (its Tables 1 to 3 and 5 to 10): of each of our cells whose
    metric the paper has ours, the paper's number and their ratio, in the first table of the paper with this metric. Its
    appendix repeats the tables of the text with more digits and tuners."""
    found = required(records, "evaluation")
    cells = [cell for record in found for cell in evaluation_cells(record, IN_PAPER.get(record["model"], ()))]
    cells += [cell for record in found for cell in choice_cells(record)]
    tables, papers = {}, {}
    for row in required(records, "published"):
        tables.setdefault((row["model"], row["metric"]), int(row["table"].removeprefix("table")))
        papers[row["model"], row["sampler"], row["tuner"], row["metric"]] = row["value"]
    found = []
    for cell in cells:
        metric = cell.metric.replace("_as_published", "")
        table = tables.get((cell.model, metric))
        if table is not None:
            paper = papers.get((cell.model, cell.sampler, cell.tuner, metric))
            ours = replace(cell, sd=None, se=None, span=None, best=False)
            found += [
                (table, replace(one, detail=f"Table {table}, {whose}"))
                for whose, one in _with_ratio(ours, paper)
            ]
    return [cell for _, cell in sorted(found, key=lambda pair: pair[0])]


def _with_ratio(ours: Cell, paper: float | None) -> Iterator[tuple[str, Cell]]:
    """Ours, the paper's number where it has one, and of results the ratio."""
    yield "ours", ours
    if paper is None:
        return
    alone = replace(ours, value=paper, upper=None, square=None)
    yield "paper", replace(alone, text=format_number(paper, "printed"))
    if ours.metric in SOURCES and ours.value is not None:
        ratio = ours.value / paper
        yield "ratio", replace(alone, value=ratio, text=format_number(ratio))
    elif ours.upper is not None:
        yield "ratio", replace(ours, upper=ours.upper / paper)


def deviations(records: Records) -> list[Cell]:
    """This run's value and the paper's of every key of the paper's settings (`workflow/resources/paper_settings.yaml`)
    in which they differ; without a model where all models of the run differ alike."""
    config = required(records, "settings")[0]["configuration"]
    papers = required(records, "paper_settings")[0]
    models = [model for model in in_order(config["models"], MODELS) if model in papers]
    found: dict[str, dict[tuple[str, str], list[str]]] = {key: {} for own in papers.values() for key in own}
    for model in models:
        settings = dict(leaves(model_settings(config, model)))
        for key, paper in papers[model].items():
            tuner = OF_TUNERS.get(key.split(".")[0])
            # Earlier runs do not have all keys of today.
            ours = settings.get(key, paper)
            if ours != paper and (tuner is None or tuner in settings["tuners"]):
                found[key].setdefault((_text(ours), _text(paper)), []).append(model)
    return [
        Cell(model, "", "", key, detail=whose, text=text)
        for key, alike in found.items()
        for texts, differ in alike.items()
        for model in ([""] if differ == models else differ)
        for whose, text in zip(("this run", "the paper"), texts, strict=True)
    ]


def _text(value: object) -> str:
    """As in a configuration, with digits in groups of three."""
    if isinstance(value, list | tuple):
        return ", ".join(map(_text, value))
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    return value if isinstance(value, str) else format_number(value, "printed")


def clocks(records: Records) -> list[Cell]:
    """One tuned sampler of each model, run by the steps that measured costs buy and by the wall clock."""
    found = required(records, "clocks")
    models = in_order((record["model"] for record in found), MODELS)
    found = sorted(found, key=lambda record: models.index(record["model"]))
    losses = {record["model"]: [metric_of(key) for key in record["losses"]] for record in found}
    # Main losses of all models before the others: metrics stand in the order in which they come.
    ranks = {metric: rank for of_model in losses.values() for rank, metric in enumerate(of_model)}
    cells = []
    for record in found:
        metrics = (*MEASURED, *losses[record["model"]])
        both = [
            evaluation_cells({**record, "best": record["arm"], "table": record[clock]}, metrics)
            for clock in ("calibrated", "wall")
        ]
        for calibrated, wall in zip(*both, strict=True):
            cells += [replace(calibrated, detail="calibrated"), replace(wall, detail="wall")]
            ratio, se = ratio_of(wall, calibrated)
            if ratio is not None and calibrated.metric not in ("budget_seconds", "wall_seconds"):
                text = format_number(ratio, sd=se)
                own = {"value": ratio, "sd": None, "se": se, "text": text}
                cells.append(replace(wall, **own, detail="wall_over_calibrated"))
    return sorted(cells, key=lambda cell: ranks.get(cell.metric, -1))
