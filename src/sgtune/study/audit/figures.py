"""The figure of the limits: how far tuned chains are from independent draws, the reference's error, and NUTS."""

from collections.abc import Iterator
from itertools import product
from operator import itemgetter

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from sgtune.study.catalogue import MODELS as CATALOGUE
from sgtune.study.mamba.accuracy import with_floors
from sgtune.study.mamba.figures import DOT, DOTTED
from sgtune.study.report.labels import METRICS, MODELS, SAMPLERS, in_order, label
from sgtune.study.report.means import SOURCES, evaluation_cells, mean_of_choices, metric_of
from sgtune.study.report.records import Records, finite, grouped, over
from sgtune.study.report.style import (
    WIDTH,
    legend_below,
    log_error,
    log_ticks,
    panels,
    sampler_rows,
    tuner_style,
)
from sgtune.study.report.table import Cell

SERIES = {
    "mamba-ksd": tuner_style("mamba-ksd"),
    "mamba": tuner_style("mamba"),
    "preconditioned": tuner_style("mamba")
    | {"markerfacecolor": "white", "markeredgecolor": tuner_style("mamba")["color"], "markeredgewidth": 1.2}
    | {"label": "MAMBA (default), Laplace coordinates"},
}
"""The paper's tuner, the default one, and the default one with a preconditioner."""

LIMIT = {
    "ksd": "KSD / KSD of independent draws",
    "error": "",
    "ess": "ESS per second / that of NUTS",
}
"""Of each panel the axis; of the error it is the model's main loss."""


def _numbers(records: Records) -> Iterator[Cell]:
    """Of each panel, the metric, means over the runs of each sampler and series, the tuner, as the tables have them."""
    references = {one["model"]: one for one in records["reference"] if "monte_carlo_error" in one}
    found = [one | {"series": one["tuner"]} for one in records["evaluation"] if one["tuner"] in SERIES]
    for record in records["preconditioned"]:
        own = [run for run in record["runs"] if run["coordinates"] == "laplace"]
        for sampler, runs in grouped(own, itemgetter("sampler")).items():
            table = [
                {"replicate": run["replicate"], "no_arm": run["arm"] is None, "seconds": record["seconds"]}
                | run["losses"]
                | run.get("row", {})
                for run in runs
            ]
            about = {
                "model": record["model"],
                "sampler": sampler,
                "tuner": "mamba",
                "series": "preconditioned",
            }
            found.append(about | {"table": table, "arms": [run["arm"] for run in runs], "best": None})
    for record in with_floors(records, [one for one in found if one["model"] in references]):
        whose = (record["model"], record["sampler"], record["series"])
        (cell,) = evaluation_cells(record, ["ksd"])
        if cell.floor:
            value, se, upper = (over(end, cell.floor) for end in (cell.value, cell.se, cell.upper))
            yield Cell(*whose, "ksd", value, se=se, upper=upper)
        loss = metric_of(CATALOGUE[record["model"]].losses[0])
        factor, (cell,) = SOURCES[loss][1], evaluation_cells(record, [loss])
        yield Cell(*whose, "error", over(cell.value, factor), se=over(cell.se, factor))
        reference = references[record["model"]]
        own = reference.get("functionals") or reference["blocks"][record["model"]]
        of_nuts = own["ess_median"] / reference["diagnostics"]["seconds"]
        rows = [row for row in record["table"] if finite(row.get("ess_median")) is not None]
        rates = [(row["replicate"], row["ess_median"] / row["seconds"] / of_nuts) for row in rows]
        value, se = mean_of_choices(rates, len(record["arms"]))
        yield Cell(*whose, "ess", value, se=se)


def limits(records: Records) -> Figure:
    """A row of panels per model with a reference, and in each a row per sampler; means over runs with a bar of two
    standard errors. Chains that diverged are left out. A mean square of KSDs that is within its noise has only an upper
    end: an arrow points down from it."""
    found = list(_numbers(records))
    models = in_order((one.model for one in found), MODELS)
    samplers = in_order((one.sampler for one in found), SAMPLERS)
    references = {one["model"]: one for one in records["reference"] if "monte_carlo_error" in one}
    height = len(models) * (0.3 * len(samplers) + 1.0) + 0.4
    figure, axes = panels(len(models), len(LIMIT), WIDTH, height, sharey=True)
    for (place, model), (column, name) in product(enumerate(models), enumerate(LIMIT)):
        axis, loss, reference = axes[place, column], CATALOGUE[model].losses[0], references[model]
        own = [one for one in found if (one.model, one.metric) == (model, name)]
        at = 1.0 if name != "error" else reference["monte_carlo_error"].get(loss)
        _panel(axis, own, samplers, at)
        words = LIMIT[name] or METRICS[metric_of(loss)].label.removesuffix(" × 10²")
        is_doubted = name != "ksd" and not reference["trusted"]
        axis.set_xlabel(f"{words}\n(reference not trusted)" if is_doubted else words, fontsize=7)
        if column == 1:
            axis.set_title(label(model, MODELS))
    handles = [Line2D([], [], **look | DOT) for look in SERIES.values()]
    words = "independent draws, the Monte Carlo error of NUTS, NUTS"
    legend_below(figure, [*handles, Line2D([], [], label=words, **DOTTED)])
    return figure


def _panel(axis: Axes, found: list[Cell], samplers: list[str], limit: float | None) -> None:
    for one in found:
        row = samplers.index(one.sampler) + (-0.25, 0, 0.25)[list(SERIES).index(one.tuner)]
        look = SERIES[one.tuner] | DOT
        if one.upper is not None:
            axis.annotate(
                *("", (one.upper / 1.8, row), (one.upper, row)),
                arrowprops={"arrowstyle": "->", "color": look["color"], "shrinkA": 0, "shrinkB": 0},
            )
            axis.plot([one.upper], [row], color=look["color"], marker="|")
        elif one.value:
            bar = np.transpose([log_error(one.value, one.se or 0.0)])
            axis.errorbar([one.value], [row], xerr=bar, **look | {"elinewidth": 1.0})
    if limit:
        axis.axvline(limit, **DOTTED)
    axis.set_xscale("log")
    sampler_rows(axis, samplers)
    log_ticks(axis.xaxis)
