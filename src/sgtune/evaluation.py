"""How well a tuned sampler does in a given time: the evaluation runs and the regret sweep (paper Sect. 4)."""

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float

from sgtune import metrics
from sgtune.arm import Arm
from sgtune.budget import Budget, CostTable
from sgtune.chain import Chain, evenly_spaced, sample, thin_draws
from sgtune.errors import InputError, check_integer, check_number
from sgtune.lockstep import Lockstep
from sgtune.models.base import Model
from sgtune.posterior import scores
from sgtune.reference.curvature import laplace_scale
from sgtune.stein import ksd
from sgtune.tuning import make_arms

__all__ = ["evaluate", "judge_draws", "sweep_arms"]

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


def evaluate(
    model: Model,
    sampler: str,
    best: Arm,
    *,
    reference_sd: Float[np.ndarray, " d"] | None,
    seconds: float,
    replicates: int,
    thin: int,
    ksd_points: int,
    burn_in: float,
    kept_draws: int,
    prediction_draws: int,
    curve_seconds: Sequence[float],
    curve_replicates: int,
    curve_points: int,
    curve_prediction_draws: int,
    seed: int = 0,
    report: Callable[[str], None] = lambda line: None,
) -> dict[str, list[dict]]:
    """Run the tuned sampler from the MAP by the wall clock; a table's rows and a figure's curves (`judge_draws`).

    One run of the longest of ``curve_seconds`` gives all its checkpoints. Memory: three times the kept draws.

    Args:
        reference_sd: the posterior's standard deviations, or None where nobody knows them: then no xi.
        burn_in: this share of a run's kept draws, or of those made until a checkpoint, is dropped at its start before
            anything is judged.
        kept_draws: a run keeps at most so many draws, evenly spaced.
        ksd_points, curve_points: 0 for no KSD.
        prediction_draws, curve_prediction_draws: 0 for no predictive metrics; curves never have ``ood``.

    Raises:
        InputError: the share of burn-in is not in [0, 1), or a number of draws is negative.
    """
    if check_number("burn_in", burn_in, at_least=0) >= 1:
        raise InputError(f"burn_in: {burn_in!r} is not allowed; it must be a number >= 0 and < 1")
    for name, value in {
        "ksd_points": ksd_points,
        "prediction_draws": prediction_draws,
        "curve_points": curve_points,
        "curve_prediction_draws": curve_prediction_draws,
    }.items():
        check_integer(name, value, at_least=0)

    def run(budget: float, replicate: str) -> Chain:
        return sample(
            model,
            sampler,
            **best._asdict(),
            budget=Budget(seconds=budget),
            seed=seed,
            replicate=replicate,
            kept_draws=kept_draws,
        )

    def judge(chain: Chain, n_kept: int, **options) -> dict:
        draws = chain.draws[dropped(n_kept) : n_kept]
        return judge_draws(
            model, draws, thin=max(1, thin // chain.stride), reference_sd=reference_sd, **options
        )

    def dropped(n_kept: int) -> int:
        return int(burn_in * n_kept)

    table, curves = [], []
    for replicate in range(replicates):
        chain = run(seconds, f"table {replicate}")
        n_kept = len(chain.draws)
        row = judge(chain, n_kept, ksd_points=ksd_points, prediction_draws=prediction_draws, in_full=True)
        row |= {"replicate": replicate, "seconds": chain.seconds, "n_samples": chain.n_samples}
        row |= {"n_burn_in": dropped(n_kept) * chain.stride, "diverged": chain.diverged}
        table.append(row)
        report(
            f"{seconds:g} s, run {replicate + 1}/{replicates}: {chain.n_samples} samples, {_in_short(row)}"
        )
        del chain  # before the next one is made
    for replicate in range(curve_replicates):
        chain = run(max(curve_seconds), f"curve {replicate}")
        for checkpoint in curve_seconds:
            n_kept = chain.kept_by(checkpoint)
            row = judge(chain, n_kept, ksd_points=curve_points, prediction_draws=curve_prediction_draws)
            row |= {"replicate": replicate, "seconds": checkpoint, "n_samples": chain.made_by(checkpoint)}
            curves.append(row)
        report(f"curves, run {replicate + 1}/{curve_replicates}: {_in_short(curves[-1])} at the end")
        del chain
    return {"table": table, "curves": curves}


def _in_short(row: dict) -> str:
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
    and chunks in float64, five times `sgtune.lockstep.CHUNK_BYTES`.

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
        shapes.setdefault(arm[1:], []).append((arm, is_extra))
    groups = [(shape, group) for shape, members in shapes.items() for group in model.abreast(members)]
    for (batch_size, n_leapfrog), members in groups:
        ensemble = Lockstep(model, sampler, [arm for arm, _ in members], seed=seed, replicate="sweep")
        fewest = 1 if reference_sd is None else 2  # which have an sd
        n_steps = max(fewest, int(seconds / cost.lookup(sampler, batch_size, n_leapfrog)))
        # Without predictions one draw, the last, is made.
        stride = -(-n_steps // max(1, prediction_draws))
        if reference_sd is None:
            sd, draws = None, ensemble.advance(n_steps, stride)
        else:
            sd, draws = _running_sd(ensemble, n_steps, stride)
        for place, (arm, is_extra) in enumerate(members):
            row = {**arm._asdict(), "steps": n_steps, "is_heuristic": is_extra, "relative_sd_error": None}
            if sd is not None:
                row["relative_sd_error"] = metrics.relative_sd_error(sd[place], reference_sd)
            if prediction_draws:
                row |= metrics.predictive_metrics(model, draws[:, place])
            else:
                row |= dict.fromkeys(metrics.predictive_names(model))
            rows.append(row)
        report(f"batch size {batch_size}, L={n_leapfrog}: {len(members)} arms ran {n_steps} steps")
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
