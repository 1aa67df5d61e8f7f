"""The study's figures. Of the paper: 1 and 2 (estimates of the KSD), 3 to 5 (a metric over run time). Of our own: what
discrepancies see, of a wrong width of the study's posteriors and of draws with one error at a time; and regret, tuners'
arms over the oracle's."""

import math
from collections.abc import Mapping, Sequence
from itertools import product
from textwrap import fill

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from sgtune.study.catalogue import BLUE, GREEN, ORANGE, PURPLE, VERMILION
from sgtune.study.mamba.artifacts import JUDGES
from sgtune.study.mamba.reference import doubted
from sgtune.study.mamba.regret import judged_by, over_oracle
from sgtune.study.report.labels import COMPARED_ARMS, METRICS, MODELS, SAMPLERS, TUNERS, in_order, label
from sgtune.study.report.means import SOURCES, SQUARED
from sgtune.study.report.records import Records, finite, looks_at_test_set, required
from sgtune.study.report.style import (
    INK,
    MEDIUM,
    NARROW,
    label_ends,
    legend_below,
    log_error,
    log_ticks,
    panels,
    sampler_rows,
    tuner_style,
)
from sgtune.study.report.table import AT_CAP, DAGGER, DIVERGED, NO_ARM, NOT_TRUSTED, Cell
from sgtune.support.errors import DataError

DASHED = (0, (4, 1.5))
DOTTED = {"color": INK, "linewidth": 0.9, "linestyle": (0, (2, 2))}
ESTIMATES = {
    ("full-batch", "all"): {"color": BLUE, "marker": "o", "linestyle": "-", "ms": 6},
    ("full-batch", "thinned"): {"color": BLUE, "marker": "s", "linestyle": DASHED, "mfc": "white", "ms": 6},
    ("stochastic", "all"): {"color": ORANGE, "marker": "^", "linestyle": "-", "ms": 3.5},
    ("stochastic", "thinned"): {"color": ORANGE, "marker": "D", "linestyle": DASHED, "mfc": "white", "ms": 3},
}
LOST = {"marker": "x", "color": INK, "linestyle": "none", "ms": 5, "label": "not finite"}
"""At the upper edge: where an estimate has no value."""

FEWEST_IN_BAND = 3
"""Finite runs whose mean has a band: the standard error of two is too inaccurate."""

SCALES = {
    "identity": {"color": VERMILION, "marker": "s", "linestyle": DASHED, "label": "raw coordinates"},
    "laplace": {"color": BLUE, "marker": "o", "linestyle": "-", "label": "scaled by the posterior"},
}
RING = {"marker": "o", "markersize": 10, "markerfacecolor": "none", "linestyle": "none"}

SEEN = 2.0
"""Standard deviations of a value above which an error counts as seen."""

MOST = 1000.0
"""Larger values are drawn at the edge: thousands of sds need no scale."""

TICKS = (-1000, -100, -10, -2, 0, 2, 10, 100, 1000)
EXACT, UNSEEN, PREFERRED = "exact draws", "not distinguished from exact draws", "preferred to exact draws"
HEADINGS = {
    "width": ("All widths", "width of all\ncoordinates (sds)", -1),
    "direction": ("Common mode", "width of the\ncommon mode (sds)", 0),
}
"""Of each disturbance the name, the quantity on its axis, and the end at which lines are apart."""

LINES = {
    "ksd": {"color": BLUE, "marker": "o", "linestyle": "-"},
    "ksd_wide": {"color": GREEN, "marker": "D", "linestyle": (0, (5, 1.5))},
    "fssd": {"color": ORANGE, "marker": "s", "linestyle": (0, (1.5, 1))},
    "psd": {"color": VERMILION, "marker": "^", "linestyle": "-"},
    "virial": {"color": PURPLE, "marker": "v", "linestyle": (0, (7, 1.5, 1.5, 1.5))},
}

DOT = {"linestyle": "none", "markersize": 5.5}
MARKS = {
    "random": {"marker": "|", "color": "#6e6e6e", "markersize": 13, "markeredgewidth": 1.4},
    "frozen": {"marker": "x", "color": "#6e6e6e", "markersize": 6, "markeredgewidth": 1.4},
}
"""How arms for comparison look in the row of a sampler; the oracle is the line at 1."""

OFF_SCALE = {DIVERGED: "diverged", NO_ARM: "no arm"}
"""Why a tuner has no regret that a scale could show -> what the strip of such tuners is called."""

