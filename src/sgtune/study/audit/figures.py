"""How far tuned chains are from independent draws, the reference's error, and NUTS: a table, and the figure of it."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from operator import itemgetter

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from sgtune.study.audit.artifacts import OF_TUNE
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

OPEN = tuner_style("mamba") | {
    "markerfacecolor": "white",
    "markeredgecolor": tuner_style("mamba")["color"],
    "markeredgewidth": 1.2,
}

SERIES = {
    "mamba-ksd": tuner_style("mamba-ksd"),
    "mamba": tuner_style("mamba"),
    "mamba-none": OPEN | {"marker": "o", "label": OF_TUNE["mamba-none"]},
    "mamba-laplace": OPEN | {"label": OF_TUNE["mamba-laplace"]},
}
"""The paper's tuner and the default one in the main study; and the default one with its own grid, without and with a
preconditioner."""

LIMIT = ("ksd_over_exact", "error_over_nuts", "ess_rate_over_nuts")
"""The metric of each panel."""


def limit_ratios(records: Records) -> list[Cell]:
    """Of each sampler and series, the tuner: the KSD over that of as many independent draws, the main loss over the
    Monte Carlo error of NUTS, and effective draws per second over those of the chains of NUTS, which run at once."""
    references = {one["model"]: one for one in records["reference"] if "monte_carlo_error" in one}
    found = [one | {"series": one["tuner"]} for one in records["evaluation"] if one["tuner"] in SERIES]
    found += [one for record in records["preconditioned"] for one in _tables_of(record)]
    cells = []
    for record in with_floors(records, [one for one in found if one["model"] in references]):
        reference = references[record["model"]]
        loss = CATALOGUE[record["model"]].losses[0]
        ksd, error = evaluation_cells(record, ["ksd", metric_of(loss)])
        of_reference = reference["monte_carlo_error"].get(loss)
        limits = (ksd.floor, of_reference and SOURCES[metric_of(loss)][1] * of_reference)
        about = {"model": record["model"], "sampler": record["sampler"], "tuner": record["series"]}
        for metric, cell, limit in zip(LIMIT[:2], (ksd, error), limits, strict=True):
            ends = {name: over(getattr(cell, name), limit) for name in ("value", "se", "upper")}
            cells.append(replace(cell, **about, **ends, metric=metric, sd=None, square=None, floor=None))
        own = reference.get("functionals") or reference["blocks"][record["model"]]
        diagnostics = reference["diagnostics"]
        of_nuts = own["ess_median"] / (diagnostics["seconds"] / diagnostics["chains"])
        rows = [row for row in record["table"] if finite(row.get("ess_median")) is not None]
        rates = [(row["replicate"], row["ess_median"] / row["seconds"] / of_nuts) for row in rows]
        value, se = mean_of_choices(rates, len(record["arms"]))
        counts = {"finite": len(rates), "replicates": len(record["table"])}
        cells.append(Cell(**about, metric=LIMIT[2], value=value, se=se, **counts))
    return cells


def _tables_of(record: dict) -> Iterator[dict]:
    """The runs of the default tuner without and with a preconditioner, in the form of records of evaluation."""
    for (sampler, coordinates), runs in grouped(record["runs"], itemgetter("sampler", "coordinates")).items():
        table = [
            {"replicate": run["replicate"], "no_arm": run["arm"] is None, "seconds": record["seconds"]}
            | run["losses"]
            | run.get("row", {})
            for run in runs
        ]
        about = {"model": record["model"], "sampler": sampler, "tuner": "mamba"}
        yield about | {
            "series": f"mamba-{coordinates}",
            "table": table,
            "arms": [run["arm"] for run in runs],
            "best": None,
        }


def limits(records: Records) -> Figure:
    """A row of panels per model with a reference, and in each a row per sampler; means over runs with a bar of two
    standard errors. Chains that diverged are left out. A mean square of KSDs that is within its noise has only an upper
    end: an arrow points down from it."""
    found = limit_ratios(records)
    models = in_order((one.model for one in found), MODELS)
    samplers = in_order((one.sampler for one in found), SAMPLERS)
    trusted = {one["model"]: one["trusted"] for one in records["reference"] if "monte_carlo_error" in one}
    height = len(models) * (0.36 * len(samplers) + 1.0) + 0.4
    figure, axes = panels(len(models), len(LIMIT), WIDTH, height, sharey=True)
    for (place, model), (column, name) in product(enumerate(models), enumerate(LIMIT)):
        axis, words = axes[place, column], METRICS[name].label
        _panel(axis, [one for one in found if (one.model, one.metric) == (model, name)], samplers)
        is_doubted = name != LIMIT[0] and not trusted[model]
        axis.set_xlabel(f"{words}\n(reference not trusted)" if is_doubted else words, fontsize=7)
        if column == 1:
            axis.set_title(label(model, MODELS))
    handles = [Line2D([], [], **look | DOT) for look in SERIES.values()]
    legend_below(figure, [*handles, Line2D([], [], label="what is possible", **DOTTED)])
    return figure


def _panel(axis: Axes, found: list[Cell], samplers: list[str]) -> None:
    for one in found:
        row = samplers.index(one.sampler) + (-0.3, -0.1, 0.1, 0.3)[list(SERIES).index(one.tuner)]
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
    axis.axvline(1.0, **DOTTED)
    axis.set_xscale("log")
    sampler_rows(axis, samplers)
    log_ticks(axis.xaxis)
