"""Two studies of the discrepancies themselves: estimates of them, and the widths that they see."""

from collections.abc import Iterator, Mapping

import jax
import numpy as np
from jaxtyping import Float

from sgtune.mode.curvature import laplace_scale
from sgtune.mode.find import map_position
from sgtune.model import Model
from sgtune.model.positions import to_matrix
from sgtune.model.posterior import scores
from sgtune.samplers.gradients import stochastic_scores
from sgtune.sampling.arm import Arm, shape_of
from sgtune.sampling.budget import batch_size_of
from sgtune.sampling.lockstep import Lockstep
from sgtune.sampling.thinning import evenly_spaced
from sgtune.stein import DISCREPANCIES
from sgtune.study.pipeline.parts import Task

__all__ = ["estimate_discrepancies", "measure_widths"]


def _all_discrepancies(model: Model, draws: np.ndarray, gradients: np.ndarray, seed: int) -> dict[str, float]:
    scales = {"": "identity", "_scaled": laplace_scale(model)}
    finite = np.isfinite(draws).all() and np.isfinite(gradients).all()
    return {
        name + ending: measure(draws, gradients, scale, seed) if finite else np.inf
        for name, measure in DISCREPANCIES.items()
        for ending, scale in scales.items()
    }


def estimate_discrepancies(task: Task, section: Mapping) -> list[dict]:
    """The four estimates of Figs. 1 and 2: full-batch or stochastic gradients, at all or at thinned points.

    SGLD runs from the MAP for the steps that the seconds of the configuration's ``section`` ``estimates`` buy: over the
    step sizes with its batch fraction, and over the batch fractions with its step size. A chain of more than
    ``max_points`` samples is thinned to that many, evenly spaced, before anything is estimated: ``n_points`` is the
    number of "all points".
    """
    model, thin, max_points = task.model, section["thin"], section["max_points"]
    fixed = batch_size_of(section["batch_fraction"], model.n_data)
    batch_sizes = [batch_size_of(fraction, model.n_data) for fraction in section["batch_fractions"]]
    by_step = [Arm(float(10.0**x), fixed) for x in section["log10_step_sizes"]]
    by_batch = [Arm(10.0 ** section["log10_step_size"], batch_size) for batch_size in batch_sizes]
    estimates: dict[Arm, list[dict]] = {}
    # The arm of both figures runs once, with those of the first.
    for arms in (by_step, *([arm] for arm in by_batch if arm not in by_step)):
        ensemble = Lockstep.at_mode(model, "sgld", arms, seed=task.seed, replicate="estimates")
        n_steps = max(thin, int(section["seconds"] / task.cost.lookup(*shape_of("sgld", arms[0]))))
        draws = ensemble.advance(n_steps, max(1, n_steps // max_points))
        for place, arm in enumerate(arms):
            chain = evenly_spaced(draws[:, place], max_points)
            estimates[arm] = list(_estimates(model, chain, arm.batch_size, thin, task.seed))
            task.report(f"step size {arm.step_size:.3g}, batch size {arm.batch_size}: {len(chain)} points")
    return [
        {"figure": figure, "step_size": arm.step_size, "batch_size": arm.batch_size, **row}
        for figure, arms in (("step_size", by_step), ("batch_size", by_batch))
        for arm in arms
        for row in estimates[arm]
    ]


def _estimates(
    model: Model, chain: Float[np.ndarray, "n d"], batch_size: int, thin: int, seed: int
) -> Iterator[dict]:
    """Every discrepancy of one chain in each of the four ways."""
    finite = np.isfinite(chain).all()
    gradients = {
        "full-batch": scores(model, chain) if finite else np.full_like(chain, np.nan),
        "stochastic": stochastic_scores(model, chain, batch_size, seed),
    }
    for kind, each in gradients.items():
        for points, every in (("all", 1), ("thinned", thin)):
            used = slice(every - 1, None, every)
            facts = {"gradients": kind, "points": points, "n_points": len(chain[used])}
            yield facts | _all_discrepancies(model, chain[used], each[used], seed)


def measure_widths(
    model: Model, reference_draws: Float[np.ndarray, "n d"], section: Mapping, seed: int = 0
) -> list[dict]:
    """Every discrepancy of ``points`` of the reference draws, shrunk or stretched about their mean to each of
    ``widths`` posterior sds (of the configuration's ``section`` ``widths``).

    Width 1 is the reference itself; width 0 is a chain that never leaves the MAP. The number of points is the same.
    """
    exact = evenly_spaced(np.asarray(reference_draws), section["points"]).astype(np.float64)
    mean = exact.mean(axis=0)
    mode = to_matrix(jax.tree.map(lambda leaf: leaf[None], map_position(model)))
    rows = []
    for width in section["widths"]:
        shrunk = (mean + width * (exact - mean)).astype(np.float32)
        draws = shrunk if width > 0 else np.repeat(mode, len(exact), 0)
        for name, value in _all_discrepancies(model, draws, scores(model, draws), seed).items():
            discrepancy, _, scaled = name.partition("_")
            row = {
                "width": float(width),
                "discrepancy": discrepancy,
                "scale": "laplace" if scaled else "identity",
            }
            rows.append(row | {"value": value, "n_points": len(draws)})
    return rows
