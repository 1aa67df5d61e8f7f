"""Rounds of tuning: races, and pilot runs that show where the coordinates mislead and give better ones.

The coordinates of the first race are from the curvature at the mode. The mode of a hierarchy may lie far outside the
region that has the probability, and have another curvature. After a race its winner goes on for a pilot run, whose
mean and whose Hessians are compared with the coordinates. The scale of the new coordinates is the inverse of
-E[Hessian of log pi], which for the posterior itself is the covariance of its scores (Fisher's identity); gradient
noise and a large step inflate the spread of draws, but hardly their mean Hessian.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from time import perf_counter
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, PyTree

from sgtune.mode.coordinates import HESSIAN, lower_triangle, precondition
from sgtune.mode.curvature import LARGEST_FACTOR
from sgtune.mode.find import map_result
from sgtune.model import Model
from sgtune.model.derived import hold_out
from sgtune.model.posterior import LARGE_DIMENSION, hessian_products
from sgtune.model.preconditioner import Preconditioner
from sgtune.model.rows import take_rows
from sgtune.samplers import resolve_sampler
from sgtune.sampling.arm import chain_numbers, shape_of
from sgtune.sampling.budget import Budget, CostTable
from sgtune.sampling.chain import FEWEST_STEPS
from sgtune.sampling.lockstep import Lockstep, compiled_programs, data_terms
from sgtune.support.axes import DRIFT, NOISE_SD, STEP_SIZE, Arm
from sgtune.support.machine import compile_seconds
from sgtune.support.progress import progress_bar
from sgtune.support.randomness import named_seed
from sgtune.tuning.horizon import ESCAPED, SCORE_ROWS, enough_points, fresh_scores, mean_virial
from sgtune.tuning.race import AllDivergedError, Race, Racer
from sgtune.tuning.tuners import Tuner

__all__ = ["MOST_ROUNDS", "Ledger", "Pilot", "Races", "Recentred", "recentred", "run_pilot", "shrunk"]

MOST_ROUNDS = 3

LEAST_SHARE = 0.5
"""A race has at least this share of its budget: what is left of that of `MOST_ROUNDS` races may be less than one, after
a first rung in which all arms left the posterior."""

FAR = 3.0
"""The centre misleads if the pilot's mean is this many sds of the coordinates away from it, in any direction."""

LARGEST_RATIO = 3.0
"""The scale misleads if an eigenvalue of the mean Hessian, 1 in good coordinates, is off by this factor."""

N_POINTS = 16
"""Draws of the pilot at which Hessians are averaged; half as many above D = 200."""

SHARE_OF_RACE = 0.25
"""Hessians may cost this share of the data terms of the race before them, as far as the one at the centre, of all data
and known in the coordinates of the mode, and those of `FEWEST_ROWS` rows at draws do not cost more."""

FEWEST_ROWS = 256
"""The least number of rows of the data in the Hessian at a draw, fresh for each."""

FEWEST_CURVATURE = 1e-3
"""Eigenvalues of the mean Hessian are made positive, and at least this share of the largest."""

MOST_DRAWS, KEPT_NUMBERS, N_SCORED = 2_000, 2**25, 64
"""Draws of a pilot that are kept, numbers in them, and draws whose scores tell whether it stays in the posterior."""

MOST_ATTEMPTS, SHRINKAGE = 3, 0.1


MOST_MOVES, DOWN = 2, 0.01
"""A grid of which all arms leave the posterior moves down by this factor, in units of SGLD's step size."""


