"""The figures of the errors that discrepancies see: draws with one error at a time, by dimension."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from sgtune.study.catalogue import GREEN, PURPLE
from sgtune.study.mamba.sensitivity_table import JUDGES
from sgtune.study.report.labels import in_order
from sgtune.study.report.records import Records, need
from sgtune.study.report.style import BLUE, INK, ORANGE, VERMILION, WIDTH, styled

__all__ = ["SEEN", "sensitivity", "shown_points"]

SEEN = 2.0
"""Standard deviations of a value above which an error counts as seen."""

MOST = 1000.0
"""Larger values are drawn at the edge: thousands of sds need no scale."""

TICKS = (-1000, -100, -10, -2, 0, 2, 10, 100, 1000)

EXACT, UNSEEN, PREFERRED = "exact draws", "not distinguished from exact draws", "preferred to exact draws"

HEADINGS = {
    "width": ("All widths", "width of all\ncoordinates (sds)"),
    "shift": ("Location", "shift of all\ncoordinates (sds)"),
    "coordinate": ("One coordinate", "width of one\ncoordinate (sds)"),
    "direction": ("Common mode", "width of the\ncommon mode (sds)"),
    "weights": ("Mixture weights", "weight of one\nof two modes"),
}

LINES = {
    "ksd": {"color": BLUE, "marker": "o", "linestyle": "-"},
    "ksd_wide": {"color": GREEN, "marker": "D", "linestyle": (0, (5, 1.5))},
    "fssd": {"color": ORANGE, "marker": "s", "linestyle": (0, (1.5, 1))},
    "psd": {"color": VERMILION, "marker": "^", "linestyle": "-"},
    "virial": {"color": PURPLE, "marker": "v", "linestyle": (0, (7, 1.5, 1.5, 1.5))},
}


def shown_points(dimension: int, counts: set[int]) -> int:
    """The measured number of points that is nearest to the number of the study's judges in this dimension: 500 in
    tens, 100 in hundreds and thousands, 15 in tens of thousands."""
    usual = 500 if dimension <= 100 else 100 if dimension < 10_000 else 15
    return min(sorted(counts), key=lambda n: abs(np.log(n / usual)))


@styled
def sensitivity(records: Records, *, name: str, statistic: str) -> Figure:
    """Signal over noise of one reading: a column per disturbance, a row per dimension, a line per judge."""
    rows = [row for record in need(records, "sensitivity", name) for row in record["rows"]]
    dimensions = sorted({row["dimension"] for row in rows})
    columns = in_order({row["perturbation"] for row in rows}, HEADINGS)
    figure = Figure(figsize=(WIDTH, 1.35 * len(dimensions) + 1.15), layout="constrained")
    axes = figure.subplots(len(dimensions), len(columns), squeeze=False, sharex="col", sharey=True)
    for line, dimension in zip(axes, dimensions, strict=True):
        n = shown_points(dimension, {row["points"] for row in rows if row["dimension"] == dimension})
        own = [row for row in rows if (row["dimension"], row["points"]) == (dimension, n)]
        for axis, disturbance in zip(line, columns, strict=True):
            _panel(axis, [row for row in own if row["perturbation"] == disturbance], statistic)
        line[0].set_ylabel(f"D = {dimension:,}, n = {n:,}\nsignal / noise")
    for axis, disturbance in zip(axes[0], columns, strict=True):
        axis.set_title(HEADINGS.get(disturbance, (disturbance, ""))[0])
    for axis, disturbance in zip(axes[-1], columns, strict=True):
        axis.set_xlabel(HEADINGS.get(disturbance, ("", disturbance))[1])
    _scale(axes)
    _legend(figure, axes[0, 0])
    return figure


def _legend(figure: Figure, axis: Axes) -> None:
    """The judges, then the lines and areas that belong to no judge; in one line they would be wider than the page."""
    entries = dict(zip(*reversed(axis.get_legend_handles_labels()), strict=True))
    others = [name for name in (EXACT, UNSEEN, PREFERRED) if name in entries]
    order = [*(name for name in entries if name not in others), *others]
    place = {"loc": "outside lower center", "ncols": 4, "handlelength": 3.2, "columnspacing": 1.5}
    figure.legend([entries[name] for name in order], order, **place)


def _panel(axis: Axes, rows: list[dict], statistic: str) -> None:
    axis.axhspan(-SEEN, SEEN, color="#ececec", linewidth=0, label=UNSEEN, zorder=0)
    axis.axhline(0, color=INK, linewidth=0.6, zorder=1)
    exact = [row["size"] for row in rows if row[f"{statistic}_signal_se"] == 0]
    for at in sorted(set(exact)):
        axis.axvline(at, color=INK, linewidth=0.9, linestyle=(0, (2, 2)), label=EXACT, zorder=1)
    for judge in in_order({row["judge"] for row in rows}, JUDGES):
        own = sorted((row for row in rows if row["judge"] == judge), key=lambda row: row["size"])
        sizes = [row["size"] for row in own]
        signals, errors = (
            np.array([row[f"{statistic}_signal{ending}"] for row in own], float) for ending in ("", "_se")
        )
        style = LINES.get(judge, {"color": INK, "marker": "P", "linestyle": "-"})
        look = {"linewidth": 1.2, "markersize": 3.5, "markeredgewidth": 0, "zorder": 3, "clip_on": False}
        axis.plot(
            sizes, np.clip(signals, -MOST, MOST), **style, **look, label=JUDGES.get(judge, judge.upper())
        )
        low, high = (np.clip(signals + sign * 2 * errors, -MOST, MOST) for sign in (-1, 1))
        axis.fill_between(sizes, low, high, color=style["color"], alpha=0.15, linewidth=0, zorder=2)


def _scale(axes: np.ndarray) -> None:
    """One scale for all panels, linear where nothing is seen and logarithmic beyond."""
    curves = [
        line.get_ydata() for axis in axes.flat for line in axis.lines if line.get_label() in JUDGES.values()
    ]
    is_misled = min(curve.min() for curve in curves) < -SEEN
    axes[0, 0].set_yscale("symlog", linthresh=SEEN, linscale=0.6)
    axes[0, 0].set_ylim(-MOST if is_misled else -4, MOST)
    low, high = axes[0, 0].get_ylim()
    for axis in axes.flat:
        axis.yaxis.set_major_locator(FixedLocator([tick for tick in TICKS if low <= tick <= high]))
        axis.yaxis.set_minor_locator(NullLocator())
        axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _tick(float(value))))
        if is_misled:
            axis.axhspan(-MOST, -SEEN, color="#fae7dc", linewidth=0, label=PREFERRED, zorder=0)


def _tick(value: float) -> str:
    end = {MOST: "≥", -MOST: "≤"}.get(value, "")
    return f"{end}{value:,.0f}".replace("-", "\N{MINUS SIGN}")
