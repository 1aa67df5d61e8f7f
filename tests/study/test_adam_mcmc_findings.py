"""The findings of AdamMCMC's study: which differences are claimed, of which chains, and in which words."""

# ruff: noqa: RUF001 - tables print signs of mathematics

import numpy as np
from adam_mcmc_records import FAR, NEAR, acceptance_record, bias_of, bias_record

from sgtune.study.adam_mcmc.acceptance_table import adam_acceptance
from sgtune.study.adam_mcmc.bias_findings import bias_findings
from sgtune.study.adam_mcmc.findings import acceptance_findings
from sgtune.study.adam_mcmc.prolate_tables import adam_prolate


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
    assert "In 2 of these 3 cases both sets of chains have settled, and E x² of neither is clearly" in said
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


def test_rates_of_chains_that_have_not_settled_have_a_mark_in_the_sentence_on_dimensions():
    slow = acceptance_record(100, jump=[1e-4] * 4)
    said = acceptance_findings([acceptance_record(10), slow], 0.7)
    (line,) = [line for line in said if line.startswith("Without noise along the update")]
    assert "0.51 at D = 10 (" in line
    assert "0.51 * at D = 100 (" in line
    assert line.endswith(
        "*: these chains are stuck or too slow, and their rates may still be those of their starts."
    )


def test_gains_of_chains_that_have_settled_are_said_for_every_dimension():
    small = acceptance_record(100)
    small["cells"][1]["acceptance"] = [rate + 0.1 for rate in small["cells"][0]["acceptance"]]
    found = [acceptance_record(10), small, acceptance_record(1000, jump=[1e-4] * 4)]
    (line,) = [line for line in acceptance_findings(found, 0.7) if line.startswith("The gain of chains")]
    assert "at s √T = 0.7: for γ / s = 0.1 and s_d = 1 it is +0." in line
    assert "at D = 10 and +0.1000 ± " in line
    assert line.endswith("at D = 100.")
    assert not any("The gain of chains" in line for line in acceptance_findings(found[1:], 0.7))


def test_acceptance_is_said_for_every_dimension():
    usable = acceptance_record(10)
    usable["cells"][0]["acceptance"] = [0.31, 0.32] * 2
    said = acceptance_findings([usable, acceptance_record(100, square=FAR)], 0.7)
    (line,) = [line for line in said if line.startswith("Without noise along the update")]
    assert "of at least 0.3 is 0.1 at D = 10 and none at D = 100." in line
    assert line.endswith(
        "0.51 at D = 10 (E x² over the run: 0.99) and 0.51 at D = 100 (E x² over the run: 0.81)."
    )


def test_effective_samples_with_and_without_noise_are_compared_where_neither_is_biased():
    more = {"time": 2.0, "time_without": [2.0, 2.01, 1.99, 2.0]}
    found = [
        acceptance_record(10, **more),
        acceptance_record(100),
        acceptance_record(1000, square=FAR, **more),
    ]
    said = acceptance_findings(found, 0.7)[-1]
    assert "raised it in 1 of 2 comparisons and lowered it in 0" in said
    assert said.endswith("No comparison is possible on: N(0, I), D = 1,000.")


def at_scale(record, scale, **of_noisy):
    """The cells of ``record`` at another s, where the chain with noise along the update differs."""
    plain, noisy = ({**cell, "scale": scale} for cell in record["cells"][:2])
    return [plain, {**noisy, **of_noisy}]


def test_effective_samples_are_compared_at_one_s():
    """At s = 0.7 both have 2,000 of 10,000 steps; at 1.4 only the chain without the noise has an estimate, of more."""
    record = acceptance_record(10)
    cells = at_scale(record, 1.4, square=FAR)
    cells[0] |= {"time": 1.0, "time_without": [1.0, 1.01, 0.99, 1.0]}
    record["cells"] += cells
    assert "raised it in 0 of 1 comparison and lowered it in 0" in acceptance_findings([record], 0.7)[-1]


def test_the_size_of_the_gain_is_of_all_s_and_of_chains_that_have_settled():
    record = acceptance_record(10)
    more = [0.8, 0.81, 0.8, 0.81]
    record["cells"] += at_scale(record, 1.4, acceptance=more, square=FAR)
    record["cells"] += at_scale(record, 2.8, acceptance=[0.9] * 4, jump=[1e-4] * 4)
    said = " ".join(acceptance_findings([record], 0.7))
    assert "raised the acceptance rate in 1 of 1 comparison" in said
    assert "At all 3 values of s it raised the rate in 3 of 3 comparisons and lowered it in 0." in said
    assert "Both sets of chains have settled in 2 of the 3 cases with a gain, which goes from +0.3000" in said
    assert (
        "to +0.6000 ± 0.0041 (N(0, I), D = 10, γ / s = 0.1, s √T = 1.4; E x² is 0.995 ± 0.010 without and "
        "0.8100 ± 0.0041 with the noise)." in said
    )
