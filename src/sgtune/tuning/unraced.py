"""The result of a tuner that runs no arm, but chooses from the number of steps that the horizon buys for each."""

from collections.abc import Callable
from time import perf_counter

from sgtune.model import Model
from sgtune.sampling.arm import Arm, shape_of
from sgtune.sampling.budget import Budget, CostTable
from sgtune.sampling.compilation import compile_seconds
from sgtune.sampling.lockstep import data_terms
from sgtune.tuning.race import AllDivergedError
from sgtune.tuning.result import TuningResult
from sgtune.tuning.tuners import Tuner

__all__ = ["chosen"]


def chosen(
    model: Model,
    sampler: str,
    tuner: str,
    method: Tuner,
    arms: list[Arm],
    horizon: Budget,
    cost: CostTable | None,
    remarks: list[str],
    began: float,
    report: Callable[[str], None],
) -> TuningResult:
    """The decision of ``method.choose``, as the result of `sgtune.tune`, which ``began`` at that time.

    Args:
        horizon: the budget of the planned run.
        cost: for a horizon in seconds.
        remarks: on the grid.

    Raises:
        AllDivergedError: no arm is stable.
    """
    in_seconds = horizon.seconds is not None
    n_steps = [
        horizon.steps_for(
            horizon.amount,
            seconds_per_step=cost.lookup(*shape_of(sampler, arm)) if in_seconds else None,
            gradients_per_step=data_terms(model, sampler, arm),
        )
        for arm in arms
    ]
    asked = perf_counter()
    choice = method.choose(model, sampler, arms, n_steps, report)
    ended = perf_counter()
    compilation = compile_seconds(began, ended)
    foreseeing = ended - asked - compile_seconds(asked, ended)
    spent = {"sampling": 0.0, "gradients": 0.0, "discrepancy": foreseeing, "compilation": compilation}
    result = TuningResult(
        model=model.name,
        sampler=sampler,
        tuner=tuner,
        n_data=model.n_data,
        best=None if choice.best is None else arms[choice.best],
        rows=choice.rows,
        rung_seconds=[{"rung": 1, **spent}],
        seconds={
            "total": ended - began,
            "warm": ended - began - compilation,
            **spent,
            "shared_compilation": 0.0,
            "nominal": None,
            "overrun": None,
        },
        warnings=[*remarks, *choice.warnings],
    )
    if result.best is None:
        error = AllDivergedError(
            f"step_size: all {len(arms)} arms of {sampler} are unstable by the theory; the smallest step size tried is "
            f"{min(arm.step_size for arm in arms):.3g}: try smaller ones"
        )
        error.result = result
        raise error
    return result
