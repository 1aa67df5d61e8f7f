"""The engine of all tuners that run arms: rungs of running, judging and pruning.

MAMBA is a race over the rungs of successive halving; grid search is a race of one rung.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import partial
from threading import Event
from time import perf_counter
from typing import NamedTuple

import jax
import numpy as np

from sgtune.model import Model
from sgtune.samplers import resolve_sampler
from sgtune.samplers.metropolis import remarks_on_acceptance
from sgtune.sampling.arm import Arm, shape_of
from sgtune.sampling.budget import Budget
from sgtune.sampling.by_clock import draws_for
from sgtune.sampling.chain import FEWEST_STEPS
from sgtune.sampling.lockstep import Lockstep, compile_together, data_terms
from sgtune.sampling.thinning import Reservoir
from sgtune.support.errors import InputError, check_integer, check_number
from sgtune.support.machine import compile_seconds, cores
from sgtune.tuning.judges import ArmDraws, Metric

__all__ = [
    "AllDivergedError",
    "Race",
    "Racer",
    "Rung",
    "Schedule",
    "describe",
    "halving_schedule",
    "rank_arms",
    "record_rung",
    "single_rung",
]


class Rung(NamedTuple):
    """``n_arms`` arms each run for another ``amount`` of the budget; the best ``n_survivors`` go on."""

    n_arms: int
    amount: float
    n_survivors: int


class Schedule(NamedTuple):
    """The rungs, the total budget T over all arms, and a remark for the output (empty if there is none)."""

    rungs: tuple[Rung, ...]
    total: float
    remark: str = ""


def halving_schedule(n_arms: int, pruning_rate: int, longest: float) -> Schedule:
    """Algorithm 1 for M = ``n_arms`` arms, eta = ``pruning_rate``, and R = ``longest``, the longest arm's total.

    K = floor(log_eta M) by integer division; T = R M K / (1 + eta + ... + eta^(K-1)); rung i gives each of its |S_i|
    arms r_i = T / (|S_i| K), and keeps floor(|S_i| / eta). The rungs' budgets add up to T. Because of the floors, the
    last survivors may exceed R a little. With fewer arms than eta there is one rung, in which each arm runs for R.

    Raises:
        InputError: M < 1, eta < 2, or R not positive.
    """
    check_integer("arms: number of arms", n_arms, at_least=1)
    check_integer("pruning_rate", pruning_rate, at_least=2)
    check_number("budget", longest, above=0)
    n_rungs, left = 0, n_arms
    while left >= pruning_rate:
        left //= pruning_rate
        n_rungs += 1
    if n_rungs == 0:
        arms = f"{n_arms} arms" if n_arms > 1 else "1 arm"
        remark = f"{arms}, fewer than the pruning rate {pruning_rate}: no halving, each ran the whole budget"
        return Schedule(single_rung(n_arms, longest).rungs, longest * n_arms, remark)
    total = longest * n_arms * n_rungs / sum(pruning_rate**i for i in range(n_rungs))
    rungs, left = [], n_arms
    for _ in range(n_rungs):
        rungs.append(Rung(left, total / (left * n_rungs), left // pruning_rate))
        left //= pruning_rate
    return Schedule(tuple(rungs), total)


def single_rung(n_arms: int, each: float) -> Schedule:
    """Grid search as a schedule: every arm runs for ``each``, and the best one is chosen."""
    check_integer("arms: number of arms", n_arms, at_least=1)
    check_number("budget", each, above=0)
    return Schedule((Rung(n_arms, each, 1),), each * n_arms)


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

    def judged(
        self, sampler: str, reservoir: Reservoir, at_most: int, horizon: float, since: int = 0
    ) -> ArmDraws:
        """The input of a judge: ``at_most`` draws, a random subset of those that count; none if it diverged. Of this
        subset only the draws after the step ``since``, if steps followed it."""
        places, n_draws = reservoir.part(at_most)
        if since < self.steps:
            n_draws = -(-n_draws * (self.steps - since) // self.steps)
            places = places[reservoir.steps[places] > since]
            # Of few draws more than their share may be late ones.
            n_draws = max(n_draws, len(places))
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


def rank_arms(values: list[float], tie_break: list[tuple]) -> list[int]:
    """Places from the lowest value to the highest; infinite and NaN ones last. Equal values, and those that are not
    finite, are in the order of ``tie_break``."""

    def rank(i: int) -> tuple:
        is_finite = bool(np.isfinite(values[i]))
        return not is_finite, values[i] if is_finite else 0.0, tie_break[i]

    return sorted(range(len(values)), key=rank)


def record_rung(
    number: int,
    running: Sequence[Racer],
    n_points: Sequence[int],
    values: Mapping[int, float],
    remarks: Sequence[str],
    survivors: Sequence[Racer],
) -> tuple[list[dict], list[str]]:
    """A row for each arm of the rung ``number`` (from 0), and one warning if some have no value.

    Args:
        n_points: how many the judge had of each arm.
        values: by the arms' indices.
        remarks: of the judge, on each arm; why one has no value.
    """
    alive = {racer.index for racer in survivors}
    rows, dead = [], []
    for racer, points, remark in zip(running, n_points, remarks, strict=True):
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
            dead.append((racer.arm.step_size, reason))
        rows.append(
            {
                "rung": number + 1,
                **racer.arm.to_record(),
                "steps": racer.steps,
                "samples": len(racer.draws),
                "points": points,
                "discrepancy": value if np.isfinite(value) else None,
                "pruned": racer.index not in alive,
                "reason": reason,
            }
        )
    if not dead:
        return rows, []
    step_sizes, reasons = zip(*dead, strict=True)
    # The numbers in a reason differ from arm to arm; they are in the rows.
    counts = Counter(reason.partition(":")[0] for reason in reasons)
    named = ", ".join(f"{count} {reason}" for reason, count in counts.items())
    span = f"{min(step_sizes):.3g}" + (f" to {max(step_sizes):.3g}" if len(set(step_sizes)) > 1 else "")
    return rows, [
        f"rung {number + 1}: {len(dead)} of {len(running)} arms have no value ({named}), of step sizes {span}"
    ]


def describe(arm: Arm) -> str:
    """The arm's numbers, for a warning."""
    return ", ".join(
        f"{name}={number if isinstance(number, int) else format(number, '.3g')}"
        for name, number in arm.items()
    )


