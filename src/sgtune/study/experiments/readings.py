"""The values of judges for a set of draws, and the estimates of the discrepancy of the density that they are from."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from sgtune.stein.fssd import fssd_at, optimise_locations
from sgtune.stein.kernel import Draws, imq, squared_distances
from sgtune.stein.ksd import pair_blocks, stein_values
from sgtune.stein.psd import psd_stretches
from sgtune.stein.virials import squared_error, virial

__all__ = ["JUDGES", "Matrix", "Reading", "read"]

COLUMNS = 2048
BLOCK = 2**16

Matrix = Float[np.ndarray, "n d"]


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
