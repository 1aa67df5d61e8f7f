"""The tables and figures of AdamMCMC's study, from small records."""

# ruff: noqa: RUF001 - tables print signs of mathematics

import numpy as np
import pytest

from sgtune.study.adam_mcmc.acceptance_figure import adam_acceptance_curves
from sgtune.study.adam_mcmc.acceptance_table import adam_acceptance
from sgtune.study.adam_mcmc.bias_table import VARIANTS as LABELS
from sgtune.study.adam_mcmc.bias_table import adam_bias
from sgtune.study.adam_mcmc.cost_table import adam_costs
from sgtune.study.adam_mcmc.distance_findings import distance_findings
from sgtune.study.adam_mcmc.evaluation_table import adam_evaluation, adam_predictions
from sgtune.study.adam_mcmc.findings_table import adam_findings
from sgtune.study.adam_mcmc.prolate_tables import adam_efficiency, adam_prolate
from sgtune.study.adam_mcmc.races import judges_for
from sgtune.study.adam_mcmc.regret_table import adam_choices, adam_regret
from sgtune.study.adam_mcmc.theory_figures import VARIANTS, adam_bias_curves, adam_distances
from sgtune.study.adam_mcmc.verdicts import estimate_text, rate_text
from sgtune.support.axes import named

ARM = {"step_size": 0.1, "batch_size": 1, "n_leapfrog": None}


def acceptance(dimension, *, with_noise):
    rates = {0: [0.2, 0.3, 0.2, 0.3], 1: with_noise}
    return {
        **{"target": f"gaussian-{dimension}", "dimension": dimension, "warmup": 10},
        "cells": [
            {
                **{"drift_ratio": 0.1, "directional_noise": along, "scale": scale, "arm": ARM},
                "steps": 10_000 if scale == 0.7 else 500,
                **{
                    "acceptance": rates[along],
                    "time": 5.0,
                    "time_without": [5.0, 5.0, 5.0, None if along else 5.0],
                },
                **{"square": [0.9, 1.1, 0.9, 1.1], "jump": [0.02, 0.04, 0.02, 0.04]},
            }
            for along in (0, 1)
            for scale in (0.7, 1.4)
        ],
    }


@pytest.fixture
def records():
    return {
        "acceptance": [acceptance(1000, with_noise=[0.8, 0.6] * 2), acceptance(10, with_noise=[0.25] * 4)],
        "costs": [{"seconds_per_step": {"gaussian-10": 0.001, "gaussian-1000": 0.01}}],
    }


def test_gain_is_the_difference_with_its_standard_error(records):
    table = adam_prolate(records)
    rows = table.rows
    assert [row.labels[0] for row in rows] == ["N(0, I), D = 10", "N(0, I), D = 1,000"]
    gains = [row.cells[2] for row in rows]
    assert gains[0].text == "+0.000 ± 0.029"
    assert "raised the acceptance rate in 1 of 2 comparisons and lowered it in 0" in table.caption
    assert "10,000 after 10 of warm-up (N(0, I), D = 10; N(0, I), D = 1,000)." in table.caption
    assert gains[1].value == pytest.approx(0.45)
    assert gains[1].se == pytest.approx(((0.05**2 + 0.1**2) / 3) ** 0.5)


def test_ess_is_of_measured_seconds_and_none_where_a_chain_was_too_slow(records):
    small, large = adam_efficiency(records).rows
    assert small.cells[2].value == pytest.approx(1 / (5 * 0.001))
    assert large.cells[2].value == pytest.approx(1 / (5 * 0.01))
    assert small.cells[3].shown == "– (too slow)"
    assert small.cells[0].value == pytest.approx(0.03 / 0.001)
    assert small.cells[4].text in ("0.7", "1.4")
    assert small.cells[5].text is None