@dataclass
class Ledger:
    """All that the races and pilots of a call of `tune` found and spent."""

    began: float = field(default_factory=perf_counter)
    programs_before: frozenset = field(default_factory=compiled_programs)
    rows: list[dict] = field(default_factory=list)
    rung_seconds: list[dict] = field(default_factory=list)
    seconds: dict[str, float] = field(
        default_factory=lambda: dict.fromkeys(("sampling", "gradients", "discrepancy"), 0.0)
    )
    shared: dict[tuple, float] = field(default_factory=dict)
    nominal: float = 0.0
    overrun: float = 0.0
    steps: int = 0
    gradient_evaluations: int = 0
    warnings: list[str] = field(default_factory=list)
    pilots: list[dict] = field(default_factory=list)
    n_races: int = 0

    def add(self, race: Race) -> None:
        """What ``race`` found and spent; races are numbered from 1."""
        self.n_races += 1
        self.rows += [row | {"race": self.n_races} for row in race.rows]
        self.rung_seconds += [row | {"race": self.n_races} for row in race.rung_seconds]
        for name in self.seconds:
            self.seconds[name] += race.seconds[name]
        self.shared |= {shape: race.programs[shape] for shape in race.programs.keys() & self.programs_before}
        self.nominal += sum(
            rung.n_arms * rung.amount for rung in race.schedule.rungs[: len(race.rung_seconds)]
        )
        self.overrun += race.overrun
        self.steps += sum(racer.steps for racer in race.racers)
        self.gradient_evaluations += race.gradient_evaluations
        self.warnings += race.warnings

    def all_seconds(self, in_seconds: bool) -> dict[str, float | None]:
        """`TuningResult.seconds` until now."""
        total = perf_counter() - self.began
        compilation = compile_seconds(self.began, self.began + total)
        return {
            "total": total,
            "warm": total - compilation,
            **self.seconds,
            "compilation": compilation,
            "shared_compilation": sum(self.shared.values(), 0.0),
            "nominal": self.nominal if in_seconds else None,
            "overrun": self.overrun if in_seconds else None,
        }


