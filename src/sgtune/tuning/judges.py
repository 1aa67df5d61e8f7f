"""Judges of arms: one value per arm, computed from its points; lower is better, infinite for an arm without a value."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from sgtune import metrics
from sgtune.mode.curvature import laplace_scale
from sgtune.mode.find import map_position
from sgtune.model import Model
from sgtune.samplers import resolve_sampler
from sgtune.samplers.gradients import subset_rows, subset_scores
from sgtune.stein import DISCREPANCIES
from sgtune.support.errors import check_choice, check_number
from sgtune.support.machine import compile_seconds

__all__ = [
    "ArmDraws",
    "Judge",
    "Judgement",
    "Metric",
    "acceptance",
    "predictive",
    "predictive_metric",
    "running_seconds",
    "stein",
    "stein_metric",
]


GRID_METRICS = {"classification": "log-loss", "regression": "rmse"}
"""The metric of the paper's grid search, for each task."""


class ArmDraws(NamedTuple):
    """The input of a judge: an arm at the end of a rung.

    A judge must give an arm that is not `usable` the value infinity: it is then pruned before all arms that have a
    finite value.

    Attributes:
        points: ``(n, D)``, a uniformly random subset of its draws; empty if the chain is not finite.
        steps: the step of each point, ascending, from 1.
        n_steps: the arm's steps so far.
        n_draws: the number of draws that the subset was drawn from: ``n_steps``, or every ``thin``-th of them.
        share: the budget that the arm has run for, as a share of the horizon.
        sampler: the name of the sampler.
        statistics: the sampler's diagnostics of the run so far (`sgtune.samplers.Sampler`).
    """

    points: Float[np.ndarray, "n d"]
    steps: Int[np.ndarray, " n"]
    n_steps: int
    n_draws: int
    share: float
    sampler: str = ""
    statistics: Mapping[str, float] = MappingProxyType({})

    @property
    def usable(self) -> bool:
        """Whether there are points, and all are finite."""
        return len(self.points) > 0 and bool(np.isfinite(self.points).all())


class Judgement(NamedTuple):
    """Values of all arms, and their cost: seconds for gradients and for the metric itself, without compilation, and
    data terms. ``remarks``: for each arm the reason why it has no value, if the judge knows it; otherwise empty.
    ``blocks``: of an arm's place, the errors of the position's blocks by name, if the judge knows them."""

    values: list[float]
    gradient_seconds: float
    metric_seconds: float
    gradient_evaluations: int
    remarks: Sequence[str] = ()
    blocks: Callable[[int], Mapping[str, float]] | None = None


Metric = Callable[[Model, list[ArmDraws]], Judgement]
"""``(model, arms) -> Judgement``."""


def stein_metric(
    discrepancy: str, scale: str = "identity", seed: int = 0, score_fraction: float = 1.0
) -> Metric:
    """KSD or FSSD (paper Sect. 3.3.2), in the coordinates of ``scale``.

    Scores use all data, or the share ``score_fraction`` of them with a correction at the MAP (`subset_scores`).
    """

    def judge(model: Model, arms: list[ArmDraws]) -> Judgement:
        began = perf_counter()
        measure = DISCREPANCIES[discrepancy]
        scaling = laplace_scale(model) if scale == "laplace" else "identity"
        scored = [arm.points for arm in arms if arm.usable]
        stacked = np.concatenate(scored) if scored else np.empty((0, model.dimension), np.float32)
        gradients = subset_scores(model, stacked, score_fraction, map_position(model))
        gradients = iter(np.split(gradients, np.cumsum([len(draws) for draws in scored])[:-1]))
        between = perf_counter()
        values = [
            measure(arm.points, next(gradients), scaling, seed, n_draws=arm.n_draws) if arm.usable else np.inf
            for arm in arms
        ]
        return Judgement(
            [float(value) for value in values],
            running_seconds(began, between),
            running_seconds(between, perf_counter()),
            len(stacked) * subset_rows(score_fraction, model.n_data),
        )

    return judge


def running_seconds(since: float, until: float) -> float:
    """Seconds between two times of the performance counter, without compilation."""
    return until - since - compile_seconds(since, until)


