"""Whether a chosen arm lies at the edge of its grid, beyond which a better one may lie.

Imports nothing heavy: tables are made with it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from sgtune.support.axes import Axis, symbol_of

__all__ = ["edges_of", "edges_said"]

LEAST_VALUES = 3
"""Of an axis: with two values each is an edge."""


def edges_of(
    axes: Iterable[Axis], best: Mapping[str, float], arms: Sequence[Mapping[str, float]]
) -> list[list[str]]:
    """The traced axes of a sampler on which ``best`` has the smallest or the largest value of all ``arms``: pairs of an
    axis's name and “smallest” or “largest”. A smallest value that is the axis's own bound, such as no noise, is no
    edge."""
    found = []
    for axis in axes:
        values = sorted({arm[axis.name] for arm in arms if axis.name in arm})
        if axis.is_static or len(values) < LEAST_VALUES:
            continue
        if best[axis.name] == values[0] and values[0] != axis.at_least:
            found.append([axis.name, "smallest"])
        elif best[axis.name] == values[-1]:
            found.append([axis.name, "largest"])
    return found


def edges_said(races: Sequence[Mapping]) -> str:
    """The edges of the races' choices in print, each with the number of races; empty if there are none, and “not
    recorded” of races by an older version."""
    if any("edges" not in race for race in races):
        return "not recorded"
    times = Counter(f"{symbol_of(name)} {end}" for race in races for name, end in race["edges"])
    return "; ".join(
        edge if len(races) == 1 else f"{edge} ({n} of {len(races)})" for edge, n in times.items()
    )
