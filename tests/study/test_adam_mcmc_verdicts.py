"""What AdamMCMC's study reads from a few chains: t intervals, and chains too slow for an estimate."""

# ruff: noqa: RUF001 - tables print signs of mathematics

from math import inf

import numpy as np
import pytest
from adam_mcmc_records import FAR, NEAR, STEPS, acceptance_record, bias_of, bias_record
from scipy.signal import lfilter
from scipy.stats import t as student

from sgtune.study.adam_mcmc.acceptance_figure import adam_acceptance_curves
from sgtune.study.adam_mcmc.bias_table import adam_bias
from sgtune.study.adam_mcmc.intervals import is_beyond, t_quantile
from sgtune.study.adam_mcmc.prolate_tables import adam_prolate
from sgtune.study.adam_mcmc.stationarity import LEAST_MOVES, is_drifting, is_too_slow, moves_of
from sgtune.study.adam_mcmc.theory_figures import adam_bias_curves
from sgtune.study.adam_mcmc.verdicts import has_left_target, is_biased, is_decided


def test_half_width_is_students_quantile():
    assert t_quantile(4) == pytest.approx(student.ppf(0.975, 3)) == pytest.approx(3.18, abs=0.005)
    assert t_quantile(32) == pytest.approx(2.04, abs=0.005)
    assert t_quantile(1) == inf
    assert is_beyond(3.19, 1.0, 4)
    assert not is_beyond(-3.18, 1.0, 4)
    assert is_beyond(-3.18, 1.0, 32)
    assert not is_beyond(5.0, None, 1)


def test_a_bias_needs_more_of_few_chains_than_of_many():
    """0.75, a standard error of 0.05: 0.15 beyond the bound of 0.1 are three of them."""
    spread = 0.05 * np.sqrt(3)
    few = [0.75 - spread, 0.75 + spread] * 2
    many = (0.75 + 0.05 * np.sqrt(31) * np.array([-1, 1] * 16)).tolist()
    assert not is_biased({"square": few})
    assert is_biased({"square": many})
    assert not is_biased({"square": [0.5]})


def test_only_chains_from_exact_starts_end_because_of_a_bias():
    """On the posterior 1,600 steps once showed a bias of four chains that 2,400 steps did not have."""
    cell = {"square": [0.5, 0.51] * 2, "jump": [0.1] * 4, "acceptance": [0.5] * 4, "steps": 1_600}
    assert is_biased(cell)
    assert is_decided(cell, 5_000, starts_are_exact=True)
    assert not is_decided(cell, 5_000, starts_are_exact=False)
    # Each half has another E x^2: these chains have a bias, but have not settled.
    drifting = {**cell, "halves": [[1.0 + x for x in cell["square"]], [x - 0.4 for x in cell["square"]]]}
    assert not is_decided(drifting, 5_000, starts_are_exact=True)
    assert is_decided(drifting, 5_000, starts_are_exact=True, must_settle=False)
    assert not is_decided(drifting, 5_000, starts_are_exact=False, must_settle=False)
    # Stuck chains, and those that would still be too slow, end anyway.
    assert is_decided({**cell, "acceptance": [0.0] * 4}, 5_000, starts_are_exact=False)
    assert is_decided({**cell, "jump": [0.001] * 4}, 5_000, starts_are_exact=False)
    assert not is_decided({**cell, "jump": [0.001] * 4}, 50_000, starts_are_exact=False)
    # Without a bias they end when they have moved enough: 30 x E x^2 / 1,600 is 0.019.
    for jump, ends in ((0.02, True), (0.018, False)):
        assert is_decided({**cell, "square": NEAR, "jump": [jump] * 4}, 5_000, starts_are_exact=True) == ends


def test_moves_are_twice_the_effective_draws_of_the_square():
    """In 40 autoregressions of 5,000 steps x^2 has the time (1 + a^2) / (1 - a^2), 19.5 at a = 0.95, and 256 draws.
    The estimate of 2 (1 - a) n = 500 has a relative error of about sqrt(2 x 19.5 / 200,000) = 1.4%."""
    noise = np.random.default_rng(0).standard_normal((5_000, 40)) * np.sqrt(1 - 0.95**2)
    x = lfilter([1], [1, -0.95], noise, axis=0)
    cell = {"square": (x**2).mean(axis=0).tolist(), "jump": (np.diff(x, axis=0) ** 2).mean(axis=0).tolist()}
    assert moves_of(cell, 5_000) == pytest.approx(500, rel=0.06)
    assert moves_of(cell, 5_000) / 2 == pytest.approx(5_000 * (1 - 0.95**2) / (1 + 0.95**2), rel=0.09)


def test_chains_that_moved_too_little_are_too_slow():
    jump = LEAST_MOVES / STEPS
    assert is_too_slow({"square": [1.0], "jump": [0.99 * jump]}, STEPS)
    assert not is_too_slow({"square": [1.0], "jump": [1.01 * jump]}, STEPS)
    # In a narrow law small jumps are enough; in a wide one they are not.
    assert not is_too_slow({"squares": [0.01], "jump": [0.011 * jump]}, STEPS)
    assert is_too_slow({"squares": [2.0], "jump": [1.9 * jump]}, STEPS)
    assert is_too_slow({"square": [1.0], "jump": [0.0]}, STEPS)


