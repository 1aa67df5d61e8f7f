"""Pictures of races, chains and diagnoses, by seaborn; each function returns its axes, in a figure of its own."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from sgtune.support.errors import import_extra

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["plot_chains", "plot_diagnosis", "plot_race"]

OK, BAD, NEUTRAL = "#0072B2", "#D55E00", "0.6"
"""Colours that most people can tell apart (Okabe and Ito 2008), and grey."""

SHAPES = "os^Dvp*h"

MOST_NAMED = 6
"""The names of so many chains fit above their traces."""


def _subplots(*shape: int, **options: Any) -> tuple[Any, np.ndarray]:
    """A figure and its axes, an array, without the upper and right spines."""
    seaborn = import_extra("seaborn", "plots")
    pyplot = import_extra("matplotlib.pyplot", "plots")
    figure, axes = pyplot.subplots(*shape, squeeze=False, layout="constrained", **options)
    for each in axes.flat:
        seaborn.despine(ax=each)
    return figure, axes


def plot_race(rungs: "pd.DataFrame", best: Mapping[str, Any] | None) -> np.ndarray:
    """Discrepancy against step size, a panel for each rung of the last race: a point for each arm, whose colour and
    shape tell the other axes; full where it went on, hollow where it was pruned, a cross at the top without a finite
    value; and a ring around the arm that was chosen.

    Args:
        rungs: the table of `sgtune.TuningResult.rungs`.
        best: the hyperparameters that were chosen.

    Raises:
        InputError: seaborn is not installed.
    """
    seaborn = import_extra("seaborn", "plots")
    ticker = import_extra("matplotlib.ticker", "plots")
    last = rungs[rungs["race"] == rungs["race"].max()] if "race" in rungs else rungs
    numbers = sorted(last["rung"].unique())
    columns = list(rungs)
    others = [name for name in columns[2 : columns.index("steps")] if last[name].nunique() > 1]
    # Without columns some versions of pandas have rows of nothing, and some none.
    groups = sorted(set(last[others].itertuples(index=False, name=None))) if others else [()]
    # A colour for each value of the first axis, and a shape for those of the others.
    firsts, rests = sorted({group[:1] for group in groups}), sorted({group[1:] for group in groups})
    palette = seaborn.color_palette("colorblind", max(1, len(firsts)))
    colours = {group: palette[firsts.index(group[:1])] for group in groups}
    shapes = {group: SHAPES[rests.index(group[1:]) % len(SHAPES)] for group in groups}
    # Arms without a value count, too: a point in the axes' own units is not within the limits by itself.
    sizes = np.log10(last["step_size"].astype(float))
    edge = 0.08 * max(np.ptp(sizes), 0.5)
    limits = 10 ** (sizes.min() - edge), 10 ** (sizes.max() + edge)
    _, axes = _subplots(
        1, max(1, len(numbers)), figsize=(1 + 2.4 * max(1, len(numbers)), 3.2), sharex=True, sharey=True
    )
    for axis, number in zip(axes[0], numbers, strict=False):
        rung = last[last["rung"] == number]
        value = rung["discrepancy"].astype(float)
        for group in groups:
            inside = np.all(
                [rung[name] == number for name, number in zip(others, group, strict=True)], axis=0
            )
            inside = inside if others else np.full(len(rung), True)
            for pruned in (True, False):
                shown = rung[inside & (rung["pruned"].astype(bool) == pruned) & value.notna()]
                axis.scatter(
                    shown["step_size"].astype(float),
                    shown["discrepancy"].astype(float),
                    s=28,
                    marker=shapes[group],
                    facecolors="none" if pruned else [colours[group]],
                    edgecolors=[colours[group]],
                )
            dead = rung[inside & value.isna()]["step_size"].astype(float)
            axis.scatter(
                dead,
                np.full(len(dead), 0.97),
                marker="x",
                s=24,
                color=[colours[group]],
                transform=axis.get_xaxis_transform(),
            )
        if best is not None:
            same = np.all(
                [rung[name] == best[name] for name in columns[1 : columns.index("steps")] if name in best],
                axis=0,
            )
            chosen = rung[same & value.notna()]
            axis.scatter(
                chosen["step_size"].astype(float),
                chosen["discrepancy"].astype(float),
                s=140,
                facecolors="none",
                edgecolors="black",
            )
        arms = "1 arm" if len(rung) == 1 else f"{len(rung)} arms"
        axis.set(xscale="log", yscale="log", title=f"rung {number}: {arms}", xlabel="step size", xlim=limits)
        axis.margins(y=0.12)  # the ring and the crosses lie inside
        for scale in (axis.xaxis, axis.yaxis):
            low, high = scale.get_view_interval()
            # Within a decade and a half powers of ten are too few labels, and all minor ticks too many.
            subs = (1, 2, 5) if high < 10 * low else (1, 3) if high < 30 * low else (1,)
            scale.set_major_locator(ticker.LogLocator(subs=subs))
            plain = ticker.FuncFormatter(lambda value, _: f"{value:g}")
            scale.set_major_formatter(plain if high < 2_000 * low else ticker.LogFormatterMathtext())
            scale.set_minor_formatter(ticker.NullFormatter())
    axes[0, 0].set_ylabel("discrepancy")
    if others and groups:
        for group in groups:
            look = {"marker": shapes[group], "linestyle": "", "color": colours[group]}
            axes[0, -1].plot([], [], label=", ".join(f"{number:g}" for number in group), **look)
        title = ", ".join(others).replace("_", " ")
        axes[0, -1].legend(title=title, loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    return axes[0]


def plot_chains(chains: Float[np.ndarray, "c n k"], names: Sequence[str], stride: int = 1) -> np.ndarray:
    """Traces of k parameters, against the step, and their marginal densities beside them; a colour for each chain.
    The traces are bitmaps also in an SVG or PDF file, which is large otherwise.

    Returns:
        (k, 2) axes.

    Raises:
        InputError: seaborn is not installed.
    """
    seaborn = import_extra("seaborn", "plots")
    ticker = import_extra("matplotlib.ticker", "plots")
    n_chains, n, k = chains.shape
    figure, axes = _subplots(k, 2, figsize=(8, 0.6 + 1.4 * k), width_ratios=(3, 1), sharey="row")
    steps = stride * np.arange(1, n + 1)
    colours = [OK, *seaborn.color_palette("colorblind", n_chains)[1:]]
    for row, name, place in zip(axes, names, range(k), strict=True):
        for number, (chain, colour) in enumerate(zip(chains[:, :, place], colours, strict=True)):
            row[0].plot(steps, chain, lw=0.5, color=colour, label=f"chain {number}", rasterized=True)
            good = chain[np.isfinite(chain)]
            if len(good) > 1 and np.ptp(good) > 0:
                seaborn.kdeplot(y=good, ax=row[1], color=colour, fill=n_chains == 1)
        lives = np.isfinite(chains[:, :, place]).all(axis=1)
        if lives.any() and not lives.all():
            # A chain on its way to infinity would leave of the others a line.
            low, high = chains[lives, :, place].min(), chains[lives, :, place].max()
            row[0].set_ylim(low - 0.1 * (high - low), high + 0.1 * (high - low))
        # Long names do not run into the next row's.
        row[0].set_ylabel(name, rotation=0, ha="right", va="center")
        row[0].margins(x=0)
        row[1].set(xlabel="", ylabel="", xticks=[])
        row[1].tick_params(left=False)
        row[0].tick_params(labelbottom=place == k - 1)
    axes[-1, 0].set_xlabel("step")
    axes[-1, 0].xaxis.set_major_locator(ticker.MaxNLocator(6, integer=True))
    axes[-1, 0].xaxis.set_major_formatter(ticker.StrMethodFormatter("{x:,.0f}"))
    figure.align_ylabels(axes[:, 0])
    if 1 < n_chains <= MOST_NAMED:
        # Warnings of a run name its chains by their numbers.
        above = {"loc": "outside upper left", "ncols": n_chains, "frameon": False, "handlelength": 1}
        legend = figure.legend(handles=axes[0, 0].lines, **above)
        for line in legend.legend_handles:
            line.set_linewidth(2)
    return axes


def plot_diagnosis(table: "pd.DataFrame") -> np.ndarray:
    """Ratios of sds and errors of means of the rows of a table of `sgtune.Diagnosis`, with two standard errors; the
    parameters that were named are red.

    Returns:
        the two axes.

    Raises:
        InputError: seaborn is not installed.
    """
    _, axes = _subplots(1, 2, figsize=(8, 1 + 0.28 * len(table)), sharey=True)
    places = np.arange(len(table))[::-1]
    panels = (
        ("sd_ratio", 1.0, "sd / posterior sd"),
        ("mean_error", 0.0, "error of the mean (posterior sds)"),
    )
    for axis, (column, right, label) in zip(axes[0], panels, strict=True):
        axis.axvline(right, color=NEUTRAL, lw=1)
        for place, value, error, problems in zip(
            places, table[column], table[f"{column}_se"], table["problems"], strict=True
        ):
            axis.errorbar(value, place, xerr=2 * error, fmt="o", ms=4, color=BAD if problems else OK)
        axis.set_xlabel(label)
    axes[0, 0].set_ylim(-0.6, len(table) - 0.4)
    axes[0, 0].set_yticks(
        places, [f"{name}: {what}" if what else name for name, what in table["problems"].items()]
    )
    return axes[0]
