"""The arithmetic of regret and its standard error: by hand, one by one, and for simulated records."""

import math

import numpy as np
import pytest
from sgtune.study.mamba.regret_estimates import best_of, chosen_losses, over_loss, ratio

# Two fresh replicates (rows) of three arms.
LOSSES = np.array([[2.0, 1.0, 4.0], [4.0, 1.0, 8.0]])


def test_regret_by_hand():
    assert best_of(LOSSES, [0, 1, 2]) == 1
    assert best_of(LOSSES, [2, 0]) == 0
    # Means 3 and 1; without the one or the other replicate 4 and 2, so the jackknife's variance is (1/2) (1² + 1²).
    assert ratio(LOSSES[:, [0]], LOSSES[:, [1]]) == pytest.approx((3.0, 1.0))
    # Two tuning runs chose the arms 0 and 2, with means 3 and 6: their sd / √2 is 1.5, independent of the replicates'
    # (6 and 3 without the one or the other, so 1.5 too).
    above = chosen_losses(LOSSES, [0, 2], "xi_white")
    assert ratio(above, LOSSES[:, [1]]) == pytest.approx((4.5, math.hypot(1.5, 1.5)))
    assert over_loss(6.0, LOSSES[:, [0]]) == pytest.approx((2.0, math.sqrt(0.5 * (0.75**2 + 0.75**2))))


@pytest.mark.parametrize(
    ("columns", "same_tunings"), [((3, 3), True), ((3, 3), False), ((3, 2), True), ((1, 4), True)]
)
def test_standard_errors_are_those_of_deleting_rows_and_columns_one_by_one(columns, same_tunings):
    rng = np.random.default_rng(3)
    above, below = (rng.lognormal(size=(5, n)) for n in columns)

    def part(n, value):
        return (n - 1) * np.var([value(i) for i in range(n)])

    def without(losses, i, axis):
        return np.delete(losses, i, axis).mean() if losses.shape[axis] > 1 else losses.mean()

    variance = part(5, lambda i: without(above, i, 0) / without(below, i, 0))
    if columns[0] == columns[1] and same_tunings:
        variance += part(columns[0], lambda j: without(above, j, 1) / without(below, j, 1))
    else:
        variance += part(columns[0], lambda j: without(above, j, 1) / below.mean())
        variance += part(columns[1], lambda j: above.mean() / without(below, j, 1))
    expected = (above.mean() / below.mean(), math.sqrt(variance))
    assert ratio(above, below, same_tunings=same_tunings) == pytest.approx(expected, rel=1e-12)


def test_a_tuning_run_without_an_arm_counts_as_the_cap_of_the_loss():
    for loss, cap in (("xi_white", 10.0), ("log_loss", 10.0), ("brier", 2.0)):
        assert chosen_losses(LOSSES, [1, None], loss).tolist() == [[1.0, cap], [1.0, cap]]


def test_the_best_finalist_has_regret_one_and_one_replicate_no_standard_error():
    assert ratio(LOSSES[:, [1]], LOSSES[:, [1]]) == (1.0, 0.0)
    assert ratio(LOSSES[:1, [0]], LOSSES[:1, [1]]) == (2.0, None)


def test_choices_like_the_oracles_are_as_good_as_the_oracles_for_certain():
    """The jackknife leaves out tuning runs and replicates of both, so that the ratio is always 1."""
    columns = chosen_losses(LOSSES, [0, 2], "xi_white")
    assert ratio(columns, columns) == (1.0, 0.0)
    others = ratio(columns, columns[:, ::-1])
    assert others.value == 1.0
    assert others.se > 0


def simulated(rng, n_replicates, choices, best):
    """Losses of fresh runs: known means of arms, a factor shared within a replicate, and independent factors."""
    common = rng.lognormal(0, 0.3, (n_replicates, 1))
    means = np.array([1.0, 1.5, 2.0, 3.0, 5.0])
    losses = means * common * rng.lognormal(0, 0.2, (n_replicates, len(means)))
    return losses[:, choices], losses[:, [best]]


@pytest.mark.parametrize(("n_choices", "over_oracle"), [(1, False), (5, False), (5, True)])
def test_standard_errors_are_the_spread_of_simulated_records(n_choices, over_oracle):
    """Over 2,000 records of 12 replicates: root mean square of the standard errors against the sd of the ratios.

    The sd has a standard error of 1.6%; the jackknife over few tuning runs and the noise that its columns have in
    common with the replicates' make the standard error larger, never smaller, by some percent.
    """
    rng = np.random.default_rng(1)
    found = []
    for _ in range(2_000):
        choices = rng.integers(1, 5, n_choices) if n_choices > 1 else [2]
        above, below = simulated(rng, 12, choices, 0)
        if over_oracle:
            oracle = rng.integers(0, 2, n_choices)
            both, _ = simulated(rng, 12, [*choices, *oracle], 0)
            above, below = both[:, :n_choices], both[:, n_choices:]
        found.append(ratio(above, below))
    values, errors = np.array(found).T
    assert 0.95 < math.sqrt(np.mean(errors**2)) / np.std(values, ddof=1) < 1.09


def test_what_the_replicates_have_in_common_cancels():
    rng = np.random.default_rng(2)
    above, below = simulated(rng, 12, [3], 0)
    noisy = rng.lognormal(0, 1, (12, 1))
    alone = ratio(above, below).se
    together = ratio(above * noisy, below * noisy).se
    apart = ratio(above * noisy, below * noisy[::-1]).se
    assert together < 3 * alone
    assert apart > 3 * together
