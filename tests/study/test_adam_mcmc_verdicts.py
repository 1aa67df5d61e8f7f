"""What AdamMCMC's study claims from a few chains: t intervals, chains too slow for an estimate, and findings."""

# ruff: noqa: RUF001 - tables print signs of mathematics

from math import inf

import numpy as np
import pytest
from scipy.signal import lfilter
from scipy.stats import t as student

from sgtune.study.adam_mcmc.acceptance_figure import adam_acceptance_curves
from sgtune.study.adam_mcmc.acceptance_table import adam_acceptance
from sgtune.study.adam_mcmc.bias_findings import bias_findings
from sgtune.study.adam_mcmc.bias_table import adam_bias
from sgtune.study.adam_mcmc.findings import acceptance_findings
from sgtune.study.adam_mcmc.intervals import is_beyond, t_quantile
from sgtune.study.adam_mcmc.prolate_tables import adam_prolate
from sgtune.study.adam_mcmc.stationarity import LEAST_MOVES, is_drifting, is_too_slow, moves_of
from sgtune.study.adam_mcmc.theory_figures import adam_bias_curves
from sgtune.study.adam_mcmc.verdicts import has_left_target, is_biased, is_decided

FAR = [0.80, 0.82, 0.81, 0.81]
NEAR = [0.97, 1.0, 1.02, 0.99]
STEPS = 10_000


def bias_of(variant, squares, ratio=0.1, acceptance=0.5, **fields):
    return {
        **{"variant": variant, "dimension": 2, "ratio": ratio, "squares": squares},
        **{"acceptance": [acceptance] * 4, "jump": [0.1] * 4, **fields},
    }


def bias_record(*cells):
    return {"scale": 0.7, "steps": STEPS, "warmup": 1_000, "chains": 4, "cells": list(cells)}


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


def test_findings_count_biased_cells_and_those_too_slow_to_tell():
    assert bias_findings(bias_record(bias_of("prolate", NEAR))) == []
    (line,) = bias_findings(bias_record(bias_of("prolate", FAR)))
    assert "in 1 of 1 case," in line
    assert "0.8100 ± 0.0041" in line
    assert "too slow" not in line
    slow = bias_of("prolate", FAR, ratio=0.3, jump=[1e-3] * 4)
    stuck = bias_of("prolate", FAR, ratio=1.0, acceptance=0.0)
    (line,) = bias_findings(bias_record(bias_of("prolate", FAR), slow, stuck))
    assert "in 1 of 1 case," in line
    assert line.endswith("2 more are too slow to tell.")
    assert bias_findings(bias_record(slow)) == []


def test_the_bias_is_compared_by_noise_and_by_dimension():
    far = {"squares": [0.70, 0.72, 0.71, 0.71]}
    cells = [
        bias_of("isotropic", NEAR),
        bias_of("prolate", FAR),
        bias_of("prolate", FAR) | far | {"dimension": 9},
    ]
    said = " ".join(bias_findings(bias_record(*cells)))
    assert "noise along the update makes the bias smaller in 0 of 1 case and larger in 1" in said
    assert "at γ / s = 0.1, s_d = 1, E x² is 0.8100 ± 0.0041 at D = 2 and 0.7100 ± 0.0041 at D = 9." in said


def test_intervals_of_the_exact_variant_are_also_tested_together():
    """z is -0.5 and 2 in two cases: chi^2 of 4.25 with two degrees of freedom has p = exp(-2.125)."""
    se = np.std(NEAR, ddof=1) / 2
    cells = [
        bias_of("exact", (np.array(NEAR) - np.mean(NEAR) + 1 + z * se).tolist(), ratio)
        for ratio, z in ((0.1, -0.5), (0.3, 2.0))
    ]
    (line,) = bias_findings(bias_record(*cells))
    assert "contains 1 in 2 of 2 cases" in line
    assert "χ² of all together 4.2, p = 0.12" in line


def test_minibatch_gradients_are_said_to_make_the_bias_smaller_and_larger():
    cells = [bias_of(name, squares) for name, squares in (("prolate", FAR), ("prolate-batch", NEAR))]
    larger = [0.70, 0.72, 0.71, 0.71]
    cells += [bias_of("prolate", FAR, 0.3), bias_of("prolate-batch", larger, 0.3)]
    cells += [bias_of("prolate", FAR, 1.0), bias_of("prolate-batch", FAR, 1.0)]
    *_, line = bias_findings(bias_record(*cells))
    assert "make the bias smaller in 1 of 3 cases (the largest difference: E x² = 0.995 ± 0.010" in line
    assert (
        "and larger in 1 (the largest difference: E x² = 0.7100 ± 0.0041 at D = 2, γ / s = 0.3 with" in line
    )
    assert line.endswith("0.8100 ± 0.0041 without).")


def test_the_bias_of_a_test_on_minibatches_is_said_where_gamma_is_smallest():
    far = [1.70, 1.72, 1.71, 1.71]
    cells = [bias_of("prolate-batch", NEAR, ratio) for ratio in (0.1, 0.3)]
    cells += [bias_of("minibatch-test", squares, ratio) for squares, ratio in ((far, 0.1), (FAR, 0.3))]
    *_, line = bias_findings(bias_record(*cells))
    assert "does not vanish with γ / s: E x² = 1.7100 ± 0.0041 at D = 2, γ / s = 0.1, where" in line
    assert line.endswith("has 0.995 ± 0.010.")
    near = [bias_of("prolate-batch", NEAR), bias_of("minibatch-test", NEAR)]
    assert not any("A test on minibatches" in line for line in bias_findings(bias_record(*near)))


