"""What arms are judged by: one value per arm from its points, lower is better, infinite if it is no use."""

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import NamedTuple

import numpy as np

from sgtune import metrics
from sgtune.errors import check_choice, check_number
from sgtune.mode.curvature import laplace_scale
from sgtune.mode.find import map_position
from sgtune.model import Model
from sgtune.samplers.gradients import subset_scores
from sgtune.sampling.compilation import compile_seconds
from sgtune.stein import DISCREPANCIES

__all__ = ["Judge", "Judgement", "Metric", "predictive", "predictive_metric", "stein", "stein_metric"]


GRID_METRICS = {"classification": "log-loss", "regression": "rmse"}
"""What the paper's grid search judges by, for each task."""


class Judgement(NamedTuple):
    """Values of all arms, and what they took: seconds in gradients and in the metric itself, without compilation, and
    data terms."""

    values: list[float]
    gradient_seconds: float
    metric_seconds: float
    gradient_evaluations: int


Metric = Callable[[Model, list[np.ndarray], list[int]], Judgement]
"""``(model, points, n_draws) -> Judgement``: an ``(n_i, D)`` array per arm, and the number of draws, n_i or more, that
they are an evenly thinned part of."""


def stein_metric(
    discrepancy: str, scale: str = "identity", seed: int = 0, score_fraction: float = 1.0
) -> Metric:
    """KSD or FSSD (paper Sect. 3.3.2), in coordinates scaled as ``scale`` says.

    Scores are of the whole data, or of ``score_fraction`` of them with a correction at the MAP (`subset_scores`).
    """

    def judge(model: Model, points: list[np.ndarray], n_draws: list[int]) -> Judgement:
        began = perf_counter()
        measure = DISCREPANCIES[discrepancy]
        scaling = laplace_scale(model) if scale == "laplace" else "identity"
        finite = [len(draws) > 0 and bool(np.isfinite(draws).all()) for draws in points]
        scored = [draws for draws, use in zip(points, finite, strict=True) if use]
        stacked = np.concatenate(scored) if scored else np.empty((0, model.dimension), np.float32)
        gradients = subset_scores(model, stacked, score_fraction, map_position(model))
        gradients = iter(np.split(gradients, np.cumsum([len(draws) for draws in scored])[:-1]))
        between = perf_counter()
        values = [
            measure(draws, next(gradients), scaling, seed, n_draws=_stand_for(len(draws), n, model.dimension))
            if use
            else np.inf
            for draws, use, n in zip(points, finite, n_draws, strict=True)
        ]
        return Judgement(
            [float(value) for value in values],
            _running(began, between),
            _running(between, perf_counter()),
            len(stacked) * round(score_fraction * model.n_data),
        )

    return judge


def _running(since: float, until: float) -> float:
    return until - since - compile_seconds(since, until)


def _stand_for(n_points: int, n_draws: int, dimension: int) -> int:
    """For how many draws points can stand in a KSD (`sgtune.stein.ksd`): the points' own error there, a share of about
    n_draws / n_points / sqrt(D) of what falls with the number of draws, is to stay below a half."""
    return max(n_points, min(n_draws, int(n_points * dimension**0.5 / 2)))


def predictive_metric(name: str | dict[str, str]) -> Metric:
    """A metric of the averaged predictions on the test set (paper Sect. 3.3.3): a name in
    `sgtune.metrics.PREDICTIVE`, or one for each task that a model may have."""

    def judge(model: Model, points: list[np.ndarray], n_draws: list[int]) -> Judgement:
        began = perf_counter()
        loss = metrics.PREDICTIVE[name if isinstance(name, str) else name[model.task]].loss
        values = [
            loss(metrics.mean_prediction(model, draws), model.test_data["targets"])
            if len(draws) and np.isfinite(draws).all()
            else np.inf
            for draws in points
        ]
        return Judgement([float(value) for value in values], 0.0, _running(began, perf_counter()), 0)

    return judge


@dataclass(frozen=True)
class Judge:
    """What a tuner judges arms by: made by `stein` or `predictive`, or your own.

    Attributes:
        metric: ``seed -> Metric``.
        tasks: the tasks of models that it can judge, by predictions on their test data; None if it needs none.
        points: so many points of an arm it looks at, unless the tuner says otherwise.
    """

    metric: Callable[[int], Metric]
    tasks: tuple[str, ...] | None = None
    points: int = 500


def stein(discrepancy: str = "ksd", scale: str = "identity", score_fraction: float = 0.1) -> Judge:
    """By a Stein discrepancy (paper Sect. 3.3.2; see `stein_metric`).

    Args:
        discrepancy: a name of `sgtune.stein.DISCREPANCIES`.
        scale: ``identity``, the paper's, or ``laplace``: in coordinates scaled by the posterior's sds at the MAP.
        score_fraction: of the data in a score; 1 is the paper's full batch.

    Raises:
        InputError: an argument is not allowed.
    """
    check_choice("discrepancy", discrepancy, DISCREPANCIES)
    check_choice("scale", scale, ("identity", "laplace"))
    check_number("score_fraction", score_fraction, above=0, at_most=1)
    return Judge(lambda seed: stein_metric(discrepancy, scale, seed, score_fraction))


def predictive(name: str | None = None) -> Judge:
    """By the predictions, averaged over 50 draws (paper Sect. 3.3.3): on the test set, or on rows held out of the
    training data, where the tuner has a ``validation_fraction``.

    Args:
        name: of `sgtune.metrics.PREDICTIVE`; None: log-loss of classifiers, RMSE of regressions.

    Raises:
        InputError: there is no such metric.
    """
    if name is None:
        return Judge(lambda seed: predictive_metric(GRID_METRICS), tuple(GRID_METRICS), 50)
    check_choice("name", name, metrics.PREDICTIVE)
    return Judge(lambda seed: predictive_metric(name), (metrics.PREDICTIVE[name].task,), 50)
