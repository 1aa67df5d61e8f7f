"""`tune`: choose a sampler's hyperparameters for a model."""

from collections.abc import Callable
from time import perf_counter
from typing import Protocol, runtime_checkable

from sgtune.model import Model
from sgtune.samplers import SAMPLERS, Sampler, published_name, resolve_sampler
from sgtune.samplers.gradients import GradientEstimator
from sgtune.sampling.arm import Arm, check_arm, shape_of
from sgtune.sampling.budget import Budget, CostTable, check_budget
from sgtune.sampling.compilation import compile_seconds, watch_compilation
from sgtune.sampling.lockstep import Lockstep, compiled_programs
from sgtune.support.errors import InputError, check_choice, check_integer, check_number
from sgtune.support.randomness import LARGEST_SEED, named_seed
from sgtune.tuning.calibrate import calibrate_cost
from sgtune.tuning.grid import check_names
from sgtune.tuning.horizon import enough_points
from sgtune.tuning.race import AllDivergedError, Race
from sgtune.tuning.result import TuningResult
from sgtune.tuning.tuners import TUNERS, Settings, Tuner
from sgtune.tuning.unraced import chosen
from sgtune.tuning.validation import on_fewer_rows, racing_model

__all__ = ["Method", "tune"]


@runtime_checkable
class Method(Protocol):
    """A tuner as an object: its name in results, and the `Tuner` and `Settings` that it consists of."""

    name: str

    def as_tuner(self) -> tuple[Tuner, Settings]: ...


def _method(tuner: str | Method, settings: Settings | None) -> tuple[str, Tuner, Settings]:
    """The tuner's name, its `Tuner` and its `Settings`."""
    if isinstance(tuner, str):
        check_choice("tuner", tuner, TUNERS)
        return tuner, TUNERS[tuner], settings or Settings()
    if not hasattr(tuner, "as_tuner"):
        raise InputError(
            f"tuner: {tuner!r} is not allowed; it must be a Halving, GridSearch, Heuristic or Theory, or one of: "
            f"{', '.join(TUNERS)}"
        )
    if settings is not None:
        raise InputError(f"settings: given, but {type(tuner).__name__} has its own numbers; it must be None")
    return (tuner.name, *tuner.as_tuner())


