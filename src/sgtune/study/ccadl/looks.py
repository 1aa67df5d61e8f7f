"""The style of the study's samplers in figures."""

from collections.abc import Iterable, Sequence

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from sgtune.study.catalogue.ccadl import METHODS

__all__ = ["FRICTION_LINES", "handles_of", "method_style", "say_diverged"]

FRICTION_LINES = ("-", (0, (4, 1.2)), (0, (1.2, 1.2)), (0, (5, 1.5, 1.5, 1.5)))
"""Of the frictions in a panel, in their order."""


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
