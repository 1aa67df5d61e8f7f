"""Figures of what discrepancies see: a wrong width of the study's posteriors, and draws with one error at a time."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from sgtune.study.catalogue import GREEN, PURPLE
from sgtune.study.mamba.artifacts import JUDGES
from sgtune.study.mamba.figures import legend_below, numbers, panels
from sgtune.study.report.labels import MODELS, in_order
from sgtune.study.report.records import Records, required
from sgtune.study.report.style import BLUE, INK, ORANGE, VERMILION, WIDTH, log_ticks, styled
from sgtune.support.errors import DataError

__all__ = ["sensitivity", "shown_points", "widths"]

SEEN = 2.0
"""Standard deviations of a value above which an error counts as seen."""

MOST = 1000.0
"""Larger values are drawn at the edge: thousands of sds need no scale."""

TICKS = (-1000, -100, -10, -2, 0, 2, 10, 100, 1000)
EXACT, UNSEEN, PREFERRED = "exact draws", "not distinguished from exact draws", "preferred to exact draws"
DOTTED = {"color": INK, "linewidth": 0.9, "linestyle": (0, (2, 2))}
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
SCALES = {
    "identity": {"color": VERMILION, "marker": "s", "linestyle": (0, (4, 1.5)), "label": "raw coordinates"},
    "laplace": {"color": BLUE, "marker": "o", "linestyle": "-", "label": "scaled by the posterior"},
}
RING = {"marker": "o", "markersize": 10, "markerfacecolor": "none", "linestyle": "none"}


@styled
def widths(records: Records) -> Figure:
    """Discrepancy of draws that are too narrow or wide, over the value of exact draws; the lowest is ringed."""
    found = required(records, "widths")
    models = in_order((record["model"] for record in found), MODELS)
    present = {row["discrepancy"] for record in found for row in record["rows"]}
    names = {name: heading for name, heading in (("ksd", "KSD"), ("fssd", "FSSD")) if name in present}
    x_label = "width of the draws (posterior sds)\n0: a chain that never moves"
    figure, axes = panels(models, names, x_label, height=2.5, over=" / {} of exact draws")
    for record in found:
        for name in names:
            axis = axes[record["model"], name]
            axis.axvline(1.0, **DOTTED, label=EXACT)
            for scale, style in SCALES.items():
                own = [row for row in record["rows"] if (row["discrepancy"], row["scale"]) == (name, scale)]
                if own:
                    x, y = _relative(own, record["model"])
                    axis.plot(x, y, zorder=3, **style)
                    lowest = np.nanargmin(y)
                    axis.plot(x[lowest], y[lowest], **RING, color=style["color"], zorder=4)
            axis.plot([], [], **RING, color=INK, label="lowest value")
            axis.set(yscale="log", xlim=(-0.15, None))
            log_ticks(axis.yaxis)
    legend_below(figure, figure.axes[0], 2)
    return figure


def _relative(rows: Sequence[dict], model: str) -> tuple[np.ndarray, np.ndarray]:
    """The widths, and the discrepancy at each over the discrepancy of exact draws."""
    rows = sorted(rows, key=lambda row: row["width"])
    x, y = (numbers([row[name] for row in rows]) for name in ("width", "value"))
    exact = y[np.isclose(x, 1.0)]
    if not exact.size or not exact[0] > 0:
        raise DataError(f"widths of {model}: no positive value at width 1, over which the others are shown")
    return x, y / exact[0]


def shown_points(dimension: int, counts: set[int]) -> int:
    """The measured number of points that is nearest to the number of the study's judges in this dimension: 500 in
    tens, 100 in hundreds and thousands, 15 in tens of thousands."""
    usual = 500 if dimension <= 100 else 100 if dimension < 10_000 else 15
    return min(sorted(counts), key=lambda n: abs(np.log(n / usual)))


@styled
def sensitivity(records: Records, *, statistic: str) -> Figure:
    """Signal over noise of one statistic: a column per disturbance, a row per dimension, a line per judge."""
    rows = [row for record in required(records, "sensitivity") for row in record["rows"]]
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
    for top, bottom, disturbance in zip(axes[0], axes[-1], columns, strict=True):
        title, unit = HEADINGS.get(disturbance, (disturbance, disturbance))
        top.set_title(title)
        bottom.set_xlabel(unit)
    _scale(axes)
    # The judges, then the lines and areas that belong to no judge.
    entries = dict(zip(*reversed(axes[0, 0].get_legend_handles_labels()), strict=True))
    order = in_order(entries, [*JUDGES.values(), EXACT, UNSEEN, PREFERRED])
    place = {"loc": "outside lower center", "ncols": 4, "handlelength": 3.2, "columnspacing": 1.5}
    figure.legend([entries[name] for name in order], order, **place)
    return figure


def _panel(axis: Axes, rows: Sequence[dict], statistic: str) -> None:
    axis.axhspan(-SEEN, SEEN, color="#ececec", linewidth=0, label=UNSEEN, zorder=0)
    axis.axhline(0, color=INK, linewidth=0.6, zorder=1)
    for at in sorted({row["size"] for row in rows if row[f"{statistic}_signal_se"] == 0}):
        axis.axvline(at, **DOTTED, label=EXACT, zorder=1)
    for judge in in_order({row["judge"] for row in rows}, JUDGES):
        own = sorted((row for row in rows if row["judge"] == judge), key=lambda row: row["size"])
        sizes = [row["size"] for row in own]
        signals, errors = (
            np.array([row[f"{statistic}_signal{ending}"] for row in own], float) for ending in ("", "_se")
        )
        look = LINES[judge] | {"linewidth": 1.2, "markersize": 3.5, "markeredgewidth": 0, "clip_on": False}
        axis.plot(sizes, np.clip(signals, -MOST, MOST), **look, zorder=3, label=JUDGES[judge])
        low, high = (np.clip(signals + sign * 2 * errors, -MOST, MOST) for sign in (-1, 1))
        axis.fill_between(sizes, low, high, color=look["color"], alpha=0.15, linewidth=0, zorder=2)


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