def test_ess_is_at_the_s_that_gives_the_most_and_has_the_error_of_the_jackknife(records):
    for record in records["acceptance"]:
        for cell in record["cells"]:
            time = 5.0 if cell["scale"] == 0.7 else 2.0
            cell |= {"time": time, "time_without": [time, time, 0.8 * time, time], "square": [1.0] * 4}
            cell["steps"] = 10_000
    small, _ = adam_efficiency(records).rows
    assert [cell.text for cell in small.cells[4:]] == ["1.4", "1.4"]
    # Pseudo-values of 1 / 2: 0.5 three times, and 4 x 0.5 - 3 / 1.6.
    pseudo = np.array([0.5, 0.5, 2 - 3 / 1.6, 0.5]) / 0.001
    assert small.cells[2].value == pytest.approx(pseudo.mean())
    assert small.cells[2].se == pytest.approx(pseudo.std(ddof=1) / 2)


def test_several_values_of_the_noise_along_the_update_are_labels(records):
    assert adam_prolate(records).stub == ("Target", "γ / s")
    assert adam_prolate(records).columns[1] == ("Acceptance", "s_d = 1")
    for record in records["acceptance"]:
        more = [dict(c, directional_noise=3) for c in record["cells"] if c["directional_noise"] == 1]
        record["cells"] += more
    table = adam_prolate(records)
    assert table.stub == ("Target", "γ / s", "s_d")
    assert table.columns[1] == ("Acceptance", "with s_d")
    assert [row.labels[2] for row in table.rows] == ["1", "3"] * 2


@pytest.mark.parametrize(
    ("changes", "square", "ess"),
    [
        ({"acceptance": [0.0, 1e-5], "square": [1.0, 1.1]}, "– (stuck)", "– (stuck)"),
        ({"square": [0.50, 0.52] * 2}, "0.5100 ± 0.0058", "– (biased)"),
        ({"jump": [0.0019] * 4}, "– (too slow)", "– (too slow)"),
        ({"halves": [[1.0] * 4, [1.3, 1.31, 1.32, 1.3]]}, "– (too slow)", "– (too slow)"),
    ],
)
def test_stuck_and_biased_draws_have_no_misleading_numbers(records, changes, square, ess):
    for record in records["acceptance"]:
        for cell in record["cells"]:
            cell |= {"time": 5.0, "time_without": [5.0] * 4, **changes}
    (row, _) = adam_prolate(records).rows
    assert row.cells[3].shown == square
    (row, _) = adam_efficiency(records).rows
    assert row.cells[2].shown == ess
    assert adam_acceptance_curves(records).axes


def test_standard_errors_have_two_digits_and_unseen_rates_a_bound():
    assert estimate_text(1.0234, 0.0004) == "1.0234 ± 0.0004"
    assert estimate_text(0.14454555, 9e-7) == "0.14455 ± <0.00001"
    assert estimate_text(12_345.0, 210.0) == "12,340 ± 210"
    assert estimate_text(-1e-5, 2e-6) == "(−1.00 ± 0.20) × 10⁻⁵"
    assert estimate_text(1.0, None) is estimate_text(1.0, 1e-16) is None
    assert estimate_text(0.4439, 0.0018, signed=True) == "+0.4439 ± 0.0018"
    assert rate_text([0.0, 0.0], 40_000) == "< 2.5 × 10⁻⁵"
    assert rate_text([0.2, 0.4], 40_000) == "0.30 ± 0.10"


def test_acceptance_has_a_column_per_scale(records):
    table = adam_acceptance(records)
    assert [heading for _, heading in table.columns] == ["0.7", "1.4"]
    assert len(table.rows) == 4
    assert (
        "10,000 after 10 of warm-up (N(0, I), D = 10 and s √T = 0.7; N(0, I), D = 1,000 and s √T = 0.7), "
        "500 after 10 of warm-up (N(0, I), D = 10 and s √T = 1.4;" in table.caption
    )
    assert adam_acceptance_curves(records).axes


