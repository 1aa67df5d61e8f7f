"""The evaluation runs: the errors of tuned samplers after a given time (paper Sect. 4)."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from time import perf_counter

import jax
import numpy as np
from jaxtyping import Float

from sgtune import metrics
from sgtune.mode.curvature import hessian_trace, laplace_scale
from sgtune.model import Model
from sgtune.model.positions import from_matrix
from sgtune.model.posterior import scores
from sgtune.sampling.arm import Arm
from sgtune.sampling.budget import Budget
from sgtune.sampling.chain import sample
from sgtune.sampling.thinning import evenly_spaced, random_subset, thin_draws
from sgtune.stein import ksd_estimate, ksd_floor
from sgtune.study.pipeline.parts import Task
from sgtune.support.axes import named

ESS_DRAWS, ESS_QUANTITIES = 20_000, 200
"""Effective sample sizes are of so many draws, and of so many quantities, both evenly spaced."""


def stein_metrics(
    model: Model, draws: Float[np.ndarray, "n d"], at_most: int, *stream: object
) -> dict[str, float | int | None]:
    """``ksd`` and ``ksd_scaled`` of the draws with full-batch scores, each with ``_squared``, ``_se`` and ``_floor``;
    ``n_points``.

    They are estimated from a uniformly random subset of at most ``at_most`` draws. ``_squared`` is an unbiased estimate
    of KSD^2 of all draws (`sgtune.stein.ksd_estimate`), and may be negative; the KSD is its root, or 0. ``_se`` is the
    standard error from choosing the subset. ``_floor``: the KSD of as many independent draws of the posterior's Laplace
    approximation (`sgtune.stein.ksd_floor`). The KSD is infinite if draws are not finite, or if there are none.

    Args:
        stream: the names of the random stream of the subset, the seed first.
    """
    points, is_finite = draws[random_subset(len(draws), at_most, *stream)], bool(np.isfinite(draws).all())
    gradients = scores(model, points) if len(draws) and is_finite else None
    row: dict[str, float | int | None] = {"n_points": len(points)}
    for name, scale, trace in (
        ("ksd", "identity", hessian_trace(model)),
        ("ksd_scaled", laplace_scale(model), model.dimension),
    ):
        value, error, squared = np.inf, None, np.inf
        if gradients is not None:
            value, error, squared = ksd_estimate(points, gradients, scale, n_draws=len(draws))
        floor = ksd_floor(trace, model.dimension, len(draws)) if len(draws) else None
        row |= {name: value, f"{name}_se": error, f"{name}_squared": squared, f"{name}_floor": floor}
    return row


def effective_draws(model: Model, draws: Float[np.ndarray, "n d"]) -> dict[str, float]:
    """``ess_median`` and ``ess_min``: effective sample sizes, by the estimator of the ground truth, of the quantities
    by which arms are judged: the model's functionals, or its parameters. They are at most about `ESS_DRAWS`."""
    # SciPy takes a second to import, and no other job of this kind needs it.
    from sgtune.study.ground_truth.diagnostics import per_parameter

    draws = evenly_spaced(draws, ESS_DRAWS)
    if model.functionals is not None:
        draws = np.asarray(_functionals(model.functionals, from_matrix(model, draws)))
    quantities = np.linspace(0, draws.shape[1] - 1, min(draws.shape[1], ESS_QUANTITIES)).astype(int)
    found = per_parameter([draws[None, :, quantities]]).ess_bulk
    return {"ess_median": float(np.median(found)), "ess_min": float(found.min())}


@partial(jax.jit, static_argnums=0)
def _functionals(functionals: Callable, positions):
    return jax.lax.map(functionals, positions)


