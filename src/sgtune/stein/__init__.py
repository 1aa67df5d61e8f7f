"""Stein discrepancies: how far draws are from the posterior, from the draws and their scores alone."""

from sgtune.stein.fssd import fssd, fssd_at, optimise_locations
from sgtune.stein.kernel import Scale, rescale
from sgtune.stein.ksd import ksd

__all__ = ["DISCREPANCIES", "fssd", "fssd_at", "ksd", "optimise_locations", "rescale"]


def _ksd(positions, scores, scale: Scale = "identity", seed: int = 0, n_draws: int | None = None) -> float:
    return ksd(positions, scores, scale, n_draws=n_draws)


def _fssd(positions, scores, scale: Scale = "identity", seed: int = 0, n_draws: int | None = None) -> float:
    return fssd(positions, scores, seed, scale)


# All are called as (positions, scores, scale, seed, n_draws) -> float. KSD draws nothing and ignores the seed; FSSD is
# that of the draws given, whatever number of them they stand for.
DISCREPANCIES = {"ksd": _ksd, "fssd": _fssd}
