"""The figure of the limits: how far tuned chains are from independent draws, the reference's error, and NUTS."""

from collections.abc import Iterator
from itertools import product

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from sgtune.study.catalogue import MODELS as CATALOGUE
from sgtune.study.mamba.accuracy import with_floors
from sgtune.study.mamba.figures import DOT, DOTTED
from sgtune.study.report.labels import METRICS, MODELS, SAMPLERS, in_order, label
from sgtune.study.report.means import metric_of
from sgtune.study.report.records import Records, finite, over
from sgtune.study.report.style import (
    WIDTH,
    legend_below,
    log_error,
    log_ticks,
    panels,
    sampler_rows,
    tuner_style,
)

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


def _rows(records: Records) -> Iterator[dict]:
    """A row for each run: its model, sampler, series, and the numbers of the three panels."""
    references = {one["model"]: one for one in records["reference"] if "monte_carlo_error" in one}
    runs = [
        one | {"series": one["tuner"], "rows": one["table"]}
        for one in with_floors(records)
        if one["tuner"] in SERIES
    ]
    for record in records["preconditioned"]:
        runs += [
            {"model": record["model"], "sampler": run["sampler"], "series": "preconditioned"}
            | {"rows": [{"seconds": record["seconds"], **run["losses"], **run.get("row", {})}]}
            for run in record["runs"]
            if run["coordinates"] == "laplace"
        ]
    pairs = [(run, row) for run in runs if run["model"] in references for row in run["rows"]]
    for run, row in pairs:
        reference = references[run["model"]]
        own = reference.get("functionals") or reference["blocks"][run["model"]]
        numbers = {name: finite(row.get(name)) for name in ("ksd", "ksd_floor", "ess_median")}
        yield {name: run[name] for name in ("model", "sampler", "series")} | {
            "ksd": over(numbers["ksd"], numbers["ksd_floor"]),
            "error": finite(row.get(CATALOGUE[run["model"]].losses[0])),
            "ess": over(
                numbers["ess_median"],
                row["seconds"] and row["seconds"] * own["ess_median"] / reference["diagnostics"]["seconds"],
            ),
        }


def limits(records: Records) -> Figure:
    """A row of panels per model with a reference, and in each a row per sampler; means over runs with a bar of two
    standard errors. Chains that diverged are left out."""
    found = pd.DataFrame(_rows(records))
    models = in_order(found["model"], MODELS)
    samplers = in_order(found["sampler"], SAMPLERS)
    errors = {one["model"]: one.get("monte_carlo_error") for one in records["reference"] if "blocks" in one}
    height = len(models) * (0.3 * len(samplers) + 1.0) + 0.4
    figure, axes = panels(len(models), len(LIMIT), WIDTH, height, sharey=True)
    for (place, model), (column, name) in product(enumerate(models), enumerate(LIMIT)):
        axis, loss = axes[place, column], CATALOGUE[model].losses[0]
        at = 1.0 if name != "error" else errors[model].get(loss)
        _panel(axis, found[found["model"] == model], name, samplers, at)
        axis.set_xlabel(LIMIT[name] or METRICS[metric_of(loss)].label.removesuffix(" × 10²"), fontsize=7)
        if column == 1:
            axis.set_title(label(model, MODELS))
    handles = [Line2D([], [], **look | DOT) for look in SERIES.values()]
    words = "independent draws, the Monte Carlo error of NUTS, NUTS"
    legend_below(figure, [*handles, Line2D([], [], label=words, **DOTTED)])
    return figure


def _panel(axis: Axes, found: pd.DataFrame, name: str, samplers: list[str], limit: float | None) -> None:
    for (place, sampler), (shift, series) in product(
        enumerate(samplers), zip((-0.25, 0, 0.25), SERIES, strict=True)
    ):
        own = found[(found["sampler"] == sampler) & (found["series"] == series)][name].dropna().astype(float)
        if len(own) and own.mean() > 0:
            error = own.sem() if len(own) > 1 else 0.0
            bar = np.transpose([log_error(own.mean(), error)])
            axis.errorbar(
                [own.mean()], [place + shift], xerr=bar, **SERIES[series] | DOT | {"elinewidth": 1.0}
            )
    if limit:
        axis.axvline(limit, **DOTTED)
    axis.set_xscale("log")
    sampler_rows(axis, samplers)
    log_ticks(axis.xaxis)