NOTHING = {NOT_TRUSTED: "the reference is\nnot trusted", AT_CAP: "the oracle's loss\nis not known"}
"""Why a panel is empty -> what it says; else that it was not computed."""


def _numbers(rows: Sequence[Mapping], key: str) -> np.ndarray:
    """Floats with NaN, which a line leaves out, for what is not finite."""
    return np.array([math.nan if finite(row.get(key)) is None else row[key] for row in rows], float)


def _panels(
    models: Sequence[str], headings: Mapping[str, str], x_label: str, *, height: float, over: str = ""
) -> tuple[Figure, dict]:
    """A figure, and its panels by model (across) and key of ``headings`` (down); those of a single model lie side by
    side. The y axes of several models say the heading, and ``over`` what it is divided by."""
    if len(models) == 1:
        figure, axes = panels(1, len(headings), MEDIUM, height + 0.7)
        axes = axes.T
        for axis, heading in zip(axes[:, 0], headings.values(), strict=True):
            axis.set(title=heading, xlabel=x_label)
    else:
        n_rows = len(headings)
        figure, axes = panels(n_rows, len(models), MEDIUM, height * n_rows + 0.5, sharex="col")
        for top, bottom, model in zip(axes[0], axes[-1], models, strict=True):
            top.set_title(label(model, MODELS))
            bottom.set_xlabel(x_label)
        for axis, heading in zip(axes[:, 0], headings.values(), strict=True):
            axis.set_ylabel(f"{heading}{over.format(heading)}")
    by_name = {(model, key): axes[i, k] for k, model in enumerate(models) for i, key in enumerate(headings)}
    return figure, by_name


def _say_empty(axis: Axes, without_ticks: Axis, words: str = "no finite value", **look: object) -> None:
    """Text in a panel that has no lines, and nothing on one of its axes."""
    without_ticks.set_ticks([])
    without_ticks.minorticks_off()
    axis.text(0.5, 0.5, words, transform=axis.transAxes, ha="center", va="center", color=INK, **look)


def estimates(records: Records, *, varied: str) -> Figure:
    """KSD against the ``step_size`` or the ``batch_size``, estimated in four ways (paper, Figs. 1 and 2)."""
    found = required(records, "estimates")
    models = in_order((record["model"] for record in found), MODELS)
    x_label = r"step size $h$" if varied == "step_size" else "batch size (% of $N$)"
    figure, axes = _panels(models, {"ksd": "KSD"}, x_label, height=2.3)
    for record in found:
        rows = sorted((row for row in record["rows"] if row["figure"] == varied), key=lambda row: row[varied])
        scale = 1.0 if varied == "step_size" else 100 / record["n_data"]
        axis = axes[record["model"], "ksd"]
        for how, style in ESTIMATES.items():
            own = [row for row in rows if (row["gradients"], row["points"]) == how]
            look = style | {"mec": style["color"], "label": "{}, {}".format(*how)}
            x, y = scale * _numbers(own, varied), _numbers(own, "ksd")
            axis.plot(x, y, **look)
            lost = x[np.isnan(y)]
            axis.plot(lost, np.full(len(lost), 0.97), **LOST, transform=axis.get_xaxis_transform())
        axis.set(xscale="log", yscale="log")
        log_ticks(axis.yaxis)
        log_ticks(axis.xaxis, most=3 if varied == "step_size" else 4)
        if not any(finite(row["ksd"]) for row in rows):
            _say_empty(axis, axis.yaxis)
    drawn = [line for axis in figure.axes for line in axis.lines if len(line.get_xdata())]
    handles = {line.get_label(): line for line in drawn}
    order = in_order(handles, map("{0[0]}, {0[1]}".format, ESTIMATES))
    legend_below(figure, [handles[name] for name in order], handlelength=3.2, title="gradients, samples")
    return figure