@dataclass
class Races:
    """What all races of a call of `tune` share.

    Attributes:
        ledger: has all that races spend.
        is_fitted: whether the grid is one that moves.
        longest: the budget of all races together.
    """

    model: Model
    sampler: str
    tuner: Tuner
    budget: Budget
    horizon: Budget
    cost: CostTable | None
    seed: int
    replicate: int
    n_starts: int
    report: Callable[[str], None]
    ledger: Ledger
    is_fitted: bool
    longest: float = np.inf

    @property
    def raced_model(self) -> Model:
        """The model without the rows that are held out to judge by."""
        fraction = self.tuner.validation_fraction
        if self.tuner.judge.tasks is None or not fraction:
            return self.model
        return hold_out(self.model, fraction, name="validation_fraction")

    def affordable(self, arms: list[Arm], *, by_last: bool = False) -> tuple[list[Arm], list[str]]:
        """The arms of which the first rung's budget buys ten steps, and a line that names the others.

        All arms where prices are not known, by the wall clock; the cheapest if no arm is affordable.

        Args:
            by_last: of which R, the budget of all rungs, buys ten steps.
        """
        if self.tuner.clock == "wall":
            return arms, []
        prices = [self.price(arm) for arm in arms]
        kept = range(len(arms))
        while True:
            # The dearest go first: with fewer arms the first rung is longer.
            first = self.tuner.schedule(len(kept), self.budget.amount).rungs[0].amount
            amount = self.budget.amount if by_last else first
            dearest = max(prices[i] for i in kept)
            if FEWEST_STEPS * dearest <= amount or dearest == min(prices):
                break
            kept = [i for i in kept if prices[i] < dearest]
        left_out = {shape_of(self.sampler, arms[i])[1:3] for i in range(len(arms)) if i not in set(kept)}
        if not left_out:
            return arms, []
        (currency,) = self.budget.given()
        named = ", ".join(
            f"batch_size={size}" + (f" with n_leapfrog={leapfrogs}" if leapfrogs else "")
            for size, leapfrogs in sorted(left_out, key=str)
        )
        line = (
            f"budget: {len(arms) - len(kept)} arms did not start, because {'R' if by_last else 'the first rung'}, "
            f"{amount:.3g} {currency} an arm, does not pay for {FEWEST_STEPS} steps of {named}"
        )
        return [arms[i] for i in kept], [line]

    def price(self, arm: Arm) -> float:
        """The cost of a step, in the budget's currency, with no row held out."""
        if self.budget.seconds is not None:
            return self.cost.lookup(*shape_of(self.sampler, arm))
        return 1 if self.budget.steps is not None else data_terms(self.model, self.sampler, arm)

    def planned(self, arm: Arm) -> int:
        """The steps that the horizon, in the budget's currency, buys."""
        return int(self.horizon.amount / self.price(arm))

    def race(
        self, arms: list[Arm], preconditioner: Preconditioner | None, number: int, has_pilot: bool = False
    ) -> tuple[Race, Racer, list[Arm]]:
        """The race of round ``number``, its winner and its arms.

        Where all arms of a rung leave the posterior, and the grid is a fitted one, it moves down two decades, at most
        twice. A race for which less than its budget is left of ``longest`` has a smaller R.

        Raises:
            AllDivergedError: no arm has a finite value.
        """
        factor = DOWN ** (1 / resolve_sampler(self.sampler)[0].step_size_power)
        for moved in count():
            share = min(1.0, (self.longest - self.ledger.nominal) / self.total(arms))
            race, winner, failed = self._prepared(arms, preconditioner, number, share, has_pilot), None, None
            (unit,) = self.budget.given()
            try:
                with progress_bar(f"race {number} of {self.sampler}", race.schedule.total, unit) as race.done:
                    winner = race.run()
            except AllDivergedError as error:
                failed = error
            self.ledger.add(race)
            all_left = failed is not None or race.fell_back
            if not (all_left and self.is_fitted and moved < MOST_MOVES and self.has_budget(arms)):
                if failed is not None:
                    raise failed
                return race, winner, arms
            self.ledger.warnings.append(
                f"grid: all arms of a rung left the posterior; the {len(arms)} arms run again with {factor:g} times "
                "their step sizes"
            )
            self.report(self.ledger.warnings[-1])
            arms = [shrunk(arm, factor) for arm in arms]

    def total(self, arms: list[Arm]) -> float:
        """T, the budget of a race of ``arms``."""
        return self.tuner.schedule(len(arms), self.budget.amount).total

    def has_budget(self, arms: list[Arm]) -> bool:
        """Whether ``longest`` leaves another race of ``arms`` at least `LEAST_SHARE` of its budget."""
        return self.ledger.nominal + LEAST_SHARE * self.total(arms) <= self.longest * (1 + 1e-9)

    def _prepared(
        self,
        arms: list[Arm],
        preconditioner: Preconditioner | None,
        number: int,
        share: float,
        has_pilot: bool,
    ) -> Race:
        racing = precondition(self.raced_model, preconditioner)
        # The names of the first round's streams are those of a call without rounds.
        name = f"race {self.replicate}" + (f" round {number}" if number > 1 else "")
        tuner = self.tuner

        def raced(arm: Arm) -> Arm:
            """The arm with a batch of the same share of the rows that are left, at least one row."""
            left = max(1, arm.batch_size * racing.n_data // self.model.n_data)
            return Arm(**{**arm, "batch_size": left})

        no_draws = np.empty((0, racing.dimension), np.float32)
        start = None
        if preconditioner is not None:
            start = preconditioner.coordinates(preconditioner.start[None])[0]
        else:
            # Without the rows that are held out the mode is another one.
            map_result(racing, n_starts=self.n_starts)
        return Race(
            model=racing,
            sampler=self.sampler,
            arms=arms,
            schedule=tuner.schedule(len(arms), share * self.budget.amount),
            budget=self.budget,
            metric=tuner.judge.metric(named_seed(self.seed, "judge", self.replicate), **tuner.judge.scores),
            price=self.price,
            clock=tuner.clock,
            seed=self.seed,
            replicate=self.replicate,
            horizon=self.horizon.amount,
            points=tuner.points or tuner.judge.points or enough_points(self.model.dimension),
            thin=tuner.judge.thin if tuner.thin is None else tuner.thin,
            growth=tuner.growth,
            restarts=tuner.restarts,
            make=lambda group: Lockstep(
                racing,
                self.sampler,
                [raced(arm) for arm in group],
                seed=self.seed,
                replicate=name,
                position=start,
                start_noise=tuner.start_noise,
            ),
            pilot=partial(fresh_scores, racing, no_draws, SCORE_ROWS, 0) if has_pilot else None,
            raced=raced,
            report=self.report,
        )


class Pilot(NamedTuple):
    """A run that continues a race's winner.

    Attributes:
        draws: of its second half, at most 2,000, in coordinates of the race: ``(n, D)``.
        steps: of all attempts.
        attempts: 1; more if the chain left the posterior, and ran again with a smaller step size.
        stays: whether the last attempt stayed in the posterior.
        score_terms: data terms of gradients in the scores that tell.
    """

    draws: Float[np.ndarray, "n D"]
    steps: int
    attempts: int
    stays: bool
    score_terms: int

    @property
    def shrinkage(self) -> float:
        """The step size that stays over the first attempt's; 1 if none does."""
        return SHRINKAGE ** (self.attempts - 1) if self.stays else 1.0


def shrunk(arm: Arm, factor: float) -> Arm:
    """``arm`` with ``factor`` times its step size, and of its own numbers that have a step size's unit."""
    sizes = {axis.name for axis in (STEP_SIZE, DRIFT, NOISE_SD)}
    return Arm(**{name: number * factor if name in sizes else number for name, number in arm.items()})


def run_pilot(ensemble: Lockstep, n_steps: int, seed: int) -> Pilot:
    """``n_steps`` more steps of the first chain of ``ensemble``.

    Where the chain leaves the posterior (`sgtune.tuning.horizon.mean_virial`), it runs again from the same state with a
    tenth of the step size, and with a hundredth.
    """
    first, score_terms, model = n_steps - n_steps // 2, 0, ensemble.model
    for attempt in range(1, MOST_ATTEMPTS + 1):
        chain = ensemble.narrow([0], ensemble.width)
        arm = shrunk(chain.arms[0], SHRINKAGE ** (attempt - 1))
        chain.hyperparameters = chain_numbers(chain.sampler_name, [arm] * chain.width, {})
        chain.advance(first, first)
        most = max(N_SCORED, min(MOST_DRAWS, KEPT_NUMBERS // model.dimension))
        draws = chain.advance(n_steps - first, -(-(n_steps - first) // most))[:, 0]
        stays = bool(chain.finite[0]) and bool(np.isfinite(draws).all())
        if stays:
            some = draws[np.linspace(0, len(draws) - 1, min(len(draws), N_SCORED)).astype(int)]
            scores, terms = fresh_scores(model, some, SCORE_ROWS, seed)
            score_terms += terms
            stays = abs(mean_virial(some, scores, np.zeros(model.dimension))) <= ESCAPED
        if stays:
            break
    return Pilot(draws, attempt * n_steps, attempt, stays, score_terms)


class Recentred(NamedTuple):
    """What a pilot says of the coordinates.

    Attributes:
        preconditioner: better ones; None if the present ones do not mislead.
        distance: the largest distance of the pilot's mean from the centre, in sds of the coordinates.
        least_curvature, largest_curvature: eigenvalues of the mean Hessian, 1 in good coordinates; None if it is not
            finite.
        evaluations: data terms of gradients that this took: two for each row in a Hessian's product.
    """

    preconditioner: Preconditioner | None
    distance: float
    least_curvature: float | None
    largest_curvature: float | None
    evaluations: int


def recentred(model: Model, pilot: Pilot, most_terms: int, seed: int) -> Recentred:
    """Better coordinates for ``model``, if ``pilot`` shows that its own mislead.

    c is the pilot's mean, and chains start at its last draw. P is the inverse of the mean of -Hessian over draws of the
    pilot, with eigenvalues made positive; above D = 2,000 the inverse of its diagonal. It is not shrunk towards the old
    scale, which may be what misleads, and is not the covariance of the draws, which a short run does not know.

    Args:
        model: a result of `sgtune.mode.coordinates.precondition`.
        most_terms: data terms that the Hessians may cost, as far as `FEWEST_ROWS` rows do not cost more.
    """
    old, mean = model.preconditioner, pilot.draws.mean(axis=0, dtype=np.float64)
    distance = float(np.abs(mean).max())
    hessian, evaluations = mean_hessian(model, pilot.draws, most_terms, seed)
    if not np.isfinite(hessian).all():
        return Recentred(None, distance, None, None, evaluations)
    if hessian.ndim == 1:
        values = hessian
    else:
        values, directions = np.linalg.eigh(hessian)
    curvatures = float(values.min()), float(values.max())
    if distance <= FAR and curvatures[0] >= 1 / LARGEST_RATIO and curvatures[1] <= LARGEST_RATIO:
        return Recentred(None, distance, *curvatures, evaluations)
    positive = np.maximum(np.abs(values), FEWEST_CURVATURE * np.abs(values).max())
    if hessian.ndim == 1:
        factor = old.factor / np.sqrt(positive)
    else:
        square = (np.diag(old.factor) if old.factor.ndim == 1 else old.factor) @ (
            directions / np.sqrt(positive)
        )
        factor = lower_triangle(square)
    centre, start = old.positions(np.stack([mean, pilot.draws[-1]]))
    return Recentred(Preconditioner(centre, factor, start), distance, *curvatures, evaluations)


def mean_hessian(
    model: Model, draws: Float[np.ndarray, "n D"], most_terms: int, seed: int
) -> tuple[Float[np.ndarray, "D D"] | Float[np.ndarray, " D"], int]:
    """The mean over some of ``draws`` of -Hessian of log pi, and the data terms that it took.

    The Hessian at z = 0 is of all data. Of its change from there to a draw, the prior's part is exact, and the
    likelihood's is from fresh rows: for a Gaussian posterior there is none, even if a few rows have all the curvature.
    Above D = 2,000 only the diagonal, from Rademacher probes (Hutchinson), as `sgtune.mode.find.hutchinson_diagonal`.
    """
    d, n_data = model.dimension, model.n_data
    is_full = d <= LARGEST_FACTOR
    n_points = min(len(draws), N_POINTS if d <= LARGE_DIMENSION else N_POINTS // 2)
    n_directions = d if is_full else N_POINTS
    # In units of a row's products; all rows at draws need no Hessian at the centre, and no difference from it.
    affordable = most_terms // (2 * n_directions)
    # Kept by no pilot: whether it is known must not depend on what ran before.
    known = model.found.at_mode.get(HESSIAN) if is_full else None
    at_centre = n_data if known is None else 0
    # A power of two, so that rounds share programs.
    n_rows = 1 << max(FEWEST_ROWS, (affordable - at_centre) // (2 * n_points)).bit_length() - 1
    takes_all = n_data <= max(n_rows, affordable // n_points)
    rng = np.random.default_rng(named_seed(seed, "mean Hessian"))
    zero = np.zeros(d, np.float32)
    if is_full:
        directions = np.eye(d, dtype=np.float32)
    else:
        directions = (2 * rng.integers(0, 2, (n_directions, d)) - 1).astype(np.float32)

    def products(at: Float[np.ndarray, " D"], rows: PyTree, weight: float) -> Float[np.ndarray, "k D"]:
        likelihood, prior = hessian_products(model, at, directions, rows)
        return -(weight * likelihood.astype(np.float64) + prior)

    points = draws[np.linspace(0, len(draws) - 1, n_points).astype(int)]
    if takes_all:
        total = sum(products(point, model.data, 1.0) for point in points) / n_points
        terms = 2 * n_directions * n_points * n_data
    else:
        total = products(zero, model.data, 1.0) if known is None else known.copy()
        for point in points:
            rows = np.sort(rng.choice(n_data, n_rows, replace=False))
            some = take_rows(model.data, rows)
            changes = products(point, some, n_data / n_rows) - products(zero, some, n_data / n_rows)
            total += changes / n_points
        terms = 2 * n_directions * (at_centre + 2 * n_points * n_rows)
    return (total + total.T) / 2 if is_full else np.mean(directions * total, axis=0), terms
