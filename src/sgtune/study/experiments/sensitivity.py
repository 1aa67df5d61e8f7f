"""Which errors each discrepancy sees: exact draws of known targets with one error at a time.

No model and no chain is used. The draws are independent, the targets have unit sds about their modes and scores in
closed form: an error that a discrepancy does not see here it cannot see in a chain either.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from sgtune.stein.fssd import fssd_at, optimise_locations
from sgtune.stein.kernel import Draws, imq, squared_distances
from sgtune.stein.ksd import pair_blocks, stein_values
from sgtune.stein.psd import PAIRS_UP_TO, psd_stretches
from sgtune.stein.virials import squared_error, virial
from sgtune.support.randomness import named_seed

__all__ = ["JUDGES", "PERTURBATIONS", "draw_normals", "measure_sensitivity", "numbers_of_points", "read"]

CORRELATION = 0.9
"""Correlation c between any two coordinates of the correlated target: its common mode has variance 1 - c + c D, all
other directions 1 - c."""

HALF_DISTANCE = 4.0
"""The modes of the mixture are this many sds to either side of zero, in the first coordinate."""

MOST_NUMBERS = 5_000_000
"""The largest n D of one set of draws. A set has 20 MB of float32, and its scores as much."""

COLUMNS, BLOCK = 2048, 2**16
"""Columns of pairs, and numbers of draws in float64, that judges have at a time."""

Matrix = Float[np.ndarray, "n d"]


class Normals(NamedTuple):
    """The random numbers that all draws of one replicate share: they differ only by their perturbation."""

    noise: Matrix
    common: Float[np.ndarray, " n"]
    uniform: Float[np.ndarray, " n"]


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


def _width(normals: Normals, size: float) -> tuple[Matrix, Matrix]:
    """N(0, I), every coordinate shrunk or stretched: x = size z, score -x."""
    positions = np.float32(size) * normals.noise
    return positions, -positions


def _shift(normals: Normals, size: float) -> tuple[Matrix, Matrix]:
    """N(0, I), every coordinate moved: x = z + size, score -x."""
    positions = normals.noise + np.float32(size)
    return positions, -positions


def _coordinate(normals: Normals, size: float) -> tuple[Matrix, Matrix]:
    """N(0, I), only the first coordinate shrunk or stretched."""
    positions = normals.noise.copy()
    positions[:, 0] *= np.float32(size)
    return positions, -positions


def _direction(normals: Normals, size: float) -> tuple[Matrix, Matrix]:
    """N(0, (1 - c) I + c 1 1'), the mean m of a draw's coordinates times ``size``: at 0 the common mode is frozen.

    The score is -(x - m) / (1 - c) - m / (1 - c + c D). Up to the dimension where the study's judges know the whole
    covariance, draws are along its eigenvectors, in sds: there the target is N(0, I), and the common mode is its first
    coordinate. Above, they are in units of the marginal sds.
    """
    if normals.noise.shape[1] <= PAIRS_UP_TO:
        return _coordinate(normals, size)
    rest = 1.0 - CORRELATION
    positions = np.sqrt(rest, dtype=np.float32) * normals.noise
    positions += (np.sqrt(CORRELATION) * normals.common).astype(np.float32)[:, None]
    mean = positions.mean(axis=1, dtype=np.float64)[:, None]
    positions += ((size - 1.0) * mean).astype(np.float32)
    across = -1.0 / rest
    along = -1.0 / (rest + CORRELATION * positions.shape[1])
    return positions, np.float32(across) * positions + ((along - across) * size * mean).astype(np.float32)


def _weights(normals: Normals, size: float) -> tuple[Matrix, Matrix]:
    """N(-a e, I) and N(a e, I) in equal parts, e the first axis; a draw is from the second with probability ``size``.

    The score is -x + a tanh(a x_1) e.
    """
    positions = normals.noise.copy()
    positions[:, 0] += np.where(normals.uniform < size, HALF_DISTANCE, -HALF_DISTANCE)
    scores = -positions
    scores[:, 0] += HALF_DISTANCE * np.tanh(HALF_DISTANCE * positions[:, 0])
    return positions, scores


WIDTHS = (0.0, 0.25, 0.5, 0.75, 1.25, 1.5, 2.0, 3.0)

PERTURBATIONS = {
    "width": Perturbation(_width, 1.0, WIDTHS),
    "shift": Perturbation(_shift, 0.0, (0.1, 0.25, 0.5, 1.0, 2.0)),
    "coordinate": Perturbation(_coordinate, 1.0, WIDTHS),
    "direction": Perturbation(_direction, 1.0, (0.0, 0.25, 0.5, 0.75)),
    "weights": Perturbation(_weights, 0.5, (0.6, 0.7, 0.8, 0.9, 1.0)),
}


class Reading(NamedTuple):
    """The value of a judge for some draws.

    ``value``: the discrepancy of these draws. ``square``: an estimate of the squared discrepancy of their density; it
    may be negative. It is the jackknife, n V - (n - 1) times the mean of V without one draw, V the squared discrepancy
    (for the FSSD at its locations). For all but the virial this is the mean of the discrepancy's terms over pairs of
    two different draws, which is unbiased. For the virial the jackknife removes the bias of order 1/n, but not of
    order 1/n^2.
    """

    value: float
    square: float


def _of_mean(mean: float, own: float, n: int) -> Reading:
    """The reading of n draws, from the mean over all pairs and the mean over the pairs of a draw with itself."""
    return Reading(float(np.sqrt(max(mean, 0.0))), float((n * mean - own) / (n - 1)))


def _read_ksd(positions: Matrix, scores: Matrix, points: Sequence[int]) -> Iterator[tuple[str, int, Reading]]:
    """KSDs with kernels of the widths 1 and sqrt(D), of the first n draws for each n of ``points``.

    Coordinates divided by l are scores times l: the same products of draws serve for both.
    """
    draws = Draws.read(positions, scores, "identity")
    pairs = next(pair_blocks(draws, len(positions), COLUMNS))
    for judge, square in (("ksd", 1.0), ("ksd_wide", float(pairs.dimension))):
        values = stein_values(pairs._replace(ss=square * pairs.ss, squares=pairs.squares / square))
        for n in points:
            part = values[:n, :n]
            yield judge, n, _of_mean(part.mean(), np.trace(part) / n, n)


def _read_fssd(
    positions: Matrix, scores: Matrix, points: Sequence[int], seed: int
) -> Iterator[tuple[str, int, Reading]]:
    """`sgtune.stein.fssd` of the first n draws, and its square without the terms of a draw with itself."""
    for n in points:
        locations = optimise_locations(positions[:n:2], scores[:n:2], seed)
        odd = positions[1:n:2].astype(np.float64), scores[1:n:2].astype(np.float64)
        mean = fssd_at(*odd, locations) ** 2
        yield "fssd", n, _of_mean(mean, _own_fssd(*odd, locations), len(odd[0]))


def _own_fssd(positions: Matrix, scores: Matrix, locations: Float[np.ndarray, "j d"]) -> float:
    """The mean over the draws of FSSD^2 of a draw alone: |k s - k^3 (x - v)|^2 / D, k = (1 + |x - v|^2)^(-1/2)."""
    squares = squared_distances(
        np.einsum("nd,nd->n", positions, positions),
        np.einsum("jd,jd->j", locations, locations),
        positions @ locations.T,
    )
    k1, k3, _ = imq(squares)
    slopes = np.einsum("nd,nd->n", scores, positions)[:, None] - scores @ locations.T
    own = np.einsum("nd,nd->n", scores, scores)[:, None] * k1**2 - 2 * k1 * k3 * slopes + k3**2 * squares
    return float(own.mean() / positions.shape[1])


def _read_psd(positions: Matrix, scores: Matrix, points: Sequence[int]) -> Iterator[tuple[str, int, Reading]]:
    """`sgtune.stein.psd` of the first n draws, about the origin."""
    for n in points:
        sums = psd_stretches(positions[:n], scores[:n], np.zeros(n, np.int64), centre=None)
        own, others = sums.own.sum(), sums.sums.sum()
        yield "psd", n, _of_mean((own + others) / n**2, own / n, n)


def _read_virial(
    positions: Matrix, scores: Matrix, points: Sequence[int]
) -> Iterator[tuple[str, int, Reading]]:
    """`sgtune.stein.virials.virial` of the first n draws, about the origin, and the jackknife of its square."""
    for n in points:
        value = virial(positions[:n], scores[:n])
        own = -positions[:n].astype(np.float64) * scores[:n]
        total = own.sum(axis=0)
        # A few draws at a time: all together would be another set of draws in float64.
        blocks = np.array_split(own, min(n, 1 + own.size // BLOCK))
        without = np.concatenate([squared_error((total - rows) / (n - 1)) for rows in blocks]).mean()
        yield "virial", n, Reading(value, float(n * value**2 - (n - 1) * without))


JUDGES = ("ksd", "ksd_wide", "fssd", "psd", "virial")
"""KSD with kernels of width 1 and sqrt(D) in posterior sds, FSSD, PSD, and the virials."""


def read(
    positions: Matrix, scores: Matrix, points: Sequence[int], seed: int
) -> Iterator[tuple[str, int, Reading]]:
    """(judge, n, its reading of the first n draws) for every judge and each n of ``points``; ``seed``: of the FSSD."""
    yield from _read_ksd(positions, scores, points)
    yield from _read_fssd(positions, scores, points, seed)
    yield from _read_psd(positions, scores, points)
    yield from _read_virial(positions, scores, points)


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
    (`Reading`), their standard errors, and for both the signal over the noise of one reading,

        (mean - mean of exact draws) / sqrt((variance + variance of exact draws) / 2),

    with its standard error for independent samples: exact and perturbed draws of a replicate come from the same
    normals, so the true standard error is at most this. A negative signal means that the judge prefers these draws to
    exact ones.

    Memory: three sets of draws, each of at most `MOST_NUMBERS` float32, and what the discrepancies need.

    Args:
        dimensions: D.
        points: n, at least 4; fewer where these are too many for a D (`numbers_of_points`).
        replicates: at least 2.
    """
    rows = []
    for dimension in dimensions:
        counts = numbers_of_points(dimension, points)
        readings: dict[tuple, list[Reading]] = {}
        for replicate in range(replicates):
            of_replicate = named_seed(seed, "sensitivity", dimension, replicate)
            normals = draw_normals(max(counts), dimension, of_replicate)
            for name, perturbation in PERTURBATIONS.items():
                for size in (perturbation.exact, *perturbation.sizes):
                    positions, scores = perturbation.draw(normals, size)
                    for judge, n, reading in read(positions, scores, counts, of_replicate):
                        readings.setdefault((name, judge, n, size), []).append(reading)
        rows += _rows(dimension, readings)
        report(f"D = {dimension:,}: {replicates} replicates of {max(counts)} draws")
    return rows


def draw_normals(n: int, dimension: int, seed: int) -> Normals:
    """The numbers of one replicate, of n draws."""
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal((n, dimension), dtype=np.float32)
    return Normals(noise, rng.standard_normal(n), rng.uniform(size=n))


def _rows(dimension: int, readings: dict[tuple, list[Reading]]) -> list[dict]:
    rows = []
    for (name, judge, n, size), found in readings.items():
        exact = readings[name, judge, n, PERTURBATIONS[name].exact]
        row = {"perturbation": name, "size": size, "dimension": dimension, "points": n, "judge": judge}
        for place, statistic in enumerate(Reading._fields):
            own, theirs = (np.array([reading[place] for reading in some]) for some in (found, exact))
            row |= {
                statistic: float(own.mean()),
                f"{statistic}_se": float(own.std(ddof=1) / np.sqrt(len(own))),
            }
            signal, error = (0.0, 0.0) if found is exact else signal_over_noise(own, theirs)
            row |= {f"{statistic}_signal": signal, f"{statistic}_signal_se": error}
        rows.append(row)
    return rows


def signal_over_noise(own: Float[np.ndarray, " r"], exact: Float[np.ndarray, " r"]) -> tuple[float, float]:
    """The standardised difference of two means (Cohen's d), and its standard error (Hedges and Olkin 1985)."""
    n = len(own)
    signal = float((own.mean() - exact.mean()) / np.sqrt((own.var(ddof=1) + exact.var(ddof=1)) / 2))
    return signal, float(np.sqrt(2 / n + signal**2 / (4 * n)))
