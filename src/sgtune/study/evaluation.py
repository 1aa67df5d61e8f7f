"""How well a tuned sampler does in a given time: the evaluation runs and the regret sweep (paper Sect. 4)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from sgtune import metrics
from sgtune.axes import STATIC, named, numbers_of
from sgtune.errors import InputError, check_choice, check_integer, check_number
from sgtune.mode.curvature import laplace_scale
from sgtune.model import Model
from sgtune.posterior import scores
from sgtune.sampling.arm import Arm, shape_of
from sgtune.sampling.budget import Budget, CostTable
from sgtune.sampling.chain import FEWEST_STEPS, sample
from sgtune.sampling.lockstep import Lockstep
from sgtune.sampling.thinning import evenly_spaced, thin_draws
from sgtune.stein import ksd
from sgtune.tuning import make_arms

__all__ = ["EvaluationSettings", "evaluate_replicate", "in_short", "judge_draws", "sweep_arms"]

REPORTED = ("ksd", "relative_sd_error", "ece", "rmse")


def judge_draws(
    model: Model,
    draws: Float[np.ndarray, "n d"],
    *,
    thin: int,
    ksd_points: int,
    prediction_draws: int,
    reference_sd: Float[np.ndarray, " d"] | None = None,
    in_full: bool = False,
) -> dict:
    """KSD and scaled KSD with full-batch scores, xi against a reference, and metrics of the averaged predictions.

    The KSD is that of every ``thin``-th draw, of these at most ``ksd_points``; xi that of all draws; predictions are
    averaged over at most ``prediction_draws``; all evenly spaced. What is not asked for (0 points, no reference)
    is None; predictive metrics are left out. What the draws, not finite or none at all, do not allow is infinite or
    NaN. ``in_full``: with xi of each block of the position, and ``ood`` where the model has such inputs.
    """
    row = dict.fromkeys(("ksd", "ksd_scaled", "relative_sd_error"))
    is_finite = len(draws) > 0 and bool(np.isfinite(draws).all())
    points = thin_draws(draws, thin, ksd_points) if ksd_points else draws[:0]
    row["n_points"] = len(points)
    if ksd_points:
        row |= {"ksd": np.inf, "ksd_scaled": np.inf}
    if ksd_points and is_finite:
        gradients = scores(model, points)
        row["ksd"] = ksd(points, gradients)
        row["ksd_scaled"] = ksd(points, gradients, scale=laplace_scale(model))
    if reference_sd is not None:
        sd = metrics.sd_of_draws(draws) if is_finite else np.full(model.dimension, np.inf)
        row["relative_sd_error"] = metrics.relative_sd_error(sd, reference_sd)
        if in_full:
            row["relative_sd_error_by_block"] = metrics.relative_sd_error_by_block(model, sd, reference_sd)
    if prediction_draws and metrics.can_predict(model):
        draws = evenly_spaced(draws, prediction_draws)
        averages = metrics.average_predictions(model, draws) if is_finite else None
        row |= metrics.predictive_metrics(model, draws, averages)
        ood = metrics.ood_metrics(model, draws, averages) if in_full else None
        row |= {} if ood is None else {"ood": ood}
    return row


@dataclass(frozen=True)
class EvaluationSettings:
    """How `evaluate_replicate` runs a tuned sampler and judges it.

    Attributes:
        seconds: of a run behind a table.
        thin: every thin-th sample is a candidate point of the KSD.
        burn_in: this share of a run's kept draws, or of those made until a checkpoint, is dropped at its start before
            anything is judged.
        kept_draws: a run keeps at most so many draws, evenly spaced.
        ksd_points, curve_points: 0 for no KSD.
        prediction_draws, curve_prediction_draws: 0 for no predictive metrics; curves never have ``ood``.
        curve_seconds: the checkpoints of a run behind a curve, ascending; it is as long as the last.

    Raises:
        InputError: the share of burn-in is not in [0, 1), or a number of draws is negative.
    """

    seconds: float
    thin: int
    burn_in: float
    kept_draws: int
    ksd_points: int
    prediction_draws: int
    curve_seconds: Sequence[float]
    curve_points: int
    curve_prediction_draws: int

    def __post_init__(self):
        if check_number("burn_in", self.burn_in, at_least=0) >= 1:
            raise InputError(f"burn_in: {self.burn_in!r} is not allowed; it must be a number >= 0 and < 1")
        for name in ("ksd_points", "prediction_draws", "curve_points", "curve_prediction_draws"):
            check_integer(name, getattr(self, name), at_least=0)


def evaluate_replicate(
    model: Model,
    sampler: str,
    arm: Arm,
    part: str,
    replicate: int,
    *,
    settings: EvaluationSettings,
    reference_sd: Float[np.ndarray, " d"] | None = None,
    cost: CostTable | None = None,
    seed: int = 0,
) -> list[dict]:
    """One run of a tuned sampler from the MAP, and its row of a table or its rows of a curve (`judge_draws`).

    A run is told by its arm, its part and its replicate, and by nothing else: tuners that chose the same arm share it.
    Memory: three times the kept draws.

    Args:
        part: ``table``, a run of ``settings.seconds`` and one row; or ``curve``, a run of the longest of
            ``settings.curve_seconds`` and a row for each of them.
        reference_sd: the posterior's standard deviations, or None where nobody knows them: then no xi.
        cost: turns seconds into steps, so that a run is the same on every machine; by the wall clock if it is None.
            ``wall_seconds`` of a row is the time that the run took, ``seconds`` its budget where there is a ``cost``.

    Raises:
        InputError: there is no such part.
    """
    check_choice("part", part, ("table", "curve"))
    budget = settings.seconds if part == "table" else max(settings.curve_seconds)
    chain = sample(
        model,
        sampler,
        **arm,
        budget=Budget(seconds=budget),
        seed=seed,
        replicate=f"{part} {replicate}",
        kept_draws=settings.kept_draws,
        cost=cost,
    )

    def judge(n_kept: int, **options) -> dict:
        draws = chain.draws[int(settings.burn_in * n_kept) : n_kept]
        thin = max(1, settings.thin // chain.stride)
        row = judge_draws(model, draws, thin=thin, reference_sd=reference_sd, **options)
        return {**row, "replicate": replicate, "wall_seconds": chain.seconds}

    if part == "table":
        n_kept = len(chain.draws)
        row = judge(
            n_kept, ksd_points=settings.ksd_points, prediction_draws=settings.prediction_draws, in_full=True
        )
        row |= {"seconds": chain.seconds if cost is None else budget, "n_samples": chain.n_samples}
        row |= {"n_burn_in": int(settings.burn_in * n_kept) * chain.stride, "diverged": chain.diverged}
        return [row]
    options = {"ksd_points": settings.curve_points, "prediction_draws": settings.curve_prediction_draws}
    rows = []
    for seconds in settings.curve_seconds:
        # By a table the run ends with its budget, or with the fewest steps, if these cost more.
        is_whole = cost is not None and seconds == budget
        made = chain.n_samples if is_whole else chain.made_by(seconds)
        rows.append(judge(made // chain.stride, **options) | {"seconds": seconds, "n_samples": made})
    return rows


def in_short(row: dict) -> str:
    """A row in a line of a log."""
    return ", ".join(f"{name} {row[name]:.3g}" for name in REPORTED if row.get(name) is not None)


def sweep_arms(
    model: Model,
    sampler: str,
    *,
    grid: dict[str, Sequence],
    extra: Sequence[Arm],
    seconds: float,
    cost: CostTable,
    reference_sd: Float[np.ndarray, " d"] | None = None,
    prediction_draws: int = 0,
    seed: int = 0,
    report: Callable[[str], None] = lambda line: None,
) -> list[dict]:
    """Every arm of the grid, and the ``extra`` arms, after the steps that ``seconds`` buy by ``cost``.

    Judged by xi, from all draws, if there is a reference, and by the predictions averaged over at most
    ``prediction_draws`` evenly spaced draws; what is not asked for is None.

    Arms of one shape advance in lockstep, once, as many at a time as the model gains by. Memory of W such arms of D
    parameters: the kept draws, twice, at 4 W D ``prediction_draws`` bytes; with a reference also moments, 24 W D bytes,
    and chunks in float64, five times `sgtune.sampling.lockstep.CHUNK_BYTES`.

    Raises:
        InputError: there is neither a reference nor anything to predict: nothing to judge the arms by.
    """
    check_integer("prediction_draws", prediction_draws, at_least=0)
    if reference_sd is None and not (prediction_draws and metrics.can_predict(model)):
        raise InputError(
            f"prediction_draws: {prediction_draws} is not allowed for {model.name!r}, which has no reference_sd: "
            "nothing would judge the arms; it must be at least 1, and the model must have test data"
        )
    rows = []
    shapes: dict[tuple, list[tuple[Arm, bool]]] = {}
    regular = make_arms(model.n_data, sampler, **grid)
    for arm, is_extra in [(arm, False) for arm in regular] + [(arm, True) for arm in extra]:
        shapes.setdefault(shape_of(sampler, arm), []).append((arm, is_extra))
    groups = [(shape, group) for shape, members in shapes.items() for group in model.abreast(members)]
    for shape, members in groups:
        ensemble = Lockstep.at_mode(model, sampler, [arm for arm, _ in members], seed=seed, replicate="sweep")
        n_steps = max(FEWEST_STEPS, int(seconds / cost.lookup(*shape)))
        # Without predictions one draw, the last, is made.
        stride = -(-n_steps // max(1, prediction_draws))
        if reference_sd is None:
            sd, draws = None, ensemble.advance(n_steps, stride)
        else:
            sd, draws = _running_sd(ensemble, n_steps, stride)
        for place, (arm, is_extra) in enumerate(members):
            row = {**arm.to_record(), "steps": n_steps, "is_heuristic": is_extra, "relative_sd_error": None}
            if sd is not None:
                row["relative_sd_error"] = metrics.relative_sd_error(sd[place], reference_sd)
            if prediction_draws:
                row |= metrics.predictive_metrics(model, draws[:, place])
            else:
                row |= dict.fromkeys(metrics.predictive_names(model))
            rows.append(row)
        static = named(numbers_of(shape[1:], STATIC))
        report(f"{static}: {len(members)} arms ran {n_steps} steps")
    return rows


def _running_sd(
    ensemble: Lockstep, n_steps: int, stride: int
) -> tuple[Float[np.ndarray, "w d"], Float[np.ndarray, "n w d"]]:
    """Standard deviation over all steps of each chain, about the start (moments stay small); every stride-th draw."""
    origin = np.ravel(ensemble.start).astype(np.float64)
    total = np.zeros((ensemble.width, len(origin)))
    squares, kept, done = np.zeros_like(total), [], 0
    with np.errstate(invalid="ignore", over="ignore"):
        while done < n_steps:
            draws = ensemble.advance_chunk(n_steps - done)
            kept.append(draws[(-done - 1) % stride :: stride].copy())
            draws = draws - origin
            total += draws.sum(axis=0)
            squares += (draws**2).sum(axis=0)
            done += len(draws)
        sd = np.sqrt(np.maximum(squares / done - (total / done) ** 2, 0.0))
    return sd, np.concatenate(kept)
