"""Studies of the discrepancies themselves: estimates of them, the widths that they see, and the errors that they see.

For the last no model and no chain is used, but exact draws of known targets with one error at a time. The draws are
independent, the targets have unit sds about their modes and scores in closed form: an error that a discrepancy does not
see here it cannot see in a chain either.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import NamedTuple

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
from sgtune.stein import DISCREPANCIES, fssd_at, ksd, ksd_stretches, optimise_locations, psd_stretches, virial
from sgtune.stein.psd import PAIRS_UP_TO
from sgtune.stein.virials import squared_error
from sgtune.study.pipeline.parts import Task
from sgtune.support.randomness import named_seed


def estimate_discrepancies(task: Task, section: Mapping) -> list[dict]:
    """The four estimates of the KSD in Figs. 1 and 2: full-batch or stochastic gradients, at all or at thinned points.

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
        ensemble = Lockstep(model, "sgld", arms, seed=task.seed, replicate="estimates")
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
    """The KSD of one chain, estimated in each of the four ways."""
    gradients = {
        "full-batch": scores(model, chain) if np.isfinite(chain).all() else np.full_like(chain, np.nan),
        "stochastic": stochastic_scores(model, chain, batch_size, seed),
    }
    for kind, each in gradients.items():
        for points, every in (("all", 1), ("thinned", thin)):
            draws, own = (array[every - 1 :: every] for array in (chain, each))
            value = ksd(draws, own) if np.isfinite(draws).all() and np.isfinite(own).all() else np.inf
            yield {"gradients": kind, "points": points, "n_points": len(draws), "ksd": value}


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
    scales, rows = {"identity": "identity", "laplace": laplace_scale(model)}, []
    for width in section["widths"]:
        shrunk = (mean + width * (exact - mean)).astype(np.float32)
        draws = shrunk if width > 0 else np.repeat(mode, len(exact), 0)
        gradients = scores(model, draws)
        for name, scale in product(DISCREPANCIES, scales):
            value = DISCREPANCIES[name](draws, gradients, scales[scale], seed)
            row = {"width": float(width), "discrepancy": name, "scale": scale}
            rows.append(row | {"value": value, "n_points": len(draws)})
    return rows


CORRELATION = 0.9
"""Correlation c between any two coordinates of the correlated target: its common mode has variance 1 - c + c D, all
other directions 1 - c."""

MOST_NUMBERS = 5_000_000
"""The largest n D of one set of draws. A set has 20 MB of float32, and its scores as much."""

Matrix = Float[np.ndarray, "n d"]


class Normals(NamedTuple):
    """The random numbers that all draws of one replicate share: they differ only by their perturbation."""

    noise: Matrix
    common: Float[np.ndarray, " n"]


class Perturbation(NamedTuple):
    """An error that is added to exact draws.

    Attributes:
        draw: (normals, size) -> positions and scores.
        exact: the size at which the draws are exact.
        sizes: all other sizes.
    """

    draw: Callable[[Normals, float], tuple[Matrix, Matrix]]
    exact: float
    sizes: tuple[float, ...]


def _standard(positions: Matrix) -> tuple[Matrix, Matrix]:
    """Draws of N(0, I) that have been changed, and their scores -x."""
    return positions, -positions


def _direction(normals: Normals, size: float) -> tuple[Matrix, Matrix]:
    """N(0, (1 - c) I + c 1 1'), the mean m of a draw's coordinates times ``size``: at 0 the common mode is frozen.

    The score is -(x - m) / (1 - c) - m / (1 - c + c D). Up to the dimension where the study's judges know the whole
    covariance, draws are along its eigenvectors, in sds: there the target is N(0, I), and the common mode is its first
    coordinate. Above, they are in units of the marginal sds.
    """
    if normals.noise.shape[1] <= PAIRS_UP_TO:
        is_first = np.arange(normals.noise.shape[1]) == 0
        return _standard(normals.noise * np.where(is_first, np.float32(size), np.float32(1)))
    rest = 1.0 - CORRELATION
    positions = np.sqrt(rest, dtype=np.float32) * normals.noise
    positions += (np.sqrt(CORRELATION) * normals.common).astype(np.float32)[:, None]
    mean = positions.mean(axis=1, dtype=np.float64)[:, None]
    positions += ((size - 1.0) * mean).astype(np.float32)
    across = -1.0 / rest
    along = -1.0 / (rest + CORRELATION * positions.shape[1])
    return positions, np.float32(across) * positions + ((along - across) * size * mean).astype(np.float32)


PERTURBATIONS = {
    "width": Perturbation(
        lambda normals, size: _standard(np.float32(size) * normals.noise),
        1.0,
        (0.0, 0.25, 0.5, 0.75, 1.25, 1.5, 2.0, 3.0),
    ),
    "direction": Perturbation(_direction, 1.0, (0.0, 0.25, 0.5, 0.75)),
}


class Measurement(NamedTuple):
    """The value of a judge for some draws.

    ``value``: the discrepancy of these draws. ``square``: an estimate of the squared discrepancy of their density; it
    may be negative. It is the jackknife, n V - (n - 1) times the mean of V without one draw, V the squared discrepancy
    (for the FSSD at its locations). For all but the virial this is the mean of the discrepancy's terms over pairs of
    two different draws, which is unbiased. For the virial the jackknife removes the bias of order 1/n, but not of
    order 1/n^2.
    """

    value: float
    square: float


JUDGES = ("ksd", "ksd_wide", "fssd", "psd", "virial")
"""KSD with kernels of width 1 and sqrt(D) in posterior sds, FSSD, PSD, and the virials, all about the origin."""