def test_bias_stands_beside_its_acceptance():
    assert {name: label for name, (label, *_) in VARIANTS.items()} == LABELS
    cells = [
        {"variant": variant, "dimension": 2, "ratio": ratio, "squares": [0.9, 1.1], "acceptance": [0.5, 0.7]}
        for variant in ("prolate", "exact")
        for ratio in (0.1, 1.0)
    ]
    found = {"bias": [{"scale": 0.7, "steps": 10, "warmup": 1, "chains": 2, "cells": cells}]}
    table = adam_bias(found)
    assert table.rows[0].labels == ("D = 2", "s_d = 1", "E x²")
    assert table.rows[0].cells[0].value == pytest.approx(1.0)
    assert table.rows[1].cells[0].value == pytest.approx(0.6)
    assert adam_bias_curves(found).axes


def test_lines_of_distances_say_their_rates():
    fit = {"rate": 0.5, "constant": 1.0, "first": 1, "last": 2, "misfit": 0.0}
    lines = [
        {
            "name": "mala",
            "steps": [0, 1, 2],
            "distances": [1.0, 0.5, 0.25],
            "fit": fit,
            "chains": 20,
            "floor": 0.01,
        }
    ]
    lines += [{"name": "adam-mcmc", "steps": [0, 1, 2], "distances": [1.0, 0.9, 0.9], "fit": None}]
    figure = adam_distances({"distances": [{"floor": 0.01, "lines": lines}]})
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert texts == [
        "MALA: 0.500 a step\n(steps 1 to 2, at most 0% off)",
        "AdamMCMC, γ / s = 0.1",
        "20 exact draws",
    ]


def test_a_curve_that_is_not_straight_has_no_rate():
    fit = {"rate": 0.5, "constant": 1.0, "first": 1, "last": 3, "misfit": 0.2}
    lines = [{"name": "mala", "steps": [0, 1, 2], "distances": [1.0, 0.5, 0.25], "plateau": 0.25, "fit": fit}]
    found = {"floor": 0.01, "lines": lines}
    texts = [text.get_text() for text in adam_distances({"distances": [found]}).legends[0].get_texts()]
    assert texts == ["MALA"]
    (line,) = distance_findings(found, {"mala": "MALA"})
    assert line == "MALA: no rate; the curve is up to a factor of 1.2 off a line."


def race(judge, replicate, step_size):
    best = {"step_size": step_size, "batch_size": 10, "n_leapfrog": None}
    return {"judge": judge, "replicate": replicate, "best": best, "n_arms": 2, "reason": ""}


def races():
    losses = {0: [0.1, 0.1, 0.1], 1: [0.2, 0.22, 0.18]}
    return {
        **{"model": "logistic", "sampler": "mala", "n_data": 100, "seconds": 1.0, "trusted": True},
        "races": [race("mamba", 0, 1e-5), race("acceptance", 0, 1e-4)],
        "regret": {
            "losses": ["relative_sd_error"],
            "arms": [{"step_size": 1e-5}, {"step_size": 1e-4}],
            "finalists": {"relative_sd_error": [0, 1]},
            "chosen": [{"tuner": "mamba", "arms": [0]}, {"tuner": "acceptance", "arms": [1]}],
            "oracles": {"relative_sd_error": [0]},
            "random": [1],
            "frozen": {"relative_sd_error": 1.0},
            "runs": [
                {"arm": arm, "seconds": 2.0, "steps": 5, "diverged": [False] * 3}
                | {"losses": {"relative_sd_error": values}, "acceptance": [0.5 * arm] * 3}
                for arm, values in losses.items()
            ],
        },
    }