def predictive_metric(name: str | dict[str, str]) -> Metric:
    """A metric of the averaged predictions on the test set (paper Sect. 3.3.3): a name in
    `sgtune.metrics.PREDICTIVE`, or one for each task that a model may have."""

    def judge(model: Model, arms: list[ArmDraws]) -> Judgement:
        began = perf_counter()
        loss = metrics.PREDICTIVE[name if isinstance(name, str) else name[model.task]].loss
        own, z = model.original or model, model.preconditioner

        def value(draws):
            return loss(
                metrics.mean_prediction(own, z.positions(draws) if z else draws), own.test_data["targets"]
            )

        values = [value(arm.points) if arm.usable else np.inf for arm in arms]
        return Judgement([float(value) for value in values], 0.0, running_seconds(began, perf_counter()), 0)

    return judge


@dataclass(frozen=True)
class Judge:
    """The judge of a tuner: made by `stein`, `predictive`, `at_horizon` or `acceptance`, or your own.

    Attributes:
        metric: ``(seed, **scores) -> Metric``.
        tasks: the tasks of the models that it can judge, if it judges by predictions on test data; otherwise None.
        points: the number of points per arm, if the tuner does not set it; None: a number that depends on D
            (`sgtune.tuning.horizon.enough_points`).
        thin: every thin-th draw is used, but at least ten draws, if the tuner does not set it.
        needs_test: whether it can judge only samplers with a Metropolis test.
        in_sds: whether its values are errors of sds and means in units of posterior sds, so that a frozen chain has 1.
        scores: how it makes scores: the arguments ``score_fraction`` of `stein` and ``score_rows`` of `at_horizon`.
    """

    metric: Callable[..., Metric]
    tasks: tuple[str, ...] | None = None
    points: int | None = 500
    thin: int = 10
    needs_test: bool = False
    in_sds: bool = False
    scores: Mapping[str, float] = field(default_factory=dict)


def stein(discrepancy: str = "ksd", scale: str = "identity", score_fraction: float = 0.1) -> Judge:
    """Judge arms by a Stein discrepancy (paper Sect. 3.3.2; see `stein_metric`).

    Args:
        discrepancy: a name in `sgtune.stein.DISCREPANCIES`.
        scale: ``identity``, as in the paper, or ``laplace``: in coordinates scaled by the Laplace approximation's sds.
        score_fraction: the share of the data in a score; 1 is the paper's full batch.

    Raises:
        InputError: an argument is not allowed.
    """
    check_choice("discrepancy", discrepancy, DISCREPANCIES)
    check_choice("scale", scale, ("identity", "laplace"))
    check_number("score_fraction", score_fraction, above=0, at_most=1)
    return Judge(partial(stein_metric, discrepancy, scale), scores={"score_fraction": score_fraction})


def predictive(name: str | None = None) -> Judge:
    """Judge arms by predictions averaged over 50 draws (paper Sect. 3.3.3): on the test set, or on rows held out of
    the training data if the tuner has a ``validation_fraction``.

    Args:
        name: a name in `sgtune.metrics.PREDICTIVE`; None: log-loss for classification, RMSE for regression.

    Raises:
        InputError: there is no such metric.
    """
    if name is None:
        return Judge(lambda seed: predictive_metric(GRID_METRICS), tuple(GRID_METRICS), 50)
    check_choice("name", name, metrics.PREDICTIVE)
    return Judge(lambda seed: predictive_metric(name), (metrics.PREDICTIVE[name].task,), 50)


def acceptance(optimum: float | None = None) -> Judge:
    """Judge arms by the distance of the acceptance rate from an optimum, for samplers with a Metropolis test.

    The paper (Sect. 5.1) proposes it as an open question. The rate is the mean acceptance probability of all tests so
    far. It depends on the step size, and on the noise of AdamMCMC; hardly on the batch size or the number of leapfrogs,
    and not on bias.

    Args:
        optimum: the rate to aim at; None: the sampler's own, 0.574 for ``mala`` (Roberts and Rosenthal 1998), 0.651
            for ``hmc`` (Beskos et al. 2013), both in many dimensions, and 0.234 for ``adam-mcmc`` and its variants,
            which scale as a random walk (`sgtune.samplers.adam_mcmc.RANDOM_WALK`).

    Raises:
        InputError: the optimum is not in (0, 1).
    """
    if optimum is not None:
        check_number("optimum", optimum, above=0, below=1)

    def judge(model: Model, arms: list[ArmDraws]) -> Judgement:
        began = perf_counter()
        values = []
        for arm in arms:
            best = resolve_sampler(arm.sampler)[0].optimal_acceptance if optimum is None else optimum
            rate = arm.statistics["mean_acceptance_probability"]
            values.append(abs(rate - best) if arm.usable and np.isfinite(rate) else np.inf)
        return Judgement(values, 0.0, running_seconds(began, perf_counter()), 0)

    return Judge(lambda seed: judge, points=1, needs_test=True)
