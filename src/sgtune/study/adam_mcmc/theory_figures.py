"""The figures that check the samplers: bias against gamma / s, and total variation against steps."""

# ruff: noqa: RUF001 - labels have Greek letters and signs of mathematics

from collections.abc import Mapping, Sequence
from statistics import median

import numpy as np
from matplotlib.figure import Figure

from sgtune.study.adam_mcmc.distance_findings import DISTANCES, fall_text, is_straight
from sgtune.study.adam_mcmc.intervals import t_quantile
from sgtune.study.adam_mcmc.names import SLOW_CURVE, mean_of
from sgtune.study.adam_mcmc.verdicts import squares_cause
from sgtune.study.catalogue import GREEN, PURPLE
from sgtune.study.report.records import Records, need
from sgtune.study.report.style import BLUE, INK, ORANGE, VERMILION, WIDTH, log_ticks, styled

__all__ = ["VARIANTS", "adam_bias_curves", "adam_distances"]

VARIANTS = {
    "isotropic": ("s_d = 0", BLUE, "s"),
    "prolate": ("s_d = 1", VERMILION, "o"),
    "prolate-batch": ("s_d = 1, minibatch gradients", ORANGE, "^"),
    "minibatch-test": ("s_d = 1, minibatch test", PURPLE, "v"),
    "exact": ("s_d = 1, exact", GREEN, "D"),
}
"""Label, colour and marker of each variant of AdamMCMC."""

LOOKS = {
    "mala-grid": (INK, "-"),
    "mala": (BLUE, (0, (4, 1.2))),
    "adam-mcmc-exact": (GREEN, "-"),
    SLOW_CURVE: (PURPLE, (0, (1.2, 1.2))),
    "adam-mcmc": (VERMILION, "-"),
    "adam-mcmc-large": (ORANGE, "-"),
}


@styled
def adam_bias_curves(records: Records) -> Figure:
    """A panel per D: |E x^2 - 1| against gamma / s in log scale, a line per variant, with 95% t intervals, and their
    half-widths: what exact draws could show. Points of chains that are stuck or too slow are left out."""
    [found] = need(records, "bias", "adam_bias_curves")
    dimensions = list(dict.fromkeys(cell["dimension"] for cell in found["cells"]))
    figure = Figure(figsize=(WIDTH, 2.9), layout="constrained")
    axes = figure.subplots(1, len(dimensions), squeeze=False, sharey=True)[0]
    for axis, dimension in zip(axes, dimensions, strict=True):
        floors: dict[float, list[float]] = {}
        for variant, (label, color, marker) in VARIANTS.items():
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
            if axis is axes[0]:
                axis.plot(
                    [], [], color=color, marker=marker, markersize=3.8, markerfacecolor="white", label=label
                )
        ratios = sorted(floors)
        axis.fill_between(
            ratios,
            [median(floors[ratio]) for ratio in ratios],
            color=INK,
            alpha=0.12,
            linewidth=0,
            label="below the half-width of an interval" if axis is axes[0] else None,
        )
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_title(f"D = {dimension}")
        axis.set_xlabel("γ / s")
        log_ticks(axis.xaxis)
    axes[0].set_ylabel("|E x² − 1|")
    axes[0].set_ylim(bottom=LEAST_SHOWN)
    figure.legend(
        loc="outside lower center",
        ncols=3,
        handlelength=2.6,
        title=f"{found['chains']} chains of {found['steps']:,} steps; more for the exact variant",
    )
    return figure


LEAST_SHOWN = 1e-3
"""Of |E x^2 - 1|; it is below the standard errors of the study."""


def _with_half_width(values: Sequence[float]) -> tuple[float, float]:
    """The mean, and half the width of its 95% interval; 0 of one value."""
    mean, se = mean_of(values)
    return mean, se * t_quantile(len(values)) if se else 0.0


def _draw_bias(axis, own: list[tuple[float, float, float]], color: str, marker: str) -> None:
    """A line of |mean - 1|, its markers filled where the mean is above 1."""
    ratios = [ratio for ratio, _, _ in own]
    sizes = [max(abs(mean - 1), LEAST_SHOWN) for _, mean, _ in own]
    spans = [half_width for _, _, half_width in own]
    # In log scale the lower end of a bar must stay above 0.
    below = [min(span, 0.999 * size) for size, span in zip(sizes, spans, strict=True)]
    axis.errorbar(ratios, sizes, yerr=[below, spans], color=color, linewidth=1.1)
    for ratio, size, (_, mean, _) in zip(ratios, sizes, own, strict=True):
        face = color if mean > 1 else "white"
        axis.plot([ratio], [size], color=color, marker=marker, markersize=3.8, markerfacecolor=face)


@styled
def adam_distances(records: Records) -> Figure:
    """Total variation against the number of steps, in log scale, with the floors of the histograms and fitted lines: a
    panel of the curves that fall fast, and one of the curve that needs more steps."""
    [found] = need(records, "distances", "adam_distances")
    lines = {line["name"]: line for line in found["lines"]}
    slow = [lines.pop(SLOW_CURVE)] if SLOW_CURVE in lines else []
    panels = [panel for panel in (list(lines.values()), slow) if panel]
    figure = Figure(figsize=(WIDTH, 3.9), layout="constrained")
    axes = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
    labelled = set()
    for axis, panel in zip(axes, panels, strict=True):
        for line in panel:
            _draw_distances(axis, line)
        # A matrix has no chains: its floor is one of rounding.
        chains = {line["chains"]: line["floor"] for line in panel if "chains" in line}
        for number, floor in chains.items():
            # The legend belongs to both panels: it names a number of draws once.
            label = None if number in labelled else f"{number:,} exact draws"
            labelled.add(number)
            axis.axhline(floor, color=INK, alpha=0.35, linewidth=1.6, label=label)
        axis.set_xlabel("steps")
    axes[0].set_yscale("log")
    axes[0].set_ylim(bottom=found["floor"] / 3)
    axes[0].set_ylabel("total variation to the target")
    figure.legend(loc="outside lower center", ncols=2, fontsize="small")
    return figure


def _draw_distances(axis, line: Mapping) -> None:
    """A curve; if it is straight, with its rate in the legend, and dots at the ends of the fit."""
    label, (color, style), fit = DISTANCES[line["name"]], LOOKS[line["name"]], line["fit"]
    steps, distances = line["steps"], line["distances"]
    if is_straight(fit):
        rate, off = fall_text(fit)
        label += f": {rate} a step\n(steps {fit['first']} to {fit['last']}, {off})"
        ends = [fit["first"], fit["last"]]
        axis.plot(ends, np.interp(ends, steps, distances), "o", color=color, markersize=3.5)
    axis.plot(steps, distances, color=color, linestyle=style, linewidth=1.2, label=label)
