"""`tune`: choose a sampler's hyperparameters for a model, and the result."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any
from warnings import warn

import numpy as np
from jaxtyping import PyTree
from numpy.typing import ArrayLike

from sgtune.bridges.plots import plot_race
from sgtune.mode.coordinates import check_preconditioner, local_factor, precondition, resolve_preconditioner
from sgtune.mode.curvature import LARGEST_FACTOR, largest_curvature
from sgtune.mode.find import map_result
from sgtune.model import Model
from sgtune.model.checks import check_saved, saved_facts
from sgtune.model.derived import hold_out
from sgtune.model.positions import check_position, flatten
from sgtune.model.preconditioner import Preconditioner, check_factor
from sgtune.samplers import SAMPLERS, Sampler, published_name, resolve_sampler
from sgtune.samplers.gradients import GradientEstimator
from sgtune.sampling.arm import as_saved, check_arm, from_saved, shape_of
from sgtune.sampling.budget import Budget, CostTable, check_budget, check_cost_table
from sgtune.sampling.by_clock import calibrate_cost
from sgtune.sampling.chain import FEWEST_STEPS, Chain, Chains, sample
from sgtune.sampling.diagnosis import check_run
from sgtune.support.axes import COMMON, STEP_SIZE, Arm
from sgtune.support.errors import InputError, check_choice, check_integer, check_number
from sgtune.support.files import read_record, write_record
from sgtune.support.machine import compile_seconds, watch_compilation
from sgtune.support.randomness import LARGEST_SEED, named_seed
from sgtune.tuning.foresight import HOPELESS, promising
from sgtune.tuning.race import AllDivergedError, describe
from sgtune.tuning.rounds import (
    MOST_ROUNDS,
    SHARE_OF_RACE,
    Ledger,
    Pilot,
    Races,
    Recentred,
    recentred,
    run_pilot,
    shrunk,
)
from sgtune.tuning.tuners import TUNERS, Tuner

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["TuningResult", "tune"]

SAVED = (
    *("model", "sampler", "tuner", "n_data", "rows", "rung_seconds", "seconds", "steps"),
    *("gradient_evaluations", "warnings", "pilots", "forecast", "searched"),
)
"""What a file of a result has as it is."""

SAME_CHAIN = {"seed", "replicate", "chains", "n_starts", "kept_draws", "cost"}
"""Options of `sgtune.sample` that leave the arm, its coordinates, its start and the posterior as they are."""

RUN_COLUMNS = ("steps", "samples", "points", "discrepancy", "pruned", "reason", "race")


@dataclass(frozen=True, repr=False)
class TuningResult:
    """The chosen hyperparameters and how they were found.

    Attributes:
        best: a mapping of hyperparameters, which are also attributes (``best.step_size``), and of the
            ``preconditioner`` that they are for, if there is one; None only in the result of an `AllDivergedError`.
        rows: one record per arm and rung of every race, with the columns of ``rungs``.
        rung_seconds: one record per rung: seconds of ``sampling``, ``gradients``, ``discrepancy`` and ``compilation``.
        seconds: ``total``: wall-clock time, the sum of ``compilation`` (tracing and compiling) and ``warm``, the time
            that tuning takes once all programs are compiled. ``warm`` is mostly ``sampling`` (on several cores at
            once), ``gradients`` (scores) and ``discrepancy``. ``shared_compilation``: compilation of sampling programs
            before tuning began.
            ``nominal``: the budget T over all arms; ``overrun``: the time that arms spent beyond it (both None if the
            budget is not in seconds).
        steps: samples of all arms together, pilots included.
        gradient_evaluations: data terms of gradients, in sampling, scoring, pilots, and the Hessians after a pilot.
        warnings: arms that diverged, budgets that were too short for ten steps, remarks on the grid and the
            schedule, and reasons to doubt the chosen arm.
        pilots: one record for each pilot run (`sgtune.tuning.rounds`): ``round``, ``steps``, ``seconds``,
            ``attempts`` (more than 1 where a chain with a larger step size left the posterior), ``data_terms`` of all
            its gradients and ``hessian_terms`` of its Hessians alone, the ``distance`` of its mean from the centre,
            ``least_curvature`` and ``largest_curvature`` of its mean Hessian, and ``moved``: whether another race in
            new coordinates followed.
        plan: ``(model, horizon)``, for `sample`; the horizon is None where a rule has chosen without any budget.
        searched: whether the mode was searched for.
        cost: the costs of steps that converted a budget in seconds, for ``cost`` of `tune`; None with other budgets.
        forecast: the error, in posterior sds, that the chosen arm is expected to have at the horizon; None where the
            judge does not foresee it.
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
    pilots: list[dict] = field(default_factory=list)
    plan: tuple[Model, Budget | None] | None = field(default=None, repr=False)
    forecast: float | None = None
    searched: bool = False
    cost: CostTable | None = field(default=None, repr=False)
    _of_plan: dict = field(default_factory=dict, repr=False)
    """What a file has of the plan, where it was loaded without the model."""

    def sample(self, budget: Budget | None = None, *, check: bool = True, **options: Any) -> Chain | Chains:
        """The planned run: a chain of the chosen arm, or several.

        Args:
            budget: of each chain; None: the horizon of `tune`.
            check: whether to look for errors afterwards, in the parameters of the model, and to warn in one line for
                each kind; ``diagnosis`` of the run has it all. Its data terms are at most 5% of the run's, or those of
                200 scores and densities (`sgtune.sampling.diagnosis.affordable`: about 450,000 + N), if these are
                more. A check that fails leaves a line, and the run as it is.
            options: others of `sgtune.sample`, such as ``seed`` and ``chains``, or ``cost=result.cost``, without which
                a budget in seconds is by the clock. Where the tuner has searched for the mode, ``n_starts`` is the
                number of chains unless given. Numbers in place of the chosen ones, other costs, another start or
                another posterior leave the forecast out, which is of all draws: few kept ones know less.

        Returns:
            The chain; with ``chains`` a `sgtune.Chains`, whose ``tuning`` is this result.

        Raises:
            InputError: the result was loaded without its model, no arm stayed finite, or there is no budget.
        """
        if self.best is None:
            raise InputError("best: None is not allowed; no arm stayed finite, so there is nothing to run")
        if self.plan is None:
            raise InputError("model: None is not allowed; load the result with its model, load(path, model)")
        model, horizon = self.plan
        if budget is None and horizon is None:
            raise InputError(
                f"budget: None is not allowed; {self.tuner} has chosen for no planned run: give one"
            )
        wants_several = options.get("chains") is not None and options.get("position") is None
        if wants_several and self.searched:
            options = {"n_starts": options["chains"], **options}
        whole = {**self.best, "budget": horizon if budget is None else budget, **options}
        run = sample(model, self.sampler, **whole)
        # A forecast is one of the planned length, of the chosen arm and its posterior.
        others = {name for name, option in options.items() if option is not None} - SAME_CHAIN
        is_planned = budget in (None, horizon) and not others and options.get("cost") in (None, self.cost)
        forecast = self.forecast if is_planned else None
        if isinstance(run, Chains):
            chains = tuple(replace(chain, forecast=forecast) for chain in run)
            run = replace(run, chains=chains, tuning=self)
        else:
            run = replace(run, forecast=forecast)
        if check:
            began = perf_counter()
            diagnosis, lines = check_run(run)
            for line in lines:
                warn(line, stacklevel=2)
            run = replace(run, diagnosis=diagnosis, warnings=[*run.warnings, *lines])
            if isinstance(run, Chains):
                terms = 0 if diagnosis is None else diagnosis.data_terms
                run = replace(run, check_cost={"data_terms": terms, "seconds": perf_counter() - began})
        return run

    def plot(self) -> np.ndarray:
        """The last race: discrepancy against step size, a panel for each rung; full points went on, hollow ones were
        pruned, a cross has no value, and the ring is around the chosen arm.

        Returns:
            the axes, one for each rung.

        Raises:
            InputError: seaborn is not installed, or the tuner ran no race.
        """
        if not self.rows:
            raise InputError(f"tuner: {self.tuner!r} ran no arms; there is nothing to plot")
        return plot_race(self.rungs, self.best)

    def save(self, path: str | Path) -> None:
        """Write it as an ``.npz`` file, whole or not at all, without its model.

        Raises:
            DataError: ``path`` has another suffix than .npz, or the disk is full.
        """
        record, arrays = {name: getattr(self, name) for name in SAVED}, {}
        if self.best is not None:
            record["best"], arrays = as_saved(self.best)
        record |= self._of_plan | ({} if self.cost is None else {"cost": self.cost.to_rows()})
        if self.plan is not None:
            model, horizon = self.plan
            record |= {"horizon": horizon and horizon.given(), "posterior": saved_facts(model)}
        write_record(path, "tuning result", record, arrays)

    @classmethod
    def load(cls, path: str | Path, model: Model | None = None) -> "TuningResult":
        """The result that `save` wrote; with its ``model`` it can `sample`.

        Raises:
            DataError: the file cannot be read, or is of something else.
            InputError: it is a result of another D, or of other data than the model's. A changed prior is not seen.
        """
        record, arrays = read_record(path, "tuning result", set(SAVED))
        best, plan = record.get("best"), None
        of_plan = {name: record[name] for name in ("horizon", "posterior") if name in record}
        if model is not None and of_plan:
            check_saved(path, record["posterior"], model)
            plan = model, record["horizon"] and Budget(**record["horizon"])
        if best is not None:
            best = from_saved(path, best, arrays)
        cost = CostTable.from_rows(record["cost"]) if "cost" in record else None
        found = {name: record[name] for name in SAVED}
        return cls(best=best, plan=plan, cost=cost, _of_plan=of_plan, **found)

    def __repr__(self) -> str:
        forecast = "" if self.forecast is None else f", forecast {self.forecast:.2g} sds"
        lines = [
            f"TuningResult({self.tuner} for {self.sampler} on {self.model!r}, N={self.n_data:,}{forecast})",
            f"  best: {self.best}",
            *(f"  {line}" for line in dict.fromkeys(self.warnings)),
        ]
        return "\n".join(lines)

    @property
    def rungs(self) -> "pd.DataFrame":
        """Every arm at every rung: hyperparameters, steps, samples, points judged, value, whether and why pruned, and
        the number of the race.

        ``steps`` counts from the start of the chain; ``discrepancy`` is None for an arm that is not finite.
        """
        # Takes half a second to import, and a job that only writes JSON does not need it.
        import pandas as pd

        columns = self.rows[0] if self.rows else ("rung", *(axis.name for axis in COMMON), *RUN_COLUMNS)
        return pd.DataFrame(self.rows, columns=list(columns))

    def to_dict(self) -> dict:
        """As plain types, for JSON. ``best`` is without its preconditioner, whose coordinates its numbers are for:
        `save` keeps that, too."""
        record = {name: getattr(self, name) for name in SAVED if name not in ("rows", "forecast", "searched")}
        best = None if self.best is None else self.best.to_record()
        return {**record, "best": best, "rungs": self.rows}