def evaluate_run(task: Task, arm: Arm, replicate: int, section: Mapping) -> dict:
    """One run of a tuned sampler from the MAP: its row of a table, and its rows of a curve.

    A run depends only on its arm and its replicate: tuners that chose the same arm share it, and a curve shows the
    first seconds of the run behind the table. Its random streams are none of a race: what won there is not replayed.
    Memory: three times the kept draws. With a cost table a run has the same steps on every machine.

    A row has the entries of `stein_metrics`, over every ``thin``-th draw; errors over all draws
    (`sgtune.metrics.reference_errors`); and metrics of predictions that are averaged over evenly spaced draws. What is
    not requested (0 points, no reference) is None, or left out. Without draws, or with draws that are not finite,
    metrics are infinite or NaN. A table's row also has the errors of each block, `effective_draws`, and ``ood`` if the
    model has such inputs; a curve's has no errors: functionals of thousands of draws would take longer than all else.

    Args:
        section: the configuration's section ``evaluation``. The first ``replicates`` runs have a table, the first
            ``curves.replicates`` a curve. A run without a table is as long as the curve, and its steps are the first
            steps of the longer run (it may keep more of them: ``kept_draws`` are spread over a shorter run).

    Returns:
        ``arm``, ``replicate``, ``table`` (or None) and ``curves``. In a row ``seconds`` is the budget, and
        ``wall_seconds`` the time that the whole run took. The table's row has the ``acceptance_rate`` of a sampler with
        a Metropolis test.
    """
    model, curves = task.model, section["curves"]
    has_table, has_curve = replicate < section["replicates"], replicate < curves["replicates"]
    budget = section["seconds"] if has_table else curves["seconds"][-1]
    options = {"seed": task.seed, "replicate": f"evaluation {replicate}", "cost": task.cost}
    options |= {"budget": Budget(seconds=budget), "kept_draws": section["kept_draws"]}
    chain = sample(model, task.sampler, **arm, **options)

    def row(seconds: float, n_samples: int, is_table: bool) -> dict:
        wanted, n_kept = section if is_table else curves, n_samples // chain.stride
        n_burn_in = int(section["burn_in"] * n_kept)
        draws = chain.draws[n_burn_in:n_kept]
        found = {"replicate": replicate, "seconds": seconds, "wall_seconds": chain.seconds, "n_points": 0}
        found |= {"n_samples": n_samples, "n_burn_in": n_burn_in * chain.stride}
        found |= dict.fromkeys(("ksd", "ksd_scaled", "relative_sd_error"))
        if is_table and task.reference is not None:
            moments = metrics.moments_of(model, draws, task.reference)
            by_block = metrics.relative_sd_error_by_block(model, moments.sd(0), task.reference.sd)
            found |= moments.errors(0) | {"relative_sd_error_by_block": by_block}
            if len(draws) and np.isfinite(draws).all():
                found |= effective_draws(model, draws)
        n_averaged = wanted["prediction_draws"]
        if n_averaged and metrics.can_predict(model):
            spaced, averages = evenly_spaced(draws, n_averaged), None
            if len(draws) and np.isfinite(draws).all():
                averages = metrics.average_predictions(model, spaced)
            found |= metrics.predictive_metrics(model, spaced, averages)
            ood = metrics.ood_metrics(model, spaced, averages) if is_table else None
            found |= {} if ood is None else {"ood": ood}
        if wanted["ksd_points"]:
            thinned = thin_draws(draws, max(1, section["thin"] // chain.stride))
            stream = task.seed, "ksd", task.sampler, named(arm), replicate, seconds
            found |= stein_metrics(model, thinned, wanted["ksd_points"], *stream)
        return found

    table = row(budget, chain.n_samples, True) | {"diverged": chain.diverged} if has_table else None
    if has_table and "acceptance_rate" in chain.statistics:
        table["acceptance_rate"] = chain.statistics["acceptance_rate"]
    times = curves["seconds"] if has_curve else ()
    # By a cost table the run ends with its budget, or with the fewest steps, if these cost more.
    end = None if chain.seconds_per_step is None else budget
    made = {at: chain.n_samples if at == end else chain.made_by(at) for at in times}
    rows = [row(at, n_samples, False) for at, n_samples in made.items()]
    return {"arm": arm.to_record(), "replicate": replicate, "table": table, "curves": rows}


def evaluate_tuned(task: Task, chosen: Mapping[str, Sequence[Mapping | None]], section: Mapping) -> dict:
    """Replicate r runs what a tuner chose in its tuning replicate r, so that their spread covers the tuning, too.

    If there are fewer tuning replicates, they repeat. Each (arm, replicate) is run once, even if several tuners chose
    it. ``chosen`` is of `sgtune.study.experiments.tune.chosen_arms`.

    Returns:
        ``clock``; ``runs``: of `evaluate_run`; ``tuners``: for each its name, its ``arms``, and the place in ``runs``
        of each of its replicates, or None.
    """
    n_runs = max(section["replicates"], section["curves"]["replicates"])
    arms = {tuner: [record and Arm(**record) for record in records] for tuner, records in chosen.items()}
    wanted = {tuner: [(own[r % len(own)], r) for r in range(n_runs)] for tuner, own in arms.items()}
    distinct = dict.fromkeys(run for runs in wanted.values() for run in runs if run[0] is not None)
    places = {run: place for place, run in enumerate(distinct)}

    def evaluated(arm: Arm, replicate: int) -> dict:
        began = perf_counter()
        run = evaluate_run(task, arm, replicate, section)
        last = run["table"] or run["curves"][-1]
        task.report(
            f"run {places[arm, replicate] + 1}/{len(places)}, {replicate} of {named(arm)}: "
            f"{last['n_samples']} samples; {perf_counter() - began:.1f} s"
        )
        return run

    return {
        "clock": "wall" if task.cost is None else "calibrated",
        "runs": [
            task.once(f"{replicate} of {named(arm)}", partial(evaluated, arm, replicate), arm=arm.to_record())
            for arm, replicate in places
        ],
        "tuners": [
            {
                "tuner": tuner,
                "arms": [arm and arm.to_record() for arm in own],
                "runs": [places.get(run) for run in wanted[tuner]],
            }
            for tuner, own in arms.items()
        ],
    }


def compare_clocks(task: Task, evaluated: Mapping, section: Mapping) -> dict:
    """The table's runs of the first tuner in ``evaluated``, of `evaluate_tuned`, that found an arm, repeated with the
    other clock.

    Returns:
        ``tuner``, its ``arm`` in the first replicate, and for each clock, ``wall`` and ``calibrated``, the rows of a
        table; no rows, and None for the arm, if no tuner found one. Both start in the same states with the same random
        streams: the steps that both make are identical.
    """
    first = next((one for one in evaluated["tuners"] if None not in one["runs"]), None)
    if first is None:
        return {"tuner": evaluated["tuners"][0]["tuner"], "arm": None, "wall": [], "calibrated": []}
    other = "wall" if evaluated["clock"] == "calibrated" else "calibrated"
    section = {**section, "curves": {**section["curves"], "replicates": 0}}
    task = task._replace(cost=task.cost if other == "calibrated" else None)
    again = evaluate_tuned(task, {first["tuner"]: first["arms"]}, section)
    runs = {evaluated["clock"]: [evaluated["runs"][place] for place in first["runs"]], other: again["runs"]}
    found = {clock: [run["table"] for run in own if run["table"] is not None] for clock, own in runs.items()}
    return {"tuner": first["tuner"], "arm": first["arms"][0], **found}
