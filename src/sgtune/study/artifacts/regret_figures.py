"""Figures the paper does not have: what the discrepancies can see, and the regret of the tuners."""

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sgtune.errors import DataError
from sgtune.study import catalogue
from sgtune.study.artifacts.figures import legend_below, numbers, panels, tuner_legend
from sgtune.study.artifacts.labels import METRICS, MODELS, SAMPLERS, TUNERS, in_order, label
from sgtune.study.artifacts.layout import DIVERGED, NO_ARM, Cell
from sgtune.study.artifacts.records import Records, need
from sgtune.study.artifacts.regret import regret_cells
from sgtune.study.artifacts.style import BLUE, INK, VERMILION, WIDTH, log_ticks, styled, tuner_style

__all__ = ["regret_dots", "widths"]

SCALES = {
    "identity": {
        "color": VERMILION,
        "marker": "s",
        "linestyle": (0, (4, 1.5)),
        "label": "raw coordinates (the paper's)",
    },
    "laplace": {
        "color": BLUE,
        "marker": "o",
        "linestyle": "-",
        "label": "coordinates scaled by the posterior",
    },
}

RING = {
    "marker": "o",
    "markersize": 10,
    "markerfacecolor": "none",
    "markeredgewidth": 1.2,
    "linestyle": "none",
}


DOT = {"linestyle": "none", "markersize": 6}

OFF_SCALE = {DIVERGED: "diverged", NO_ARM: "no arm"}
"""Why a tuner has no regret that a scale could show -> what the strip of such tuners is called."""


def _relative(rows: list[dict], model: str) -> pd.DataFrame:
    """The discrepancy at each width over that of the exact draws."""
    table = pd.DataFrame({name: numbers([row[name] for row in rows]) for name in ("width", "value")})
    exact = table.loc[np.isclose(table["width"], 1.0), "value"]
    if exact.empty or not exact.iloc[0] > 0:
        raise DataError(f"widths of {model}: no positive value at width 1, over which the others are shown")
    return table.assign(value=table["value"] / exact.iloc[0])


@styled
def widths(records: Records) -> Figure:
    """Discrepancy of draws that are too narrow or wide, over that of exact draws; the lowest is ringed."""
    found = need(records, "widths", "widths")
    models = in_order((record["model"] for record in found), MODELS)
    names = {"ksd": "KSD", "fssd": "FSSD"}
    present = {row["discrepancy"] for record in found for row in record["rows"]}
    names = {name: heading for name, heading in names.items() if name in present}
    figure, axes = panels(len(models), len(names), height=2.5)
    for column, model in enumerate(models):
        rows = [row for record in found if record["model"] == model for row in record["rows"]]
        for axis, (name, heading) in zip(axes[:, column], names.items(), strict=True):
            axis.axvline(1.0, color=INK, linewidth=0.9, linestyle=(0, (2, 2)), label="exact draws")
            for scale, style in SCALES.items():
                own = [row for row in rows if row["discrepancy"] == name and row["scale"] == scale]
                if not own:
                    continue
                line = _relative(own, model)
                how = {"estimator": None, "legend": False, "zorder": 3}
                sns.lineplot(line, x="width", y="value", ax=axis, **how, **style)
                lowest = line.loc[line["value"].idxmin()]
                axis.plot(lowest["width"], lowest["value"], **RING, color=style["color"], zorder=4)
            axis.plot([], [], **RING, color=INK, label="lowest value")
            # Only now: on a log axis seaborn would take logarithms and their inverse, and round twice.
            axis.set(yscale="log", xlim=(-0.15, None), xlabel="", ylabel="")
            log_ticks(axis.yaxis)
            side_by_side = len(models) == 1
            if side_by_side or name == list(names)[-1]:
                axis.set_xlabel("width of the draws (posterior sds)\n0: a chain that never moves")
            if side_by_side:
                axis.set_title(heading)
            elif name == next(iter(names)):
                axis.set_title(label(model, MODELS))
            if column == 0 and (not side_by_side or name == next(iter(names))):
                axis.set_ylabel(("" if side_by_side else f"{heading}: ") + "value / value of exact draws")
    legend_below(figure, axes[0, 0], 2)
    return figure