def _named(tuner: str | Tuner) -> tuple[str, Tuner]:
    """The name of a tuner in results, and the tuner itself."""
    if isinstance(tuner, str):
        return tuner, TUNERS[check_choice("tuner", tuner, TUNERS)]
    if not isinstance(tuner, Tuner):
        raise InputError(
            f"tuner: {tuner!r} is not allowed; it must be a Halving, GridSearch, Heuristic or Theory, or one of: "
            f"{', '.join(TUNERS)}"
        )
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
        if tuner.validation_fraction:
            hold_out(model, tuner.validation_fraction, name="validation_fraction")
        elif model.test_data is None or model.predict is None:
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


AUTO = "auto"

EDGE_WARNING, WORST_FORECAST, FROZEN, HIDDEN = 3, 0.3, 0.95, 1.25
"""A winner at the edge of so many step sizes or more, and forecasts of so many posterior sds, are worth a warning; and
a block's forecast that is so many times that of all parameters."""


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
    preconditioner: str | Preconditioner | ArrayLike = AUTO,
    rounds: str | int = AUTO,
    position: PyTree | None = None,
    centre: PyTree | None = None,
    n_starts: int = 1,
    report: Callable[[str], None] = lambda line: None,
) -> TuningResult:
    """Choose the hyperparameters of ``sampler`` for ``model``: step size, batch size, and the further axes of the grid.

    The arms run in coordinates z, theta = c + L z, in which the posterior has about the same scale in all directions
    (`Preconditioner` has the equations). They are those of the Laplace approximation, unless you say otherwise. After a
    race its winner goes on for a pilot run of R; if this shows that the coordinates mislead, the arms race again in
    better ones (`sgtune.tuning.rounds`). Up to 200 dimensions, arms of the default grid of which theory expects more
    than 1.5 times the least error do not start (`sgtune.tuning.foresight.promising`).

    Args:
        model, sampler, gradient: as for `sgtune.sample`.
        tuner: a `Halving`, `GridSearch`, `Heuristic` or `Theory` of `sgtune.tuning`, or a name in `TUNERS`, short for
            one. ``mamba``, the default, races the arms and judges them by the error that their sds, and above 200
            dimensions also their means, are expected to have at the horizon (`at_horizon`).
        budget: R, the budget of the arm that runs longest (for grids: of each arm; theory runs no arm, and reads the
            data some ten times). ``cost`` converts seconds to steps.
        horizon: the budget of the planned run, in the currency of ``budget``: judges that look ahead (`at_horizon`) and
            theory choose the arm that they expect to be best at its end. None: R. Of `Heuristic` both may be None.
        seed: root seed of all random streams. Tuners with the same seed and replicate run the same chain for an arm, as
            far as each runs it, so that two tuners differ only in their judgements. `sgtune.sample` has other streams:
            a chain of the chosen arm does not repeat the draws that won the race.
        replicate: another number gives an independent race of the same seed.
        cost: seconds per step of every shape in the grid; None: they are measured first. The same seed and the same
            table give the same decisions bit for bit. Every arm makes at least ten steps before it is judged, even if
            they cost more than its budget; but an arm of a default grid for which they do does not start.
        preconditioner: as for `sgtune.sample`. ``auto``: ``laplace`` if the MAP is a proper one, otherwise ``none``,
            with a warning; ``none`` for `Heuristic`, whose step size is for theta. The step sizes of a grid are for z;
            those of the default grid fit the largest curvature there, which is 1 with a (D, D) factor.
        rounds: the largest number of races, each after the first with a pilot run before it. ``auto``: 3 with a
            preconditioner and up to 2,000 parameters, otherwise 1; without one there is always 1. A pilot runs after
            the last race, too. The chains of all races together are at most 3 times as long as those of a race of all
            arms that the budget pays for; judging, pilots, and what theory reads come on top, and are counted in
            ``gradient_evaluations``. The search for the MAP, its Hessians and their checks are not.
        position, centre: where chains start, and where coordinates and control variates are centred; positions of the
            model. If one is given, it is the other, too, unless that is given; no MAP is then searched for, so that the
            density need not have a mode. The scale is that of the Hessian at the centre, its eigenvalues made positive.
            Not with a `Preconditioner`, which has its own.
        n_starts: starts of the search for the MAP (`sgtune.mode.find.find_map`), if there is one.
        report: called with one line of progress per rung.

    Returns:
        The chosen hyperparameters, ``best``, and how they were found: the records of all arms, times and warnings.
        ``sample(model, sampler, **result.best, budget=...)`` runs a chain with them, and so does ``result.sample()``.

    Raises:
        InputError: an argument is not allowed.
        AllDivergedError: no arm stays finite; its ``result`` has the records of all arms.
    """
    watch_compilation()
    ledger = Ledger()
    sampler = published_name(sampler, gradient)
    name, tuner = _named(tuner)
    check_integer("seed", seed, at_least=0, at_most=LARGEST_SEED)
    check_integer("replicate", replicate, at_least=0)
    check_integer("n_starts", n_starts, at_least=1)
    if rounds != AUTO:
        check_integer("rounds", rounds, at_least=1, at_most=MOST_ROUNDS)
    check_cost_table(cost)
    is_rule = tuner.judge is None and tuner.choose is None
    if is_rule and budget is None:
        # A rule needs none; what it plans for is up to the caller.
        budget = None if horizon is None else check_budget(horizon, "horizon")
    has_budget = not is_rule or budget is not None
    budget = check_budget(tuner.default if budget is None else budget)
    if has_budget:
        horizon = budget if horizon is None else check_horizon(horizon, budget)
    _check(model, sampler, name, tuner, budget)
    is_plain = isinstance(preconditioner, str) and preconditioner == "none"
    if not (isinstance(preconditioner, str) and preconditioner == AUTO):
        check_preconditioner(model, preconditioner)
    for arm in tuner.arms(model.n_data, sampler):
        check_arm(model, sampler, arm)
    searched = position is None and centre is None and not isinstance(preconditioner, Preconditioner)
    if n_starts > 1 and searched:
        map_result(model, n_starts=n_starts)
    preconditioner, remarks = _coordinates(model, tuner, preconditioner, position, centre)
    without_coordinates = "".join(f"; {line}" for line in remarks)
    if not resolve_sampler(sampler)[0].needs_all_data:
        remarks = [*tuner.remarks(model.n_data), *remarks]

    def result(best: Arm | None, forecast: float | None = None) -> TuningResult:
        if best is not None and preconditioner is not None:
            best = Arm(**best, preconditioner=preconditioner)
        found = ("rows", "rung_seconds", "steps", "gradient_evaluations", "warnings", "pilots")
        return TuningResult(
            *(model.name, sampler, name, model.n_data, best),
            **{each: getattr(ledger, each) for each in found},
            seconds=ledger.all_seconds(budget.seconds is not None and tuner.judge is not None),
            plan=(model, horizon),
            forecast=forecast,
            searched=searched,
            cost=cost if budget.seconds is not None and tuner.clock == "calibrated" else None,
        )

    is_fitted = tuner.grid.log10_step_sizes is None and not is_rule

    def arms_in(coordinates: Preconditioner | None) -> list[Arm]:
        """The arms of a race in these coordinates: a diagonal leaves curvatures far above 1, a full factor does not."""
        leaves = is_fitted and (coordinates is None or coordinates.factor.ndim == 1)
        curvature = (largest_curvature(precondition(model, coordinates)),) if leaves else ()
        return [check_arm(model, sampler, arm) for arm in tuner.arms(model.n_data, sampler, *curvature)]

    arms = arms_in(preconditioner)
    if is_rule:
        return result(arms[0])
    seen = precondition(model, preconditioner)
    # All checks are done before the costly work begins.
    if budget.seconds is not None and tuner.clock == "calibrated":
        if cost is None:
            cost = calibrate_cost(seen, [shape_of(sampler, arm) for arm in arms], report=report)
        for arm in arms:
            cost.lookup(*shape_of(sampler, arm))
    races = Races(
        *(model, sampler, tuner, budget, horizon, cost, seed, replicate, n_starts, report, ledger, is_fitted)
    )
    if tuner.choose is not None:
        return _chosen(races, seen, arms, remarks, result)
    every_arm = arms
    arms, left_out = races.affordable(every_arm) if is_fitted else (every_arm, [])
    races.longest = MOST_ROUNDS * races.total(arms)
    # Those of which a winner may have the smallest or the largest step size.
    considered = first_arms = arms
    if is_fitted and preconditioner is not None and not is_plain and tuner.clock == "calibrated":
        # Theory reads all arms that could run: the best may be too dear for the first rung of a race of many.
        possible, too_dear = races.affordable(every_arm, by_last=True)
        kept, terms = promising(seen, sampler, possible, [races.planned(arm) for arm in possible])
        ledger.gradient_evaluations += terms
        if len(kept) < len(possible):
            considered = possible
            arms, left_out = races.affordable(kept)
            line = (
                f"theory: {len(possible) - len(kept)} of {len(possible)} arms did not start: their expected error is "
                f"more than {HOPELESS:g} times the least"
            )
            left_out = [*left_out, *too_dear, line]
    remarks += left_out
    ledger.warnings += remarks
    # Above D = 2,000 rounds took 3 to 4 times the gradients, and helped one of two samplers of a small network.
    is_alone = preconditioner is None or is_plain or model.dimension > LARGEST_FACTOR
    most = (1 if is_alone else MOST_ROUNDS) if rounds == AUTO else rounds
    number, kept = 1, None
    while True:
        try:
            has_pilot = most > 1 and preconditioner is not None
            started = arms
            race, winner, arms = races.race(arms, preconditioner, number, has_pilot)
            # A grid that moved down has other ends.
            considered = considered if arms is started else arms
        except AllDivergedError as error:
            if kept is None:
                error = AllDivergedError(f"{error}{without_coordinates}")
                error.result = result(None)
                raise error from None
            ledger.warnings.append(
                f"round {number}: all arms left the posterior; the arm of the round before is chosen"
            )
            preconditioner, race, winner, arms, pilot, found = kept
            ledger.warnings += _doubts_of_pilot(number - 1, winner.arm, pilot, found)
            best = shrunk(winner.arm, pilot.shrinkage)
            break
        best = winner.arm
        ensemble = race.ensemble_of(winner)
        if most == 1 or preconditioner is None or ensemble is None:
            break
        began = perf_counter()
        own_seed = named_seed(seed, "pilot", replicate, number)
        pilot = run_pilot(
            ensemble, max(FEWEST_STEPS, int(budget.amount * winner.steps / winner.ran)), own_seed
        )
        ended = perf_counter()
        ledger.seconds["sampling"] += ended - began - compile_seconds(began, ended)
        ledger.steps += pilot.steps
        data_terms_of_pilot = pilot.steps * race.terms_per_step[best] + pilot.score_terms
        found = None
        if pilot.stays:
            found = recentred(race.model, pilot, int(SHARE_OF_RACE * race.gradient_evaluations), own_seed)
            data_terms_of_pilot += found.evaluations
        ledger.gradient_evaluations += data_terms_of_pilot
        misleads = found is not None and found.preconditioner is not None
        is_unstable = pilot.attempts > 1 or not pilot.stays
        smaller = [arm for arm in arms if arm.step_size < best.step_size]
        following = first_arms if misleads else smaller
        is_affordable = number < most and races.has_budget(following or arms)
        goes_on = is_affordable and (misleads or (is_unstable and bool(smaller)))
        ledger.pilots.append(
            {
                "round": number,
                "steps": pilot.steps,
                "attempts": pilot.attempts,
                "seconds": perf_counter() - began,
                "data_terms": data_terms_of_pilot,
                "hessian_terms": 0 if found is None else found.evaluations,
                "distance": None if found is None else found.distance,
                "least_curvature": None if found is None else found.least_curvature,
                "largest_curvature": None if found is None else found.largest_curvature,
                "moved": goes_on and misleads,
            }
        )
        report(f"pilot {number}: {ledger.pilots[-1]}")
        if not goes_on:
            ledger.warnings += _doubts_of_pilot(number, best, pilot, found)
            best = shrunk(best, pilot.shrinkage)
            break
        kept = preconditioner, race, winner, arms, pilot, found
        number += 1
        if misleads:
            preconditioner = found.preconditioner
            following = first_arms = races.affordable(arms_in(preconditioner))[0] if is_fitted else first_arms
            considered = first_arms
        arms = following
    # A pilot that stayed with a smaller step size only has chosen an arm that no race has judged.
    in_sds = tuner.judge.in_sds and best == winner.arm
    forecast = race.values.get(winner.index, np.inf) if in_sds else np.inf
    ledger.warnings += _doubts(sampler, considered, best, forecast if np.isfinite(forecast) else None)
    if np.isfinite(forecast):
        ledger.warnings += _doubts_of_blocks(forecast, race.blocks.get(winner.index, dict)())
    return result(best, forecast if np.isfinite(forecast) else None)