def mean_curve(rows: Sequence[dict], metric: str, n_tunings: int = 1) -> pd.DataFrame:
    """Over the replicates of a tuner, at each checkpoint: ``seconds``, ``mean`` of those that are finite (of a KSD the
    root of the mean of its unbiased squares, NaN where that is not positive), ``low`` and ``high``, two standard errors
    of the logarithm below and above it, and the ``count`` of finite ones.

    The standard error is at least that from the means of the ``n_tunings`` tuning runs
    (`sgtune.study.report.means.mean_of_choices`). The ends are NaN for fewer than `FEWEST_IN_BAND` finite ones, and
    where the mean is not two standard errors above zero: its logarithm has no error. The k-th checkpoint of a replicate
    is its k-th by time, and stands at the mean of the seconds at which the replicates came to it.
    """
    key, factor = SOURCES[metric]
    is_square = key in SQUARED and all(SQUARED[key] in row for row in rows)
    table = pd.DataFrame(
        {
            "replicate": [row["replicate"] for row in rows],
            "seconds": _numbers(rows, "seconds"),
            "value": _numbers(rows, SQUARED[key] if is_square else key),
        }
    ).sort_values("seconds", kind="stable")
    checkpoint = table.groupby("replicate").cumcount().rename("checkpoint")
    at = table.groupby(checkpoint)
    of_tunings = table.groupby([checkpoint, table["replicate"] % max(n_tunings, 1)])["value"].mean()
    mean, error = at["value"].mean(), np.fmax(at["value"].sem(), of_tunings.groupby("checkpoint").sem())
    ends = np.exp((2 * error / mean).where((at["value"].count() >= FEWEST_IN_BAND) & (mean > 2 * error)))
    curve = pd.DataFrame({"mean": mean, "low": mean / ends, "high": mean * ends})
    curve = factor * (curve.where(curve > 0) ** 0.5 if is_square else curve)
    return curve.assign(seconds=at["seconds"].mean(), count=at["value"].count())


