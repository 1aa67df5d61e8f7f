"""`tune`: choose a sampler's hyperparameters for a model, and the result."""

from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING

from sgtune.model import Model
from sgtune.model.derived import hold_out
from sgtune.samplers import SAMPLERS, Sampler, published_name, resolve_sampler
from sgtune.samplers.gradients import GradientEstimator
from sgtune.sampling.arm import check_arm, shape_of
from sgtune.sampling.budget import Budget, CostTable, check_budget
from sgtune.sampling.by_clock import calibrate_cost
from sgtune.sampling.lockstep import Lockstep, compiled_programs, data_terms
from sgtune.support.axes import COMMON, Arm
from sgtune.support.errors import InputError, check_integer, check_number
from sgtune.support.machine import compile_seconds, watch_compilation
from sgtune.support.randomness import LARGEST_SEED, named_seed
from sgtune.tuning.horizon import enough_points
from sgtune.tuning.race import AllDivergedError, Race
from sgtune.tuning.tuners import TUNERS, Settings, Tuner, tuner_of

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["TuningResult", "tune"]

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


def _named(tuner: str | Tuner, settings: Settings | None) -> tuple[str, Tuner]:
    """The name of a tuner in results, and the tuner itself."""
    if isinstance(tuner, str):
        return tuner, tuner_of(tuner, settings)
    if not isinstance(tuner, Tuner):
        raise InputError(
            f"tuner: {tuner!r} is not allowed; it must be a Halving, GridSearch, Heuristic or Theory, or one of: "
            f"{', '.join(TUNERS)}"
        )
    if settings is not None:
        raise InputError(f"settings: given, but {type(tuner).__name__} has its own numbers; it must be None")
    return tuner.name, tuner


def _check(model: Model, sampler: str, name: str, tuner: Tuner, budget: Budget) -> None:
    """Check that model, sampler, tuner and budget fit together, or raise an `InputError`."""
    if tuner.clock == "wall" and budget.seconds is None:
        raise InputError(f"clock: 'wall' needs a budget in seconds; it is {budget.given()}")
    if tuner.clock == "wall" and tuner.choose is not None:
        raise InputError(f"clock: 'wall' is not allowed; {name!r} runs no arms and needs costs: 'calibrated'")
    check_number("validation_fraction", tuner.validation_fraction, at_least=0, below=1)
    judge = tuner.judge
    if judge is None:
        return
    if judge.needs_test and resolve_sampler(sampler)[0].optimal_acceptance is None:
        tested = ", ".join(name for name, known in SAMPLERS.items() if known.optimal_acceptance is not None)
        raise InputError(
            f"sampler: {sampler!r} is not allowed; {name!r} judges by the acceptance rate, which only those with a "
            f"Metropolis test have: {tested}"
        )
    if judge.tasks is not None:
        if not tuner.validation_fraction and (model.test_data is None or model.predict is None):
            raise InputError(
                f"tuner: {name!r} needs a model with predict and test_data; {model.name!r} lacks at least one of them"
            )
        if model.task not in judge.tasks:
            raise InputError(
                f"tuner: {name!r} judges models with task={' or '.join(judge.tasks)}; "
                f"{model.name!r} has task={model.task!r}"
            )


def check_horizon(horizon: object, budget: Budget) -> Budget:
    """``horizon`` if it is a budget in the currency of ``budget``, or an `InputError`."""
    check_budget(horizon, "horizon")
    if horizon.given().keys() != budget.given().keys():
        raise InputError(
            f"horizon: {horizon.given()} is not allowed; it must be in {', '.join(budget.given())}, as the budget"
        )
    return horizon