def _doubts_of_blocks(forecast: float, blocks: Mapping[str, float]) -> list[str]:
    """A line on the worst block of the position, if the mean over all parameters hides its error."""
    worst = max(blocks, key=blocks.get, default=None)
    if worst is None or blocks[worst] <= max(WORST_FORECAST, HIDDEN * forecast):
        return []
    return [
        f"position: the error of {worst!r} expected at the horizon's end is {blocks[worst]:.2g} posterior sds, and "
        f"{forecast:.2g} over all parameters: give a preconditioner, smaller step sizes, or a longer horizon"
    ]


def _doubts_of_pilot(number: int, arm: Arm, pilot: Pilot, found: Recentred | None) -> list[str]:
    """What the last pilot shows, and no further race can mend."""
    doubts = []
    if not pilot.stays:
        doubts.append(
            f"pilot {number}: {describe(arm)} left the posterior, and so did a hundredth of its step size: give a grid "
            "with smaller ones"
        )
    elif pilot.attempts > 1:
        doubts.append(
            f"pilot {number}: {describe(arm)} left the posterior; {pilot.shrinkage:g} of its step size stayed, and is "
            "chosen: give a grid with smaller ones"
        )
    if found is not None and found.preconditioner is not None:
        doubts.append(
            f"pilot {number}: its mean is {found.distance:.2g} sds from the centre, and curvatures are "
            f"{found.least_curvature:.2g} to {found.largest_curvature:.2g}, not 1: the coordinates mislead: give a "
            "larger budget, or a position near the posterior's mean"
        )
    if found is not None and found.least_curvature is None:
        doubts.append(
            f"pilot {number}: the Hessian is not finite at its draws, so that the coordinates are not checked: give a "
            "position near the posterior's mean, or a preconditioner"
        )
    return doubts


