"""The tuners on the ladder of Gaussians: the choices of each, and their expected errors by linear theory."""

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from math import isfinite, log10
from time import perf_counter
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from sgtune.metrics.spread import xi_rel
from sgtune.model import Model
from sgtune.sampling.arm import Arm, shape_of
from sgtune.sampling.budget import Budget, CostTable
from sgtune.study.config.sections import fingerprint
from sgtune.study.experiments.ladder_models import Gaussian, gaussian, ladder_model
from sgtune.study.experiments.regret import oracle_arm
from sgtune.study.pipeline.parts import Parts, code_digest
from sgtune.theory.linear import Directions, expected_errors, expected_run
from sgtune.tuning import AllDivergedError, Grid, Halving, Judge, Settings, make_arms, tune
from sgtune.tuning.judges import ArmDraws, Judgement

__all__ = [
    "ESCAPED",
    "FROZEN",
    "Expected",
    "costs_of",
    "directions_judge",
    "directions_of",
    "expected_of",
    "gaussian_ladder",
    "grid_of",
    "ladder_runs",
    "seconds_per_step",
    "xi_along",
]

N_DATA = 1_000
"""Rows of every model."""

LOG10_STEP_SIZES = tuple(-2.0 - 0.5 * i for i in range(11))
BATCH_FRACTIONS = (0.1, 0.01)
N_LEAPFROGS = (5,)
"""The grid of arms where the largest curvature is 1: from step sizes at which all chains diverge to step sizes at which
none moves."""

SECONDS_OF_A_STEP, SECONDS_OF_A_ROW = 5e-6, 1e-7
"""The cost of a gradient for any batch, and the cost of each of its rows: not measured, so that steps, and with them
all that is chosen, are the same on every machine; about what two cores take where D = 10."""

ESCAPED = 10.0
"""An arm with a larger expected error has left the posterior; its error is cut off at this value."""

FROZEN = 0.9
"""In units of the error of a chain that never moves, 1: an arm with a larger error, its sds too small, is frozen."""

ROWS = 256
"""Draws that are taken along the directions at a time."""


class Expected(NamedTuple):
    """The expected errors of an arm after its steps, by theory.

    Attributes:
        error: sqrt(mean over directions of E[(sd_hat / sd - 1)^2]); infinite for an arm that is unstable.
        marginal: `sgtune.metrics.xi_rel` of the roots of the expected marginal variances; infinite likewise.
        spread: mean over directions of the root of E[sd_hat^2] / sd^2: below 1 the chain is too narrow.
    """

    steps: int
    error: float
    marginal: float
    spread: float

    @property
    def escaped(self) -> bool:
        """Whether its chain has left the posterior (`ESCAPED`)."""
        return not self.error <= ESCAPED

    @property
    def frozen(self) -> bool:
        """Whether its chain has hardly moved (`FROZEN`)."""
        return self.error > FROZEN and self.spread < 1


def grid_of(largest: float = 1.0) -> dict[str, tuple]:
    """The axes of the grid, as `sgtune.tuning.Grid` and `sgtune.tuning.make_arms` take them.

    Args:
        largest: curvature, of which step sizes are multiples of the inverse.
    """
    return {
        "log10_step_sizes": tuple(power - log10(largest) for power in LOG10_STEP_SIZES),
        "batch_fractions": BATCH_FRACTIONS,
        "n_leapfrogs": N_LEAPFROGS,
    }


def seconds_per_step(sampler: str, batch_size: int, n_leapfrog: int | None) -> float:
    """Of the ladder's clock: a + b n for each gradient of a step, twice the rows with control variates."""
    rows = batch_size * (2 if sampler.endswith("-cv") else 1)
    return (n_leapfrog or 1) * (SECONDS_OF_A_STEP + SECONDS_OF_A_ROW * rows)


def costs_of(sampler: str, arms: Sequence[Arm]) -> CostTable:
    """`seconds_per_step` of the shapes of ``arms``, as tuners take it."""
    return CostTable(
        {
            shape_of(sampler, arm): seconds_per_step(sampler, arm.batch_size, arm.get("n_leapfrog"))
            for arm in arms
        }
    )


