"""The errors that theory predicts beside measured ones, choices for several horizons, the ladder of Gaussians and the
sensitivity of discrepancies."""

import math
from dataclasses import replace

import numpy as np
import pytest
from artifact_records import cells_by, make, make_records

from sgtune.study.mamba.artifacts import JUDGES
from sgtune.study.report.table import AT_CAP, DASH, NO_ARM, NOT_TRUSTED


@pytest.fixture
def records():
    return make_records(2, ("logistic",))


METRICS = ("xi_white_x100", "predicted_x100", "over_longest", "over_longest_xi")


def cells_of_theory(records):
    return cells_by(make("theory", records), "sampler", "metric")


def test_the_measured_error_is_the_root_mean_square_of_fresh_runs_as_long_as_planned(records):
    cells = cells_of_theory(records)
    record = next(one for one in records["regret"] if one["sampler"] == "sgld")
    place = next(one["arms"][0] for one in record["chosen"] if one["tuner"] == "theory")
    run = next(one for one in record["runs"] if (one["arm"], one["seconds"]) == (place, 1))
    squares = np.array(run["losses"]["xi_white"]) ** 2
    error = math.sqrt(squares.mean())
    se = squares.std(ddof=1) / math.sqrt(len(squares)) / (2 * error)
    measured, ratio = cells["sgld", "measured_x100"], cells["sgld", "measured_over_predicted"]
    assert cells["sgld", "predicted_x100"].value == pytest.approx(20)
    assert (measured.value, measured.se) == pytest.approx((100 * error, 100 * se))
    # The reference's own error is in what is measured, so it is in what is expected, too.
    [nuts] = [one for one in records["reference"] if "monte_carlo_error" in one]
    expected = math.hypot(0.2, nuts["monte_carlo_error"]["xi_white"])
    assert expected > 0.2
    assert (ratio.value, ratio.se) == pytest.approx((error / expected, se / expected))
    # The arm, here the heuristic's, diverges with SGHMC.
    assert cells["sghmc", "measured_x100"].shown == "diverged"


def test_the_prediction_is_that_of_the_chosen_arms_last_rung(records):
    for one in records["tuning"]:
        if one["tuner"] == "theory":
            one["rungs"] += [{"rung": 2} | one["best"] | {"discrepancy": 0.1}]
    assert cells_of_theory(records)["sgld", "predicted_x100"].value == pytest.approx(10)


def test_what_was_not_run_as_long_or_has_no_such_loss_or_is_not_known_has_no_number(records):
    mamba = records["settings"][0]["configuration"]["mamba"]
    mamba["horizon"] = 7
    assert cells_of_theory(records)["sgld", "measured_x100"].shown == DASH
    mamba["horizon"] = None
    for record in records["regret"]:
        record["losses"] = ["relative_sd_error"]
    cells = cells_of_theory(records)
    assert cells["sgld", "predicted_x100"].value == pytest.approx(20)
    assert cells["sgld", "measured_x100"].shown == cells["sgld", "measured_over_predicted"].shown == DASH
    for record in records["regret"]:
        record["trusted"] = False
    assert cells_of_theory(records)["sgld", "measured_over_predicted"].shown == NOT_TRUSTED
    for record in records["tuning"]:
        record["best"] = None
    assert cells_of_theory(records)["sgld", "predicted_x100"].shown == NO_ARM


@pytest.mark.parametrize(("diverged", "ending"), [(False, ""), (True, " (3/4)")])
def test_an_error_at_the_cap_is_a_lower_bound_whether_the_run_diverged_or_not(records, diverged, ending):
    for run in (run for record in records["regret"] for run in record["runs"]):
        run["losses"]["xi_white"][1], run["diverged"][1] = 10.0, diverged
    measured = cells_of_theory(records)["sgld", "measured_x100"]
    assert measured.shown == f"≥ {replace(measured, text=None, finite=4).shown}{ending}"


def test_choices_for_short_runs_are_held_against_that_for_the_longest(records):
    cells = cells_by(make("horizons", records), "tuner", "detail", "metric")
    short, long = ({metric: cells["mamba", at, metric] for metric in METRICS} for at in ("1 s", "10 s"))
    # Errors of 0.2 and 0.3 in two runs, and of half as much; in every run twice as much.
    assert [short[metric].value for metric in METRICS] == pytest.approx([25, 25, 2, 2])
    assert [short[metric].se for metric in METRICS[::2]] == pytest.approx([5, 0], abs=1e-12)
    assert short["over_longest_xi"].se == pytest.approx(0, abs=1e-12)
    assert long["xi_white_x100"].value == pytest.approx(12.5)
    for at in (("mamba", "10 s"), ("theory", "1 s"), ("theory", "10 s")):
        assert (cells[*at, "over_longest"].value, cells[*at, "over_longest"].se) == (1, None)
    assert cells["mamba", "10 s", "log10_step_size"].value == pytest.approx(-6)


