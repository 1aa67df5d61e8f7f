"""How well a tuned sampler does in a given time: the evaluation runs and the regret sweep (paper Sect. 4)."""

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float

from sgtune import metrics
from sgtune.arm import Arm
from sgtune.budget import Budget, CostTable
from sgtune.chain import Chain, sample, thin_draws
from sgtune.lockstep import Lockstep
from sgtune.models.base import Model
from sgtune.posterior import scores
from sgtune.reference.curvature import laplace_scale
from sgtune.stein import ksd
from sgtune.tuning import make_arms

__all__ = ["evaluate", "judge_draws", "sweep_arms"]


def judge_draws(
    model: Model,
    draws: Float[np.ndarray, "n d"],
    *,
    points: Float[np.ndarray, "m d"],
    reference_sd: Float[np.ndarray, " d"],
    predict: bool = False,
) -> dict:
    """KSD and scaled KSD of ``points`` with full-batch scores, xi of all ``draws``, accuracy of ``points``.

    Values are infinite (accuracy: NaN) where the draws are not finite.
    """
    row = {"ksd": np.inf, "ksd_scaled": np.inf, "relative_sd_error": np.inf, "n_points": len(points)}
    finite = bool(np.isfinite(draws).all()) and len(points) > 0
    if finite:
        gradients = scores(model, points)
        row["ksd"] = ksd(points, gradients)
        row["ksd_scaled"] = ksd(points, gradients, scale=laplace_scale(model))
        sd = np.std(draws.astype(np.float64), axis=0)
        row["relative_sd_error"] = metrics.relative_sd_error(sd, reference_sd)
    if predict:
        row["accuracy"] = np.nan
        if finite:
            probabilities = metrics.mean_prediction(model, points)
            row["accuracy"] = metrics.accuracy(probabilities, model.test_data["targets"])
    return row


def evaluate(
    model: Model,
    sampler: str,
    best: Arm,
    *,
    reference_sd: Float[np.ndarray, " d"],
    seconds: float,
    replicates: int,
    thin: int,
    ksd_points: int,
    curve_seconds: Sequence[float],
    curve_replicates: int,
    curve_points: int,
    seed: int = 0,
    report: Callable[[str], None] = lambda line: None,
) -> dict[str, list[dict]]:
    """Run the tuned sampler from the MAP by the wall clock; a table's rows and a figure's curves.

    Points are thinned by ``thin`` and capped at ``ksd_points`` (``curve_points`` at each checkpoint), evenly over the
    chain. One run of the longest of ``curve_seconds`` gives all its checkpoints.
    """

    def run(budget: float, replicate: str) -> Chain:
        return sample(
            model, sampler, **best._asdict(), budget=Budget(seconds=budget), seed=seed, replicate=replicate
        )

    can_predict = model.predict is not None and model.test_data is not None
    table = []
    for replicate in range(replicates):
        chain = run(seconds, f"table {replicate}")
        points = chain.thinned(thin, ksd_points)
        row = judge_draws(model, chain.draws, points=points, reference_sd=reference_sd, predict=can_predict)
        row |= {"replicate": replicate, "seconds": chain.seconds, "n_samples": chain.n_samples}
        table.append(row | {"diverged": chain.diverged})
        report(
            f"{seconds:g} s, run {replicate + 1}/{replicates}: {chain.n_samples} samples, KSD {row['ksd']:.3g}"
        )
    curves = []
    for replicate in range(curve_replicates):
        chain = run(max(curve_seconds), f"curve {replicate}")
        for checkpoint in curve_seconds:
            draws = chain.draws[: chain.kept_by(checkpoint)]
            points = thin_draws(draws, max(1, thin // chain.stride), curve_points)
            row = judge_draws(model, draws, points=points, reference_sd=reference_sd)
            row |= {"replicate": replicate, "seconds": checkpoint, "n_samples": len(draws) * chain.stride}
            curves.append(row)
        report(f"curves, run {replicate + 1}/{curve_replicates}: KSD {curves[-1]['ksd']:.3g} at the end")
    return {"table": table, "curves": curves}


def sweep_arms(
    model: Model,
    sampler: str,
    *,
    grid: dict[str, Sequence],
    extra: Sequence[Arm],
    seconds: float,
    cost: CostTable,
    reference_sd: Float[np.ndarray, " d"],
    seed: int = 0,
    report: Callable[[str], None] = lambda line: None,
) -> list[dict]:
    """xi of every arm of the grid, and of the ``extra`` arms, after the steps that ``seconds`` buy by ``cost``.

    Arms of one shape advance in lockstep, once; the sd is accumulated as they go, so memory does not grow.
    """
    rows = []
    regular = make_arms(model.n_data, sampler, **grid)
    shapes: dict[tuple, list[tuple[Arm, bool]]] = {}
    for arm, is_extra in [(arm, False) for arm in regular] + [(arm, True) for arm in extra]:
        shapes.setdefault(arm[1:], []).append((arm, is_extra))
    for (batch_size, n_leapfrog), members in shapes.items():
        ensemble = Lockstep(model, sampler, [arm for arm, _ in members], seed=seed, replicate="sweep")
        n_steps = max(2, int(seconds / cost.lookup(sampler, batch_size, n_leapfrog)))
        sd = _running_sd(ensemble, n_steps)
        for (arm, is_extra), arm_sd in zip(members, sd, strict=True):
            error = metrics.relative_sd_error(arm_sd, reference_sd)
            rows.append(
                {**arm._asdict(), "steps": n_steps, "relative_sd_error": error, "is_heuristic": is_extra}
            )
        report(f"batch size {batch_size}, L={n_leapfrog}: {len(members)} arms ran {n_steps} steps")
    return rows


def _running_sd(ensemble: Lockstep, n_steps: int) -> Float[np.ndarray, "w d"]:
    """Standard deviation over all steps of each chain, by chunks, about the start (moments stay small)."""
    origin = np.stack([np.ravel(ensemble.start)] * ensemble.width).astype(np.float64)
    total, squares, done = np.zeros_like(origin), np.zeros_like(origin), 0
    with np.errstate(invalid="ignore", over="ignore"):
        while done < n_steps:
            draws = ensemble.advance_chunk(n_steps - done).astype(np.float64) - origin
            total += draws.sum(axis=0)
            squares += (draws**2).sum(axis=0)
            done += len(draws)
        return np.sqrt(np.maximum(squares / done - (total / done) ** 2, 0.0))
