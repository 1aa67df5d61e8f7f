"""The paper's figures, of our records: 1, 2 (estimates of the discrepancies), 3 to 5 (a metric over run time)."""

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MultipleLocator

from sgtune.study.artifacts.labels import METRICS, MODELS, SAMPLERS, TUNERS, in_order, label
from sgtune.study.artifacts.records import Records, finite, need
from sgtune.study.artifacts.style import BLUE, INK, ORANGE, WIDTH, log_ticks, styled, tuner_style
from sgtune.study.artifacts.tables import SOURCES

__all__ = ["curve", "figure1", "figure2", "legend_below", "numbers", "panels", "run_time", "tuner_legend"]

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


def tuner_legend(figure: Figure, tuners: list[str], **look: object) -> None:
    """The tuners below all panels, in rows of at most four that are equally long."""
    handles = [Line2D([], [], **tuner_style(tuner) | look) for tuner in tuners]
    n_columns = math.ceil(len(tuners) / math.ceil(len(tuners) / 4))
    figure.legend(handles=handles, loc="outside lower center", ncols=n_columns, handlelength=3.2)


def say_empty(axis: Axes, words: str = "no finite value") -> None:
    """Words where lines would be."""
    axis.set_yticks([])
    axis.yaxis.minorticks_off()
    axis.text(0.5, 0.5, words, transform=axis.transAxes, ha="center", va="center", color=INK)


def _estimates(records: Records, name: str, varied: str) -> Figure:
    found = need(records, "estimates", name)
    models = in_order((record["model"] for record in found), MODELS)
    figure, axes = panels(len(models), len(DISCREPANCIES), height=2.1)
    for column, model in enumerate(models):
        rows = [
            (row, record["n_data"])
            for record in found
            if record["model"] == model
            for row in record["rows"]
            if row["figure"] == varied
        ]
        for axis, (key, heading) in zip(axes[:, column], DISCREPANCIES.items(), strict=True):
            for (gradients, points), style in ESTIMATES.items():
                line = sorted(
                    (
                        math.log10(row["step_size"])
                        if varied == "step_size"
                        else 100 * row["batch_size"] / n_data,
                        row[key],
                    )
                    for row, n_data in rows
                    if (row["gradients"], row["points"]) == (gradients, points)
                )
                x, y = [pair[0] for pair in line], numbers([pair[1] for pair in line])
                axis.plot(x, y, **style, label=f"{gradients}, {points} samples")
            axis.set_yscale("log")
            log_ticks(axis.yaxis)
            if varied == "batch_size":
                axis.set_xscale("log")
                log_ticks(axis.xaxis)
            else:
                axis.xaxis.set_major_locator(MultipleLocator(1))
            if not any(np.isfinite(line.get_ydata()).any() for line in axis.lines):
                say_empty(axis)
            last = len(models) == 1 or key == list(DISCREPANCIES)[-1]
            if last:
                axis.set_xlabel(
                    r"$\log_{10}$ step size $h$" if varied == "step_size" else "batch size (% of $N$)"
                )
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


def curve(rows: list[dict], key: str) -> np.ndarray:
    """Rows (seconds, mean, sd, replicates that are finite, replicates), a column per checkpoint: ``(5, K)``.

    The k-th checkpoint of a replicate is its k-th by time. Mean and sd (divisor n - 1) of ``key`` are of the
    finite replicates; NaN where there are none, or fewer than two.
    """
    replicates: dict[object, list[dict]] = {}
    for row in sorted(rows, key=lambda row: row["seconds"]):
        replicates.setdefault(row["replicate"], []).append(row)
    columns = []
    for k in range(max(map(len, replicates.values()), default=0)):
        at = [found[k] for found in replicates.values() if len(found) > k]
        values = numbers([row.get(key) for row in at])
        values = values[np.isfinite(values)]
        columns.append(
            (
                np.mean([row["seconds"] for row in at]),
                values.mean() if values.size else np.nan,
                values.std(ddof=1) if values.size > 1 else np.nan,
                values.size,
                len(replicates),
            )
        )
    return np.array(columns, float).reshape(-1, 5).T


def _run_time_panel(axis: Axes, records: list[dict], key: str, factor: float) -> None:
    notes, lows, highs = [], [], []
    for i, record in enumerate(records):
        name = label(record["tuner"], TUNERS)
        seconds, mean, sd, finite_runs, runs = curve(record["curves"], key)
        if not np.isfinite(mean).any():
            notes.append(f"{name}: {'no arm' if record['best'] is None else 'not finite'}")
            continue
        mean, sd = factor * mean, factor * sd
        if finite_runs[-1] < runs[-1]:
            notes.append(f"{name}: {finite_runs[-1]:.0f} of {runs[-1]:.0f} runs finite")
        style = tuner_style(record["tuner"])
        every = max(1, len(seconds) // 6)
        axis.plot(seconds, mean, **style, markevery=(i % every, every), zorder=3)
        upper = mean + 2 * np.nan_to_num(sd)
        lows.append(np.nanmin(mean))
        highs.append(np.nanmax(upper))
        # A band that reaches zero has no lower end on a log axis; far below the panel is as good.
        lower = np.maximum(mean - 2 * sd, 1e-3 * mean)
        axis.fill_between(seconds, lower, upper, color=style["color"], alpha=0.15, linewidth=0)
    axis.set_yscale("log")
    axis.set_xlim(left=0)
    if not lows:
        say_empty(axis, "no arm" if all(record["best"] is None for record in records) else "no finite value")
        return
    axis.set_ylim(0.6 * min(lows), 1.6 * max(highs))
    log_ticks(axis.yaxis)
    box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1.5}
    place = {"transform": axis.transAxes, "ha": "right", "va": "top", "zorder": 5}
    axis.text(0.99, 0.98, "\n".join(notes), **place, fontsize=7, color=INK, bbox=box if notes else None)


@styled
def run_time(records: Records, *, name: str, metric: str) -> Figure:
    """``metric`` against run time, a panel per sampler and a line per tuner (paper, Figs. 3 to 5): mean and 2 sd.

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
    for axis, sampler in zip(axes.flat, samplers, strict=False):
        own = {record["tuner"]: record for record in found if record["sampler"] == sampler}
        _run_time_panel(axis, [own[tuner] for tuner in tuners if tuner in own], key, factor)
        axis.set_title(label(sampler, SAMPLERS))
    for axis in axes.flat[len(samplers) :]:
        axis.remove()
    for axis in axes[-1]:
        axis.set_xlabel("run time (s)")
    for axis in axes[:, 0]:
        axis.set_ylabel(heading)
    tuner_legend(figure, tuners)
    return figure
