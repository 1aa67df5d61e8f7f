"""The tuners: each is a schedule, a metric and a start for the one engine in `sgtune.tuning.race`; or a rule.

============== ======================= ==================== ==========================================
name           schedule                judged by            paper
============== ======================= ==================== ==========================================
mamba-*        successive halving      ksd, fssd, ...       Algorithm 1, Sects. 3.2, 3.3.3
grid-ksd       one rung, by seconds    ksd                  Sect. 4.1, App. B.1
grid           one rung, by steps      log-loss, RMSE       Sect. 3.4.1, Apps. B.1.2, B.2.2, B.3.2
heuristic      none: h = 1/N                                Sect. 3.4.1 (Brosse et al. 2018)
============== ======================= ==================== ==========================================
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter

from sgtune.errors import InputError, check_choice, check_integer, check_number
from sgtune.metrics import PREDICTIVE
from sgtune.model import Model
from sgtune.samplers import resolve_sampler
from sgtune.sampling.arm import Arm, check_arm, shape_of
from sgtune.sampling.budget import Budget, CostTable, batch_size_of, check_budget
from sgtune.sampling.compilation import compile_seconds, watch_compilation
from sgtune.sampling.lockstep import Lockstep, compiled_programs
from sgtune.tuning.calibrate import calibrate_cost
from sgtune.tuning.grid import LEAPFROGS, LOG10_STEP_SIZES, check_names, make_arms, remarks_on_default
from sgtune.tuning.halving import Schedule, halving_schedule, single_rung
from sgtune.tuning.judges import Metric, predictive_metric, stein_metric
from sgtune.tuning.race import AllDivergedError, Race
from sgtune.tuning.result import TuningResult

__all__ = ["TUNERS", "Settings", "tune"]


@dataclass(frozen=True)
class Settings:
    """What a tuner may be told; each uses the part that concerns it. Defaults are the paper's (App. B.1).

    Attributes:
        log10_step_sizes, batch_fractions, n_leapfrogs: the grid of arms. Fractions None: 1, and of 0.1, 0.01,
            0.001 those that leave ten rows or more.
        hyperparameters: further axes of the grid by name, such as ``{"friction": (0.01, 0.1)}``; samplers that have no
            such hyperparameter pass it over.
        pruning_rate: eta of successive halving.
        thin: every thin-th draw of an arm judges it, but thinned no further than to ten.
        points: at most so many points judge an arm in the first rung, eta times as many in each later one;
            None for the tuner's own default: 500, grid-ksd 2,000, those judged by predictions 50.
        score_fraction: of the data in a score (`sgtune.samplers.gradients.subset_scores`); 1 is the paper's full batch.
        clock: ``calibrated`` (lockstep, reproducible) or ``wall`` (one arm at a time, by the clock).
        batch_fraction: of grid and heuristic, which do not tune it.
        n_leapfrog: of the heuristic, which does not tune it.
        start_noise: sd of the Gaussian noise around the MAP where grid search starts.
    """

    log10_step_sizes: tuple[float, ...] = LOG10_STEP_SIZES
    batch_fractions: tuple[float, ...] | None = None
    n_leapfrogs: tuple[int, ...] = LEAPFROGS
    hyperparameters: Mapping[str, Sequence[float]] = field(default_factory=dict)
    pruning_rate: int = 3
    thin: int = 10
    points: int | None = None
    score_fraction: float = 0.1
    clock: str = "calibrated"
    batch_fraction: float = 0.1
    n_leapfrog: int = 10
    start_noise: float = 0.2


@dataclass(frozen=True)
class Tuner:
    """How arms are made, scheduled, started and judged. ``default`` is the budget of the paper; ``tasks`` are
    those whose models it can judge by their predictions on test data, or None if it needs none; ``remarks`` are on
    the arms that it makes."""

    arms: Callable[[int, str, Settings], list[Arm]]
    schedule: Callable[[int, Settings, float], Schedule]
    metric: Callable[[int, Settings], Metric] | None
    default: Budget
    start_noise: Callable[[Settings], float] = field(default=lambda settings: 0.0)
    tasks: tuple[str, ...] | None = None
    points: int = 500
    remarks: Callable[[int, Settings], list[str]] = field(default=lambda n_data, settings: [])


def _full_grid(n_data: int, sampler: str, settings: Settings) -> list[Arm]:
    return make_arms(
        n_data,
        sampler,
        log10_step_sizes=settings.log10_step_sizes,
        batch_fractions=settings.batch_fractions,
        n_leapfrogs=settings.n_leapfrogs,
        **settings.hyperparameters,
    )


def _left_out(n_data: int, settings: Settings) -> list[str]:
    return remarks_on_default(n_data) if settings.batch_fractions is None else []


def _grid_at_one_batch_size(n_data: int, sampler: str, settings: Settings) -> list[Arm]:
    return _full_grid(n_data, sampler, replace(settings, batch_fractions=(settings.batch_fraction,)))


def _heuristic_arm(n_data: int, sampler: str, settings: Settings) -> list[Arm]:
    n_leapfrog = settings.n_leapfrog if resolve_sampler(sampler)[0].has_leapfrog else None
    return [
        Arm(
            step_size=1.0 / n_data,
            batch_size=batch_size_of(settings.batch_fraction, n_data),
            n_leapfrog=n_leapfrog,
        )
    ]


def _halving(n_arms: int, settings: Settings, amount: float) -> Schedule:
    return halving_schedule(n_arms, settings.pruning_rate, amount)


def _one_rung(n_arms: int, settings: Settings, amount: float) -> Schedule:
    return single_rung(n_arms, amount)


def _mamba(metric: Callable[[int, Settings], Metric], **options) -> Tuner:
    return Tuner(_full_grid, _halving, metric, Budget(seconds=1.0), remarks=_left_out, **options)


def _stein(discrepancy: str, scale: str) -> Callable[[int, Settings], Metric]:
    return lambda seed, settings: stein_metric(discrepancy, scale, seed, settings.score_fraction)


def _predictive(name: str | dict[str, str]) -> Callable[[int, Settings], Metric]:
    return lambda seed, settings: predictive_metric(name)


def _mamba_by_predictions(name: str) -> Tuner:
    return _mamba(_predictive(name), tasks=(PREDICTIVE[name].task,), points=50)


GRID_METRICS = {"classification": "log-loss", "regression": "rmse"}

TUNERS: dict[str, Tuner] = {
    "mamba-ksd": _mamba(_stein("ksd", "identity")),
    "mamba-fssd": _mamba(_stein("fssd", "identity")),
    "mamba-ksd-scaled": _mamba(_stein("ksd", "laplace")),
    "grid": Tuner(
        _grid_at_one_batch_size,
        _one_rung,
        _predictive(GRID_METRICS),
        Budget(steps=5_000),
        lambda settings: settings.start_noise,
        tasks=tuple(GRID_METRICS),
        points=50,
    ),
    "grid-ksd": Tuner(
        _full_grid,
        _one_rung,
        _stein("ksd", "identity"),
        Budget(seconds=1.0),
        points=2_000,
        remarks=_left_out,
    ),
    "heuristic": Tuner(_heuristic_arm, _one_rung, None, Budget(steps=1)),
    **{f"mamba-{name}": _mamba_by_predictions(name) for name in ("log-loss", "accuracy", "ece", "mce")},
}


def _check(model: Model, tuner: str, budget: Budget, settings: Settings) -> None:
    """What must hold between a model, a tuner and its settings, or an `InputError`."""
    check_choice("clock", settings.clock, ("calibrated", "wall"))
    if settings.clock == "wall" and budget.seconds is None:
        raise InputError(f"clock: 'wall' needs a budget in seconds; it is {budget.given()}")
    if settings.points is not None:
        check_integer("points", settings.points, at_least=1)
    check_integer("thin", settings.thin, at_least=1)
    check_number("score_fraction", settings.score_fraction, above=0, at_most=1)
    check_number("start_noise", settings.start_noise, at_least=0)
    check_names(settings.hyperparameters)
    if TUNERS[tuner].tasks is not None:
        if model.test_data is None or model.predict is None:
            raise InputError(
                f"tuner: {tuner!r} needs a model with predict and test_data; {model.name!r} has not both"
            )
        if model.task not in TUNERS[tuner].tasks:
            raise InputError(
                f"tuner: {tuner!r} judges models with task={' or '.join(TUNERS[tuner].tasks)}; "
                f"{model.name!r} has task={model.task!r}"
            )


def tune(
    model: Model,
    sampler: str,
    *,
    tuner: str = "mamba-ksd",
    budget: Budget | None = None,
    seed: int = 0,
    cost: CostTable | None = None,
    settings: Settings | None = None,
    report: Callable[[str], None] = lambda line: None,
) -> TuningResult:
    """Choose the hyperparameters of ``sampler`` for ``model``: step size, batch size, and what else the grid varies.

    Args:
        tuner: a name of `TUNERS`.
        budget: R, what the longest arm may spend (for grids: each arm). Seconds are turned into steps by ``cost``.
        cost: seconds per step of every shape in the grid; measured first if it is None. The same seed and the same
            table give the same decisions bit for bit. Whatever they cost, every arm makes ten steps before it
            is judged.
        settings: the grid and the tuner's own numbers.
        report: called with one line of progress per rung.

    Raises:
        InputError: an argument is not allowed; `AllDivergedError` if no arm stays finite; its ``result``
            tells how they ran.
    """
    watch_compilation()
    began, there_before = perf_counter(), compiled_programs()
    check_choice("tuner", tuner, TUNERS)
    check_integer("seed", seed, at_least=0)
    settings = settings or Settings()
    method = TUNERS[tuner]
    budget = check_budget(method.default if budget is None else budget)
    _check(model, tuner, budget, settings)
    arms = [check_arm(model, sampler, arm) for arm in method.arms(model.n_data, sampler, settings)]
    if method.metric is None:
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
    # Bad settings end here; from now on it costs time.
    if budget.seconds is not None and settings.clock == "calibrated" and cost is None:
        cost = calibrate_cost(model, [shape_of(sampler, arm) for arm in arms], report=report)
    if budget.seconds is not None and settings.clock == "calibrated":
        for arm in arms:
            cost.lookup(*shape_of(sampler, arm))
    race = Race(
        model=model,
        sampler=sampler,
        arms=arms,
        schedule=schedule,
        budget=budget,
        metric=method.metric(seed, settings),
        cost=cost,
        clock=settings.clock,
        points=method.points if settings.points is None else settings.points,
        thin=settings.thin,
        growth=settings.pruning_rate,
        make=lambda group: Lockstep.at_mode(
            model, sampler, group, seed=seed, start_noise=method.start_noise(settings)
        ),
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
