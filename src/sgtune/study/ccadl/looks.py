"""The style of the study's samplers in figures."""

from collections.abc import Iterable, Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from sgtune.study.ccadl.artifacts import METHODS

__all__ = ["FRICTION_LINES", "THIN", "draw_runs", "handles_of", "method_style", "say_diverged"]

FRICTION_LINES = ("-", (0, (4, 1.2)), (0, (1.2, 1.2)), (0, (5, 1.5, 1.5, 1.5)))
"""Of the frictions in a panel, in their order."""


THIN = 0.5
"""Width of the lines of what some runs of several have, because the others diverged."""


def draw_runs(axis: Axes, at: Sequence[float], values: Float[np.ndarray, "runs points"], look: dict) -> None:
    """The mean over runs, as far as all of them are finite; from there on thinly the mean of those that are."""
    is_finite = np.isfinite(values)
    has_all, has_some = is_finite.all(axis=0), is_finite.any(axis=0)
    total = np.where(is_finite, values, 0.0).sum(axis=0)
    means = np.where(has_some, total / np.maximum(is_finite.sum(axis=0), 1), np.nan)
    axis.plot(at, np.where(has_all, means, np.nan), **look)
    if (has_some & ~has_all).any():
        is_thin = ~has_all
        # From the last point that all runs have.
        is_thin[:-1] |= ~has_all[1:]
        axis.plot(at, np.where(is_thin, means, np.nan), **(look | {"linewidth": THIN}))


def say_diverged(axis: Axes, methods: Iterable[str], height: float) -> None:
    """A line, at this height of the panel, that names samplers with a diverged run; none if there are none."""
    names = dict.fromkeys(METHODS[method].label for method in methods)
    if names:
        box = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}
        words = f"diverged: {', '.join(names)}"
        axis.text(
            0.97, height, words, transform=axis.transAxes, ha="right", fontsize="small", bbox=box, zorder=5
        )


def method_style(method: str) -> dict:
    """Colour, marker, line style and label of a sampler, the same in every figure."""
    color, marker, linestyle = METHODS[method].style
    return {"color": color, "marker": marker, "linestyle": linestyle, "label": METHODS[method].label}


def handles_of(methods: Sequence[str], **look: object) -> list[Line2D]:
    """What a legend says of samplers."""
    return [Line2D([], [], **(method_style(method) | look)) for method in methods]
