"""The figure of the ladder of Gaussians: the tuners' choices over the oracle's, by dimension."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from sgtune.study.mamba.figures import tuner_handles
from sgtune.study.mamba.ladder import BOUND, KINDS, Choices, choices_of, mean_of, runs_said
from sgtune.study.report.labels import TUNERS, in_order, label
from sgtune.study.report.records import Records, need
from sgtune.study.report.style import INK, WIDTH, log_ticks, styled, tuner_style

__all__ = ["gaussian_ladder_dots"]

ORACLE = {"color": INK, "linewidth": 0.9, "linestyle": (0, (2, 2))}
LIMIT = {"color": INK, "linewidth": 0.9, "linestyle": (0, (1, 1.6))}

WORST = {
    "linestyle": "none",
    "markersize": 3.6,
    "markerfacecolor": "none",
    "markeredgewidth": 0.8,
    "zorder": 2,
}

MARKS = {"o": "Worst race", "x": "Worst race, escaped", "_": "Worst race, frozen"}

STEP = 1.13
"""Dots of one dimension stand side by side: this factor apart."""


def _mark(choices: Choices) -> str:
    """Of the worst race."""
    worst = max(choices.runs, key=lambda run: run["error"] / run["oracle_error"])
    if worst["escaped"]:
        return "x"
    return "_" if worst["frozen"] else "o"


def _panel(axis: Axes, found: Sequence[Choices], tuners: Sequence[str]) -> None:
    axis.axhline(1.0, **ORACLE)
    axis.axhline(BOUND, **LIMIT)
    axis.set(xscale="log", yscale="log")
    for place, tuner in enumerate(tuners):
        own = [choices for choices in found if choices.tuner == tuner]
        aside = STEP ** (place - (len(tuners) - 1) / 2)
        x = [aside * choices.dimension for choices in own]
        means = [mean_of(choices.over("oracle_error")) for choices in own]
        look = tuner_style(tuner)
        bars = [2 * (se or 0.0) for _, se in means]
        # A bar that reaches below zero has no end on a log axis.
        lower = [min(bar, 0.9 * value) for bar, (value, _) in zip(bars, means, strict=True)]
        axis.errorbar(
            x, [value for value, _ in means], yerr=[lower, bars], **look, markersize=5, linewidth=1, zorder=3
        )
        for at, choices in zip(x, own, strict=True):
            worst = max(choices.over("oracle_error"))
            axis.plot([at], [worst], marker=_mark(choices), markeredgecolor=look["color"], **WORST)


@styled
def gaussian_ladder_dots(records: Records) -> Figure:
    """Expected error of each tuner's arms over the oracle's, against the dimension: a panel per kind."""
    found = need(records, "ladder", "gaussian_ladder_dots")
    choices = [one for one in choices_of(found) if one.tuner != "oracle"]
    kinds = in_order((one.kind for one in choices), KINDS)
    tuners = in_order((one.tuner for one in choices), TUNERS)
    dimensions = sorted({one.dimension for one in choices})
    figure = Figure(figsize=(WIDTH, 3.4), layout="constrained")
    axes = figure.subplots(1, len(kinds), squeeze=False, sharey=True)[0]
    for axis, kind in zip(axes, kinds, strict=True):
        _panel(axis, [one for one in choices if one.kind == kind], tuners)
        axis.set_title(label(kind, KINDS))
        axis.set_xlabel("dimension D")
    # Panels share their scale, so its ticks are made when all have their dots.
    for axis in axes:
        axis.set_xlim(dimensions[0] / 2, 2 * dimensions[-1])
        axis.set_xticks(dimensions, [f"{dimension:,}" for dimension in dimensions])
        axis.minorticks_off()
        log_ticks(axis.yaxis)
    axes[0].set_ylabel("expected error over the oracle's")
    handles = tuner_handles(tuners, set(), markersize=5)
    handles += [
        Line2D([], [], label="Oracle", **ORACLE),
        Line2D([], [], label=f"{BOUND:g} times", **LIMIT),
    ]
    shown = {_mark(one) for one in choices}
    handles += [
        Line2D([], [], marker=mark, markeredgecolor=INK, label=words, **WORST)
        for mark, words in MARKS.items()
        if mark in shown
    ]
    spread = "mean ± 2 s.e.; " if any(len(one.runs) > 1 for one in choices) else ""
    title = f"{spread}{runs_said(found)}"
    figure.legend(handles=handles, loc="outside lower center", ncols=4, handlelength=2.4, title=title)
    return figure
