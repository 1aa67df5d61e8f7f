"""The figures of the study: acceptance and E x^2 against s, bias against gamma / s, total variation against steps."""

from collections.abc import Mapping, Sequence
from itertools import cycle
from math import ceil, expm1
from statistics import median

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from sgtune.study.adam_mcmc.artifacts import NAMES
from sgtune.study.adam_mcmc.verdicts import squares_cause, t_quantile
from sgtune.study.catalogue import BLUE, GREEN, ORANGE, PURPLE, VERMILION
from sgtune.study.report.labels import MODELS, label
from sgtune.study.report.records import Records, mean_of, required
from sgtune.study.report.style import INK, WIDTH, legend_below, log_error, log_ticks, panels

RATIOS = (
    {"color": BLUE, "linestyle": "-", "marker": "o"},
    {"color": ORANGE, "linestyle": (0, (4, 1.2)), "marker": "s"},
    {"color": VERMILION, "linestyle": (0, (1.2, 1.2)), "marker": "^"},
    {"color": INK, "linestyle": (0, (5, 1.5, 1.5, 1.5)), "marker": "D"},
)
"""Of gamma / s, ascending."""

VARIANT_MARKERS = {
    "isotropic": (BLUE, "s"),
    "prolate": (VERMILION, "o"),
    "prolate-batch": (ORANGE, "^"),
    "minibatch-test": (PURPLE, "v"),
    "exact": (GREEN, "D"),
}
"""Colour and marker of each variant of AdamMCMC."""

SLOW_CURVE = "adam-mcmc-exact-slow"
LINES = {
    "mala-grid": ("MALA, exactly", INK, "-"),
    "mala": ("MALA", BLUE, (0, (4, 1.2))),
    "adam-mcmc-exact": ("AdamMCMC, exact", GREEN, (0, (5, 1.5, 1.5, 1.5))),
    SLOW_CURVE: ("AdamMCMC, exact, Adam's b₁, b₂", PURPLE, (0, (1.2, 1.2))),
    "adam-mcmc": ("AdamMCMC, γ / s = 0.1", VERMILION, (0, (7, 1.5))),
    "adam-mcmc-large": ("AdamMCMC, γ / s = 1", ORANGE, (0, (1.2, 1.2))),
}
"""Label, colour and style of each curve of total variation; the slow one has a panel of its own."""

STRAIGHT = 0.15
"""A line whose largest misfit, in log, is more than this is not called straight, and has no rate in print."""

NEAR_1 = 0.99
"""Rates from here on have five digits."""

LEAST_SHOWN = 1e-3
"""Of |E x^2 - 1|; it is below the standard errors of the study."""


def _with_half_width(values: Sequence[float]) -> tuple[float, float]:
    """The mean, and half the width of its 95% t interval; 0 of one value."""
    mean, se = mean_of(values)
    return mean, se * t_quantile(len(values)) if se else 0.0


def adam_acceptance_curves(records: Records) -> Figure:
    """A column per target: acceptance and E x^2 against s, a row each per s_d, a line per gamma / s, with 95% t
    intervals. No E x^2 of chains that are stuck or too slow, or that start from approximate draws."""
    found = sorted(
        required(records, "acceptance"), key=lambda record: (record["n_data"] > 1, record["dimension"])
    )
    ratios = sorted({cell["drift_ratio"] for record in found for cell in record["cells"]})
    alongs = sorted({cell["directional_noise"] for cell in found[0]["cells"]})
    hollow = [look | {"markerfacecolor": "none"} for look in RATIOS]
    lines = dict(zip(ratios, cycle([*RATIOS, *hollow]), strict=False))
    n_rows, shared = 2 * len(alongs), {"sharex": True, "sharey": "row"}
    figure, axes = panels(n_rows, len(found), WIDTH, 1.5 * n_rows + 0.8, **shared)
    for column, record in zip(axes.T, found, strict=True):
        for along, rates, squares in zip(alongs, column, column[len(alongs) :], strict=False):
            for ratio, look in lines.items():
                where = (ratio, along)
                own = [c for c in record["cells"] if (c["drift_ratio"], c["directional_noise"]) == where]
                _draw_line(rates, own, "acceptance", look)
                known = [c for c in own if record["n_data"] == 1 and not squares_cause(c, c["steps"])]
                _draw_line(squares, known, "square", look)
            rates.set_ylim(-0.02, 1.02)
            squares.axhline(1, color=INK, alpha=0.35, linewidth=1.6)
            if not squares.containers:
                place = {"ha": "center", "va": "center", "transform": squares.transAxes}
                squares.text(0.5, 0.5, "no estimate", **place, fontsize="small")
        column[0].set_title(label(record["target"], MODELS | NAMES), fontsize="small")
        column[-1].set_xscale("log")
        column[-1].set_xlabel("s √T")
        log_ticks(column[-1].xaxis)
    for i, along in enumerate(alongs):
        # Only now: a limit that is set ends the scaling of all panels that share the axis.
        axes[len(alongs) + i, 0].set_ylim(bottom=0)
        axes[i, 0].set_ylabel(f"acceptance\ns_d = {along:g}")
        axes[len(alongs) + i, 0].set_ylabel(f"E x²\ns_d = {along:g}")
    handles = [Line2D([], [], label=f"γ / s = {ratio:g}", ms=3.5, **look) for ratio, look in lines.items()]
    legend_below(figure, handles, len(handles), handlelength=2.6)
    return figure


