"""Judges that look ahead: they predict each arm's discrepancy at the end of the planned run."""

from collections.abc import Callable
from functools import partial
from time import perf_counter

import numpy as np
from jaxtyping import Float, Int

from sgtune.mode.curvature import laplace_factor, laplace_scale
from sgtune.mode.find import map_position
from sgtune.model import Model
from sgtune.model.positions import blocks_of, flatten
from sgtune.model.posterior import LARGE_DIMENSION
from sgtune.samplers import resolve_sampler
from sgtune.samplers.gradients import stochastic_scores
from sgtune.sampling.lockstep import shared_constants
from sgtune.stein.ksd import ksd_stretches
from sgtune.stein.mean_errors import mean_error
from sgtune.stein.psd import psd_stretches
from sgtune.stein.quadratic import FEWEST_DRAWS, LEAST_SHARE, TARGETS, horizon_score, stretch_of
from sgtune.stein.virials import Virials, virial_score, virial_sums
from sgtune.support.errors import check_choice, check_integer
from sgtune.support.randomness import named_seed
from sgtune.tuning.judges import ArmDraws, Judge, Judgement, Metric, running_seconds

__all__ = ["ESCAPED", "at_horizon", "enough_points", "horizon_metric", "mean_virial"]

SCORE_ROWS = 1_000
"""Rows of the data in a score. The noise of scores averages out over draws and directions, so for the same time more
draws are better than more rows."""

ESCAPED = 10.0
"""An arm with a mean virial of a larger size has left the posterior: its draws have ten times the variance that their
scores allow, or the scores drive it away. Not smaller, since a good chain that leaves a wrong mode has a negative one
for a while."""


