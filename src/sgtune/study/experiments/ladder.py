"""The tuners on Gaussian posteriors of growing dimension, where linear theory gives the expected error of every arm.

N rows y_j with the log-likelihood -(theta - y_j)' A (theta - y_j) / 2 and the prior N(0, I / p); A = Q diag(a) Q' with
an orthogonal Q. The posterior has its mode at 0, and the precision N a_i + p along the i-th column of Q. Rows are
y_j = Q diag(a)^(-1/2) z_j with z standardised over the rows, so the gradients A (y_j - theta) of the data have a mean
of 0 at the mode and exactly the variance a_i along direction i, for any theta: C ~ A, as in a well-specified model.
There is no D x D matrix anywhere.

============== ================================================== =================================
kind           Q                                                  a
============== ================================================== =================================
axis           the identity                                       three decades, evenly on a log scale, up to 1
axis-narrow    the identity                                       a thousand times as much: sds of 0.001 to 0.03
rotated        random signs, then an orthonormal cosine transform the same
equicorrelated the Householder reflection of e_1 onto 1/sqrt(D)   of correlations of 0.9: 1, and one
                                                                  of 0.1 / (1 + 0.9 (D - 1))
============== ================================================== =================================

In a rotated Gaussian every parameter depends on every direction, so its marginal sds are nearly the same; a product of
a few reflections would hardly change the axes for a large D. The narrow kind is the same posterior in other units, with
step sizes scaled to match: only a judge that depends on units chooses another arm.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, product
from math import log10
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.fft
from jaxtyping import Array, Float

from sgtune.metrics.spread import xi_rel
from sgtune.mode.find import MapResult
from sgtune.model import Model, define_model
from sgtune.sampling.arm import Arm, shape_of
from sgtune.sampling.budget import Budget, CostTable
from sgtune.study.experiments.losses import raced_arm, true_loss_judge
from sgtune.study.experiments.tune import with_numbers
from sgtune.study.pipeline.parts import Parts, Task
from sgtune.support.randomness import named_seed
from sgtune.theory.linear import Directions, expected_errors, expected_run
from sgtune.tuning import TUNERS, Grid, Halving, make_arms

N_DATA = 1_000
"""Rows of every model."""

DECADES = 3.0
"""Between the largest and the smallest curvature."""

NARROWER = 1_000.0
"""The factor between the curvatures of the kinds ``axis-narrow`` and ``axis``."""

CORRELATION = 0.9
"""Of any two parameters of the kind ``equicorrelated``."""

PRIOR_SHARE = 1e-3
"""The prior's precision over the data's smallest precision of any direction: the prior is nearly flat."""

SECONDS_OF_A_STEP, SECONDS_OF_A_ROW = 5e-6, 1e-7
"""The cost of a gradient for any batch, and the cost of each of its rows: not measured, so that steps are
the same on every machine; about what two cores take where D = 10."""

ESCAPED = 10.0
"""An arm with a larger expected error has left the posterior; its error is cut off at this value."""

FROZEN = 0.9
"""In units of the error of a chain that never moves, 1: an arm with a larger error, its sds too small, is frozen."""

CHUNK, ROWS = 500, 256
"""Rows of Q that `Gaussian.marginal_variances` has at a time, and draws that are taken along the directions at a
time."""


@dataclass(frozen=True, eq=False)
class Gaussian:
    """The exact moments of a posterior of the ladder. Directions are the columns of Q, in the order of ``eigenvalues``.

    Attributes:
        eigenvalues: a_i of A: of a datum's curvature, and the variance of its gradient (module docstring).
        signs: of the kind ``rotated``: those of the parameters before the cosine transform.
    """

    kind: str
    eigenvalues: Float[np.ndarray, " d"]
    signs: Float[np.ndarray, " d"]

    @property
    def dimension(self) -> int:
        """D."""
        return len(self.eigenvalues)

    @property
    def prior_precision(self) -> float:
        """p."""
        return PRIOR_SHARE * N_DATA * float(self.eigenvalues.min())

    @property
    def precision(self) -> Float[np.ndarray, " d"]:
        """N a_i + p, of the posterior along each direction."""
        return N_DATA * self.eigenvalues + self.prior_precision

    @property
    def sd(self) -> Float[np.ndarray, " d"]:
        """Of the posterior along each direction."""
        return 1 / np.sqrt(self.precision)

    def along(self, rows: Float[Array | np.ndarray, "*n d"]) -> Float[Array | np.ndarray, "*n d"]:
        """Q' of each row, in float64 (of JAX's arrays in JAX): positions in the coordinates of the directions."""
        in_jax = isinstance(rows, jax.Array)
        rows = rows if in_jax else np.asarray(rows, np.float64)
        if self.kind == "rotated":
            dct = jax.scipy.fft.dct if in_jax else scipy.fft.dct
            return dct(self.signs * rows, norm="ortho")
        if self.kind == "equicorrelated":
            # A reflection, its own inverse: rows - 2 u (u . rows), u along e_1 - 1/sqrt(D), of squared length
            # 2 - 2/sqrt(D).
            root = np.sqrt(self.dimension)
            away = (rows[..., :1] - rows.sum(axis=-1, keepdims=True) / root) / (1 - 1 / root)
            return rows - away * ((np.arange(self.dimension) == 0) - 1 / root)
        return rows

    def across(self, rows: Float[np.ndarray, "*n d"]) -> Float[np.ndarray, "*n d"]:
        """Q of each row: back from `along`."""
        if self.kind == "rotated":
            return self.signs * scipy.fft.idct(rows, norm="ortho")
        return self.along(rows)

    def marginal_variances(self, variances: Float[np.ndarray, "d k"]) -> Float[np.ndarray, "d k"]:
        """Of each parameter, sum over i of Q_ji^2 v_i, from k lists of ``variances`` along the directions.

        Time D^2 (log D + k); memory of `CHUNK` rows of Q.
        """
        if self.kind.startswith("axis"):
            return np.asarray(variances, np.float64)
        found = np.empty(np.shape(variances))
        for start in range(0, self.dimension, CHUNK):
            # Rows of Q: what its transpose makes of unit vectors.
            rows = self.along(np.eye(min(CHUNK, self.dimension - start), self.dimension, start))
            found[start : start + CHUNK] = rows**2 @ variances
        return found


KINDS: dict[str, Callable[[int], np.ndarray]] = {
    "axis": lambda dimension: np.logspace(-DECADES, 0.0, dimension),
    "axis-narrow": lambda dimension: NARROWER * KINDS["axis"](dimension),
    "rotated": lambda dimension: KINDS["axis"](dimension),
    "equicorrelated": lambda d: np.r_[(1 - CORRELATION) / (1 + CORRELATION * (d - 1)), np.ones(d - 1)],
}
"""The eigenvalues of each, by D."""


def gaussian(kind: str, dimension: int, seed: int = 0) -> Gaussian:
    """The exact moments of a posterior of the ladder."""
    rng = np.random.default_rng(named_seed(seed, "signs of the ladder", dimension))
    return Gaussian(kind, KINDS[kind](dimension), rng.choice([-1.0, 1.0], size=dimension))


def ladder_model(known: Gaussian, seed: int = 0) -> Model:
    """The posterior as a model. Its data are the N rows A y_j in float32, 4 N D bytes. The log-likelihood omits terms
    without theta. Its mode is given and need not be found."""
    dimension = known.dimension
    rng = np.random.default_rng(named_seed(seed, "rows of the ladder", known.kind, dimension, N_DATA))
    rows = rng.standard_normal((N_DATA, dimension))
    rows -= rows.mean(axis=0)
    rows *= np.sqrt(known.eigenvalues) / rows.std(axis=0, ddof=1)
    eigenvalues = jnp.asarray(known.eigenvalues, jnp.float32)

    def log_likelihood(position: Float[Array, " d"], batch: Float[Array, "n d"]) -> Float[Array, " n"]:
        """theta' A y_j - theta' A theta / 2: the square of y_j is left out."""
        return batch @ position - 0.5 * jnp.sum(eigenvalues * known.along(position) ** 2)

    model = define_model(
        f"{known.kind}-{dimension}",
        log_prior=lambda position: -0.5 * known.prior_precision * jnp.sum(position**2),
        log_likelihood=log_likelihood,
        data=known.across(rows).astype(np.float32),
        init=lambda key: jax.random.normal(key, (dimension,)),
        shuffle_seed=None,
    )
    return with_mode_at_zero(model)


def with_mode_at_zero(model: Model) -> Model:
    """``model`` with its mode, so that none is searched for."""
    model.found.mode = MapResult(jnp.zeros(model.dimension, jnp.float32), 0.0, 0.0, True, 0, 0.0)
    return model


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


NO_ARM = Expected(0, np.inf, np.inf, np.inf)
"""Of a race that ends without an arm."""


def grid_of(largest: float = 1.0) -> dict[str, tuple]:
    """The axes of the grid, as `sgtune.tuning.Grid` takes them: step sizes are multiples of the inverse of the
    ``largest`` curvature, from those at which all chains diverge to those at which none moves."""
    return {
        "log10_step_sizes": tuple(-2.0 - 0.5 * i - log10(largest) for i in range(11)),
        "batch_fractions": (0.1, 0.01),
        "n_leapfrogs": (5,),
    }


def seconds_per_step(sampler: str, arm: Arm) -> float:
    """Of the ladder's clock: a + b n for each gradient of a step, twice the rows with control variates."""
    rows = arm.batch_size * (2 if sampler.endswith("-cv") else 1)
    return (arm.get("n_leapfrog") or 1) * (SECONDS_OF_A_STEP + SECONDS_OF_A_ROW * rows)


