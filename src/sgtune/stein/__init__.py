"""Stein discrepancies: how far draws are from the posterior, from the draws and their scores alone."""

from sgtune.stein.fssd import fssd, fssd_at, optimise_locations
from sgtune.stein.kernel import Scale, rescale
from sgtune.stein.ksd import ksd

__all__ = ["DISCREPANCIES", "fssd", "fssd_at", "ksd", "optimise_locations", "rescale"]


def _ksd(positions, scores, scale: Scale = "identity", seed: int = 0) -> float:
    return ksd(positions, scores, scale)


def _fssd(positions, scores, scale: Scale = "identity", seed: int = 0) -> float:
    return fssd(positions, scores, seed, scale)


# All are called as (positions, scores, scale, seed) -> float; KSD draws nothing and ignores the seed.
DISCREPANCIES = {"ksd": _ksd, "fssd": _fssd}