def _draw_line(axis: Axes, cells: Sequence[Mapping], key: str, look: Mapping) -> None:
    """The means of the cells' chains against s."""
    points = sorted((cell["scale"], *_with_half_width(cell[key])) for cell in cells)
    if points:
        scales, means, widths = zip(*points, strict=True)
        axis.errorbar(scales, means, yerr=widths, linewidth=1.1, markersize=2.5, **look)


def adam_bias_curves(records: Records) -> Figure:
    """A panel per D: |E x^2 - 1| against gamma / s in log scale, a line per variant, with 95% t intervals, and their
    half-widths: what exact draws could show. Points of chains that are stuck or too slow are left out."""
    [found] = required(records, "bias")
    dimensions = list(dict.fromkeys(cell["dimension"] for cell in found["cells"]))
    figure, [axes] = panels(1, len(dimensions), WIDTH, 2.9, sharey=True)
    for axis, dimension in zip(axes, dimensions, strict=True):
        floors: dict[float, list[float]] = {}
        for variant, (color, marker) in VARIANT_MARKERS.items():
            own = [
                (cell["ratio"], *_with_half_width(cell["squares"]))
                for cell in found["cells"]
                if (cell["variant"], cell["dimension"]) == (variant, dimension)
                and not squares_cause(cell, found["steps"])
            ]
            # The exact variant has more chains, and shorter intervals.
            for ratio, _, half_width in own if variant != "exact" else ():
                floors.setdefault(ratio, []).append(half_width)
            if own:
                _draw_bias(axis, sorted(own), color, marker)
            look = {"color": color, "marker": marker, "markersize": 3.8, "markerfacecolor": "white"}
            axis.plot([], [], label=NAMES[variant], **look)
        ratios, look = sorted(floors), {"color": INK, "alpha": 0.12, "linewidth": 0}
        heights = [median(floors[ratio]) for ratio in ratios]
        axis.fill_between(ratios, heights, label="below the half-width of an interval", **look)
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_title(f"D = {dimension}")
        axis.set_xlabel("γ / s")
        log_ticks(axis.xaxis)
    axes[0].set_ylabel("|E x² − 1|")
    axes[0].set_ylim(bottom=LEAST_SHOWN)
    title = f"{found['chains']} chains of {found['steps']:,} steps; more for the exact variant"
    legend_below(figure, axes[0].get_legend_handles_labels()[0], 3, handlelength=2.6, title=title)
    return figure


def _draw_bias(axis: Axes, own: list[tuple[float, float, float]], color: str, marker: str) -> None:
    """A line of |mean - 1|, its markers filled where the mean is above 1; no bar where its interval has 1."""
    ratios, means, spans = zip(*own, strict=True)
    sizes = [max(abs(mean - 1), LEAST_SHOWN) for mean in means]
    bars = [
        log_error(size, span / 2 if span < size else 0.0) for size, span in zip(sizes, spans, strict=True)
    ]
    axis.errorbar(ratios, sizes, yerr=np.transpose(bars), color=color, linewidth=1.1)
    for ratio, size, mean in zip(ratios, sizes, means, strict=True):
        face = color if mean > 1 else "white"
        look = {"markersize": 3.8, "markerfacecolor": face, "clip_on": False}
        axis.plot([ratio], [size], color=color, marker=marker, **look)


def adam_distances(records: Records) -> Figure:
    """Total variation against the number of steps, in log scale, with the floors of the histograms and fitted lines: a
    panel of the curves that fall fast, and one of the curve that needs more steps."""
    [found] = required(records, "distances")
    (figure, [axes]), handles = panels(1, 2, WIDTH, 3.9, sharey=True), {}
    for axis, is_slow in zip(axes, (False, True), strict=True):
        panel = [line for line in found["lines"] if (line["name"] == SLOW_CURVE) == is_slow]
        for line in panel:
            _draw_distances(axis, line)
        # A matrix has no chains: its floor is one of rounding.
        for number, floor in {line["chains"]: line["floor"] for line in panel if "chains" in line}.items():
            axis.axhline(floor, color=INK, alpha=0.35, linewidth=1.6, label=f"{number:,} exact draws")
        axis.set_xlabel("steps")
        # The legend belongs to both panels: it names a number of draws once.
        handles |= {handle.get_label(): handle for handle in axis.get_legend_handles_labels()[0]}
    axes[0].set_yscale("log")
    axes[0].set_ylim(bottom=found["floor"] / 3)
    axes[0].set_ylabel("total variation to the target")
    legend_below(figure, handles.values(), fontsize="small")
    return figure


def _draw_distances(axis: Axes, line: Mapping) -> None:
    """A curve; if it is straight, with its rate in the legend, and dots at the ends of the fit."""
    (label, color, style), fit = LINES[line["name"]], line["fit"]
    steps, distances = line["steps"], line["distances"]
    if fit is not None and fit["misfit"] <= STRAIGHT:
        digits, ends = 3 if fit["rate"] < NEAR_1 else 5, [fit["first"], fit["last"]]
        label += f": {fit['rate']:.{digits}f} a step\n"
        label += f"(steps {ends[0]} to {ends[1]}, at most {ceil(100 * expm1(fit['misfit']))}% off)"
        axis.plot(ends, np.interp(ends, steps, distances), "o", color=color, markersize=3.5)
    axis.plot(steps, distances, color=color, linestyle=style, linewidth=1.2, label=label)
