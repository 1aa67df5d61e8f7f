"""The result of a tuner."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sgtune.sampling.arm import Arm
from sgtune.support.axes import COMMON

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["TuningResult"]

RUN_COLUMNS = ("steps", "samples", "points", "discrepancy", "pruned", "reason")


@dataclass(frozen=True)
class TuningResult:
    """The chosen hyperparameters and how they were found.

    Attributes:
        best: a mapping of hyperparameters, which are also attributes (``best.step_size``); None only in the result of
            an `AllDivergedError`.
        rows: one record per arm and rung, with the columns of ``rungs``.
        rung_seconds: one record per rung: seconds of ``sampling``, ``gradients``, ``discrepancy`` and ``compilation``.
        seconds: ``total``: wall-clock time, the sum of ``compilation`` (tracing and compiling) and ``warm``, the time
            that tuning takes once all programs are compiled. ``warm`` is mostly ``sampling`` (on several cores at
            once), ``gradients`` (scores) and ``discrepancy``. ``shared_compilation``: compilation of sampling programs
            before tuning began.
            ``nominal``: the budget T over all arms; ``overrun``: the time that arms spent beyond it (both None if the
            budget is not in seconds).
        steps: samples of all arms together.
        gradient_evaluations: data terms of gradients, in sampling and scoring.
        warnings: arms that diverged, budgets that were too short for ten steps, and remarks on the grid and the
            schedule.
    """

    model: str
    sampler: str
    tuner: str
    n_data: int
    best: Arm | None
    rows: list[dict] = field(default_factory=list, repr=False)
    rung_seconds: list[dict] = field(default_factory=list, repr=False)
    seconds: dict[str, float | None] = field(default_factory=dict)
    steps: int = 0
    gradient_evaluations: int = 0
    warnings: list[str] = field(default_factory=list)

    @property
    def rungs(self) -> "pd.DataFrame":
        """Every arm at every rung: hyperparameters, steps, samples, points judged, value, whether and why pruned.

        ``steps`` counts from the start of the chain; ``discrepancy`` is None for an arm that is not finite.
        """
        # Takes half a second to import, and a job that only writes JSON does not need it.
        import pandas as pd

        columns = self.rows[0] if self.rows else ("rung", *(axis.name for axis in COMMON), *RUN_COLUMNS)
        return pd.DataFrame(self.rows, columns=list(columns))

    def to_dict(self) -> dict:
        """As plain types, for JSON."""
        return {
            "model": self.model,
            "sampler": self.sampler,
            "tuner": self.tuner,
            "n_data": self.n_data,
            "best": None if self.best is None else self.best.to_record(),
            "rungs": self.rows,
            "rung_seconds": self.rung_seconds,
            "seconds": self.seconds,
            "steps": self.steps,
            "gradient_evaluations": self.gradient_evaluations,
            "warnings": self.warnings,
        }
