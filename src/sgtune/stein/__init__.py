"""Stein discrepancies: how far draws are from the posterior, from the draws and their scores alone."""

from sgtune.stein.fssd import fssd, fssd_at, optimise_locations
from sgtune.stein.kernel import rescale
from sgtune.stein.ksd import ksd

__all__ = ["DISCREPANCIES", "fssd", "fssd_at", "ksd", "optimise_locations", "rescale"]

DISCREPANCIES = {"ksd": ksd, "fssd": fssd}
"""By name; all are called as ``(positions, scores, scale, seed, *, n_draws)`` and return a float."""