def directions_of(known: Gaussian) -> Directions:
    """What the theory needs to know: the gradients of the data have the variance a_i along direction i."""
    return Directions(known.precision, known.eigenvalues, known.n_data)


def expected_of(known: Gaussian, sampler: str, arms: Sequence[Arm], seconds: float) -> dict[Arm, Expected]:
    """The expected errors of each arm after the steps that ``seconds`` of the ladder's clock buy, without a run."""
    directions = directions_of(known)
    steps = [int(seconds / seconds_per_step(sampler, arm.batch_size, arm.get("n_leapfrog"))) for arm in arms]
    errors = expected_errors(sampler, arms, directions, steps)
    ratios = np.stack(
        [expected_run(sampler, arm, directions, n)[0] for arm, n in zip(arms, steps, strict=True)], axis=1
    )
    stable = np.isfinite(ratios).all(axis=0)
    variances = np.where(stable, ratios, 0.0) / known.precision[:, None]
    exact, *marginal = known.marginal_variances(np.column_stack([1 / known.precision, variances])).T
    return {
        arm: Expected(
            steps=steps[i],
            error=float(errors[i]),
            marginal=xi_rel(np.sqrt(marginal[i]), np.sqrt(exact)) if stable[i] else np.inf,
            spread=float(np.mean(np.sqrt(ratios[:, i]))),
        )
        for i, arm in enumerate(arms)
    }


def xi_along(known: Gaussian, draws: Float[np.ndarray, "n d"]) -> float:
    """`xi_white` of draws along the directions that are known, for any D; infinite if there are none or not all are
    finite. Memory: 256 draws in float64."""
    if len(draws) == 0 or not np.isfinite(draws).all():
        return np.inf
    # The mode is at 0, and draws are about as far from it as sds: sums of squares lose nothing.
    total, squares = np.zeros(known.dimension), np.zeros(known.dimension)
    for start in range(0, len(draws), ROWS):
        rows = known.along(draws[start : start + ROWS])
        total += rows.sum(axis=0)
        squares += (rows**2).sum(axis=0)
    variances = squares / len(draws) - (total / len(draws)) ** 2
    return xi_rel(np.sqrt(np.maximum(variances, 0.0)), known.sd)


def directions_judge(known: Gaussian) -> Judge:
    """The oracle's judge: `xi_along` of an arm's own draws, all of those that a race keeps."""

    def metric(model: Model, arms: list[ArmDraws]) -> Judgement:
        began = perf_counter()
        values = [xi_along(known, arm.points) if arm.usable else np.inf for arm in arms]
        return Judgement(values, 0.0, perf_counter() - began, 0)

    return Judge(lambda seed: metric, points=10**9, thin=1)