def test_chains_that_drift_are_too_slow():
    first, second = [1.0, 1.1, 0.9, 1.0], [1.5, 1.6, 1.4, 1.5]
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
    assert is_too_slow({"squares": first, "jump": [1.0] * 4, "halves": [first, second]}, STEPS)


def test_records_without_jumps_and_halves_are_judged_without_them():
    old = {key: value for key, value in bias_of("prolate", FAR).items() if key != "jump"}
    assert not is_too_slow(old, STEPS)
    assert adam_bias({"bias": [bias_record(old)]}).rows[0].cells[0].text == "0.8100 ± 0.0041"


def test_the_table_and_the_figure_leave_out_cells_that_are_too_slow():
    slow = bias_of("prolate", FAR, ratio=1.0, jump=[1e-3] * 4)
    table = adam_bias({"bias": [bias_record(bias_of("prolate", FAR), slow)]})
    squares, rates = table.rows
    assert [cell.shown for cell in squares.cells] == ["0.8100 ± 0.0041", "– (too slow)"]
    assert rates.cells[1].value == pytest.approx(0.5)
    assert "after 1,000 of warm-up" in table.caption
    [axis] = adam_bias_curves({"bias": [bias_record(bias_of("prolate", FAR), slow)]}).axes
    assert {x for line in axis.lines for x in line.get_xdata()} == {0.1}


def test_chains_from_approximate_starts_have_squares_after_ten_autocorrelation_times():
    for steps, shown in ((40, "– (too slow)"), (STEPS, "0.8100 ± 0.0041")):
        record = acceptance_record(10, square=FAR, steps=steps, jump=[10.0] * 4) | {"n_data": 100}
        assert adam_prolate({"acceptance": [record]}).rows[0].cells[4].shown == shown


def test_captions_have_the_chains_of_each_target():
    eight = {"acceptance": [0.2, 0.21] * 4, "time_without": [5.0] * 8, "square": NEAR * 2, "jump": [0.1] * 8}
    more = acceptance_record(10, **eight)
    more["cells"][0] |= eight
    caption = adam_prolate({"acceptance": [more, acceptance_record(100)]}).caption
    assert "half width in standard errors is 2.36 with 8 chains and 3.18 with 4 chains." in caption
    assert "8 chains (N(0, I), D = 10), 4 chains (N(0, I), D = 100), ± one standard error" in caption


def test_lengths_of_updates_stand_in_the_table_if_they_were_recorded():
    new, old = acceptance_record(10, update=[0.2, 0.22, 0.21, 0.21]), acceptance_record(100)
    first, second = adam_prolate({"acceptance": [new, old]}).rows
    assert first.cells[-1].text == "0.2100 ± 0.0041"
    assert second.cells[-1].shown == "–"
    slow = acceptance_record(10, jump=[1e-4] * 4)
    *_, squares = adam_acceptance_curves({"acceptance": [slow]}).axes
    # The line of the cell without noise, and the line at 1.
    assert len(squares.lines) == len(adam_acceptance_curves({"acceptance": [old]}).axes[-1].lines) - 1


def test_chains_from_exact_draws_show_a_bias_before_they_settle():
    """E x^2 of a sampler that keeps the target is 1 in every step, if it is 1 in the first."""
    cell = {
        "square": [0.24, 0.25, 0.26, 0.25],
        "jump": [1e-5] * 4,
        "acceptance": [0.5] * 4,
        "arm": {"batch_size": 1},
        "steps": STEPS,
    }
    assert is_too_slow(cell, STEPS)
    assert has_left_target({"n_data": 1}, cell)
    # Chains on a posterior of data start from its Laplace approximation.
    of_data = cell | {"arm": {"batch_size": 100}}
    assert not has_left_target({"n_data": 100}, of_data)
    assert not has_left_target({"n_data": 100}, of_data | {"jump": [0.1] * 4})
    # Nine autocorrelation times are too few for a claim, and so is an unknown time.
    for times, is_claimed in (
        ([STEPS / 11] * 5, True),
        ([STEPS / 9] * 5, False),
        ([None] + [1.0] * 4, False),
    ):
        moved = of_data | {"jump": [0.1] * 4, "time": times[0], "time_without": times[1:]}
        assert has_left_target({"n_data": 100}, moved) == is_claimed
    assert not has_left_target({"n_data": 1}, cell | {"acceptance": [1e-4] * 4})


def test_the_figure_shows_the_mean_squares_of_every_target():
    """The panels share an axis, and the largest is not of the first target."""
    wide = acceptance_record(100, square=[1.6, 1.61, 1.6, 1.61])
    *_, squares = adam_acceptance_curves({"acceptance": [acceptance_record(10), wide]}).axes
    assert squares.get_ylim()[0] == 0
    assert squares.get_ylim()[1] > 1.605