def tune(
    model: Model,
    sampler: str | Sampler,
    *,
    gradient: GradientEstimator | None = None,
    tuner: str | Tuner = "mamba",
    budget: Budget | None = None,
    horizon: Budget | None = None,
    seed: int = 0,
    replicate: int = 0,
    cost: CostTable | None = None,
    settings: Settings | None = None,
    report: Callable[[str], None] = lambda line: None,
) -> TuningResult:
    """Choose the hyperparameters of ``sampler`` for ``model``: step size, batch size, and the further axes of the grid.

    Args:
        model, sampler, gradient: as for `sgtune.sample`.
        tuner: a `Halving`, `GridSearch`, `Heuristic` or `Theory` of `sgtune.tuning`, or a name in `TUNERS`, short for
            one. ``mamba``, the default, races the arms and judges them by the error that their sds, and above 200
            dimensions also their means, are expected to have at the horizon (`at_horizon`).
        budget: R, the budget of the arm that runs longest (for grids: of each arm; theory spends nothing). ``cost``
            converts seconds to steps.
        horizon: the budget of the planned run, in the currency of ``budget``: judges that look ahead (`at_horizon`) and
            theory choose the arm that they expect to be best at its end. None: R.
        seed: root seed of all random streams. Tuners with the same seed and replicate run the same chain for an arm, as
            far as each runs it, so that two tuners differ only in their judgements. `sgtune.sample` has other streams:
            a chain of the chosen arm does not repeat the draws that won the race.
        replicate: another number gives an independent race of the same seed.
        cost: seconds per step of every shape in the grid; None: they are measured first. The same seed and the same
            table give the same decisions bit for bit. Every arm makes at least ten steps before it is judged, even if
            they cost more than its budget.
        settings: the grid and the other settings of a tuner that is given by its name.
        report: called with one line of progress per rung.

    Returns:
        The chosen hyperparameters, ``best``, and how they were found: the records of all arms, times and warnings.
        ``sample(model, sampler, **result.best, budget=...)`` runs a chain with them.

    Raises:
        InputError: an argument is not allowed.
        AllDivergedError: no arm stays finite; its ``result`` has the records of all arms.
    """
    watch_compilation()
    began, there_before = perf_counter(), compiled_programs()
    sampler = published_name(sampler, gradient)
    name, tuner = _named(tuner, settings)
    check_integer("seed", seed, at_least=0, at_most=LARGEST_SEED)
    check_integer("replicate", replicate, at_least=0)
    if cost is not None and not isinstance(cost, CostTable):
        raise InputError(f"cost: {cost!r} is not allowed; it must be a CostTable or None")
    budget = check_budget(tuner.default if budget is None else budget)
    horizon = budget if horizon is None else check_horizon(horizon, budget)
    _check(model, sampler, name, tuner, budget)
    racing = model
    if tuner.judge is not None and tuner.judge.tasks is not None and tuner.validation_fraction:
        racing = hold_out(model, tuner.validation_fraction, name="validation_fraction")
    arms = [check_arm(model, sampler, arm) for arm in tuner.arms(model.n_data, sampler)]
    remarks = tuner.remarks(model.n_data)

    def result(best: Arm | None, seconds: dict | None = None, **found: object) -> TuningResult:
        total = perf_counter() - began
        compilation = compile_seconds(began, began + total)
        seconds = {
            "total": total,
            "warm": total - compilation,
            **dict.fromkeys(
                ("sampling", "gradients", "discrepancy", "compilation", "shared_compilation"), 0.0
            ),
            **dict.fromkeys(("nominal", "overrun")),
            **(seconds or {}),
            "compilation": compilation,
        }
        return TuningResult(model.name, sampler, name, model.n_data, best, seconds=seconds, **found)

    if tuner.judge is None and tuner.choose is None:
        return result(arms[0])
    schedule = tuner.schedule(len(arms), budget.amount)
    # All checks are done before the costly work begins.
    if budget.seconds is not None and tuner.clock == "calibrated":
        if cost is None:
            cost = calibrate_cost(model, [shape_of(sampler, arm) for arm in arms], report=report)
        for arm in arms:
            cost.lookup(*shape_of(sampler, arm))
    if tuner.choose is not None:
        return _chosen(model, sampler, tuner, arms, horizon, cost, remarks, report, result)

    def raced(arm: Arm) -> Arm:
        """The arm with a batch of the same share of the rows that are left, at least one row."""
        left = max(1, arm.batch_size * racing.n_data // model.n_data)
        return Arm(**{**arm, "batch_size": left})

    race = Race(
        model=racing,
        sampler=sampler,
        arms=arms,
        schedule=schedule,
        budget=budget,
        metric=tuner.judge.metric(named_seed(seed, "judge", replicate)),
        cost=cost,
        clock=tuner.clock,
        seed=seed,
        replicate=replicate,
        horizon=horizon.amount,
        points=tuner.points or tuner.judge.points or enough_points(model.dimension),
        thin=tuner.judge.thin if tuner.thin is None else tuner.thin,
        growth=tuner.growth,
        make=lambda group: Lockstep.at_mode(
            racing,
            sampler,
            [raced(arm) for arm in group],
            seed=seed,
            replicate=f"race {replicate}",
            start_noise=tuner.start_noise,
        ),
        raced=raced,
        report=report,
    )
    race.warnings += remarks

    def raced_result(best: Arm | None) -> TuningResult:
        shared = sum(race.programs[shape] for shape in race.programs.keys() & there_before)
        of_budget = {"nominal": schedule.total, "overrun": race.overrun} if budget.seconds is not None else {}
        return result(
            best,
            {**race.seconds, "shared_compilation": shared, **of_budget},
            rows=race.rows,
            rung_seconds=race.rung_seconds,
            steps=sum(racer.steps for racer in race.racers),
            gradient_evaluations=race.gradient_evaluations,
            warnings=race.warnings,
        )

    try:
        return raced_result(race.run().arm)
    except AllDivergedError as error:
        error.result = raced_result(None)
        raise


def _chosen(
    model: Model,
    sampler: str,
    tuner: Tuner,
    arms: list[Arm],
    horizon: Budget,
    cost: CostTable | None,
    remarks: list[str],
    report: Callable[[str], None],
    result: Callable[..., TuningResult],
) -> TuningResult:
    """The decision of a tuner that runs no arm, from the steps that ``horizon`` buys for each.

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
    choice = tuner.choose(model, sampler, arms, n_steps, report)
    ended = perf_counter()
    compilation = compile_seconds(asked, ended)
    spent = {"sampling": 0.0, "gradients": 0.0, "discrepancy": ended - asked - compilation}
    found = result(
        None if choice.best is None else arms[choice.best],
        spent,
        rows=choice.rows,
        rung_seconds=[{"rung": 1, **spent, "compilation": compilation}],
        warnings=[*remarks, *choice.warnings],
    )
    if found.best is None:
        error = AllDivergedError(
            f"step_size: all {len(arms)} arms of {sampler} are unstable by the theory; the smallest step size tried is "
            f"{min(arm.step_size for arm in arms):.3g}: try smaller ones"
        )
        error.result = found
        raise error
    return found