def _regret_panel(axis: Axes, cells: list[Cell], samplers: list[str], tuners: list[str]) -> None:
    """A row per sampler and a dot per tuner; the strip at the right edge is of those that diverged or found no arm."""
    values = [cell.value for cell in cells if cell.value is not None]
    low, high = min([1.0, *values]), max([1.0, *values])
    # In decades: room for the strip, and for the dots at the edges.
    span = max(np.log10(high / low), 0.5)
    edge = high * 10 ** (0.2 * span)
    reasons = {cell.missing for cell in cells if cell.value is None}
    off_scale = [words for reason, words in OFF_SCALE.items() if reason in reasons]
    dots = pd.DataFrame(
        [
            (edge if cell.value is None else cell.value, cell.sampler, cell.tuner)
            for cell in cells
            if cell.value is not None or cell.missing in OFF_SCALE
        ],
        columns=["regret", "sampler", "tuner"],
    )
    order = {"order": samplers, "hue_order": tuners, "dodge": 0.75 if len(tuners) > 1 else False}
    sns.pointplot(dots, x="regret", y="sampler", hue="tuner", errorbar=None, legend=False, ax=axis, **order)
    # A line per tuner, in order, with its dots: seaborn has no hollow ones. None at all where there is no dot.
    for line, tuner in zip(axis.lines, tuners, strict=False):
        line.set(**tuner_style(tuner) | DOT, zorder=3)
    for i in range(1, len(samplers)):
        axis.axhline(i - 0.5, color="#d0d0d0", linewidth=0.6)
    axis.axvline(1.0, color=INK, linewidth=0.9, linestyle=(0, (2, 2)))
    axis.grid(False, axis="y")
    axis.set_xscale("log")
    margin = 10 ** (0.08 * span)
    axis.set_xlim(low / margin, edge * margin if off_scale else high * margin)
    log_ticks(axis.xaxis)
    if off_scale:
        # The strip has no place on the scale, so no tick may stand in it.
        left, _ = axis.get_xlim()
        axis.set_xticks([tick for tick in axis.get_xticks() if left <= tick < edge / margin])
        axis.minorticks_off()
        axis.axvspan(edge / margin, edge * margin, color="#f0f0f0", zorder=0)
        place = {"transform": axis.transAxes, "ha": "right", "va": "bottom", "fontsize": 7}
        axis.text(1.0, 1.01, " / ".join(off_scale), **place, color=INK)
    axis.set(ylim=(len(samplers) - 0.5, -0.5), ylabel="")
    axis.tick_params(axis="y", length=0)
    if not (values or off_scale):
        axis.set_xticks([])
        axis.xaxis.minorticks_off()
        box = {"facecolor": "white", "edgecolor": "none"}
        place = {"transform": axis.transAxes, "ha": "center", "va": "center", "bbox": box}
        axis.text(0.5, 0.5, "not computed", **place, color=INK)


@styled
def regret_dots(records: Records) -> Figure:
    """The regret of each tuner by its model's main metric: a panel per model, a row per sampler."""
    cells = regret_cells(records, "regret_dots")
    models = in_order((cell.model for cell in cells), MODELS)
    main = {model: f"{catalogue.MODELS[model].study.regret[0]}_regret" for model in models}
    cells = [cell for cell in cells if cell.metric == main[cell.model]]
    samplers = in_order((cell.sampler for cell in cells), SAMPLERS)
    tuners = in_order((cell.tuner for cell in cells), TUNERS)
    figure = Figure(figsize=(WIDTH, 0.6 * len(samplers) + 1.5), layout="constrained")
    axes = figure.subplots(1, len(models), squeeze=False, sharey=True)[0]
    for axis, model in zip(axes, models, strict=True):
        _regret_panel(axis, [cell for cell in cells if cell.model == model], samplers, tuners)
        axis.set_title(label(model, MODELS), pad=14)
        axis.set_xlabel(METRICS[main[model]].label)
    axes[0].set_yticks(range(len(samplers)), [label(sampler, SAMPLERS) for sampler in samplers])
    tuner_legend(figure, tuners, **DOT)
    return figure
