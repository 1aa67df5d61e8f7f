"""The paper's figures, of our records: 1 and 2 (estimates of the discrepancies), 3 to 5 (a metric over run time)."""

import math
from collections.abc import Collection, Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from sgtune.study.report.labels import METRICS, MODELS, SAMPLERS, TUNERS, in_order, label
from sgtune.study.report.means import SOURCES, SQUARED
from sgtune.study.report.records import Records, finite, looks_at_test_set, required
from sgtune.study.report.style import BLUE, INK, ORANGE, WIDTH, log_ticks, styled, tuner_style
from sgtune.study.report.table import DAGGER

__all__ = [
    "estimates",
    "legend_below",
    "mean_curve",
    "numbers",
    "panels",
    "run_time",
    "tuner_handles",
]

DASHED = (0, (4, 1.5))
DISCREPANCIES = {"ksd": "KSD", "fssd": "FSSD", "ksd_scaled": "KSD scaled"}
ESTIMATES = {
    ("full-batch", "all"): {"color": BLUE, "marker": "o", "linestyle": "-", "ms": 6},
    ("full-batch", "thinned"): {"color": BLUE, "marker": "s", "linestyle": DASHED, "mfc": "white", "ms": 6},
    ("stochastic", "all"): {"color": ORANGE, "marker": "^", "linestyle": "-", "ms": 3.5},
    ("stochastic", "thinned"): {"color": ORANGE, "marker": "D", "linestyle": DASHED, "mfc": "white", "ms": 3},
}
FEWEST_IN_BAND = 3
"""Finite runs whose mean has a band: the standard error of two is too inaccurate."""


def numbers(values: Sequence) -> np.ndarray:
    """Floats with NaN, which a line leaves out, for what is not finite."""
    return np.array([math.nan if finite(value) is None else value for value in values], float)


def panels(
    models: Sequence[str], headings: Mapping[str, str], x_label: str, *, height: float, over: str = ""
) -> tuple[Figure, dict]:
    """A figure, and its panels by model (across) and key of ``headings`` (down); those of a single model lie side by
    side. The y axes of several models say the heading, and ``over`` what it is divided by."""
    if len(models) == 1:
        figure = Figure(figsize=(WIDTH, height + 0.7), layout="constrained")
        axes = figure.subplots(1, len(headings), squeeze=False).T
        for axis, heading in zip(axes[:, 0], headings.values(), strict=True):
            axis.set(title=heading, xlabel=x_label)
    else:
        figure = Figure(figsize=(WIDTH, height * len(headings) + 0.5), layout="constrained")
        axes = figure.subplots(len(headings), len(models), squeeze=False, sharex="col")
        for top, bottom, model in zip(axes[0], axes[-1], models, strict=True):
            top.set_title(label(model, MODELS))
            bottom.set_xlabel(x_label)
        for axis, heading in zip(axes[:, 0], headings.values(), strict=True):
            axis.set_ylabel(f"{heading}{over.format(heading)}")
    by_name = {(model, key): axes[i, k] for k, model in enumerate(models) for i, key in enumerate(headings)}
    return figure, by_name


