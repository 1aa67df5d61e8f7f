"""Stein discrepancies: how far draws are from the posterior, from the draws and their scores alone."""

from sgtune.stein.fssd import fssd, fssd_at, optimise_locations
from sgtune.stein.kernel import rescale
from sgtune.stein.ksd import KsdEstimate, ksd, ksd_estimate, ksd_floor, ksd_stretches
from sgtune.stein.psd import psd, psd_stretches
from sgtune.stein.virials import virial

__all__ = [
    "DISCREPANCIES",
    "KsdEstimate",
    "fssd",
    "fssd_at",
    "ksd",
    "ksd_estimate",
    "ksd_floor",
    "ksd_stretches",
    "optimise_locations",
    "psd",
    "psd_stretches",
    "rescale",
    "virial",
]

DISCREPANCIES = {"ksd": ksd, "fssd": fssd}
"""Of the paper, by name; all are called as ``(positions, scores, scale, seed, *, n_draws)`` and return a float. `psd`
and `virial` need a centre besides; tuners judge by them through `sgtune.tuning.at_horizon`."""
