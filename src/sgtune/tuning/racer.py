"""One arm in a race: its draws and their cost so far; the ranking of arms, and the record of a rung."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from sgtune.sampling.arm import Arm
from sgtune.sampling.reservoir import Reservoir
from sgtune.tuning.judges import ArmDraws

__all__ = ["Racer", "all_diverged", "describe", "rank_arms", "record_rung"]


@dataclass
class Racer:
    """One arm in the race, with its kept draws as long as it runs.

    Attributes:
        index: its place in the grid.
        draws: the draws that the reservoir of its ensemble keeps: ``(k, D)``.
        steps: steps so far.
        spent: the budget spent according to the schedule; ``ran``: the actual cost of the steps.
        finite: whether the chain is finite.
        statistics: the sampler's diagnostics (`sgtune.samplers.Sampler`).
    """

    index: int
    arm: Arm
    draws: np.ndarray = field(default_factory=lambda: np.empty((0, 0), np.float32))
    steps: int = 0
    spent: float = 0.0
    ran: float = 0.0
    finite: bool = True
    statistics: dict[str, float] = field(default_factory=dict)

    def keep(self, stay: np.ndarray, new: np.ndarray) -> None:
        """Keep the draws so far at the places ``stay``, and append new ones."""
        # A copy: a view of one chain would keep the draws of its whole ensemble alive.
        self.draws = np.concatenate([self.draws[stay], new]) if stay.any() else new.copy()

    def judged(self, sampler: str, reservoir: Reservoir, at_most: int, horizon: float) -> ArmDraws:
        """The input of a judge: ``at_most`` draws, a random subset of those that count; none if it diverged."""
        places, n_draws = reservoir.part(at_most)
        if not self.finite:
            places = places[:0]
        return ArmDraws(
            self.draws[places],
            reservoir.steps[places],
            self.steps,
            n_draws,
            self.ran / horizon,
            sampler,
            self.statistics,
        )


def rank_arms(values: list[float], tie_break: list[tuple] | None = None) -> list[int]:
    """Places from the lowest value to the highest; infinite and NaN ones last. Equal values, and those that are not
    finite, are in the order of ``tie_break``."""
    tie_break = [()] * len(values) if tie_break is None else tie_break
    return sorted(
        range(len(values)),
        key=lambda i: (
            not np.isfinite(values[i]),
            values[i] if np.isfinite(values[i]) else 0.0,
            tie_break[i],
            i,
        ),
    )


def record_rung(
    number: int,
    running: Sequence[Racer],
    judged: Sequence[ArmDraws],
    values: Mapping[int, float],
    remarks: Sequence[str],
    survivors: Sequence[Racer],
) -> tuple[list[dict], list[str]]:
    """A row for each arm of the rung ``number`` (from 0), and a warning for each that has no value.

    Args:
        judged: the input of the judge for each arm.
        values: by the arms' indices.
        remarks: of the judge, on each arm; why one has no value.
    """
    alive = {racer.index for racer in survivors}
    rows, warnings = [], []
    for racer, used, remark in zip(running, judged, remarks, strict=True):
        value = values[racer.index]
        if not racer.finite:
            reason = "diverged"
        elif remark:
            reason = remark
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
                "points": len(used.points),
                "discrepancy": value if np.isfinite(value) else None,
                "pruned": racer.index not in alive,
                "reason": reason,
            }
        )
    return rows, warnings


def all_diverged(sampler: str, step_sizes: Sequence[float]) -> str:
    """Why a race has no winner, and what to try. ``step_sizes`` are those of its arms."""
    return (
        f"step_size: all {len(step_sizes)} arms of {sampler} diverged or left the posterior; the smallest step size "
        f"tried is {min(step_sizes):.3g}: try smaller ones"
    )


def describe(arm: Arm) -> str:
    """The arm's numbers, for a warning."""
    return ", ".join(
        f"{name}={number if isinstance(number, int) else format(number, '.3g')}"
        for name, number in arm.items()
    )