def test_nothing_is_held_against_a_choice_at_the_cap_and_without_a_trusted_reference_there_is_no_error(
    records,
):
    [record] = records["horizons"]
    [longest] = [one for one in record["samplers"][0]["runs"] if (one["arm"], one["seconds"]) == (1, 10)]
    longest["losses"]["xi_white"][0] = 10.0
    cells = cells_by(make("horizons", records), "tuner", "detail", "metric")
    for at in ("1 s", "10 s"):
        assert cells["mamba", at, "over_longest"].shown == AT_CAP
        assert cells["mamba", at, "over_longest_xi"].value is not None
    assert cells["mamba", "10 s", "xi_white_x100"].shown.startswith("≥ ")
    record["trusted"] = False
    cells = cells_by(make("horizons", records), "tuner", "detail", "metric")
    assert cells["mamba", "1 s", "xi_white_x100"].shown == NOT_TRUSTED
    assert ("mamba", "1 s", "over_longest") not in cells


def cells_of(records, detail, tuner):
    found = make("gaussian_ladder", records)
    return {cell.metric: cell for cell in found if (cell.detail, cell.tuner) == (detail, tuner)}


def test_expected_errors_by_hand(records):
    own = cells_of(records, "rotated, D = 10", "mamba-ksd")
    # Errors of 0.2 and 0.4; the oracle's is 0.2, the grid's least 0.16.
    assert (own["ladder_error"].value, own["ladder_error"].se) == pytest.approx((0.3, 0.1))
    assert (own["ladder_over_oracle"].value, own["ladder_over_oracle"].se) == pytest.approx((1.5, 0.5))
    others = ("worst", "over_smallest", "marginal", "escaped", "frozen")
    values = [own[f"ladder_{name}"].value for name in others]
    assert values == pytest.approx([2, 0.3 / 0.16, 0.15, 0, 0])


def test_arms_that_escaped_or_are_frozen_are_counted_and_mark_their_means(records):
    own = cells_of(records, "rotated, D = 100", "mamba-ksd-scaled")
    assert (own["ladder_escaped"].shown, own["ladder_frozen"].shown) == ("1", "1")
    assert own["ladder_worst"].shown == "≥ 50.0"
    assert own["ladder_over_oracle"].value == pytest.approx((50 + 0.95 / 0.2) / 2)
    assert all(own[name].shown.startswith("≥ ") for name in ("ladder_error", "ladder_over_oracle"))
    # The oracle is its own reference.
    oracle = cells_of(records, "rotated, D = 100", "oracle")
    assert (oracle["ladder_over_oracle"].value, oracle["ladder_worst"].value) == (None, None)
    assert oracle["ladder_over_smallest"].value == pytest.approx(1.25)


def test_samplers_are_pooled_and_one_race_has_no_standard_error(records):
    for own in (own for record in records["ladder"] for own in record["gaussians"]):
        own["runs"] = [run for run in own["runs"] if run["replicate"] == 1]
    own = cells_of(records, "rotated, D = 10", "mamba-ksd")
    assert (own["ladder_error"].value, own["ladder_error"].se) == (0.4, None)
    [record] = [one for one in records["ladder"] if one["dimension"] == 10]
    record["gaussians"] += [
        own | {"sampler": "sghmc", "runs": [run | {"error": 0.2} for run in own["runs"]]}
        for own in record["gaussians"]
    ]
    own = cells_of(records, "rotated, D = 10", "mamba-ksd")
    assert (own["ladder_error"].value, own["ladder_error"].se) == pytest.approx((0.3, 0.1))


def test_signals_of_both_widths_by_dimension_and_points(records):
    found = make("signal_of_width", records)
    assert len(found) == 2 * 2 * len(JUDGES) * 4
    cells = cells_by(found, "metric", "detail")
    for metric, detail, value in (
        ("square_signal", "psd, width 0.5, D = 10, n = 500", 250),
        ("value_signal", "ksd, width 0.5, D = 1000, n = 100", -5),
        ("value_signal", "ksd_wide, width 1.5, D = 1000, n = 100", 2.5),
        ("square_signal", "fssd, width 1.5, D = 10, n = 15", 0),
    ):
        assert (cells[metric, detail].value, cells[metric, detail].se) == pytest.approx((value, 0.3))