def _coordinates(
    model: Model, tuner: Tuner, given: object, position: PyTree | None, centre: PyTree | None
) -> tuple[Preconditioner | None, list[str]]:
    """The preconditioner of the first race, and a remark if there is no proper mode to make one from."""
    is_auto = isinstance(given, str) and given == AUTO
    if position is None and centre is None:
        if not is_auto:
            return resolve_preconditioner(model, given), []
        if tuner.judge is None and tuner.choose is None:
            return None, []
        try:
            return resolve_preconditioner(model, "laplace"), []
        except InputError as error:
            advice = "give one, such as the posterior's sds, or a position near its mean"
            return None, [f"{error}; arms ran without a preconditioner: {advice}"]
    name, centre = ("position", position) if centre is None else ("centre", centre)
    centre = flatten(check_position(name, model, centre))
    start = centre if position is None else flatten(check_position("position", model, position))
    if isinstance(given, Preconditioner):
        raise InputError(
            "preconditioner: it has a centre and a start of its own; position and centre must be None"
        )
    if is_auto and tuner.judge is None and tuner.choose is None:
        given = "none"
    elif is_auto or (isinstance(given, str) and given == "laplace"):
        return Preconditioner(centre, local_factor(model, centre), start), []
    if isinstance(given, str):
        check_choice("preconditioner", given, (AUTO, "laplace", "none"))
        return Preconditioner(centre, np.ones(model.dimension), start), []
    return Preconditioner(centre, check_factor("preconditioner", given, model.dimension), start), []


