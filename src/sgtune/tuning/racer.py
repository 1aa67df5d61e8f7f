"""One arm in a race: its draws and what they cost so far, the order in which arms go on, and the record of a rung."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from sgtune.sampling.arm import Arm
from sgtune.sampling.thinning import thin_draws, thinning

__all__ = ["Racer", "describe", "rank_arms", "record_rung"]


@dataclass
class Racer:
    """One arm in the race, with its draws as long as it runs."""

    index: int
    arm: Arm
    chunks: list[np.ndarray] = field(default_factory=list)
    steps: int = 0
    spent: float = 0.0
    ran: float = 0.0
    stride: int = 1

    @property
    def draws(self) -> np.ndarray:
        """``(n_kept, D)``."""
        return np.concatenate(self.chunks) if self.chunks else np.empty((0, 0), np.float32)

    def points(self, thin: int, at_most: int) -> np.ndarray:
        """The draws that judge it; the last one alone if that is not finite, however the others are."""
        draws = self.draws
        if len(draws) and not np.isfinite(draws[-1]).all():
            return draws[-1:]
        return thin_draws(draws, max(1, thin // self.stride), at_most)

    def n_thinned(self, thin: int) -> int:
        """How many points there would be without a cap, and were all draws kept."""
        return self.steps // thinning(self.steps, thin)

    def extend(self, draws: np.ndarray, stride: int) -> None:
        """Add draws; where strides differ (all are powers of two), the denser ones are thinned."""
        if stride < self.stride:
            every = self.stride // stride
            draws = draws[every - 1 :: every]
        elif stride > self.stride and self.chunks:
            every = stride // self.stride
            self.chunks = [self.draws[every - 1 :: every]]
        self.stride = max(stride, self.stride)
        self.chunks.append(draws)


def rank_arms(values: list[float], tie_break: list[tuple] | None = None) -> list[int]:
    """Places from the lowest value to the highest; infinite and NaN ones last, by ``tie_break``; ties keep their
    order."""
    tie_break = [()] * len(values) if tie_break is None else tie_break
    return sorted(
        range(len(values)),
        key=lambda i: (False, values[i], (), i) if np.isfinite(values[i]) else (True, 0.0, tie_break[i], i),
    )


def record_rung(
    number: int,
    running: Sequence[Racer],
    points: Sequence[np.ndarray],
    values: Mapping[int, float],
    survivors: Sequence[Racer],
) -> tuple[list[dict], list[str]]:
    """A row for each arm of the rung ``number`` (from 0), and a warning for each that has no value.

    Args:
        points: what judged each arm.
        values: by the arms' indices.
    """
    alive = {racer.index for racer in survivors}
    rows, warnings = [], []
    for racer, used in zip(running, points, strict=True):
        value = values[racer.index]
        if not np.isfinite(racer.draws).all():
            reason = "diverged"
        elif not np.isfinite(value):
            reason = "value not finite"
        elif racer.index not in alive:
            reason = "higher value than the survivors"
        else:
            reason = ""
        if not np.isfinite(value):
            warnings.append(f"rung {number + 1}: {describe(racer.arm)}: {reason}")
        rows.append(
            {
                "rung": number + 1,
                **racer.arm.to_record(),
                "steps": racer.steps,
                "samples": len(racer.draws),
                "points": len(used),
                "discrepancy": value if np.isfinite(value) else None,
                "pruned": racer.index not in alive,
                "reason": reason,
            }
        )
    return rows, warnings


def describe(arm: Arm) -> str:
    """The arm in a line of a warning."""
    return ", ".join(
        f"{name}={number if isinstance(number, int) else format(number, '.3g')}"
        for name, number in arm.items()
    )
