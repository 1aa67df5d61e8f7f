"""What may be read from the few chains of a cell: whether they are stuck, too slow or biased, by t intervals.

Imports nothing heavy: tables and figures are made with it.
"""

from collections.abc import Mapping
from math import inf
from statistics import fmean

from scipy.special import stdtrit

from sgtune.study.report.records import mean_of

STUCK, TOO_SLOW = "– (stuck)", "– (too slow)"
"""In print, in place of numbers that say nothing about the target."""

LEAST_ACCEPTANCE = 1e-3
"""Chains with a smaller acceptance rate hardly leave their starts: their squares are those of the starts."""

LEAST_MOVES = 20
"""Least (steps) x (mean squared jump of a coordinate) / (E x^2 of the draws).

A stationary coordinate with the autocorrelations rho^l has the mean squared jump 2 (1 - rho) E x^2, and x^2 has the
autocorrelation time (1 + rho^2) / (1 - rho^2), about 1 / (1 - rho) of a slow chain. Half of this number is therefore
the number of effective draws of x^2 in a chain: 20 stands for ten. A warm-up of a tenth of the steps then leaves
rho^(2 warmup) = exp(-2) of the deviation of the starts' x^2, which is below 1% in the mean over the run.

The unit is E x^2 of the draws and not the target's variance: a biased chain may cross its own narrow law quickly.
Chains start in the target, so of a chain that does not move the two are the same.
"""

ENOUGH_MOVES = 30
"""As `LEAST_MOVES`, of chains that need not be longer: about 7.5 of their autocorrelation times."""

MOST_BIAS = 0.1
"""Of E x^2, from 1: chains further away are called biased."""

COVERAGE, OF_DRIFT = 0.95, 0.9973
"""Of an interval; and of the interval of the difference between halves: three standard errors of a normal variable."""

LEAST_DRIFT = 0.05
"""Of the difference between halves, in units of E x^2. Four chains sometimes agree by chance, and their standard error
is then far too small: without this bound a difference of 4% of chains with 200 effective draws was called a drift."""


def t_quantile(n_chains: int, coverage: float = COVERAGE) -> float:
    """Half the width, in standard errors, of an interval for the mean of ``n_chains`` independent values.

    It is the (1 + coverage) / 2 quantile of Student's t with n_chains - 1 degrees of freedom, because the standard
    error is estimated from the same values: 3.18 for 4 chains, 2.04 for 32, infinite for one.
    """
    return inf if n_chains < 2 else float(stdtrit(n_chains - 1, (1 + coverage) / 2))


def is_beyond(value: float, se: float | None, n_chains: int, coverage: float = COVERAGE) -> bool:
    """Whether the interval of `t_quantile` about ``value`` excludes 0."""
    return se is not None and abs(value) > t_quantile(n_chains, coverage) * se


def is_stuck(cell: Mapping) -> bool:
    """Whether the mean acceptance rate of the cell's chains is below `LEAST_ACCEPTANCE`."""
    return fmean(cell["acceptance"]) < LEAST_ACCEPTANCE


def moves_of(cell: Mapping, steps: int) -> float:
    """The number that `LEAST_MOVES` bounds."""
    square = fmean(_squares(cell))
    return steps * fmean(cell["jump"]) / square if square else 0.0


def is_drifting(cell: Mapping) -> bool:
    """Whether E x^2 over the second half of the run differs from E x^2 over the first, by the interval of the chains'
    differences with the coverage `OF_DRIFT`, and by more than `LEAST_DRIFT`."""
    first, second = cell["halves"]
    differences = [later - earlier for earlier, later in zip(first, second, strict=True)]
    is_large = abs(fmean(differences)) > LEAST_DRIFT * fmean([*first, *second])
    return is_large and is_beyond(*mean_of(differences), len(differences), OF_DRIFT)


def is_too_slow(cell: Mapping, steps: int) -> bool:
    """Whether the chains moved too little in their ``steps``, or still drift, so that E x^2 has no estimate."""
    return moves_of(cell, steps) < LEAST_MOVES or is_drifting(cell)


def squares_cause(cell: Mapping, steps: int) -> str:
    """Why the squares of a cell's draws estimate nothing; empty if they estimate E x^2."""
    if is_stuck(cell):
        return STUCK
    return TOO_SLOW if is_too_slow(cell, steps) else ""


def is_biased(cell: Mapping) -> bool:
    """Whether E x^2 is further than `MOST_BIAS` from 1, by the interval of the chains."""
    squares = _squares(cell)
    mean, se = mean_of(squares)
    beyond = abs(mean - 1) - MOST_BIAS
    return beyond > 0 and is_beyond(beyond, se, len(squares))


def has_left_target(cell: Mapping) -> bool:
    """Whether a cell of chains from exact draws shows that its sampler does not keep the target.

    One that does leaves E x^2 at 1 in every step: a clear difference shows a bias of chains that have not settled, too.
    """
    return not is_stuck(cell) and is_biased(cell)


def is_decided(cell: Mapping, longest: int, *, starts_are_exact: bool, must_settle: bool = True) -> bool:
    """Whether longer chains of a cell, of up to ``longest`` steps, would tell nothing else: they are stuck, or would
    still be too slow; or they started from exact draws, have settled, and have either a bias (`is_biased`) or
    `ENOUGH_MOVES`. Unless they ``must_settle``, those with a bias end at once: only its size needs more steps."""
    if is_stuck(cell) or moves_of(cell, longest) < LEAST_MOVES:
        return True
    if starts_are_exact and not must_settle and is_biased(cell):
        return True
    if not starts_are_exact or is_too_slow(cell, cell["steps"]):
        return False
    return is_biased(cell) or moves_of(cell, cell["steps"]) >= ENOUGH_MOVES


def _squares(cell: Mapping) -> list[float]:
    """The records of bias and acceptance have different names for it."""
    return cell["squares"] if "squares" in cell else cell["square"]