KEPT_BYTES = 2**29
"""All running arms together keep at most this many bytes of draws, or ten draws each: a random subset of their draws.
To separate and score them needs three times as much memory."""

MOST_THREADS = 8
"""At most this many ensembles advance at the same time. Each has its own buffers of up to 64 MB of draws."""

WORTH_COMPILING = 3.0
"""If pruned chains would keep running for this many seconds, added up, a narrower program is compiled instead. In
lockstep they take a third of this time or less, and to trace and compile a program takes about a second."""


WORTH_NUMBERS = 2**24
"""A pilot goes on in its race's program, beside copies of itself, if its gradients have at most so many numbers: an
entry for each parameter, row and chain. They take a tenth of a second where a row's likelihood is a formula."""


class AllDivergedError(InputError):
    """No arm has a finite value. ``result`` is the `TuningResult` up to this point, without a best arm."""

    result = None


@dataclass
class Race:
    """Run arms through the rungs of a schedule.

    A survivor keeps its whole state (position, momentum, thermostat) from rung to rung. It is judged by all its draws
    so far, or, if these are more than the cap, by a random subset of them, at the same steps for every arm of its shape
    (`sgtune.sampling.thinning`).

    Args:
        budget: in the schedule's currency.
        price: the cost of a step of an arm, in this currency; not called by the wall clock.
        clock: ``calibrated``: prices convert the budget to steps, arms of one shape advance in lockstep, and the
            outcome does not depend on the machine's load. ``wall``: one arm after the other, by the wall clock.
        seed: of the random subsets, together with ``replicate``.
        horizon: the budget of the planned run, in the budget's currency.
        thin: every thin-th draw is used to judge an arm, but at least ten draws.
        points: the largest number of points that judge an arm in the first rung. Each later rung has 1/eta of the arms
            and eta times as many points, so the scores of all rungs cost the same.
        growth: eta.
        restarts: as in `sgtune.tuning.Halving`.
        make: builds the ensemble of a group of arms of one shape.
        pilot: set if the winner goes on alone afterwards: a call that compiles further programs which this needs.
        raced: the arm that runs in place of each arm, where ``model`` has fewer rows, because some are held out
            to judge by. Records and costs are under the original arm.
        done: called with what arms have spent since its last call, from any thread.
    """

    model: Model
    sampler: str
    arms: list[Arm]
    schedule: Schedule
    budget: Budget
    metric: Metric
    price: Callable[[Arm], float]
    clock: str
    seed: int
    replicate: int
    horizon: float
    points: int
    thin: int
    growth: int
    make: Callable[[list[Arm]], Lockstep]
    pilot: Callable[[], object] | None = None
    report: Callable[[str], None] = lambda line: None
    raced: Callable[[Arm], Arm] = lambda arm: arm
    restarts: bool = False
    done: Callable[[float], None] = lambda amount: None

    def __post_init__(self):
        self.racers = [Racer(i, arm) for i, arm in enumerate(self.arms)]
        self.seconds = dict.fromkeys(("sampling", "gradients", "discrepancy", "compilation"), 0.0)
        self.gradient_evaluations = 0
        self.rows: list[dict] = []
        self.warnings: list[str] = [self.schedule.remark] if self.schedule.remark else []
        self.terms_per_step = {
            arm: data_terms(self.model, self.sampler, self.raced(arm)) for arm in self.arms
        }
        self.rung_seconds: list[dict] = []
        self.groups: list[tuple[Lockstep, dict[int, Racer], Reservoir]] = []
        self.programs: dict[tuple, float] = {}
        self.values: dict[int, float] = {}
        self.blocks: dict[int, Callable[[], Mapping[str, float]]] = {}
        self.fell_back = False
        # (minus the rung, value, place): the fallback if all arms of the later rungs diverge.
        self.pruned_finite: list[tuple[int, float, int]] = []

    def run(self) -> Racer:
        """The winner.

        Raises:
            AllDivergedError: no arm has a finite value.
        """
        began = perf_counter()
        self._form_groups()
        running = self.racers
        for number, rung in enumerate(self.schedule.rungs):
            before = dict(self.seconds)
            self._narrow_groups(running, rung.amount)
            since = {racer.index: racer.steps if self.restarts else 0 for racer in running}
            if self.restarts and number > 0:
                self._restart(number)
            self._advance_groups(rung.amount)
            cap = self.points * self.growth**number
            reservoirs = {
                racer.index: reservoir for _, members, reservoir in self.groups for racer in members.values()
            }
            judged = [
                racer.judged(self.sampler, reservoirs[racer.index], cap, self.horizon, since[racer.index])
                for racer in running
            ]
            judgement = self.metric(self.model, judged)
            remarks = judgement.remarks or [""] * len(running)
            values = {
                racer.index: float(value) for racer, value in zip(running, judgement.values, strict=True)
            }
            self.seconds["gradients"] += judgement.gradient_seconds
            self.seconds["discrepancy"] += judgement.metric_seconds
            self.gradient_evaluations += judgement.gradient_evaluations
            ended = perf_counter()
            self.seconds["compilation"] += compile_seconds(began, ended)
            began = ended
            spent = {name: seconds - before[name] for name, seconds in self.seconds.items()}
            self.rung_seconds.append({"rung": number + 1, **spent})
            # Arms of one value, or without any, are in the order of their step sizes, then of their cost.
            ties = [(racer.arm.step_size, self.terms_per_step[racer.arm]) for racer in running]
            order = rank_arms(judgement.values, ties)
            survivors = [running[i] for i in order[: rung.n_survivors]]
            if number == 0:
                n_short = sum(racer.ran > racer.spent for racer in running if racer.steps <= FEWEST_STEPS)
            n_points = [len(used.points) for used in judged]
            rows, warnings = record_rung(number, running, n_points, values, remarks, survivors)
            self.rows += rows
            self.warnings += warnings
            alive = {racer.index for racer in survivors}
            for racer in running:
                if racer.index not in alive:
                    # Not a view, which would keep all draws alive.
                    racer.draws = np.empty((0, racer.draws.shape[1]), np.float32)
                    if np.isfinite(values[racer.index]):
                        self.pruned_finite.append((-number - 1, values[racer.index], racer.index))
            self.report(
                f"rung {number + 1}/{len(self.schedule.rungs)}: {len(running)} arms ran {rung.amount:.4g} each, "
                f"best {values[survivors[0].index]:.4g} at {survivors[0].arm}"
            )
            if judgement.blocks is not None:
                self.blocks = {
                    racer.index: partial(judgement.blocks, place) for place, racer in enumerate(running)
                }
            self.values, running = values, survivors
            if not any(np.isfinite(value) for value in values.values()):
                # The later rungs would only advance chains that have left.
                break
        if n_short and self.overrun > 0:
            (currency,) = self.budget.given()
            self.warnings.append(
                f"{n_short} of {len(self.racers)} arms made {FEWEST_STEPS} steps, the minimum, although their "
                f"first budget pays for fewer; the race spent {self.overrun:.3g} {currency} more than its total "
                f"budget of {self.schedule.total:.3g}"
            )
        winner = min(running, key=lambda racer: values[racer.index])
        self.fell_back = not np.isfinite(values[winner.index])
        if not np.isfinite(values[winner.index]) and self.pruned_finite:
            number, value, place = min(self.pruned_finite)
            winner = self.racers[place]
            self.warnings.append(
                f"none of the {len(running)} arms of the last rung has a finite value; the best arm "
                f"pruned in rung {-number} is chosen instead: {describe(winner.arm)}, {value:.4g}"
            )
        elif not np.isfinite(values[winner.index]):
            smallest = min(arm.step_size for arm in self.arms)
            raise AllDivergedError(
                f"step_size: all {len(self.arms)} arms of {self.sampler} diverged or left the posterior; the smallest "
                f"step size tried is {smallest:.3g}: try smaller ones"
            )
        when_stuck = resolve_sampler(self.sampler)[0].when_stuck
        self.warnings += remarks_on_acceptance(self.sampler, when_stuck, winner.statistics, winner.arm)
        return winner

    def ensemble_of(self, racer: Racer) -> Lockstep | None:
        """The chain of a racer of the last rung, alone or beside copies (`_pilot_width`); None for others."""
        for ensemble, members, _ in self.groups:
            for place, member in members.items():
                if member is racer:
                    return ensemble.narrow([place], self._pilot_width(ensemble, racer.arm))
        return None

    def _pilot_width(self, ensemble: Lockstep, arm: Arm) -> int:
        """1; that of ``ensemble`` if a run of R is so short that copies of a chain cost less than another program."""
        if ensemble.width == 1:  # always by the wall clock, without prices
            return 1
        n_steps = self.budget.amount / self.price(arm)
        numbers = n_steps * self.terms_per_step[arm] * self.model.dimension * ensemble.width
        return ensemble.width if numbers <= WORTH_NUMBERS else 1

    def _form_groups(self) -> None:
        """Ensembles of one shape, each with the racers at its places; as wide as the model gains by."""
        shapes: dict[tuple, list[Racer]] = {}
        for racer in self.racers:
            shape = shape_of(self.sampler, racer.arm) if self.clock == "calibrated" else racer.index
            shapes.setdefault(shape, []).append(racer)
        self.groups = []
        for members in shapes.values():
            for together in self.model.abreast(members):
                ensemble = self.make([racer.arm for racer in together])
                reservoir = Reservoir(self.seed, "race", self.replicate, thin=self.thin)
                self.groups.append((ensemble, dict(enumerate(together)), reservoir))

    def _narrow_groups(self, running: list[Racer], amount: float) -> None:
        """Take the pruned racers out of their ensembles, and compile what the next rung needs."""
        alive = {racer.index for racer in running}
        groups = []
        for ensemble, members, reservoir in self.groups:
            kept = {place: racer for place, racer in members.items() if racer.index in alive}
            # A narrower program must be compiled. In a short rung pruned chains keep running; their draws are ignored.
            wasted = (ensemble.width - len(kept)) * amount if self.budget.seconds is not None else np.inf
            if kept and len(kept) < ensemble.width and wasted >= WORTH_COMPILING:
                groups.append((ensemble.narrow(list(kept)), dict(enumerate(kept.values())), reservoir))
            elif kept:
                groups.append((ensemble, kept, reservoir))
        self.groups = groups
        ensembles, others = [ensemble for ensemble, _, _ in groups], []
        if self.pilot is not None and not self.programs:
            others = [self.pilot]
            # Of several shapes it is not known which one will win.
            if len(ensembles) == 1:
                (only, members, _), *_ = groups
                ensembles += [only.narrow([0], self._pilot_width(only, next(iter(members.values())).arm))]
        self.programs |= compile_together(ensembles, others)

    def _restart(self, number: int) -> None:
        """Fresh momenta, and thermostats, of all chains, where they are."""
        for ensemble, _, _ in self.groups:
            keys = jax.vmap(partial(jax.random.fold_in, data=number))(ensemble.keys)
            ensemble.begin(keys, ensemble.states.position)

    def _advance_groups(self, amount: float) -> None:
        """Advance all ensembles, by the calibrated clock up to `MOST_THREADS` at a time: their draws do not depend on
        each other. After an error or Ctrl-C the others stop after their current call of the program."""
        width, stop = sum(ensemble.width for ensemble, _, _ in self.groups), Event()
        # Draws that an arm may keep until the end of the rung.
        most = max(10, KEPT_BYTES // (4 * self.model.dimension * width))

        def advance(group):
            return self._advance(*group, amount, most, stop)

        n_threads = 1 if self.clock == "wall" else min(cores() or 1, MOST_THREADS, len(self.groups))
        began = perf_counter()
        if n_threads == 1:
            evaluations = [advance(group) for group in self.groups]
        else:
            with ThreadPoolExecutor(n_threads) as pool:
                advancing = [pool.submit(advance, group) for group in self.groups]
                try:
                    ended = wait(advancing, return_when=FIRST_EXCEPTION).done
                    # No stop was requested so far, so this is an error of its own.
                    failed = next(
                        (one for one in advancing if one in ended and one.exception() is not None), None
                    )
                    if failed is not None:
                        failed.result()
                    evaluations = [one.result() for one in advancing]
                except BaseException:
                    stop.set()
                    for one in advancing:
                        one.cancel()
                    raise
        ended = perf_counter()
        self.seconds["sampling"] += ended - began - compile_seconds(began, ended)
        self.gradient_evaluations += sum(evaluations)

    def _advance(
        self,
        ensemble: Lockstep,
        members: dict[int, Racer],
        reservoir: Reservoir,
        amount: float,
        most: int,
        stop: Event,
    ) -> int:
        """Advance one ensemble, each of whose arms keeps at most ``most`` draws, until ``stop`` is set.

        Returns:
            the data terms of the gradients of its arms' steps.
        """
        first = next(iter(members.values()))
        if self.clock == "wall":
            ran, left = 0.0, first.spent + amount - first.ran
            if left > 0 or first.steps < FEWEST_STEPS:
                for draws, elapsed in draws_for(ensemble, left, max(1, FEWEST_STEPS - first.steps)):
                    self.done(elapsed - ran)
                    ran = elapsed
                    before = reservoir.n_steps
                    stay, new = reservoir.extend(len(draws), most)
                    first.keep(stay, draws[new - before - 1, 0])
        else:
            # Steps beyond the first rung's budget count towards the later rungs.
            wanted = max(int((first.spent + amount) / self.price(first.arm)), FEWEST_STEPS)
            n_steps = max(0, wanted - first.steps)
            ran = n_steps * self.price(first.arm)
            stay, new = reservoir.extend(n_steps, most)
            each = self.price(first.arm) * len(members)
            draws = ensemble.advance_to(first.steps + n_steps, new, stop, lambda made: self.done(made * each))
            for place, racer in members.items():
                racer.keep(stay, draws[:, place])
        made = reservoir.n_steps - first.steps
        statistics = ensemble.statistics
        for place, racer in members.items():
            racer.finite = bool(ensemble.finite[place])
            racer.statistics = {name: float(values[place]) for name, values in statistics.items()}
            racer.steps += made
            racer.spent += amount
            racer.ran += ran
        return made * sum(self.terms_per_step[racer.arm] for racer in members.values())

    @property
    def overrun(self) -> float:
        """The amount that arms spent beyond their budgets, because ten steps cost more than the budget."""
        return sum(max(0.0, racer.ran - racer.spent) for racer in self.racers)