def _check(model: Model, sampler: str, tuner: str, method: Tuner, budget: Budget, settings: Settings) -> None:
    """Check that model, sampler, tuner and settings fit together, or raise an `InputError`."""
    check_choice("clock", settings.clock, ("calibrated", "wall"))
    if settings.clock == "wall" and budget.seconds is None:
        raise InputError(f"clock: 'wall' needs a budget in seconds; it is {budget.given()}")
    if settings.clock == "wall" and method.choose is not None:
        raise InputError(
            f"clock: 'wall' is not allowed; {tuner!r} runs no arms and needs costs: 'calibrated'"
        )
    if settings.points is not None:
        check_integer("points", settings.points, at_least=1)
    if settings.thin is not None:
        check_integer("thin", settings.thin, at_least=1)
    check_integer("score_rows", settings.score_rows, at_least=1)
    check_number("score_fraction", settings.score_fraction, above=0, at_most=1)
    check_number("start_noise", settings.start_noise, at_least=0)
    check_names(settings.hyperparameters)
    if method.needs_test and resolve_sampler(sampler)[0].optimal_acceptance is None:
        tested = ", ".join(name for name, known in SAMPLERS.items() if known.optimal_acceptance is not None)
        raise InputError(
            f"sampler: {sampler!r} is not allowed; {tuner!r} judges by the acceptance rate, which only those with a "
            f"Metropolis test have: {tested}"
        )
    if method.tasks is not None:
        if not settings.validation_fraction and (model.test_data is None or model.predict is None):
            raise InputError(
                f"tuner: {tuner!r} needs a model with predict and test_data; {model.name!r} lacks at least one of them"
            )
        if model.task not in method.tasks:
            raise InputError(
                f"tuner: {tuner!r} judges models with task={' or '.join(method.tasks)}; "
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
    tuner: "str | Method" = "mamba",
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
    tuner, method, settings = _method(tuner, settings)
    check_integer("seed", seed, at_least=0, at_most=LARGEST_SEED)
    check_integer("replicate", replicate, at_least=0)
    if cost is not None and not isinstance(cost, CostTable):
        raise InputError(f"cost: {cost!r} is not allowed; it must be a CostTable or None")
    budget = check_budget(method.default if budget is None else budget)
    horizon = budget if horizon is None else check_horizon(horizon, budget)
    _check(model, sampler, tuner, method, budget, settings)
    racing = racing_model(model, method.tasks, settings.validation_fraction)
    arms = [check_arm(model, sampler, arm) for arm in method.arms(model.n_data, sampler, settings)]
    if method.metric is None and method.choose is None:
        spent = ("sampling", "gradients", "discrepancy", "compilation", "shared_compilation")
        total = perf_counter() - began
        seconds = {
            "total": total,
            "warm": total,
            **dict.fromkeys(spent, 0.0),
            "nominal": None,
            "overrun": None,
        }
        return TuningResult(model.name, sampler, tuner, model.n_data, arms[0], seconds=seconds)
    schedule = method.schedule(len(arms), settings, budget.amount)
    # All checks are done before the costly work begins.
    if budget.seconds is not None and settings.clock == "calibrated" and cost is None:
        cost = calibrate_cost(model, [shape_of(sampler, arm) for arm in arms], report=report)
    if budget.seconds is not None and settings.clock == "calibrated":
        for arm in arms:
            cost.lookup(*shape_of(sampler, arm))
    if method.choose is not None:
        remarks = method.remarks(model.n_data, settings)
        return chosen(model, sampler, tuner, method, arms, horizon, cost, remarks, began, report)

    def raced(arm: Arm) -> Arm:
        return arm if racing is model else on_fewer_rows(arm, model.n_data, racing.n_data)

    race = Race(
        model=racing,
        sampler=sampler,
        arms=arms,
        schedule=schedule,
        budget=budget,
        metric=method.metric(named_seed(seed, "judge", replicate), settings),
        cost=cost,
        clock=settings.clock,
        seed=seed,
        replicate=replicate,
        horizon=horizon.amount,
        points=settings.points or method.points or enough_points(model.dimension),
        thin=method.thin if settings.thin is None else settings.thin,
        growth=settings.pruning_rate,
        make=lambda group: Lockstep.at_mode(
            racing,
            sampler,
            [raced(arm) for arm in group],
            seed=seed,
            replicate=f"race {replicate}",
            start_noise=method.start_noise(settings),
        ),
        raced=raced,
        report=report,
    )
    race.warnings += method.remarks(model.n_data, settings)

    def result(best: Arm | None) -> TuningResult:
        total = perf_counter() - began
        compilation = compile_seconds(began, began + total)
        in_seconds = budget.seconds is not None
        seconds = {
            "total": total,
            "warm": total - compilation,
            **race.seconds,
            "compilation": compilation,
            "shared_compilation": sum(race.programs[shape] for shape in race.programs.keys() & there_before),
            "nominal": schedule.total if in_seconds else None,
            "overrun": race.overrun if in_seconds else None,
        }
        return TuningResult(
            model=model.name,
            sampler=sampler,
            tuner=tuner,
            n_data=model.n_data,
            best=best,
            rows=race.rows,
            rung_seconds=race.rung_seconds,
            seconds=seconds,
            steps=sum(racer.steps for racer in race.racers),
            gradient_evaluations=race.gradient_evaluations,
            warnings=race.warnings,
        )

    try:
        return result(race.run().arm)
    except AllDivergedError as error:
        error.result = result(None)
        raise
