"""The figure of regret: tuners' arms over the oracle's."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from sgtune.study.mamba.figures import tuner_handles
from sgtune.study.mamba.regret import after, losses_of, regret_cells, seconds_of
from sgtune.study.report.labels import COMPARED_ARMS, METRICS, MODELS, SAMPLERS, TUNERS, in_order, label
from sgtune.study.report.records import Records, looks_at_test_set, required
from sgtune.study.report.style import INK, WIDTH, log_ticks, styled, tuner_style
from sgtune.study.report.table import AT_CAP, DIVERGED, NO_ARM, NOT_TRUSTED, Cell

__all__ = ["regret_dots"]

DOT = {"linestyle": "none", "markersize": 5.5}
MARKS = {
    "random": {"marker": "|", "color": "#6e6e6e", "markersize": 13, "markeredgewidth": 1.4},
    "frozen": {"marker": "x", "color": "#6e6e6e", "markersize": 6, "markeredgewidth": 1.4},
}
"""How arms for comparison look in the row of a sampler; the oracle is the line at 1."""

ORACLE = {"color": INK, "linewidth": 0.9, "linestyle": (0, (2, 2))}
OFF_SCALE = {DIVERGED: "diverged", NO_ARM: "no arm"}
"""Why a tuner has no regret that a scale could show -> what the strip of such tuners is called."""

NOTHING = {NOT_TRUSTED: "the reference is\nnot trusted", AT_CAP: "the oracle's loss\nis not known"}
"""Why a panel is empty -> what it says; else that it was not computed."""


@styled
def regret_dots(records: Records) -> Figure:
    """Mean loss of each tuner's arms over the oracle's, for the model's main loss and the longest run: a panel per
    model, a row per sampler."""
    found = required(records, "regret")
    models = in_order((record["model"] for record in found), MODELS)
    samplers = in_order((record["sampler"] for record in found), SAMPLERS)
    tuners = in_order((chosen["tuner"] for record in found for chosen in record["chosen"]), TUNERS)
    figure = Figure(figsize=(WIDTH, 0.62 * len(samplers) + 1.7), layout="constrained")
    axes = figure.subplots(1, len(models), squeeze=False, sharey=True)[0]
    for axis, model in zip(axes, models, strict=True):
        own = [record for record in found if record["model"] == model]
        which = (f"{losses_of(own[0])[0]}_over_oracle", after(seconds_of(own)[-1]))
        cells = [cell for cell in regret_cells(own) if (cell.metric, cell.detail) == which]
        _regret_panel(axis, cells, samplers, tuners)
        axis.set_title(f"{label(model, MODELS)}, {which[1]}", pad=14)
        if any(cell.value is not None for cell in cells):
            axis.set_xlabel(METRICS[which[0]].label)
    axes[0].set_yticks(range(len(samplers)), [label(sampler, SAMPLERS) for sampler in samplers])
    chosen = [record | one for record in found for one in record["chosen"]]
    at_test_set = {one["tuner"] for one in chosen if looks_at_test_set(one)}
    handles = [*tuner_handles(tuners, at_test_set, **DOT), Line2D([], [], label="Oracle", **ORACLE)]
    for name, look in MARKS.items():
        handles.append(Line2D([], [], linestyle="none", label=COMPARED_ARMS[name], **look))
    figure.legend(handles=handles, loc="outside lower center", ncols=4, handlelength=2.4)
    return figure


def _regret_panel(axis: Axes, cells: Sequence[Cell], samplers: Sequence[str], tuners: Sequence[str]) -> None:
    """A row per sampler and a dot per tuner with a bar of two standard errors to either side; the strip at the right
    edge is of those that diverged or found no arm."""
    known = [cell for cell in cells if cell.value is not None]
    reasons = {cell.missing for cell in cells if cell.value is None}
    off_scale = [words for reason, words in OFF_SCALE.items() if reason in reasons]
    low = min([1.0, *(cell.value for cell in known)])
    high = max([1.0, *(cell.value + 2 * (cell.se or 0.0) for cell in known)])
    # In decades: room for the strip, and for the dots at the edges.
    span = max(np.log10(high / low), 0.5)
    edge, margin = high * 10 ** (0.2 * span), 10 ** (0.08 * span)
    for i in range(1, len(samplers)):
        axis.axhline(i - 0.5, color="#d0d0d0", linewidth=0.6)
    axis.axvline(1.0, **ORACLE, label="oracle")
    axis.grid(False, axis="y")
    axis.set_xscale("log", nonpositive="clip")
    for cell in known:
        if cell.tuner in MARKS:
            look = MARKS[cell.tuner] | {"linestyle": "none", "zorder": 2}
            axis.plot([cell.value], [samplers.index(cell.sampler)], label=cell.tuner, **look)
    aside = np.linspace(-0.34, 0.34, len(tuners)) if len(tuners) > 1 else [0.0]
    for tuner, shift in zip(tuners, aside, strict=True):
        own = [cell for cell in cells if cell.tuner == tuner]
        own = [cell for cell in own if cell.value is not None or cell.missing in OFF_SCALE]
        if own:
            x = [edge if cell.value is None else cell.value for cell in own]
            bars = [0.0 if cell.value is None else 2 * (cell.se or 0.0) for cell in own]
            look = tuner_style(tuner) | DOT | {"elinewidth": 1.0, "zorder": 3}
            axis.errorbar(x, [samplers.index(cell.sampler) + shift for cell in own], xerr=bars, **look)
    axis.set_xlim(low / margin, (edge if off_scale else high) * margin)
    log_ticks(axis.xaxis)
    if off_scale:
        # The strip is not on the scale, so it must have no tick.
        axis.set_xticks([tick for tick in axis.get_xticks() if low / margin <= tick < edge / margin])
        axis.minorticks_off()
        axis.axvspan(edge / margin, edge * margin, color="#f0f0f0", zorder=0)
        place = {"transform": axis.transAxes, "ha": "right", "va": "bottom", "fontsize": 7}
        axis.text(1.0, 1.01, " / ".join(off_scale), **place, color=INK)
    axis.set(ylim=(len(samplers) - 0.5, -0.5), ylabel="")
    axis.tick_params(axis="y", length=0)
    if not (known or off_scale):
        words = next((words for reason, words in NOTHING.items() if reason in reasons), "not computed")
        axis.set_xticks([])
        axis.xaxis.minorticks_off()
        place = {"transform": axis.transAxes, "ha": "center", "va": "center", "color": INK}
        axis.text(0.5, 0.5, words, **place, bbox={"facecolor": "white", "edgecolor": "none"})
