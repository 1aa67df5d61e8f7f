"""Whether the chains of a cell have moved enough, and have settled enough, for an estimate of E x^2."""

from collections.abc import Mapping
from statistics import fmean

from sgtune.study.adam_mcmc.intervals import is_beyond
from sgtune.study.adam_mcmc.names import mean_of

__all__ = ["LEAST_MOVES", "is_drifting", "is_too_slow", "moves_of"]

LEAST_MOVES = 20
"""Least (steps) x (mean squared jump of a coordinate) / (E x^2 of the draws).

A stationary coordinate with the autocorrelations rho^l has the mean squared jump 2 (1 - rho) E x^2, and x^2 has the
autocorrelation time (1 + rho^2) / (1 - rho^2), about 1 / (1 - rho) of a slow chain. Half of this number is therefore
the number of effective draws of x^2 in a chain: 20 stands for ten. A warm-up of a tenth of the steps then leaves
rho^(2 warmup) = exp(-2) of the deviation of the starts' x^2, which is below 1% in the mean over the run.

The unit is E x^2 of the draws and not the target's variance: a biased chain may cross its own narrow law quickly.
Chains start in the target, so of a chain that does not move the two are the same.
"""

OF_DRIFT = 0.9973
"""Coverage of the interval of the difference between halves: three standard errors of a normal variable."""

LEAST_DRIFT = 0.05
"""Of the difference between halves, in units of E x^2. Four chains sometimes agree by chance, and their standard error
is then far too small: without this bound a difference of 4% of chains with 200 effective draws was called a drift."""


def moves_of(cell: Mapping, steps: int) -> float | None:
    """The number that `LEAST_MOVES` bounds; None of a record without jumps."""
    if not cell.get("jump"):
        return None
    square = fmean(_squares(cell))
    return steps * fmean(cell["jump"]) / square if square else 0.0


def is_drifting(cell: Mapping) -> bool:
    """Whether E x^2 over the second half of the run differs from E x^2 over the first, by more than three standard
    errors of the chains' differences (by Student's t at the same coverage) and by more than `LEAST_DRIFT`; False of
    a record without halves."""
    if not cell.get("halves"):
        return False
    first, second = cell["halves"]
    differences = [later - earlier for earlier, later in zip(first, second, strict=True)]
    is_large = abs(fmean(differences)) > LEAST_DRIFT * fmean([*first, *second])
    return is_large and is_beyond(*mean_of(differences), len(differences), OF_DRIFT)


def is_too_slow(cell: Mapping, steps: int) -> bool:
    """Whether the squares of the cell's draws estimate nothing: the chains moved too little in ``steps`` steps after
    the warm-up, or still drift. A record without jumps and halves is judged without them."""
    moves = moves_of(cell, steps)
    return (moves is not None and moves < LEAST_MOVES) or is_drifting(cell)


def _squares(cell: Mapping) -> list[float]:
    """The records of bias and acceptance have different names for it."""
    return cell["squares"] if "squares" in cell else cell["square"]
