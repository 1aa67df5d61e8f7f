"""One arm in a race: its draws and what they cost so far, and the order in which arms go on."""

from dataclasses import dataclass, field

import numpy as np

from sgtune.sampling.arm import Arm
from sgtune.sampling.thinning import thin_draws, thinning

__all__ = ["Racer", "rank_arms"]


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