def test_regret_is_over_the_best_arm():
    table = adam_regret({"races": [races()]})
    values = {row.labels[1]: row.cells[0].value for row in table.rows}
    assert values["Best arm, its own error"] == pytest.approx(10.0)
    assert (values["MAMBA (default)"], values["Acceptance"]) == (pytest.approx(1.0), pytest.approx(2.0))
    assert values["Frozen chain"] == pytest.approx(10.0)
    assert "not to be trusted" not in table.caption
    # The mean of the ratio is 2, and its standard error from three runs is 0.12.
    assert "MALA, ξ(σ̂): the error of the arms chosen by |acceptance − optimum|" in table.caption
    assert "larger, by t intervals that together hold with 95%" in table.caption
    chosen = adam_choices({"races": [races()]}).rows
    assert chosen[0].cells[0].text == "h=1e-05 n=10"


def test_arms_that_accepted_nothing_are_called_stuck():
    rows = {row.labels[1]: row.cells[-1].shown for row in adam_regret({"races": [races()]}).rows}
    assert (rows["MAMBA (default)"], rows["Acceptance"]) == ("stuck", "50")
    assert (
        "MALA: MAMBA (default) chose an arm that accepted nothing"
        in adam_regret({"races": [races()]}).caption
    )
    found = races()
    found["races"][0]["warnings"] = ["mala: no proposal was accepted for 60 steps in a row, at h=1; try less"]
    caption = adam_choices({"races": [found]}).caption
    arm = named(found["races"][0]["best"])
    assert f"MALA, MAMBA (default): in 1 race the choice ({arm}) accepted nothing for many steps" in caption
    assert caption.endswith("; try less.")


def test_samplers_stand_beside_the_map():
    rows = [
        {"replicate": i, "n_samples": 100, "accuracy": 0.9 + 0.01 * i, "log_loss": 0.3, "ksd": 2.0}
        for i in range(3)
    ]
    record = {
        **{"model": "bnn", "sampler": "adam-mcmc", "tuner": "mamba", "best": {"step_size": 0.1}},
        **{"arms": [{"step_size": 0.1}], "table": rows, "seconds": 5.0, "race_seconds": 1.0},
        "map": {"accuracy": 0.8},
    }
    record["arms"] = [{"step_size": 0.1, "batch_size": 6}, {"step_size": 0.2, "batch_size": 6}]
    records = {"evaluations": [record]}
    assert "h=0.1 n=6 (race 1), h=0.2 n=6 (race 2)" in adam_evaluation(records).caption
    table = adam_predictions(records)
    (own, mode), place = table.rows, [heading for _, heading in table.columns].index("Pred. acc. (%)")
    assert own.labels[1] == "AdamMCMC"
    assert own.cells[place].value == pytest.approx(91.0)
    assert mode.cells[place].value == pytest.approx(80.0)


def test_costs_are_in_steps_of_sgld(records):
    arm = {"step_size": 0.1, "batch_size": 6, "n_leapfrog": None}
    common = {"model": "bnn", "tuner": "mamba", "best": arm, "arms": [arm], "map": {}}
    common |= {"table": [{"replicate": 0, "log_loss": 0.3}], "seconds": 5.0, "race_seconds": 1.0}
    evaluations = [{**common, "sampler": sampler} for sampler in ("adam-mcmc", "sgld")]
    rows = [
        {"sampler": sampler, "batch_size": 6, "n_leapfrog": None, "seconds_per_step": seconds}
        for sampler, seconds in (("adam-mcmc", 0.1), ("sgld", 0.004))
    ]
    costs = [*records["costs"], {"model": "bnn", "n_data": 600, "rows": rows, "warnings": []}]
    table = adam_costs({"evaluations": evaluations, "costs": costs})
    assert [row.cells[1].value for row in table.rows] == [pytest.approx(25.0), pytest.approx(1.0)]
    assert "costs as much as 25 steps of SGLD with the same n." in table.caption
    findings = adam_findings({**records, "evaluations": evaluations, "costs": costs, "races": [races()]})
    assert len(findings.rows) == 3


def test_acceptance_judges_samplers_that_keep_their_target():
    names = ["mamba", "acceptance"]
    assert judges_for("mala", names) == judges_for("hmc", names) == names
    assert judges_for("adam-mcmc", names) == ["mamba"]