def _doubts(sampler: str, arms: Sequence[Arm], best: Arm, forecast: float | None) -> list[str]:
    """Reasons to doubt the chosen arm, each with what to change.

    Args:
        arms: those that started.
        forecast: the error that it is expected to have at the horizon, in posterior sds; None: not known.
    """
    doubts = []
    others = {name: number for name, number in best.items() if name != STEP_SIZE.name}
    rivals = sorted(
        {arm.step_size for arm in arms if {**arm, STEP_SIZE.name: 0} == {**others, STEP_SIZE.name: 0}}
    )
    # A grid that ends where a thermostat does needs no larger step sizes.
    limit = 0.99 * resolve_sampler(sampler)[0].largest_of_thermostat
    edges = {*rivals[:1], *(size for size in rivals[-1:] if size <= limit)}
    if len(rivals) >= EDGE_WARNING and best.step_size in edges:
        side, change = ("smallest", "smaller") if best.step_size == rivals[0] else ("largest", "larger")
        doubts.append(
            f"log10_step_sizes: the chosen step size, {best.step_size:.3g}, is the {side} of its grid: give a grid "
            f"with {change} ones"
        )
    if forecast is not None and forecast >= FROZEN:
        doubts.append(
            f"horizon: the error expected at its end is {forecast:.2g} posterior sds, no better than that of a chain "
            "that never moves: give a longer horizon, or another sampler"
        )
    elif forecast is not None and forecast > WORST_FORECAST:
        doubts.append(
            f"horizon: the error expected at its end is {forecast:.2g} posterior sds, more than {WORST_FORECAST:g}: "
            "give a longer horizon, or another sampler"
        )
    return doubts