def expected_of(known: Gaussian, sampler: str, arms: Sequence[Arm], seconds: float) -> dict[Arm, Expected]:
    """The expected errors of each arm after the steps that ``seconds`` of the ladder's clock buy, without a run."""
    # The gradients of the data have the variance a_i along direction i.
    directions = Directions(known.precision, known.eigenvalues, N_DATA)
    steps = [int(seconds / seconds_per_step(sampler, arm)) for arm in arms]
    errors = expected_errors(sampler, arms, directions, steps)
    runs = [expected_run(sampler, arm, directions, n)[0] for arm, n in zip(arms, steps, strict=True)]
    ratios = np.stack(runs, axis=1)
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
    """`sgtune.metrics.xi_white` of draws along the directions that are known, for any D; infinite if there are none or
    not all are finite. Memory: `ROWS` draws in float64."""
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


def ladder_runs(
    kind: str, dimension: int, sampler: str, section: Mapping, *, seed: int, report: Callable[[str], None]
) -> dict:
    """The choices of the oracle and of each of ``tuners`` for ``sampler`` on one Gaussian, in ``replicates`` races of R
    = ``seconds`` of the ladder's clock each, and their expected errors after as many seconds.

    At most ``points`` points judge an arm in the first rung (`sgtune.tuning.Halving`). The oracle runs the race of
    MAMBA and sees the true error of an arm's own draws (`xi_along`). The ``section`` of the configuration has these.

    Returns:
        ``kind``, ``dimension``, ``sampler``; ``arms``, of the grid and those chosen beside it: hyperparameters, the
        fields of `Expected`, and ``is_extra``; ``smallest``, error of the grid; and ``runs``, of each tuner and
        replicate: the place of its ``arm`` (None if every arm diverged), its ``error`` and ``marginal``, and those of
        the oracle's arm of that replicate, at most `ESCAPED`; ``escaped``; and ``frozen``, while the grid has an arm
        that is not.
    """
    known = gaussian(kind, dimension, seed)
    model = ladder_model(known, seed)
    grid = grid_of(known.eigenvalues.max())
    arms = make_arms(N_DATA, sampler, **grid)
    cost = CostTable({shape_of(sampler, arm): seconds_per_step(sampler, arm) for arm in arms})
    task, budget = Task(model, sampler, cost=cost, seed=seed), Budget(seconds=section["seconds"])
    judge = true_loss_judge(lambda model, draws: xi_along(known, draws))
    racing = {"oracle": Halving(judge=judge, grid=Grid(**grid))}
    racing |= {name: with_numbers(TUNERS[name], grid, section) for name in section["tuners"]}
    chosen: dict[str, list[Arm | None]] = {tuner: [] for tuner in racing}
    for i, tuner in product(range(section["replicates"]), racing):
        chosen[tuner].append(raced_arm(task, budget=budget, replicate=i, tuner=racing[tuner]))
        report(f"{model.name}, {sampler}, {tuner}, race {i}: {chosen[tuner][-1]}")
    found = [arm for arm in chain(*chosen.values()) if arm is not None]
    everything = list(dict.fromkeys([*arms, *found]))
    places = {arm: place for place, arm in enumerate(everything)} | {None: None}
    expected = {None: NO_ARM} | expected_of(known, sampler, everything, section["seconds"])
    smallest = min(expected[arm].error for arm in arms)

    def run(tuner: str, replicate: int, arm: Arm | None) -> dict:
        """The error of a choice beside the oracle's. A race that ends without an arm counts as escaped."""
        own, of_oracle = expected[arm], expected[chosen["oracle"][replicate]]
        errors = {"error": own.error, "marginal": own.marginal}
        errors |= {"oracle_error": of_oracle.error, "oracle_marginal": of_oracle.marginal}
        names = {"tuner": tuner, "replicate": replicate, "arm": places[arm]}
        cut = {name: float(np.fmin(error, ESCAPED)) for name, error in errors.items()}
        return {**names, **cut, "escaped": own.escaped, "frozen": own.frozen and smallest <= FROZEN}

    runs = [run(tuner, i, arm) for tuner, own in chosen.items() for i, arm in enumerate(own)]
    rows = [arm.to_record() | expected[arm]._asdict() | {"is_extra": arm not in arms} for arm in everything]
    about = {"kind": kind, "dimension": dimension, "sampler": sampler}
    return {**about, "arms": rows, "smallest": smallest, "runs": runs}


def gaussian_ladder(dimension: int, settings: Mapping, *, seed: int = 0, parts: Parts) -> dict:
    """`ladder_runs` of every kind and sampler of the configuration's section ``ladder``, for one D; ``settings`` are
    those of `sgtune.study.pipeline.plan.ladder_settings`.
    """
    section, found = settings["ladder"], []
    for kind, sampler in product(section["kinds"], section["samplers"]):
        make = partial(ladder_runs, kind, dimension, sampler, section, seed=seed, report=parts.report)
        found.append(parts.once(f"{kind} {sampler}", settings, make))
    return {"dimension": dimension, "n_data": N_DATA, "seconds": section["seconds"], "gaussians": found}
