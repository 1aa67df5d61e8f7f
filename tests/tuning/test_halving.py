"""The schedule of successive halving against Algorithm 1, in exact arithmetic."""

from fractions import Fraction

import pytest

from sgtune.sampling.budget import Budget
from sgtune.tuning import halving_schedule


def exact_floor_log(n, base):
    """The largest K with base^K <= n."""
    k = 0
    while base ** (k + 1) <= n:
        k += 1
    return k


@pytest.mark.parametrize("eta", [2, 3, 4])
@pytest.mark.parametrize("longest", [1.0, 0.3, 10])
def test_every_schedule_is_algorithm_1(eta, longest):
    for n_arms in range(eta, 301):
        schedule = halving_schedule(n_arms, eta, longest)
        k = exact_floor_log(n_arms, eta)
        total = Fraction(longest) * n_arms * k / sum(eta**i for i in range(k))
        assert schedule.total == pytest.approx(float(total), rel=1e-12)
        assert len(schedule.rungs) == k
        assert schedule.remark == ""
        running, spent, winner = n_arms, Fraction(0), Fraction(0)
        for rung in schedule.rungs:
            assert rung.n_arms == running
            assert rung.amount == pytest.approx(float(total / (running * k)), rel=1e-12)
            assert rung.n_survivors == running // eta >= 1
            spent += running * Fraction(rung.amount)
            winner += Fraction(rung.amount)
            running = rung.n_survivors
        assert running == n_arms // eta**k < eta
        assert spent <= total * (1 + Fraction(1, 10**12)), "never above T"
        # The longest arm's total is R, or slightly more where rounding down leaves fewer arms in a rung.
        assert winner >= Fraction(longest) * (1 - Fraction(1, 10**12))
        if n_arms == eta**k:
            assert float(winner) == pytest.approx(longest, rel=1e-12)


@pytest.mark.parametrize(
    ("n_arms", "total", "survivors"),
    [(56, 12.92, (18, 6, 2)), (112, 11.2, (37, 12, 4, 1)), (36, 8.31, (12, 4, 1)), (72, 16.62, (24, 8, 2))],
)
def test_the_grids_of_the_paper(n_arms, total, survivors):
    schedule = halving_schedule(n_arms, 3, 10.0)
    assert schedule.total / 10 == pytest.approx(total, abs=0.005)
    assert tuple(rung.n_survivors for rung in schedule.rungs) == survivors
    assert tuple(rung.n_arms for rung in schedule.rungs) == (n_arms, *survivors[:-1])


@pytest.mark.parametrize(("n_arms", "eta"), [(1, 2), (1, 3), (2, 3), (3, 4), (299, 300)])
def test_fewer_arms_than_eta_share_the_total_once(n_arms, eta):
    """K = 0: every arm runs for R, one survives, and the remark says why."""
    schedule = halving_schedule(n_arms, eta, 2.5)
    assert schedule.total == pytest.approx(2.5 * n_arms)
    assert [tuple(rung) for rung in schedule.rungs] == [(n_arms, 2.5, 1)]
    assert str(n_arms) in schedule.remark
    assert str(eta) in schedule.remark
    assert "\n" not in schedule.remark


def test_budget_buys_whole_steps():
    """Budgets of steps, gradients (data terms) and seconds, in steps of 3 leapfrogs with batches of 20."""
    cost = {"seconds_per_step": 0.25, "gradients_per_step": 60}
    assert Budget(steps=10).steps_for(7.9, **cost) == 7
    assert Budget(gradients=1_000).steps_for(179, **cost) == 2
    assert Budget(gradients=1_000).steps_for(180, **cost) == 3
    assert Budget(seconds=1.0).steps_for(1.1, **cost) == 4
