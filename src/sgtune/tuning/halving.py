"""The schedule of successive halving (paper Algorithm 1; Karnin et al. 2013), in exact arithmetic."""

from typing import NamedTuple

from sgtune.support.errors import check_integer, check_number

__all__ = ["Rung", "Schedule", "halving_schedule", "single_rung"]


class Rung(NamedTuple):
    """``n_arms`` arms each run for another ``amount`` of the budget; the best ``n_survivors`` go on."""

    n_arms: int
    amount: float
    n_survivors: int


class Schedule(NamedTuple):
    """The rungs, the total budget T over all arms, and a remark for the output (empty if there is none)."""

    rungs: tuple[Rung, ...]
    total: float
    remark: str = ""


def halving_schedule(n_arms: int, pruning_rate: int, longest: float) -> Schedule:
    """Algorithm 1 for M = ``n_arms`` arms, eta = ``pruning_rate``, and R = ``longest``, the longest arm's total.

    K = floor(log_eta M) by integer division; T = R M K / (1 + eta + ... + eta^(K-1)); rung i gives each of its |S_i|
    arms r_i = T / (|S_i| K), and keeps floor(|S_i| / eta). The rungs' budgets add up to T. Because of the floors, the
    last survivors may exceed R a little. With fewer arms than eta there is one rung, in which each arm runs for R.

    Raises:
        InputError: M < 1, eta < 2, or R not positive.
    """
    check_integer("arms: number of arms", n_arms, at_least=1)
    check_integer("pruning_rate", pruning_rate, at_least=2)
    check_number("budget", longest, above=0)
    n_rungs, left = 0, n_arms
    while left >= pruning_rate:
        left //= pruning_rate
        n_rungs += 1
    if n_rungs == 0:
        remark = f"{n_arms} arms, fewer than the pruning rate {pruning_rate}: no halving, each ran the whole budget"
        return Schedule(single_rung(n_arms, longest).rungs, longest * n_arms, remark)
    total = longest * n_arms * n_rungs / sum(pruning_rate**i for i in range(n_rungs))
    rungs, left = [], n_arms
    for _ in range(n_rungs):
        rungs.append(Rung(left, total / (left * n_rungs), left // pruning_rate))
        left //= pruning_rate
    return Schedule(tuple(rungs), total)


def single_rung(n_arms: int, each: float) -> Schedule:
    """Grid search as a schedule: every arm runs for ``each``, and the best one is chosen."""
    check_integer("arms: number of arms", n_arms, at_least=1)
    check_number("budget", each, above=0)
    return Schedule((Rung(n_arms, each, 1),), each * n_arms)
