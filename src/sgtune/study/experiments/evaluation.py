"""The evaluation runs: the errors of a tuned sampler after a given time (paper Sect. 4)."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from sgtune import metrics
from sgtune.mode.curvature import hessian_trace, laplace_scale
from sgtune.model import Model
from sgtune.model.posterior import score_chunk, scores
from sgtune.sampling.arm import Arm
from sgtune.sampling.budget import Budget, CostTable
from sgtune.sampling.chain import Chain, sample
from sgtune.sampling.thinning import evenly_spaced, random_subset, thin_draws
from sgtune.stein import ksd_estimate, ksd_floor
from sgtune.support.axes import named
from sgtune.support.errors import InputError, check_integer, check_number

__all__ = ["EvaluationSettings", "evaluate_run", "in_short", "judge_draws", "stein_metrics"]

REPORTED = ("ksd", "relative_sd_error", "xi_white", "functional_error", "log_loss", "rmse")


def stein_metrics(
    model: Model,
    chains: Sequence[Float[np.ndarray, "_ d"]],
    *,
    at_most: Sequence[int],
    streams: Sequence[Sequence[object]],
) -> list[dict[str, float | int | None]]:
    """``ksd`` and ``ksd_scaled`` of each chain's draws with full-batch scores, each with ``_squared``, ``_se`` and
    ``_floor``; ``n_points``.

    They are estimated from a uniformly random subset of at most ``at_most`` draws. ``_squared`` is an unbiased estimate
    of KSD^2 of all draws (`sgtune.stein.ksd_estimate`), and may be negative; the KSD is its root, or 0. ``_se`` is the
    standard error from choosing the subset. ``_floor``: the KSD of as many independent draws of the posterior's Laplace
    approximation (`sgtune.stein.ksd_floor`). The KSD is infinite if draws are not finite, or if there are none. All
    scores are computed at once, so they are padded only once.

    Args:
        streams: for each chain, the names of the random stream of its subset.
    """
    usable = [len(draws) > 0 and bool(np.isfinite(draws).all()) for draws in chains]
    chosen = [
        random_subset(len(draws), most, *stream)
        for draws, most, stream in zip(chains, at_most, streams, strict=True)
    ]
    points = [draws[places] for draws, places in zip(chains, chosen, strict=True)]
    wanted = [some for some, use in zip(points, usable, strict=True) if use]
    gradients = iter(())
    if wanted:
        stacked = scores(model, np.concatenate(wanted), chunk=score_chunk(model, sum(map(len, wanted))))
        gradients = iter(np.split(stacked, np.cumsum([len(some) for some in wanted])[:-1]))
    traces = {"ksd": hessian_trace(model), "ksd_scaled": model.dimension}
    rows = []
    for draws, some, use in zip(chains, points, usable, strict=True):
        row: dict[str, float | int | None] = {"n_points": len(some)}
        own = next(gradients) if use else None
        for name, scale in (("ksd", "identity"), ("ksd_scaled", laplace_scale(model))):
            value, error, squared = np.inf, None, np.inf
            if use:
                value, error, squared = ksd_estimate(some, own, scale, n_draws=len(draws))
            floor = ksd_floor(traces[name], model.dimension, len(draws)) if len(draws) else None
            row |= {name: value, f"{name}_se": error, f"{name}_squared": squared, f"{name}_floor": floor}
        rows.append(row)
    return rows


def judge_draws(
    model: Model,
    draws: Float[np.ndarray, "n d"],
    *,
    thin: int,
    ksd_points: int,
    prediction_draws: int,
    reference: metrics.Reference | None = None,
    stream: Sequence[object] = (0,),
    in_full: bool = False,
) -> dict:
    """Discrepancies, errors against a reference, and metrics of the averaged predictions of one chain's draws.

    The KSD is over every ``thin``-th draw, estimated from at most ``ksd_points`` of them (`stein_metrics`); errors
    are over all draws (`sgtune.metrics.reference_errors`); predictions are averaged over at most
    ``prediction_draws``, evenly spaced. Metrics that are not requested (0 points, no reference) are None, or left out
    if predictive. If there are no draws, or some are not finite, metrics are infinite or NaN. ``in_full``: with xi of
    each block of the position, and ``ood`` if the model has such inputs.
    """
    is_finite = len(draws) > 0 and bool(np.isfinite(draws).all())
    row = dict.fromkeys(("ksd", "ksd_scaled", "relative_sd_error")) | {"n_points": 0}
    if ksd_points:
        (of_points,) = stein_metrics(model, [thin_draws(draws, thin)], at_most=[ksd_points], streams=[stream])
        row |= of_points
    if reference is not None:
        moments = metrics.moments_of(model, draws, reference)
        row |= moments.errors(0)
        if in_full:
            row["relative_sd_error_by_block"] = metrics.relative_sd_error_by_block(
                model, moments.sd(0), reference.sd
            )
    if prediction_draws and metrics.can_predict(model):
        draws = evenly_spaced(draws, prediction_draws)
        averages = metrics.average_predictions(model, draws) if is_finite else None
        row |= metrics.predictive_metrics(model, draws, averages)
        ood = metrics.ood_metrics(model, draws, averages) if in_full else None
        row |= {} if ood is None else {"ood": ood}
    return row


@dataclass(frozen=True)
class EvaluationSettings:
    """How `evaluate_run` runs a tuned sampler and judges it.

    Attributes:
        seconds: length of a run behind a table.
        thin: every thin-th sample is a candidate point of the KSD.
        burn_in: this share of a run's kept draws, or of the draws up to a checkpoint, is dropped at the start before
            anything is judged.
        kept_draws: a run keeps at most this many draws, evenly spaced.
        ksd_points, curve_points: 0 for no KSD.
        prediction_draws, curve_prediction_draws: 0 for no predictive metrics; curves never have ``ood``.
        curve_seconds: the checkpoints of a curve, ascending, the last no later than ``seconds``.

    Raises:
        InputError: the share of burn-in is not in [0, 1), a number of draws is negative, or the checkpoints do not
            ascend to at most ``seconds``.
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
        if any(
            later <= earlier for earlier, later in pairwise((0, *self.curve_seconds, self.seconds + 1e-9))
        ):
            raise InputError(
                f"curve_seconds: {self.curve_seconds!r} is not allowed; they must ascend, up to seconds = "
                f"{self.seconds}"
            )


