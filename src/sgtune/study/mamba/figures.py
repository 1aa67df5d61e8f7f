"""The paper's figures, of our records: 1, 2 (estimates of the discrepancies), 3 to 5 (a metric over run time)."""

import math
from collections.abc import Collection
from functools import partial

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MultipleLocator

from sgtune.study.report.labels import METRICS, MODELS, SAMPLERS, TUNERS, in_order, label
from sgtune.study.report.layout import DAGGER
from sgtune.study.report.means import SOURCES, SQUARED, root_mean
from sgtune.study.report.records import Records, finite, looks_at_test_set, need
from sgtune.study.report.remarks import counted, tuning_runs_said
from sgtune.study.report.style import BLUE, INK, ORANGE, WIDTH, log_ticks, styled, tuner_style

__all__ = [
    "curve",
    "figure1",
    "figure2",
    "legend_below",
    "numbers",
    "panels",
    "run_time",
    "say_empty",
    "tuner_handles",
    "tuner_legend",
    "why_empty",
]

DISCREPANCIES = {"ksd": "KSD", "fssd": "FSSD", "ksd_scaled": "KSD scaled"}
DASHED = (0, (4, 1.5))
ESTIMATES = {
    ("full-batch", "all"): {"color": BLUE, "marker": "o", "linestyle": "-", "ms": 6},
    ("full-batch", "thinned"): {"color": BLUE, "marker": "s", "linestyle": DASHED, "mfc": "white", "ms": 6},
    ("stochastic", "all"): {"color": ORANGE, "marker": "^", "linestyle": "-", "ms": 3.5},
    ("stochastic", "thinned"): {"color": ORANGE, "marker": "D", "linestyle": DASHED, "mfc": "white", "ms": 3},
}


def numbers(values: list) -> np.ndarray:
    """Floats with NaN, which a line leaves out, for what is not finite."""
    return np.array([math.nan if finite(value) is None else value for value in values], float)


def panels(n_models: int, n_rows: int, *, height: float) -> tuple[Figure, np.ndarray]:
    """A figure and its axes (n_rows, n_models); the rows of a single model lie side by side."""
    if n_models == 1:
        figure = Figure(figsize=(WIDTH, height + 0.7), layout="constrained")
        return figure, figure.subplots(1, n_rows, squeeze=False).T
    figure = Figure(figsize=(WIDTH, height * n_rows + 0.5), layout="constrained")
    return figure, figure.subplots(n_rows, n_models, squeeze=False, sharex="col")