def ladder_runs(
    kind: str,
    dimension: int,
    sampler: str,
    *,
    tuners: Sequence[str],
    seconds: float,
    points: int,
    replicates: int,
    seed: int = 0,
    report: Callable[[str], None] = lambda line: None,
) -> dict:
    """The choices of the oracle and of each of ``tuners`` for ``sampler`` on one Gaussian, in ``replicates`` races of R
    = ``seconds`` of the ladder's clock each, and their expected errors after as many seconds.

    At most ``points`` points judge an arm in the first rung (`sgtune.tuning.Settings`). The oracle runs the race of
    MAMBA and sees the true error of an arm's own draws (`directions_judge`).

    Returns:
        ``kind``, ``dimension``, ``sampler``; ``arms``, of the grid and those chosen beside it: hyperparameters, the
        fields of `Expected`, and ``is_extra``; ``smallest``, error of the grid; and ``runs``, of each tuner and
        replicate: the place of its ``arm`` (None if every arm diverged), its ``error`` and ``marginal``, and those of
        the oracle's arm of that replicate, at most `ESCAPED`; ``escaped``; and ``frozen``, while the grid has an arm
        that is not.
    """
    known, model = gaussian(kind, dimension, N_DATA, seed), ladder_model(kind, dimension, N_DATA, seed)
    grid = grid_of(known.eigenvalues.max())
    arms = make_arms(N_DATA, sampler, **grid)
    cost = costs_of(sampler, arms)
    common = {"budget": Budget(seconds=seconds), "cost": cost, "seed": seed}
    settings = Settings(**grid, points=points)
    oracle = Halving(judge=directions_judge(known), grid=Grid(**grid))
    chosen: dict[str, list[Arm | None]] = {"oracle": []}
    for i in range(replicates):
        chosen["oracle"].append(oracle_arm(model, sampler, tuner=oracle, replicate=i, **common))
        for tuner in tuners:
            began = perf_counter()
            try:
                best = tune(model, sampler, tuner=tuner, settings=settings, replicate=i, **common).best
            except AllDivergedError:
                best = None
            chosen.setdefault(tuner, []).append(best)
            report(f"{model.name}, {sampler}, {tuner}, race {i}: {best}; {perf_counter() - began:.1f} s")
    found = [arm for own in chosen.values() for arm in own if arm is not None]
    everything = list(dict.fromkeys([*arms, *found]))
    expected = expected_of(known, sampler, everything, seconds)
    of_grid = [expected[arm] for arm in arms]
    return {
        "kind": kind,
        "dimension": dimension,
        "sampler": sampler,
        "arms": [
            {**arm.to_record(), **expected[arm]._asdict(), "is_extra": arm not in arms} for arm in everything
        ],
        "smallest": min(one.error for one in of_grid),
        "runs": [
            {
                "tuner": tuner,
                "replicate": i,
                "arm": None if arm is None else everything.index(arm),
                **_run(arm, chosen["oracle"][i], expected, any(one.error <= FROZEN for one in of_grid)),
            }
            for tuner, own in chosen.items()
            for i, arm in enumerate(own)
        ],
    }


def gaussian_ladder(
    dimension: int,
    settings: Mapping,
    *,
    seed: int = 0,
    parts: Parts,
    report: Callable[[str], None] = lambda line: None,
) -> dict:
    """`ladder_runs` of every kind and sampler of the configuration's section ``ladder``, for one D.

    Args:
        settings: `sgtune.study.config.sections.ladder_settings`.
        parts: keeps each of them while the others are not done.
    """
    section, found = settings["ladder"], []
    numbers = {name: section[name] for name in ("tuners", "seconds", "points", "replicates")}
    for kind, sampler in product(section["kinds"], section["samplers"]):
        own = {"kind": kind, "dimension": dimension, "sampler": sampler, **numbers, "seed": seed}
        name, depends_on = f"{kind} {sampler}", fingerprint({**own, "code": code_digest()})
        record = parts.get(name, depends_on)
        if record is None:
            record = ladder_runs(kind, dimension, sampler, **numbers, seed=seed, report=report)
            parts.keep(name, depends_on, record)
        found.append(record)
    return {"dimension": dimension, "n_data": N_DATA, "seconds": section["seconds"], "gaussians": found}


def _run(arm: Arm | None, of_oracle: Arm | None, expected: Mapping[Arm, Expected], has_better: bool) -> dict:
    """The error of a choice beside the oracle's. A race that ends without an arm counts as escaped."""
    own = None if arm is None else expected[arm]
    oracle = None if of_oracle is None else expected[of_oracle]
    return {
        "error": _capped(own, "error"),
        "marginal": _capped(own, "marginal"),
        "oracle_error": _capped(oracle, "error"),
        "oracle_marginal": _capped(oracle, "marginal"),
        "escaped": own is None or own.escaped,
        "frozen": own is not None and own.frozen and has_better,
    }


def _capped(one: Expected | None, name: str) -> float:
    value = np.inf if one is None else getattr(one, name)
    return min(value, ESCAPED) if isfinite(value) else ESCAPED