def judged(positions: Matrix, scores: Matrix, seed: int) -> dict[str, Measurement]:
    """The measurement of every judge of `JUDGES`; ``seed``: of the FSSD."""
    n, dimension = positions.shape
    one_stretch = np.zeros(n, np.int64)
    sums = {
        "ksd": ksd_stretches(positions, scores, one_stretch),
        "ksd_wide": ksd_stretches(positions, scores, one_stretch, np.full(dimension, np.sqrt(dimension))),
        "psd": psd_stretches(positions, scores, one_stretch, centre=None),
    }
    found = {
        judge: _of_mean((own.sum() + others.sum()) / n**2, own.sum() / n, n)
        for judge, (_, others, own) in sums.items()
    }
    # As in the FSSD, one half chooses the locations for the other.
    locations, odd = optimise_locations(positions[::2], scores[::2], seed=seed), slice(1, None, 2)
    draws = list(zip(positions[odd], scores[odd], strict=True))
    alone = [fssd_at(x[None], s[None], locations) ** 2 for x, s in draws]
    mean = fssd_at(positions[odd], scores[odd], locations) ** 2
    found["fssd"] = _of_mean(mean, np.mean(alone), len(alone))
    value, own = virial(positions, scores), -positions.astype(np.float64) * scores
    without = squared_error((own.sum(axis=0) - own) / (n - 1)).mean()
    found["virial"] = Measurement(value, float(n * value**2 - (n - 1) * without))
    return found


def _of_mean(mean: float, own: float, n: int) -> Measurement:
    """The measurement of n draws, from the mean over all pairs and the mean over the pairs of a draw with itself."""
    return Measurement(float(np.sqrt(max(mean, 0.0))), float((n * mean - own) / (n - 1)))


def numbers_of_points(dimension: int, points: Sequence[int]) -> list[int]:
    """The numbers of draws for this dimension, ascending: ``points``, but n D <= `MOST_NUMBERS`."""
    return sorted({min(n, MOST_NUMBERS // dimension) for n in points})


def measure_sensitivity(
    *,
    dimensions: Sequence[int],
    points: Sequence[int],
    replicates: int,
    seed: int = 0,
    report: Callable[[str], None] = lambda line: None,
) -> list[dict]:
    """The values of every judge for draws with every perturbation, compared with its values for exact draws.

    A row has one perturbation, size, D, n and judge: the means over the replicates of ``value`` and ``square``
    (`Measurement`), and for both the signal over the noise of one measurement,

        (mean - mean of exact draws) / sqrt((variance + variance of exact draws) / 2),

    corrected for the few replicates (`signal_over_noise`), with its standard error for independent samples: exact and
    perturbed draws of a replicate come from the same normals, so the true standard error is at most this. A negative
    signal means that the judge prefers these draws to exact ones.

    Memory: three sets of draws in float32 and three in float64, each of at most `MOST_NUMBERS`, and what the
    discrepancies need.

    Args:
        dimensions: D.
        points: n, at least 4; fewer where these are too many for a D (`numbers_of_points`).
        replicates: at least 3.
    """
    rows = []
    for dimension in dimensions:
        counts = numbers_of_points(dimension, points)
        measured: dict[tuple, list[Measurement]] = {}
        for replicate in range(replicates):
            of_replicate = named_seed(seed, "sensitivity", dimension, replicate)
            normals = draw_normals(max(counts), dimension, of_replicate)
            for name, perturbation in PERTURBATIONS.items():
                for size in (perturbation.exact, *perturbation.sizes):
                    positions, scores = perturbation.draw(normals, size)
                    for n in counts:
                        for judge, one in judged(positions[:n], scores[:n], of_replicate).items():
                            measured.setdefault((name, judge, n, size), []).append(one)
        rows += _rows(dimension, measured)
        report(f"D = {dimension:,}: {replicates} replicates of {max(counts)} draws")
    return rows


def draw_normals(n: int, dimension: int, seed: int) -> Normals:
    """The numbers of one replicate, of n draws."""
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal((n, dimension), dtype=np.float32)
    return Normals(noise, rng.standard_normal(n))


def _rows(dimension: int, measured: dict[tuple, list[Measurement]]) -> list[dict]:
    rows = []
    for (name, judge, n, size), found in measured.items():
        exact = measured[name, judge, n, PERTURBATIONS[name].exact]
        row = {"perturbation": name, "size": size, "dimension": dimension, "points": n, "judge": judge}
        for place, statistic in enumerate(Measurement._fields):
            own, theirs = (np.array([one[place] for one in some]) for some in (found, exact))
            row[statistic] = float(own.mean())
            signal, error = (0.0, 0.0) if found is exact else signal_over_noise(own, theirs)
            row |= {f"{statistic}_signal": signal, f"{statistic}_signal_se": error}
        rows.append(row)
    return rows


def signal_over_noise(own: Float[np.ndarray, " r"], exact: Float[np.ndarray, " r"]) -> tuple[float, float]:
    """The standardised difference of the means of two sets of n >= 3 numbers, and its standard error.

    Hedges' g: of normal numbers with one variance it is unbiased, and its variance is that of a noncentral t (Hedges
    1981, Distribution theory for Glass's estimator of effect size and related estimators), here with g in place of the
    true signal.
    """
    n = len(own)
    freedom = 2 * n - 2
    unbiased = 1 - 3 / (4 * freedom - 1)
    noise = np.sqrt((own.var(ddof=1) + exact.var(ddof=1)) / 2)
    signal = float(unbiased * (own.mean() - exact.mean()) / noise)
    variance = unbiased**2 * freedom / (freedom - 2) * (2 / n + signal**2) - signal**2
    return signal, float(np.sqrt(variance))