def legend_below(figure: Figure, axes: Axes, n_columns: int) -> None:
    """One legend for all panels, outside them."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=n_columns, handlelength=3.2)


def tuner_handles(tuners: list[str], at_test_set: Collection[str] = (), **look: object) -> list[Line2D]:
    """What a legend says of tuners; of those that judge by the test set, with a dagger."""
    handles = []
    for tuner in tuners:
        style = tuner_style(tuner) | look
        style["label"] += f" {DAGGER}" if tuner in at_test_set else ""
        handles.append(Line2D([], [], **style))
    return handles


def tuner_legend(figure: Figure, records: list[dict], title: str | None = None) -> None:
    """The tuners of the records below all panels, in rows of at most four that are equally long."""
    tuners = in_order((record["tuner"] for record in records), TUNERS)
    handles = tuner_handles(tuners, {one["tuner"] for one in records if looks_at_test_set(one)})
    n_columns = math.ceil(len(tuners) / math.ceil(len(tuners) / 4))
    place = {"loc": "outside lower center", "ncols": n_columns, "handlelength": 3.2, "title": title}
    figure.legend(handles=handles, **place)


def say_empty(axis: Axes, words: str = "no finite value") -> None:
    """Text in a panel that has no lines."""
    axis.set_yticks([])
    axis.yaxis.minorticks_off()
    axis.text(0.5, 0.5, words, transform=axis.transAxes, ha="center", va="center", color=INK)


def why_empty(records: list[dict]) -> str:
    """What a panel of these tuners says if it can show none of them."""
    return "no arm" if all(record["best"] is None for record in records) else "no finite value"


def _estimates(records: Records, name: str, varied: str) -> Figure:
    found = need(records, "estimates", name)
    rows = pd.DataFrame(
        [
            row | {"model": record["model"], "percent": 100 * row["batch_size"] / record["n_data"]}
            for record in found
            for row in record["rows"]
            if row["figure"] == varied
        ],
        columns=["model", "gradients", "points", "step_size", "percent", *DISCREPANCIES],
    ).astype(dict.fromkeys(("step_size", "percent", *DISCREPANCIES), float))
    rows["log_step_size"] = np.log10(rows["step_size"])
    x, x_label = {
        "step_size": ("log_step_size", r"$\log_{10}$ step size $h$"),
        "batch_size": ("percent", "batch size (% of $N$)"),
    }[varied]
    models = in_order((record["model"] for record in found), MODELS)
    figure, axes = panels(len(models), len(DISCREPANCIES), height=2.1)
    for column, model in enumerate(models):
        own = rows[rows["model"] == model]
        for axis, key in zip(axes[:, column], DISCREPANCIES, strict=True):
            for (gradients, points), style in ESTIMATES.items():
                line = own[(own["gradients"] == gradients) & (own["points"] == points)]
                look = style | {"mec": style["color"], "label": f"{gradients}, {points} samples"}
                sns.lineplot(line, x=x, y=key, estimator=None, legend=False, ax=axis, **look)
        # Only when all is drawn: on a log axis seaborn would take logarithms and their inverse, and round twice.
        for axis, (key, heading) in zip(axes[:, column], DISCREPANCIES.items(), strict=True):
            axis.set_yscale("log")
            log_ticks(axis.yaxis)
            if varied == "batch_size":
                axis.set_xscale("log")
                log_ticks(axis.xaxis)
            else:
                axis.xaxis.set_major_locator(MultipleLocator(1))
            if not own[key].notna().any():
                say_empty(axis)
            last = len(models) == 1 or key == list(DISCREPANCIES)[-1]
            axis.set(xlabel=x_label if last else "", ylabel="")
            if len(models) == 1:
                axis.set_title(heading)
            elif key == "ksd":
                axis.set_title(label(model, MODELS))
            if column == 0 and (len(models) > 1 or key == "ksd"):
                axis.set_ylabel(heading if len(models) > 1 else "discrepancy")
    figure.align_ylabels(axes[:, 0])
    legend_below(figure, axes[0, 0], 2)
    return figure


@styled
def figure1(records: Records) -> Figure:
    """Discrepancies against the step size, estimated in four ways (paper, Fig. 1)."""
    return _estimates(records, "figure1", "step_size")


@styled
def figure2(records: Records) -> Figure:
    """Discrepancies against the batch size, estimated in four ways (paper, Fig. 2)."""
    return _estimates(records, "figure2", "batch_size")


FEWEST_IN_BAND = 3
"""Finite runs whose mean has a band: the standard error of two is too inaccurate."""


def curve(rows: list[dict], key: str) -> pd.DataFrame:
    """The values of ``key``, NaN where not finite, a row per replicate and checkpoint.

    The k-th checkpoint of a replicate is its k-th by time. It stands at the mean of the seconds at which the
    replicates came to it, so that they can be averaged there.
    """
    table = pd.DataFrame(
        {
            "replicate": [row["replicate"] for row in rows],
            "seconds": numbers([row["seconds"] for row in rows]),
            "value": numbers([row.get(key) for row in rows]),
        }
    ).sort_values("seconds", kind="stable")
    table["checkpoint"] = table.groupby("replicate").cumcount()
    table["seconds"] = table.groupby("checkpoint")["seconds"].transform("mean")
    return table


def _run_time_panel(axis: Axes, records: list[dict], key: str, factor: float) -> None:
    """A line per tuner: the mean over the replicates that are finite, in a band of two standard errors."""
    notes = []
    for i, record in enumerate(records):
        style = tuner_style(record["tuner"])
        squared = SQUARED.get(key)
        has_squares = squared is not None and all(squared in row for row in record["curves"])
        table = curve(record["curves"], squared if has_squares else key)
        if not table["value"].notna().any():
            notes.append(f"{style['label']}: {'no arm' if record['best'] is None else 'not finite'}")
            continue
        if has_squares and not (table.groupby("checkpoint")["value"].mean() > 0).any():
            notes.append(f"{style['label']}: within its noise")
            continue
        table["value"] *= factor**2 if has_squares else factor
        runs, tunings = table["replicate"].nunique(), record["arms"]
        finite_runs = table.loc[table["checkpoint"] == table["checkpoint"].max(), "value"].count()
        if None in tunings:
            notes.append(f"{style['label']}: no arm in {tunings.count(None)} of {len(tunings)} tuning runs")
        if finite_runs < runs:
            notes.append(f"{style['label']}: {finite_runs} of {runs} runs finite")
        style |= {"zorder": 3}
        look = {"errorbar": partial(_band, is_square=has_squares), "err_kws": {"alpha": 0.15, "linewidth": 0}}
        if has_squares:
            look["estimator"] = _root
        sns.lineplot(table, x="seconds", y="value", legend=False, ax=axis, **look, **style)
        _mark(axis.lines[-1], table, i)
    if not axis.lines:
        say_empty(axis, why_empty(records))
        return
    # Only now: on a log axis seaborn would average logarithms.
    axis.set(yscale="log", xlabel="", ylabel="")
    lowest = min(np.nanmin(line.get_ydata()) for line in axis.lines)
    axis.set_ylim(0.6 * lowest, 1.6 * axis.dataLim.y1)
    log_ticks(axis.yaxis)
    box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1.5}
    place = {"transform": axis.transAxes, "ha": "right", "va": "top", "zorder": 5}
    # A panel is about thirty letters wide.
    lines = "\n".join(note if len(note) <= 30 else note.replace(": ", ":\n", 1) for note in notes)
    axis.text(0.99, 0.98, lines, **place, fontsize=7, color=INK, bbox=box if notes else None)


def _root(squares: pd.Series) -> float:
    """The root of the mean square; a line leaves out where that is not positive."""
    return root_mean(squares.dropna()) or math.nan


def _band(values: pd.Series, is_square: bool) -> tuple[float, float]:
    """Two standard errors of the mean to either side, as roots of mean squares; NaN for few finite values.

    NaN also for a mean that is not above its two standard errors: on a log axis the band would cover all below it.
    """
    if values.count() < FEWEST_IN_BAND or _is_near_zero(values):
        return math.nan, math.nan
    ends = [values.mean() + sign * 2 * values.sem() for sign in (-1, 1)]
    return tuple(math.sqrt(end) for end in ends) if is_square else tuple(ends)


def _is_near_zero(values: pd.Series) -> bool:
    return values.count() >= FEWEST_IN_BAND and bool(values.mean() <= 2 * values.sem())


def _mark(line: Line2D, table: pd.DataFrame, i: int) -> None:
    """Markers of the i-th line, on about six points, not where other lines have theirs; small ones for means that are
    not two standard errors above zero."""
    near_zero = table.groupby("seconds")["value"].apply(_is_near_zero)
    every = max(1, len(line.get_xdata()) // 6)
    points = range(i % every, len(line.get_xdata()), every)
    small = [point for point in points if near_zero.get(line.get_xdata()[point], False)]
    line.set_markevery([point for point in points if point not in small])
    if small:
        twin = Line2D(*line.get_data())
        twin.update_from(line)
        twin.set(label="_small", linestyle="", markevery=small, markersize=0.7 * line.get_markersize())
        line.axes.add_line(twin)


@styled
def run_time(records: Records, *, name: str, metric: str) -> Figure:
    """``metric`` against run time, a panel per sampler and a line per tuner (paper, Figs. 3 to 5).

    A line is the mean of its runs, in a band of two standard errors.
    A line without a finite value is named in its panel, and so is a panel without any.
    """
    found = need(records, "evaluation", name)
    key, factor = SOURCES[metric]
    heading = METRICS[metric].label
    samplers = in_order((record["sampler"] for record in found), SAMPLERS)
    tuners = in_order((record["tuner"] for record in found), TUNERS)
    n_columns = min(3, len(samplers))
    n_rows = -(-len(samplers) // n_columns)
    figure = Figure(figsize=(WIDTH, 2.0 * n_rows + 0.6), layout="constrained")
    axes = figure.subplots(n_rows, n_columns, squeeze=False, sharex=True)
    shown = axes.flat[: len(samplers)]
    for axis, sampler in zip(shown, samplers, strict=True):
        own = {record["tuner"]: record for record in found if record["sampler"] == sampler}
        _run_time_panel(axis, [own[tuner] for tuner in tuners if tuner in own], key, factor)
        axis.set_title(label(sampler, SAMPLERS))
    for axis in axes.flat[len(samplers) :]:
        axis.remove()
    # All panels have the axis of the longest run; the lowest of each column shows it.
    shown[0].set_xlim(left=0)
    for axis in shown[-n_columns:]:
        axis.set_xlabel("run time (s)")
        axis.tick_params(labelbottom=True)
    for axis in axes[:, 0]:
        axis.set_ylabel(heading)
    runs = max(len({row["replicate"] for row in record["curves"]}) for record in found)
    tunings = tuning_runs_said(((record["tuner"], len(record["arms"])) for record in found), runs)
    is_one = tunings == counted(1, "tuning run")
    arms = "the arm of one tuning run" if is_one else f"the arms of {tunings} in turn"
    spread = "mean ± 2 s.e." if runs >= FEWEST_IN_BAND else "mean"
    tuner_legend(figure, found, f"{spread} of n = {runs} runs, with {arms}" if runs > 1 else None)
    return figure
