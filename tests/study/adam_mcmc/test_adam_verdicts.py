"""What AdamMCMC's study reads from a few chains: t intervals, and chains that are stuck, too slow or biased."""

from math import inf

import numpy as np
import pytest
from scipy.stats import t as student

from sgtune.study.adam_mcmc.verdicts import (
    LEAST_MOVES,
    is_beyond,
    is_biased,
    is_decided,
    is_drifting,
    is_too_slow,
    squares_cause,
    t_quantile,
)

NEAR, STEPS = [0.97, 1.0, 1.02, 0.99], 10_000


def cell(square=NEAR, jump=0.1, acceptance=0.5, steps=1_600, halves=None):
    halves = [list(square), list(square)] if halves is None else halves
    own = {"square": list(square), "halves": halves, "steps": steps}
    return own | {name: [x] * len(square) for name, x in (("jump", jump), ("acceptance", acceptance))}


def test_half_width_is_students_quantile():
    assert t_quantile(4) == pytest.approx(student.ppf(0.975, 3)) == pytest.approx(3.18, abs=0.005)
    assert t_quantile(1) == inf
    assert is_beyond(3.19, 1.0, 4)
    assert is_beyond(-3.18, 1.0, 32) > is_beyond(-3.18, 1.0, 4)
    assert not is_beyond(5.0, None, 1)


def test_a_bias_needs_more_of_few_chains_than_of_many():
    """0.75, a standard error of 0.05: 0.15 beyond the bound of 0.1 are three of them."""
    spread = 0.05 * np.sqrt(3)
    few = [0.75 - spread, 0.75 + spread] * 2
    many = (0.75 + 0.05 * np.sqrt(31) * np.array([-1, 1] * 16)).tolist()
    assert not is_biased({"square": few})
    assert is_biased({"square": many})
    assert is_biased({"squares": many})
    assert not is_biased({"square": [0.5]})


def test_only_chains_from_exact_starts_end_because_of_a_bias():
    """On the posterior 1,600 steps once showed a bias of four chains that 2,400 steps did not have."""
    biased = cell([0.5, 0.51] * 2)
    assert is_biased(biased)
    assert is_decided(biased, 5_000, starts_are_exact=True)
    assert not is_decided(biased, 5_000, starts_are_exact=False)
    # Each half has another E x^2: these chains have a bias, but have not settled.
    drifting = cell([0.5, 0.51] * 2, halves=[[1.5, 1.51] * 2, [0.1, 0.11] * 2])
    assert not is_decided(drifting, 5_000, starts_are_exact=True)
    assert is_decided(drifting, 5_000, starts_are_exact=True, must_settle=False)
    assert not is_decided(drifting, 5_000, starts_are_exact=False, must_settle=False)
    # Stuck chains, and those that would still be too slow, end anyway.
    assert is_decided(cell([0.5, 0.51] * 2, acceptance=0.0), 5_000, starts_are_exact=False)
    assert is_decided(cell([0.5, 0.51] * 2, jump=0.001), 5_000, starts_are_exact=False)
    assert not is_decided(cell([0.5, 0.51] * 2, jump=0.001), 50_000, starts_are_exact=False)
    # Without a bias they end when they have moved enough: 30 x E x^2 / 1,600 is 0.019.
    for jump, ends in ((0.02, True), (0.018, False)):
        assert is_decided(cell(jump=jump), 5_000, starts_are_exact=True) == ends


def test_chains_that_moved_too_little_are_too_slow():
    jump = LEAST_MOVES / STEPS
    for square, share, is_slow in (
        *((1.0, 0.99, True), (1.0, 1.01, False), (1.0, 0.0, True)),
        # In a narrow law small jumps are enough; in a wide one they are not.
        *((0.01, 0.011, False), (2.0, 1.9, True)),
    ):
        assert is_too_slow(cell([square] * 4, jump=share * jump), STEPS) == is_slow
    assert squares_cause(cell(jump=0.0), STEPS) == "– (too slow)"
    assert squares_cause(cell(jump=0.0, acceptance=1e-4), STEPS) == "– (stuck)"
    assert squares_cause(cell(), STEPS) == ""


def test_chains_that_drift_are_too_slow():
    first = [1.0, 1.1, 0.9, 1.0]
    assert is_drifting({"halves": [first, [1.5, 1.61, 1.4, 1.5]]})
    # Differences of 0.1 with a standard error of 0.02: five, and with 4 chains 9.2 are needed, with 32 chains 3.3.
    spread = 0.02 * np.sqrt(3) * np.array([-1, 1, -1, 1])
    assert not is_drifting({"halves": [[1.0] * 4, (1.1 + spread).tolist()]})
    wide = 0.02 * np.sqrt(31) * np.array([-1, 1] * 16)
    assert is_drifting({"halves": [[1.0] * 32, (1.1 + wide).tolist()]})
    assert not is_drifting({"halves": [[1.0] * 32, (1.06 + wide).tolist()]})
    # A clear difference of less than 5% changes no verdict.
    assert not is_drifting({"halves": [[1.0] * 4, [1.040, 1.041, 1.040, 1.041]]})
    assert is_drifting({"halves": [[0.010] * 4, [0.0110, 0.0111, 0.0110, 0.0111]]})
    assert is_too_slow(cell(jump=1.0, halves=[first, [1.5, 1.6, 1.4, 1.5]]), STEPS)