def evaluate_run(
    model: Model,
    sampler: str,
    arm: Arm,
    replicate: int,
    *,
    settings: EvaluationSettings,
    has_table: bool = True,
    has_curve: bool = True,
    reference: metrics.Reference | None = None,
    cost: CostTable | None = None,
    seed: int = 0,
) -> dict:
    """One run of a tuned sampler from the MAP: its row of a table, and its rows of a curve (`judge_draws`).

    A run depends only on its arm and its replicate: tuners that chose the same arm share it, and a curve shows the
    first seconds of the run behind the table. Memory: three times the kept draws.

    Args:
        has_table: if False, the run is as long as the curve, ``table`` is None, and its steps are the first steps of
            the longer run (it may keep more of them, because ``kept_draws`` are spread over a shorter run).
        has_curve: if False, ``curves`` is empty.
        reference: moments of the posterior, or None if they are unknown; the table's row has errors against them.
        cost: converts seconds to steps, so that a run is the same on every machine; None: the wall clock.

    Returns:
        ``arm``, ``replicate``, ``table`` and ``curves``. In a row ``seconds`` is the budget, and ``wall_seconds`` the
        time that the whole run took. The table's row has the ``acceptance_rate`` of a sampler with a Metropolis test.
    """
    budget = settings.seconds if has_table else settings.curve_seconds[-1]
    chain = sample(
        model,
        sampler,
        **arm,
        budget=Budget(seconds=budget),
        seed=seed,
        replicate=f"evaluation {replicate}",
        kept_draws=settings.kept_draws,
        cost=cost,
    )

    looks = [
        _Look(seconds, _made_by(chain, seconds, budget))
        for seconds in (settings.curve_seconds if has_curve else ())
    ]
    looks += [_Look(budget, chain.n_samples, is_table=True)] * has_table
    draws, rows = [], []
    for look in looks:
        n_kept = look.n_samples // chain.stride
        n_burn_in = int(settings.burn_in * n_kept)
        draws.append(chain.draws[n_burn_in:n_kept])
        row = judge_draws(
            model,
            draws[-1],
            thin=1,
            ksd_points=0,
            prediction_draws=look.of(settings.prediction_draws, settings.curve_prediction_draws),
            # Curves show only discrepancies and predictions: functionals of thousands of draws would take longer than
            # both.
            reference=reference if look.is_table else None,
            in_full=look.is_table,
        )
        row |= {"replicate": replicate, "seconds": look.seconds, "wall_seconds": chain.seconds}
        rows.append(row | {"n_samples": look.n_samples, "n_burn_in": n_burn_in * chain.stride})
    at_most = [look.of(settings.ksd_points, settings.curve_points) for look in looks]
    judged = [place for place, most in enumerate(at_most) if most]
    found = stein_metrics(
        model,
        [thin_draws(draws[place], max(1, settings.thin // chain.stride)) for place in judged],
        at_most=[at_most[place] for place in judged],
        streams=[(seed, "ksd", sampler, named(arm), replicate, looks[place].seconds) for place in judged],
    )
    for place, of_points in zip(judged, found, strict=True):
        rows[place] |= of_points
    table = rows.pop() | {"diverged": chain.diverged} if has_table else None
    if has_table and "acceptance_rate" in chain.statistics:
        table["acceptance_rate"] = chain.statistics["acceptance_rate"]
    return {"arm": arm.to_record(), "replicate": replicate, "table": table, "curves": rows}


class _Look(NamedTuple):
    """A time at which a run is judged."""

    seconds: float
    n_samples: int
    is_table: bool = False

    def of(self, for_table: int, for_curve: int) -> int:
        return for_table if self.is_table else for_curve


def _made_by(chain: Chain, seconds: float, budget: float) -> int:
    """Samples after ``seconds``. By a cost table the run ends with its budget, or with the fewest steps, if these cost
    more."""
    if chain.seconds_per_step is not None and seconds == budget:
        return chain.n_samples
    return chain.made_by(seconds)


def in_short(row: dict) -> str:
    """A row as a line of a log."""
    return ", ".join(f"{name} {row[name]:.3g}" for name in REPORTED if row.get(name) is not None)
