"""The modes that several starts of the search find: chains that start about each of them show what one would not."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from sgtune.mode.curvature import laplace_scale
from sgtune.mode.find import MapResult, map_result
from sgtune.model import Model
from sgtune.model.positions import flatten

__all__ = ["FAR_APART", "Modes", "modes_of"]

FAR_APART = 5.0
"""Two searches have found different modes if these are more posterior sds apart, by the Laplace approximation at either
one, than this and the distances at which the searches ended."""


class Modes(NamedTuple):
    """Modes of a posterior that are more than `FAR_APART` sds apart.

    Attributes:
        positions: flat, the best mode first, which is the MAP: ``(m, D)``.
        log_densities: log pi there, less that at the best: nats, ``(m,)``.
        of_start: the number of the mode that each start found: ``(n_starts,)``. -1 where a search did not end at a
            mode; chains then start about the best one.
    """

    positions: Float[np.ndarray, "m D"]
    log_densities: Float[np.ndarray, " m"]
    of_start: Int[np.ndarray, " n_starts"]

    def remark(self, of_chain: Int[np.ndarray, " k"]) -> list[str]:
        """A line that names the modes, and the chains that start about each of them, if there are several; and one on
        chains whose searches did not end at a mode."""
        lost = ", ".join(map(str, np.flatnonzero(of_chain < 0)))
        lines = (
            [f"modes: the search did not end at a mode for chains {lost}, which start about the best"]
            if lost
            else []
        )
        if len(self.positions) == 1:
            return lines
        named = []
        for mode, value in enumerate(self.log_densities):
            at = np.flatnonzero(np.maximum(of_chain, 0) == mode)
            chains = ", ".join(str(chain) for chain in at) or "none"
            named.append(f"{round(float(value), 1) + 0.0:g} nats (chains: {chains})")
        return [
            *lines,
            f"modes: the search found {len(named)} that are more than {FAR_APART:g} posterior sds apart, with log "
            f"posteriors, less the best, of {', '.join(named)}: each chain starts about its own, and may never leave "
            "it",
        ]


def modes_of(model: Model, n_starts: int) -> Modes:
    """The modes that ``n_starts`` starts of `sgtune.mode.find.map_result`, and any before them, have found."""
    best = map_result(model, n_starts=n_starts)
    found, scales, of_start = [], [], []
    for number, result in sorted(model.found.searches.items()):
        if result.doubt:
            of_start.append(None)
            continue
        scale = model.found.once_at_mode(
            f"Laplace scale of start {number}", lambda result=result: laplace_scale(model, result.position)
        )
        apart = [
            _sds_apart(result, other, scale, of_other) for other, of_other in zip(found, scales, strict=True)
        ]
        of_start.append(next((number for number, is_other in enumerate(apart) if not is_other), len(found)))
        if of_start[-1] == len(found):
            found.append(result)
            scales.append(scale)
        elif result is best:
            found[of_start[-1]] = result
    found = found or [best]
    order = sorted(
        range(len(found)), key=lambda number: (found[number] is not best, _height(best, found[number]))
    )
    place = {number: rank for rank, number in enumerate(order)}
    return Modes(
        np.stack([flatten(found[number].position) for number in order]).astype(np.float64),
        -np.array([_height(best, found[number]) for number in order]),
        np.array([place.get(number, -1) for number in of_start[:n_starts]]),
    )


def _height(best: MapResult, other: MapResult) -> float:
    """How many nats ``other`` is below ``best``."""
    return other.negative_log_posterior - best.negative_log_posterior


def _sds_apart(one: MapResult, other: MapResult, scale: np.ndarray, of_other: np.ndarray) -> bool:
    """Whether two modes, with the Laplace approximation's scale at each, are `FAR_APART`."""
    moved = flatten(one.position).astype(np.float64) - flatten(other.position)
    distance = max(
        np.linalg.norm(moved / each if each.ndim == 1 else np.linalg.solve(each, moved))
        for each in (scale, of_other)
    )
    return bool(distance > FAR_APART + one.distance + other.distance)