def _run_time_panel(axis: Axes, records: Sequence[dict], metric: str) -> None:
    """A line per tuner, in a band of two standard errors; markers, on about six points, not where other lines have
    theirs, and small dots where a mean of several runs is less than two standard errors above zero. In a corner, or
    where there is no line in its middle, the tuners that are not in it as a whole, and why."""
    lost = {}
    for i, record in enumerate(records):
        style = tuner_style(record["tuner"]) | {"zorder": 3}
        name, color = style["label"], style["color"]
        curve = mean_curve(record["curves"], metric, len(record["arms"]))
        style["label"] += f" {DAGGER}" * looks_at_test_set(record)
        if not curve["count"].any():
            lost[name] = "no arm" if record["best"] is None else "not finite"
            continue
        if curve["mean"].isna().all():
            lost[name] = "within noise"
            continue
        runs = len({row["replicate"] for row in record["curves"]})
        if None in record["arms"]:
            lost[name] = f"no arm in {record['arms'].count(None)}/{len(record['arms'])} races"
        elif curve["count"].iloc[-1] < runs:
            lost[name] = f"{curve['count'].iloc[-1]}/{runs} finite"
        is_clear = (curve["count"] < FEWEST_IN_BAND) | curve["low"].notna()
        points = range(i % max(1, len(curve) // 6), len(curve), max(1, len(curve) // 6))
        marked = [point for point in points if is_clear.iloc[point]]
        axis.plot(curve["seconds"], curve["mean"], **style, markevery=marked)
        axis.scatter(curve["seconds"][~is_clear], curve["mean"][~is_clear], s=3, color=color, zorder=3)
        axis.fill_between(curve["seconds"], curve["low"], curve["high"], color=color, alpha=0.15, linewidth=0)
    why = set(lost.values())
    if len(lost) == len(records) and why <= {"no arm", "not finite"}:
        _say_empty(axis, axis.yaxis, "no arm" if why == {"no arm"} else "no finite value")
    elif lost:
        place = {"transform": axis.transAxes, "ha": "right", "va": "top", "zorder": 5, "fontsize": 7}
        box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1.5}
        words = [fill(": ".join(item), 22) for item in lost.items()]
        axis.text(0.99, 0.98, "\n".join(words), **place, color=INK, bbox=box)
    if axis.lines:
        axis.set_yscale("log")
        axis.set_ylim(axis.dataLim.y0 / 1.2, axis.dataLim.y1 * 1.2)
        log_ticks(axis.yaxis)


def run_time(records: Records, *, metric: str) -> Figure:
    """``metric`` against run time, a panel per sampler and a line per tuner (paper, Figs. 3 to 5)."""
    found = required(records, "evaluation")
    samplers = in_order((record["sampler"] for record in found), SAMPLERS)
    tuners = in_order((record["tuner"] for record in found), TUNERS)
    n_columns = min(2, len(samplers))
    n_rows = -(-len(samplers) // n_columns)
    figure, axes = panels(n_rows, n_columns, MEDIUM, 1.75 * n_rows + 0.4, sharex=True)
    shown = axes.flat[: len(samplers)]
    for axis, sampler in zip(shown, samplers, strict=True):
        own = {record["tuner"]: record for record in found if record["sampler"] == sampler}
        _run_time_panel(axis, [own[tuner] for tuner in tuners if tuner in own], metric)
        axis.set_title(label(sampler, SAMPLERS))
    for axis in axes.flat[len(samplers) :]:
        axis.remove()
    # All panels have the axis of the longest run; the lowest of each column shows it.
    shown[0].set_xlim(left=0)
    for axis in shown:
        label_ends(axis, axis.lines)
    for axis in shown[-n_columns:]:
        axis.tick_params(labelbottom=True)
    for axis in axes[:, 0]:
        axis.set_ylabel(METRICS[metric].label)
    runs = max(len({row["replicate"] for row in record["curves"]}) for record in found)
    figure.supxlabel(f"run time (s); n = {runs}", fontsize="medium")
    return figure


def widths(records: Records) -> Figure:
    """Discrepancy of draws that are too narrow or wide, over the value of exact draws; the lowest is ringed."""
    found = required(records, "widths")
    models = in_order((record["model"] for record in found), MODELS)
    names = {"ksd": "KSD", "fssd": "FSSD"}
    x_label = "width of the draws (posterior sds)\n0: a chain that never moves"
    figure, axes = _panels(models, names, x_label, height=2.5, over=" / {} of exact draws")
    for record in found:
        rows = sorted(record["rows"], key=lambda row: row["width"])
        for name in names:
            axis = axes[record["model"], name]
            axis.axvline(1.0, **DOTTED, label=EXACT)
            for scale, style in SCALES.items():
                own = [row for row in rows if (row["discrepancy"], row["scale"]) == (name, scale)]
                if own:
                    x, y = _numbers(own, "width"), _over_exact(own, record["model"])
                    axis.plot(x, y, zorder=3, **style)
                    lowest = np.nanargmin(y)
                    axis.plot(x[lowest], y[lowest], **RING, color=style["color"], zorder=4)
            axis.plot([], [], **RING, color=INK, label="lowest value")
            axis.set(yscale="log", xlim=(-0.15, None))
            log_ticks(axis.yaxis)
    legend_below(figure, figure.axes[0].get_legend_handles_labels()[0], handlelength=3.2)
    return figure


def _over_exact(rows: Sequence[dict], model: str) -> np.ndarray:
    """The discrepancy at each width over that of exact draws."""
    exact = [finite(row["value"]) or 0 for row in rows if math.isclose(row["width"], 1)]
    if not exact or not exact[0] > 0:
        raise DataError(f"widths of {model}: no positive value at width 1, over which the others are shown")
    return _numbers(rows, "value") / exact[0]


def shown_points(dimension: int, counts: set[int]) -> int:
    """The measured number of points that is nearest to the number of the study's judges in this dimension: 500 in
    tens, 100 in hundreds and thousands, 15 in tens of thousands."""
    usual = 500 if dimension <= 100 else 100 if dimension < 10_000 else 15
    return min(sorted(counts), key=lambda n: abs(np.log(n / usual)))


def sensitivity(records: Records, *, statistic: str, disturbances: Sequence[str]) -> Figure:
    """Signal over noise of one statistic, a line per judge: a column per disturbance and a row per dimension; of a
    single disturbance the dimensions side by side."""
    rows = [row for record in required(records, "sensitivity") for row in record["rows"]]
    dimensions = sorted({row["dimension"] for row in rows})
    shape = (len(dimensions), len(disturbances)) if len(disturbances) > 1 else (1, len(dimensions))
    figure, axes = panels(*shape, MEDIUM, 1.75 * shape[0] + 1.2, sharex="col", sharey=True)
    shown, lines = list(product(dimensions, disturbances)), []
    for axis, (dimension, disturbance) in zip(axes.flat, shown, strict=True):
        n = shown_points(dimension, {row["points"] for row in rows if row["dimension"] == dimension})
        whose = (dimension, n, disturbance)
        own = [row for row in rows if (row["dimension"], row["points"], row["perturbation"]) == whose]
        lines.append(_sensitivity_panel(axis, own, statistic))
        title, unit, _ = HEADINGS[disturbance]
        axis.set_title(f"{title}\n" * (axis in axes[0]) + f"D = {dimension:,}, n = {n:,}")
        axis.set_xlabel(unit if axis in axes[-1] else "")
    for axis in axes[:, 0]:
        axis.set_ylabel("signal / noise")
    _scale(axes, [line.get_ydata() for own in lines for line in own])
    for axis, own, (_, disturbance) in zip(axes.flat, lines, shown, strict=True):
        label_ends(axis, own, place=HEADINGS[disturbance][2])
    # Lines and areas that belong to no judge.
    entries = dict(zip(*reversed(axes[0, 0].get_legend_handles_labels()), strict=True))
    handles = [entries[name] for name in (EXACT, UNSEEN, PREFERRED) if name in entries]
    legend_below(figure, handles, handlelength=3.2)
    return figure


def _sensitivity_panel(axis: Axes, rows: Sequence[dict], statistic: str) -> list[Line2D]:
    """The lines of the judges."""
    lines = []
    axis.axhspan(-SEEN, SEEN, color="#ececec", linewidth=0, label=UNSEEN, zorder=0)
    axis.axhline(0, color=INK, linewidth=0.6, zorder=1)
    for at in sorted({row["size"] for row in rows if row[f"{statistic}_signal_se"] == 0}):
        axis.axvline(at, **DOTTED, label=EXACT, zorder=1)
    for judge in in_order({row["judge"] for row in rows}, JUDGES):
        own = sorted((row for row in rows if row["judge"] == judge), key=lambda row: row["size"])
        sizes = [row["size"] for row in own]
        signals, errors = (_numbers(own, f"{statistic}_signal{ending}") for ending in ("", "_se"))
        look = LINES[judge] | {"linewidth": 1.2, "markersize": 3.5, "markeredgewidth": 0, "clip_on": False}
        lines += axis.plot(sizes, np.clip(signals, -MOST, MOST), **look, zorder=3, label=JUDGES[judge])
        low, high = (np.clip(signals + sign * 2 * errors, -MOST, MOST) for sign in (-1, 1))
        axis.fill_between(sizes, low, high, color=look["color"], alpha=0.15, linewidth=0, zorder=2)
    return lines


def _scale(axes: np.ndarray, curves: Sequence[np.ndarray]) -> None:
    """One scale for all panels, linear where nothing is seen and logarithmic beyond."""
    is_misled = min(curve.min() for curve in curves) < -SEEN
    axes[0, 0].set_yscale("symlog", linthresh=SEEN, linscale=0.6)
    axes[0, 0].set_ylim(-MOST if is_misled else -4, MOST)
    low, high = axes[0, 0].get_ylim()
    for axis in axes.flat:
        axis.yaxis.set_major_locator(FixedLocator([tick for tick in TICKS if low <= tick <= high]))
        axis.yaxis.set_minor_locator(NullLocator())
        axis.yaxis.set_major_formatter(FuncFormatter(_tick))
        if is_misled:
            axis.axhspan(-MOST, -SEEN, color="#fae7dc", linewidth=0, label=PREFERRED, zorder=0)


def _tick(value: float, _: object) -> str:
    end = {MOST: "≥", -MOST: "≤"}.get(value, "")
    return f"{end}{value:,.0f}".replace("-", "\N{MINUS SIGN}")


def regret_dots(records: Records) -> Figure:
    """Mean loss of each tuner's arms over the oracle's, for the model's main loss and the longest run: a panel per
    model, a row per sampler."""
    found, doubts = required(records, "regret"), doubted(records)
    shown = {}
    for model in in_order((record["model"] for record in found), MODELS):
        own = [record for record in found if record["model"] == model]
        shown[model] = over_oracle(own, doubts, judged_by(own[0])[0])
    cells = [cell for own in shown.values() for cell in own]
    samplers = in_order((cell.sampler for cell in cells), SAMPLERS)
    at_test_set = {cell.tuner: cell.at_test_set for cell in cells if cell.tuner not in COMPARED_ARMS}
    figure, axes = panels(len(shown), 1, NARROW, len(shown) * (0.4 * len(samplers) + 0.8) + 1.3)
    for axis, (model, own) in zip(axes.flat, shown.items(), strict=True):
        _regret_panel(axis, own, samplers, in_order(at_test_set, TUNERS))
        axis.set_title(f"{label(model, MODELS)}, {own[0].detail}", pad=14)
        if any(cell.value is not None for cell in own):
            axis.set_xlabel(METRICS[own[0].metric].label)
    handles = []
    for tuner in in_order(at_test_set, TUNERS):
        look = tuner_style(tuner) | DOT
        handles.append(Line2D([], [], **look | {"label": look["label"] + f" {DAGGER}" * at_test_set[tuner]}))
    handles.append(Line2D([], [], label="Oracle", **DOTTED))
    for name, look in MARKS.items():
        handles.append(Line2D([], [], label=COMPARED_ARMS[name], **look | DOT))
    legend_below(figure, handles, handlelength=2.4)
    return figure


def _arrow_of_bound(axis: Axes, cell: Cell, row: float, span: float, color: str) -> None:
    """An arrow to the right from a number that is a lower bound; ``span``: of the axis, in decades."""
    if cell.value is not None and cell.text is not None:
        ends = (cell.value * 10 ** (0.06 * span), row), (cell.value, row)
        arrow = {"arrowstyle": "->", "color": color, "shrinkA": 0, "shrinkB": 0}
        axis.annotate("", *ends, arrowprops=arrow)


def _regret_panel(axis: Axes, cells: Sequence[Cell], samplers: Sequence[str], tuners: Sequence[str]) -> None:
    """A row per sampler and a dot per tuner with a bar of two standard errors to either side; the strip at the right
    edge is of those that diverged or found no arm."""
    known = [cell for cell in cells if cell.value is not None]
    # A lower bound has no bar, but an arrow.
    bounds = [cell for cell in known if cell.text is not None]
    reasons = {cell.missing for cell in cells if cell.value is None}
    off_scale = [words for reason, words in OFF_SCALE.items() if reason in reasons]
    bars = {cell: log_error(cell.value, cell.se or 0.0) for cell in known if cell not in bounds}
    ends = [cell.value for cell in bounds]
    low = min([1.0, *ends, *(cell.value - below for cell, (below, _) in bars.items())])
    high = max([1.0, *ends, *(cell.value + above for cell, (_, above) in bars.items())])
    # In decades: room for the strip, and for the dots at the edges.
    span = max(np.log10(high / low), 0.5)
    edge, margin = high * 10 ** (0.2 * span), 10 ** (0.08 * span)
    for i in range(1, len(samplers)):
        axis.axhline(i - 0.5, color="#d0d0d0", linewidth=0.6)
    axis.axvline(1.0, **DOTTED, label="oracle")
    axis.set_xscale("log")
    for cell in known:
        if cell.tuner in MARKS:
            look = MARKS[cell.tuner] | {"linestyle": "none", "zorder": 2}
            axis.plot([cell.value], [samplers.index(cell.sampler)], label=cell.tuner, **look)
            _arrow_of_bound(axis, cell, samplers.index(cell.sampler), span, look["color"])
    aside = np.linspace(-0.34, 0.34, len(tuners)) if len(tuners) > 1 else [0.0]
    for tuner, shift in zip(tuners, aside, strict=True):
        own = [cell for cell in cells if cell.tuner == tuner]
        own = [cell for cell in own if cell.value is not None or cell.missing in OFF_SCALE]
        if own:
            x = [edge if cell.value is None else cell.value for cell in own]
            rows = [samplers.index(cell.sampler) + shift for cell in own]
            errors = np.transpose([bars.get(cell, (0.0, 0.0)) for cell in own])
            look = tuner_style(tuner) | DOT | {"elinewidth": 1.0, "zorder": 3}
            axis.errorbar(x, rows, xerr=errors, **look)
            for cell, row in zip(own, rows, strict=True):
                _arrow_of_bound(axis, cell, row, span, look["color"])
    axis.set_xlim(low / margin, (edge if off_scale else high) * margin)
    log_ticks(axis.xaxis)
    if off_scale:
        # The strip is not on the scale, so it must have no tick.
        axis.set_xticks([tick for tick in axis.get_xticks() if low / margin <= tick < edge / margin])
        axis.minorticks_off()
        axis.axvspan(edge / margin, edge * margin, color="#f0f0f0", zorder=0)
        place = {"transform": axis.transAxes, "ha": "right", "va": "bottom", "fontsize": 7}
        axis.text(1.0, 1.01, " / ".join(off_scale), **place, color=INK)
    sampler_rows(axis, samplers)
    if not (known or off_scale):
        words = next((words for reason, words in NOTHING.items() if reason in reasons), "not computed")
        _say_empty(axis, axis.xaxis, words, bbox={"facecolor": "white", "edgecolor": "none"})