def acceptance_record(dimension, **of_noisy):
    plain = {
        **{"drift_ratio": 0.1, "directional_noise": 0, "scale": 0.7, "acceptance": [0.2, 0.21] * 2},
        **{"time": 5.0, "time_without": [5.0] * 4, "square": NEAR, "jump": [0.1] * 4},
        **{"arm": {"batch_size": 1}, "steps": STEPS},
    }
    noisy = {**plain, "directional_noise": 1, "acceptance": [0.5, 0.51, 0.5, 0.51], **of_noisy}
    common = {"target": f"gaussian-{dimension}", "dimension": dimension, "warmup": 1_000}
    return {**common, "cells": [plain, noisy]}


def test_gains_have_biased_unbiased_and_slow_cases():
    found = [
        acceptance_record(10, square=FAR),
        acceptance_record(100),
        acceptance_record(1000, jump=[1e-4] * 4),
    ]
    said = " ".join(acceptance_findings(found, 0.7))
    assert "raised the acceptance rate in 3 of 3 comparisons" in said
    assert "In 1 of these 3 cases the draws with this noise are biased" in said
    assert "1 more is too slow to tell." in said


def test_chains_that_have_not_settled_have_a_mark_and_no_gain_in_the_findings():
    """Their acceptance still changes: 0.50, 0.42 and 0.40 in longer and longer runs at D = 10,000."""
    unsettled = {"square": [0.4, 0.41] * 2, "jump": [1e-4] * 4, "acceptance": [0.9, 0.91] * 2}
    found = [acceptance_record(10), acceptance_record(100), acceptance_record(1000, **unsettled)]
    said = " ".join(acceptance_findings(found, 0.7))
    assert "raised the acceptance rate in 3 of 3 comparisons" in said
    assert "1 of the 3 compares chains that are stuck or too slow" in said
    assert "In 2 of these 3 cases both sets of chains have settled, and neither is biased." in said
    assert "+0.70" not in said
    rows = adam_prolate({"acceptance": found}).rows
    assert [row.cells[1].shown.endswith(" *") for row in rows] == [False, False, True]
    # The start was exact, so that E x^2 shows a bias before it has settled.
    assert rows[-1].cells[4].shown == "0.4050 ± 0.0029 *"
    rates = adam_acceptance({"acceptance": found}).rows
    assert [row.cells[0].shown.endswith(" *") for row in rates] == [False] * 5 + [True]


def test_chains_that_never_left_their_starts_have_not_settled():
    """E x^2 is 1, but their acceptance rate is that of their exact starts."""
    slow = acceptance_record(1000, jump=[1e-4] * 4)
    said = " ".join(acceptance_findings([acceptance_record(10), slow], 0.7))
    assert "1 of the 2 compares chains that are stuck or too slow" in said
    assert "In 1 of these 2 cases both sets" in said


def test_no_size_of_a_gain_is_read_from_stuck_chains():
    stuck = acceptance_record(1000)
    stuck["cells"][0]["acceptance"] = [0.0] * 4
    said = " ".join(acceptance_findings([acceptance_record(10), stuck], 0.7))
    assert "raised the acceptance rate in 2 of 2 comparisons" in said
    assert "1 of the 2 compares chains that are stuck or too slow" in said
    assert "+0.50" not in said


def test_chains_from_approximate_starts_have_squares_after_ten_autocorrelation_times():
    for steps, shown in ((40, "– (too slow)"), (STEPS, "0.8100 ± 0.0041")):
        record = acceptance_record(10, square=FAR, steps=steps, jump=[10.0] * 4) | {"n_data": 100}
        assert adam_prolate({"acceptance": [record]}).rows[0].cells[4].shown == shown


def test_rates_of_chains_that_have_not_settled_have_a_mark_in_the_sentence_on_dimensions():
    slow = acceptance_record(100, jump=[1e-4] * 4)
    said = acceptance_findings([acceptance_record(10), slow], 0.7)
    (line,) = [line for line in said if line.startswith("Without noise along the update")]
    assert "0.51 at D = 10 (" in line
    assert "0.51 * at D = 100 (" in line
    assert line.endswith(
        "*: these chains are stuck or too slow, and their rates may still be those of their starts."
    )


def test_acceptance_is_said_for_every_dimension():
    usable = acceptance_record(10)
    usable["cells"][0]["acceptance"] = [0.31, 0.32] * 2
    said = acceptance_findings([usable, acceptance_record(100, square=FAR)], 0.7)
    (line,) = [line for line in said if line.startswith("Without noise along the update")]
    assert "of at least 0.3 is 0.1 at D = 10 and none at D = 100." in line
    assert line.endswith(
        "0.51 at D = 10 (E x² over the run: 0.99) and 0.51 at D = 100 (E x² over the run: 0.81)."
    )


def test_captions_have_the_chains_of_each_target():
    eight = {"acceptance": [0.2, 0.21] * 4, "time_without": [5.0] * 8, "square": NEAR * 2, "jump": [0.1] * 8}
    more = acceptance_record(10, **eight)
    more["cells"][0] |= eight
    caption = adam_prolate({"acceptance": [more, acceptance_record(100)]}).caption
    assert "half width in standard errors is 2.36 with 8 chains and 3.18 with 4 chains." in caption
    assert "8 chains (N(0, I), D = 10), 4 chains (N(0, I), D = 100), ± one standard error" in caption


def test_effective_samples_with_and_without_noise_are_compared_where_neither_is_biased():
    more = {"time": 2.0, "time_without": [2.0, 2.01, 1.99, 2.0]}
    found = [
        acceptance_record(10, **more),
        acceptance_record(100),
        acceptance_record(1000, square=FAR, **more),
    ]
    said = acceptance_findings(found, 0.7)[-1]
    assert "raised the effective sample size in 1 of 2 comparisons and lowered it in 0" in said


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