def _chosen(
    races: Races, model: Model, arms: list[Arm], remarks: list[str], result: Callable[..., TuningResult]
) -> TuningResult:
    """The decision of a tuner that runs no arm, on ``model`` in its coordinates.

    Raises:
        AllDivergedError: no arm is stable.
    """
    ledger, n_steps, asked = races.ledger, [races.planned(arm) for arm in arms], perf_counter()
    choice = races.tuner.choose(model, races.sampler, arms, n_steps, races.report)
    ended = perf_counter()
    compilation = compile_seconds(asked, ended)
    ledger.gradient_evaluations += choice.evaluations
    ledger.seconds["discrepancy"] += ended - asked - compilation
    ledger.rows = choice.rows
    ledger.rung_seconds = [{"rung": 1, **ledger.seconds, "compilation": compilation}]
    ledger.warnings = [*remarks, *choice.warnings]
    if choice.best is None:
        error = AllDivergedError(
            f"step_size: all {len(arms)} arms of {races.sampler} are unstable by the theory; the smallest step size "
            f"tried is {min(arm.step_size for arm in arms):.3g}: try smaller ones"
        )
        error.result = result(None)
        raise error
    best = arms[choice.best]
    forecast = choice.rows[choice.best]["discrepancy"] if choice.rows else None
    ledger.warnings += _doubts(races.sampler, arms, best, forecast)
    return result(best, forecast)