def enough_points(dimension: int) -> int:
    """Points that judge an arm in the first rung: 500; fewer above D = 4,000, where each holds more information (25 at
    80,000)."""
    return max(20, min(500, 2_000_000 // dimension))


def mean_virial(
    points: Float[np.ndarray, "n d"], scores: Float[np.ndarray, "n d"], centre: Float[np.ndarray, " d"]
) -> float:
    """-mean(s'(x - c)) / D: 1 in expectation for the posterior, for any c; about 0 for a chain that stays at c, and
    large for a chain that has left the posterior. It needs no scale."""
    centred = np.asarray(points, np.float64) - centre
    return float(-np.einsum("nd,nd->", centred, np.asarray(scores, np.float64)) / centred.size)


def fresh_scores(
    model: Model, draws: Float[np.ndarray, "n d"], score_rows: int, seed: int
) -> tuple[Float[np.ndarray, "n d"], int]:
    """Unbiased scores at ``draws`` from fresh rows for each, with control variates at the MAP, and their data terms."""
    batch_size = min(score_rows, model.n_data)
    sampler, estimator = resolve_sampler("sgld-cv")
    constants = shared_constants(model, sampler, estimator, None)
    scores = stochastic_scores(model, draws, batch_size, seed, gradient=estimator, constants=constants)
    evaluations = 1 if batch_size == model.n_data else estimator.evaluations
    return scores, len(draws) * batch_size * evaluations


Foresight = Callable[[Model, str, ArmDraws, Float[np.ndarray, "n d"], Int[np.ndarray, " n"]], float]
"""``(model, target, arm, scores, stretch) -> the squared discrepancy that the arm is expected to have at the
horizon``."""


def _scale(model: Model, target: str) -> np.ndarray:
    """Marginal sds are not known from the curvature of each parameter alone."""
    return laplace_factor(model) if target == "marginals" else laplace_scale(model)


def _virial(model, target, arm, scores, stretch):
    centre = flatten(map_position(model))
    sums = virial_sums(arm.points, scores, stretch, _scale(model, target), centre=centre, target=target)
    return virial_score(sums, arm.n_draws, arm.share)


def _moments(model, target, arm, scores, stretch):
    of_means = mean_error(arm.points, stretch, _scale(model, target), n_draws=arm.n_draws, target=target)
    return _virial(model, target, arm, scores, stretch) + of_means * _share_of_means(arm)


def _share_of_means(arm: ArmDraws) -> float:
    """The error of means is only variance, which falls with time; fewer than ten draws are not judged ahead."""
    return max(arm.share, LEAST_SHARE) if len(arm.points) >= FEWEST_DRAWS else 1.0


def of_parameters(
    model: Model, points: Float[np.ndarray, "n d"], scores: Float[np.ndarray, "n d"]
) -> tuple[Float[np.ndarray, "n d"], Float[np.ndarray, "n d"]]:
    """Where a preconditioner mixes the parameters theta: (theta - c) / sd and P score / sd, sd^2 the diagonal of P.

    Their virials are those of the marginals of theta, by the covariance P. Otherwise as they are.
    """
    if model.preconditioner is None or model.preconditioner.factor.ndim == 1:
        return points, scores
    factor = model.preconditioner.factor
    turn = (factor / np.linalg.norm(factor, axis=1)[:, None]).T
    return points @ turn, scores @ turn


def block_errors(model: Model, arm: ArmDraws, scores: Float[np.ndarray, "n d"]) -> dict[str, float]:
    """For each leaf of the position, by its path, the error of sds and means that ``arm`` is expected to have at the
    horizon in the parameters of this leaf, as ``moments`` has it for all."""
    blocks = blocks_of(model if model.original is None else model.original)
    if len(blocks) < 2 or not arm.usable or not np.isfinite(scores).all():
        return {}
    points, scores = of_parameters(model, arm.points, scores)
    stretch, centre = stretch_of(arm.steps, arm.n_steps), flatten(map_position(model))
    sums = virial_sums(points, scores, stretch, centre=centre)
    errors = {}
    for name, block in blocks.items():
        own = Virials(sums.counts, sums.virials[:, block], sums.squares[block])
        of_means = mean_error(points[:, block], stretch, n_draws=arm.n_draws)
        square = virial_score(own, arm.n_draws, arm.share) + of_means * _share_of_means(arm)
        errors[name] = float(np.sqrt(square))
    return errors


def _psd(model, target, arm, scores, stretch):
    # Without common modes: the noise of a single mode's moment would dominate the mean over many coordinates.
    options = {"centre": flatten(map_position(model)), "target": target, "blocks": [1] * model.dimension}
    sums = psd_stretches(arm.points, scores, stretch, _scale(model, target), **options)
    return horizon_score(sums, arm.n_draws, arm.share)


def _ksd(model, target, arm, scores, stretch):
    scale = laplace_scale(model) * model.dimension**0.5
    return horizon_score(ksd_stretches(arm.points, scores, stretch, scale), arm.n_draws, arm.share)


def _by_dimension(model, *arguments):
    return (_virial if model.dimension <= LARGE_DIMENSION else _moments)(model, *arguments)


FORESIGHT: dict[str, Foresight] = {
    "by dimension": _by_dimension,
    "virial": _virial,
    "moments": _moments,
    "psd": _psd,
    "ksd": _ksd,
}


def horizon_metric(
    discrepancy: str, seed: int, score_rows: int = SCORE_ROWS, target: str = "all directions"
) -> Metric:
    """The root of a discrepancy's square at the horizon (`sgtune.stein.quadratic.square_at_horizon`).

    An arm whose mean virial over its last stretch has a size of more than `ESCAPED` has no value.

    Scores use ``score_rows`` rows of the data and control variates at the MAP. Every draw has fresh rows: products of
    two draws' scores are then unbiased.
    """

    def judge(model: Model, arms: list[ArmDraws]) -> Judgement:
        began = perf_counter()

        def foresee(arm, scores, stretch):
            if target == "marginals":
                points, scores = of_parameters(model, arm.points, scores)
                arm = arm._replace(points=points)
            return FORESIGHT[discrepancy](model, target, arm, scores, stretch)

        places = np.cumsum([0] + [len(arm.points) if arm.usable else 0 for arm in arms])
        stacked = np.empty((places[-1], model.dimension), np.float32)
        for arm, start, stop in zip(arms, places, places[1:], strict=False):
            if stop > start:
                stacked[start:stop] = arm.points
        # Fresh rows in every rung.
        own_seed = named_seed(seed, "scores", max((arm.n_steps for arm in arms), default=0), len(arms))
        gradients, evaluations = fresh_scores(model, stacked, score_rows, own_seed)
        between = perf_counter()
        centre = flatten(map_position(model))
        values, remarks = [], []
        for arm, start, stop in zip(arms, places, places[1:], strict=False):
            value, remark = _value(arm, gradients[start:stop], foresee, centre)
            values.append(value)
            remarks.append(remark)
        return Judgement(
            values,
            running_seconds(began, between),
            running_seconds(between, perf_counter()),
            evaluations,
            remarks,
            lambda place: (
                block_errors(model, arms[place], gradients[places[place] : places[place + 1]])
                if model.dimension > LARGE_DIMENSION
                else {}
            ),
        )

    return judge


def _value(
    arm: ArmDraws, scores: Float[np.ndarray, "n d"], foresee: Callable, centre: Float[np.ndarray, " d"]
) -> tuple[float, str]:
    """An arm's value, and the reason if it has none."""
    if not arm.usable or not np.isfinite(scores).all():
        return float("inf"), ""
    stretch = stretch_of(arm.steps, arm.n_steps)
    last = stretch == stretch.max()
    with np.errstate(over="ignore", invalid="ignore"):
        spread = mean_virial(arm.points[last], scores[last], centre)
        if not abs(spread) <= ESCAPED:
            return float("inf"), f"escaped: virial {spread:.3g}, beyond {ESCAPED:g}"
        square = foresee(arm, scores, stretch)
    return (float(np.sqrt(square)) if np.isfinite(square) else float("inf")), ""


def at_horizon(
    discrepancy: str = "by dimension", *, target: str = "all directions", score_rows: int = SCORE_ROWS
) -> Judge:
    """Judge arms by the discrepancy expected at the end of the planned run (``horizon`` of `sgtune.tune`).

    A chain is cut into stretches, which separate its squared bias, which stays, from its variance, which falls with
    time: for ``psd`` and ``ksd`` by products of different stretches (`sgtune.stein.quadratic.horizon_score`), for
    ``virial`` and ``moments`` by a jackknife over stretches (`sgtune.stein.virials.virial_score`). All draws count. An
    arm that has left the posterior has no value (`ESCAPED`).

    Args:
        discrepancy: ``virial``: errors of sds, by the virials of all directions (`sgtune.stein.virial`); ``moments``:
            the same plus the standard errors of means (`sgtune.stein.mean_errors.mean_error`), the two parts of
            `sgtune.metrics.functional_error`; ``by dimension``, the choice of the tuner ``mamba``: ``virial`` up to
            D = 200, where the directions of the posterior are known, and ``moments`` above; ``psd``: the polynomial
            Stein discrepancy (`sgtune.stein.psd`, without common modes); ``ksd``: a kernel of width sqrt(D) posterior
            sds.
        target: for virial, moments and psd: ``all directions``: every direction has the same weight, including those
            in which the posterior is narrow; ``marginals``: the sds of the parameters themselves, by the covariance of
            the Laplace approximation up to D = 2,000 (`sgtune.mode.curvature.laplace_factor`), or by the covariance of
            the preconditioner; above D = 2,000, and for all
            directions above D = 200, each parameter has only its own curvature. virial and moments are then the same
            for both targets.
        score_rows: rows of the data in a score, fresh for every draw; scores are exact if the data have no more rows.

    Raises:
        InputError: an argument is not allowed.
    """
    check_choice("discrepancy", discrepancy, FORESIGHT)
    check_choice("target", target, TARGETS)
    check_integer("score_rows", score_rows, at_least=1)
    return Judge(
        partial(horizon_metric, discrepancy, target=target),
        points=None,
        thin=1,
        in_sds=discrepancy in ("by dimension", "virial", "moments"),
        scores={"score_rows": score_rows},
    )
