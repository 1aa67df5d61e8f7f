"""The figures that check the samplers: bias against gamma / s, and total variation against steps."""

# ruff: noqa: RUF001 - labels have Greek letters and signs of mathematics

from collections.abc import Sequence
from statistics import median

from matplotlib.figure import Figure

from sgtune.study.adam_mcmc.distance_findings import DISTANCES, STRAIGHT
from sgtune.study.adam_mcmc.intervals import t_quantile
from sgtune.study.adam_mcmc.names import mean_of
from sgtune.study.adam_mcmc.verdicts import squares_cause
from sgtune.study.artifacts.records import Records, need
from sgtune.study.artifacts.style import BLUE, INK, ORANGE, VERMILION, WIDTH, log_ticks, styled
from sgtune.study.catalogue.tuners import GREEN, PURPLE

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
    "adam-mcmc-exact-slow": (PURPLE, (0, (1.2, 1.2))),
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
                _draw_bias(axis, sorted(own), color, marker, label if axis is axes[0] else None)
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
    figure.legend(loc="outside lower center", ncols=3, handlelength=2.6)
    return figure


LEAST_SHOWN = 1e-3
"""Of |E x^2 - 1|; it is below the standard errors of the study."""


def _with_half_width(values: Sequence[float]) -> tuple[float, float]:
    """The mean, and half the width of its 95% interval; 0 of one value."""
    mean, se = mean_of(values)
    return mean, se * t_quantile(len(values)) if se else 0.0


def _draw_bias(axis, own: list[tuple[float, float, float]], color: str, marker: str, label: str | None):
    """A line of |mean - 1|, its markers filled where the mean is above 1."""
    ratios = [ratio for ratio, _, _ in own]
    sizes = [max(abs(mean - 1), LEAST_SHOWN) for _, mean, _ in own]
    spans = [half_width for _, _, half_width in own]
    # In log scale the lower end of a bar must stay above 0.
    below = [min(span, 0.999 * size) for size, span in zip(sizes, spans, strict=True)]
    axis.errorbar(ratios, sizes, yerr=[below, spans], color=color, linewidth=1.1, label=label)
    for ratio, size, (_, mean, _) in zip(ratios, sizes, own, strict=True):
        face = color if mean > 1 else "white"
        axis.plot([ratio], [size], color=color, marker=marker, markersize=3.8, markerfacecolor=face)


@styled
def adam_distances(records: Records) -> Figure:
    """Total variation against the number of steps, in log scale, with the floor of the histograms and fitted lines."""
    [found] = need(records, "distances", "adam_distances")
    figure = Figure(figsize=(WIDTH, 3.0), layout="constrained")
    axis = figure.subplots()
    for line in found["lines"]:
        label, (color, style) = DISTANCES[line["name"]], LOOKS[line["name"]]
        fit = line["fit"]
        if fit is not None and fit["misfit"] <= STRAIGHT:
            label += f": {fit['rate']:.3f} a step\n(steps {fit['first']} to {fit['last']}, misfit {fit['misfit']:.2f})"
            ends = [fit["first"], fit["last"]]
            axis.plot(ends, [line["distances"][end] for end in ends], "o", color=color, markersize=3.5)
        axis.plot(line["distances"], color=color, linestyle=style, linewidth=1.2, label=label)
    axis.axhline(found["floor"], color=INK, alpha=0.35, linewidth=1.6, label="exact draws")
    axis.set_yscale("log")
    axis.set_ylim(bottom=found["floor"] / 3)
    axis.set_xlabel("steps")
    axis.set_ylabel("total variation to the target")
    figure.legend(loc="outside right upper", fontsize="small")
    return figure
