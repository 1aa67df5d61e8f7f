"""What may be claimed from the mean of a few chains: 95% intervals of Student's t."""

from math import inf

from scipy.special import stdtrit

__all__ = ["COVERAGE", "is_beyond", "n_independent", "t_quantile", "together"]

COVERAGE = 0.95
"""Of the intervals behind the study's claims."""


def t_quantile(n_chains: int, coverage: float = COVERAGE) -> float:
    """Half the width, in standard errors, of an interval for the mean of ``n_chains`` independent values.

    It is the (1 + coverage) / 2 quantile of Student's t with n_chains - 1 degrees of freedom, because the standard
    error is estimated from the same values: 3.18 for 4 chains, 2.04 for 32, infinite for one.
    """
    return inf if n_chains < 2 else float(stdtrit(n_chains - 1, (1 + coverage) / 2))


def is_beyond(value: float, se: float | None, n_chains: int, coverage: float = COVERAGE) -> bool:
    """Whether the interval of `t_quantile` about ``value`` excludes 0. Of a difference between two sets of chains,
    ``n_chains`` is the number of the smaller set, which makes the interval too wide rather than too narrow."""
    return se is not None and abs(value) > t_quantile(n_chains, coverage) * se


def together(n_intervals: int) -> float:
    """The coverage of each of so many intervals that all of them hold with `COVERAGE` (Bonferroni)."""
    return 1 - (1 - COVERAGE) / max(1, n_intervals)


def n_independent(n_races: int, n_runs: int) -> int:
    """The number of independent values behind the standard error of a mean over the runs of races: races, if they are
    fewer; the runs of a single race."""
    return n_runs if n_races == 1 else min(n_races, n_runs)
