"""Two studies of the discrepancies themselves: estimates of them, and the widths that they see."""

from collections.abc import Callable, Iterator, Sequence

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
from sgtune.sampling.budget import CostTable
from sgtune.sampling.lockstep import Lockstep
from sgtune.sampling.thinning import evenly_spaced
from sgtune.stein import DISCREPANCIES

__all__ = ["estimate_discrepancies", "measure_widths"]


def _all_discrepancies(model: Model, draws: np.ndarray, gradients: np.ndarray, seed: int) -> dict[str, float]:
    scales = {"": "identity", "_scaled": laplace_scale(model)}
    finite = np.isfinite(draws).all() and np.isfinite(gradients).all()
    return {
        name + ending: measure(draws, gradients, scale, seed) if finite else np.inf
        for name, measure in DISCREPANCIES.items()
        for ending, scale in scales.items()
    }


def estimate_discrepancies(
    model: Model,
    *,
    log10_step_sizes: Sequence[float],
    batch_sizes: Sequence[int],
    fixed_batch_size: int,
    fixed_step_size: float,
    seconds: float,
    thin: int,
    max_points: int,
    cost: CostTable,
    seed: int = 0,
    report: Callable[[str], None] = lambda line: None,
) -> list[dict]:
    """The four estimates of Figs. 1 and 2: full-batch or stochastic gradients, at all or at thinned points.

    SGLD runs from the MAP for the steps that ``seconds`` buy: over the step sizes with ``fixed_batch_size``, and over
    the batch sizes with ``fixed_step_size``. A chain of more than ``max_points`` samples is thinned to that many,
    evenly spaced, before anything is estimated: ``n_points`` is the number of "all points".
    """
    by_step = [Arm(step_size=float(10.0**x), batch_size=fixed_batch_size) for x in log10_step_sizes]
    by_batch = [Arm(step_size=fixed_step_size, batch_size=batch_size) for batch_size in batch_sizes]
    estimates: dict[Arm, list[dict]] = {}
    # The arm of both figures runs once, with those of the first.
    for arms in (by_step, *([arm] for arm in by_batch if arm not in by_step)):
        ensemble = Lockstep.at_mode(model, "sgld", arms, seed=seed, replicate="estimates")
        n_steps = max(thin, int(seconds / cost.lookup(*shape_of("sgld", arms[0]))))
        draws = ensemble.advance(n_steps, max(1, n_steps // max_points))
        for place, arm in enumerate(arms):
            chain = evenly_spaced(draws[:, place], max_points)
            estimates[arm] = list(_estimates(model, chain, arm.batch_size, thin, seed))
            report(f"step size {arm.step_size:.3g}, batch size {arm.batch_size}: {len(chain)} points")
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
    model: Model,
    reference_draws: Float[np.ndarray, "n d"],
    *,
    widths: Sequence[float],
    points: int,
    seed: int = 0,
) -> list[dict]:
    """Every discrepancy of the reference draws, shrunk or stretched about their mean to ``width`` posterior sds.

    Width 1 is the reference itself; width 0 is a chain that never leaves the MAP. The number of points is the same.
    """
    exact = evenly_spaced(np.asarray(reference_draws), points).astype(np.float64)
    mean = exact.mean(axis=0)
    mode = to_matrix(jax.tree.map(lambda leaf: leaf[None], map_position(model)))
    rows = []
    for width in widths:
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