def legend_below(figure: Figure, axes: Axes, n_columns: int) -> None:
    """One legend for all panels, outside them."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=n_columns, handlelength=3.2)


def tuner_handles(tuners: Sequence[str], at_test_set: Collection[str] = (), **look: object) -> list[Line2D]:
    """What a legend says of tuners; of those that judge by the test set, with a dagger."""
    handles = []
    for tuner in tuners:
        style = tuner_style(tuner) | look
        style["label"] += f" {DAGGER}" if tuner in at_test_set else ""
        handles.append(Line2D([], [], **style))
    return handles


def _tuner_legend(figure: Figure, records: Sequence[dict], title: str | None = None) -> None:
    """The tuners of the records below all panels, in rows of at most four that are equally long."""
    tuners = in_order((record["tuner"] for record in records), TUNERS)
    handles = tuner_handles(tuners, {one["tuner"] for one in records if looks_at_test_set(one)})
    n_columns = math.ceil(len(tuners) / math.ceil(len(tuners) / 4))
    place = {"loc": "outside lower center", "ncols": n_columns, "handlelength": 3.2, "title": title}
    figure.legend(handles=handles, **place)


def _say_empty(axis: Axes, words: str = "no finite value") -> None:
    """Text in a panel that has no lines."""
    axis.set_yticks([])
    axis.yaxis.minorticks_off()
    axis.text(0.5, 0.5, words, transform=axis.transAxes, ha="center", va="center", color=INK)


def _say_lost(axis: Axes, lost: dict[str, str], n_tuners: int) -> None:
    """In a corner of a panel the tuners that are not in it as a whole, and why; in its middle, if none is."""
    if len(lost) == n_tuners and set(lost.values()) <= {"no arm", "not finite"}:
        _say_empty(axis, "no arm" if set(lost.values()) == {"no arm"} else "no finite value")
        return
    lines = "\n".join(f"{tuner_style(tuner)['label']}: {why}" for tuner, why in lost.items())
    place = {"transform": axis.transAxes, "ha": "right", "va": "top", "zorder": 5}
    box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1.5}
    axis.text(0.99, 0.98, lines, **place, fontsize=7, color=INK, bbox=box if lines else None)


@styled
def estimates(records: Records, *, varied: str) -> Figure:
    """Discrepancies against the ``step_size`` or the ``batch_size``, estimated in four ways (paper, Figs. 1 and 2)."""
    found = required(records, "estimates")
    models = in_order((record["model"] for record in found), MODELS)
    x_label = r"step size $h$" if varied == "step_size" else "batch size (% of $N$)"
    figure, axes = panels(models, DISCREPANCIES, x_label, height=2.1)
    for record in found:
        rows = [row for row in record["rows"] if row["figure"] == varied]
        scale = 1.0 if varied == "step_size" else 100 / record["n_data"]
        for key in DISCREPANCIES:
            axis = axes[record["model"], key]
            for (gradients, points), style in ESTIMATES.items():
                own = [row for row in rows if (row["gradients"], row["points"]) == (gradients, points)]
                own = sorted(own, key=lambda row: row[varied])
                look = style | {"mec": style["color"], "label": f"{gradients}, {points} samples"}
                x = scale * numbers([row[varied] for row in own])
                axis.plot(x, numbers([row[key] for row in own]), **look)
            axis.set(xscale="log", yscale="log")
            log_ticks(axis.yaxis)
            log_ticks(axis.xaxis)
            if not any(np.isfinite(line.get_ydata()).any() for line in axis.lines):
                _say_empty(axis)
    figure.align_ylabels(figure.axes)
    legend_below(figure, figure.axes[0], 2)
    return figure


def mean_curve(rows: Sequence[dict], metric: str) -> pd.DataFrame:
    """Over the replicates of a tuner, at each checkpoint: ``seconds``, ``mean`` of those that are finite (of a KSD the
    root of the mean of its unbiased squares, NaN where that is not positive), ``low`` and ``high``, the mean less and
    plus two standard errors, and the ``count`` of finite ones.

    The ends are NaN for fewer than `FEWEST_IN_BAND` finite ones, and where the lower one is not positive: on a log axis
    the band would cover all below. The k-th checkpoint of a replicate is its k-th by time, and stands at the mean of
    the seconds at which the replicates came to it.
    """
    key, factor = SOURCES[metric]
    is_square = key in SQUARED and all(SQUARED[key] in row for row in rows)
    table = pd.DataFrame(
        {
            "replicate": [row["replicate"] for row in rows],
            "seconds": numbers([row["seconds"] for row in rows]),
            "value": numbers([row.get(SQUARED[key] if is_square else key) for row in rows]),
        }
    ).sort_values("seconds", kind="stable")
    at = table.groupby(table.groupby("replicate").cumcount())
    mean, error = at["value"].mean(), at["value"].sem()
    curve = pd.DataFrame({"mean": mean, "low": mean - 2 * error, "high": mean + 2 * error})
    curve.loc[(at["value"].count() < FEWEST_IN_BAND) | ~(curve["low"] > 0), ["low", "high"]] = math.nan
    curve = factor * (curve.where(curve > 0) ** 0.5 if is_square else curve)
    return curve.assign(seconds=at["seconds"].mean(), count=at["value"].count())


def _run_time_panel(axis: Axes, records: Sequence[dict], metric: str) -> None:
    """A line per tuner, in a band of two standard errors; markers, on about six points, not where other lines have
    theirs, and not where a mean of several runs is less than two standard errors above zero."""
    lost = {}
    for i, record in enumerate(records):
        tuner, curve = record["tuner"], mean_curve(record["curves"], metric)
        if not curve["count"].any():
            lost[tuner] = "no arm" if record["best"] is None else "not finite"
            continue
        if curve["mean"].isna().all():
            lost[tuner] = "within its noise"
            continue
        runs = len({row["replicate"] for row in record["curves"]})
        if None in record["arms"]:
            lost[tuner] = f"no arm in {record['arms'].count(None)}/{len(record['arms'])} races"
        elif curve["count"].iloc[-1] < runs:
            lost[tuner] = f"{curve['count'].iloc[-1]}/{runs} finite"
        style = tuner_style(tuner) | {"zorder": 3}
        is_clear = (curve["count"] < FEWEST_IN_BAND) | curve["low"].notna()
        points = range(i % max(1, len(curve) // 6), len(curve), max(1, len(curve) // 6))
        marked = [point for point in points if is_clear.iloc[point]]
        axis.plot(curve["seconds"], curve["mean"], **style, markevery=marked)
        color = style["color"]
        axis.fill_between(curve["seconds"], curve["low"], curve["high"], color=color, alpha=0.15, linewidth=0)
    _say_lost(axis, lost, len(records))
    if axis.lines:
        axis.set_yscale("log")
        lowest = min(np.nanmin(line.get_ydata()) for line in axis.lines)
        axis.set_ylim(0.6 * lowest, 1.6 * axis.dataLim.y1)
        log_ticks(axis.yaxis)


@styled
def run_time(records: Records, *, metric: str) -> Figure:
    """``metric`` against run time, a panel per sampler and a line per tuner (paper, Figs. 3 to 5)."""
    found = required(records, "evaluation")
    samplers = in_order((record["sampler"] for record in found), SAMPLERS)
    tuners = in_order((record["tuner"] for record in found), TUNERS)
    n_columns = min(3, len(samplers))
    n_rows = -(-len(samplers) // n_columns)
    figure = Figure(figsize=(WIDTH, 2.0 * n_rows + 0.6), layout="constrained")
    axes = figure.subplots(n_rows, n_columns, squeeze=False, sharex=True)
    shown = axes.flat[: len(samplers)]
    for axis, sampler in zip(shown, samplers, strict=True):
        own = {record["tuner"]: record for record in found if record["sampler"] == sampler}
        _run_time_panel(axis, [own[tuner] for tuner in tuners if tuner in own], metric)
        axis.set_title(label(sampler, SAMPLERS))
    for axis in axes.flat[len(samplers) :]:
        axis.remove()
    # All panels have the axis of the longest run; the lowest of each column shows it.
    shown[0].set_xlim(left=0)
    for axis in shown[-n_columns:]:
        axis.set_xlabel("run time (s)")
        axis.tick_params(labelbottom=True)
    for axis in axes[:, 0]:
        axis.set_ylabel(METRICS[metric].label)
    runs = max(len({row["replicate"] for row in record["curves"]}) for record in found)
    _tuner_legend(figure, found, f"n = {runs}")
    return figure
