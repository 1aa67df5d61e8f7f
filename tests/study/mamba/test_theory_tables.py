"""The errors that theory predicts beside measured ones, and choices for several horizons."""

import copy
import math

import numpy as np
import pytest
from artifact_records import cells_by, make, make_records

from sgtune.study.report.table import DASH, NO_ARM, NOT_TRUSTED


@pytest.fixture(scope="module")
def records():
    return make_records(2, ("logistic",))


def cells_of_theory(records):
    return cells_by(make("theory", records), "sampler", "metric")


def test_the_measured_error_is_the_root_mean_square_of_fresh_runs_as_long_as_planned(records):
    cells = cells_of_theory(records)
    record = next(one for one in records["regret"] if one["sampler"] == "sgld")
    place = next(one["arms"][0] for one in record["chosen"] if one["tuner"] == "theory")
    run = next(one for one in record["runs"] if one["arm"] == place and one["seconds"] == 1)
    squares = np.array(run["losses"]["xi_white"]) ** 2
    error = math.sqrt(squares.mean())
    se = squares.std(ddof=1) / math.sqrt(len(squares)) / (2 * error)
    assert cells["sgld", "foreseen_x100"].value == pytest.approx(20)
    assert cells["sgld", "measured_x100"].value == pytest.approx(100 * error)
    assert cells["sgld", "measured_x100"].se == pytest.approx(100 * se)
    ratio = cells["sgld", "measured_over_foreseen"]
    # The reference's own error is in what is measured, so it is in what is expected, too.
    [nuts] = [one for one in records["reference"] if "monte_carlo_error" in one]
    expected = math.hypot(0.2, nuts["monte_carlo_error"]["xi_white"])
    assert expected > 0.2
    assert (ratio.value, ratio.se) == (pytest.approx(error / expected), pytest.approx(se / expected))
    # The arm, here the heuristic's, diverges with SGHMC.
    assert cells["sghmc", "measured_x100"].shown == "diverged"


def test_the_prediction_is_that_of_the_chosen_arms_last_rung(records):
    records = copy.deepcopy(records)
    for one in records["tuning"]:
        if one["tuner"] == "theory":
            one["rungs"] += [{"rung": 2} | one["best"] | {"discrepancy": 0.1}]
    assert cells_of_theory(records)["sgld", "foreseen_x100"].value == pytest.approx(10)


def test_what_was_not_run_as_long_or_is_not_known_has_no_number(records):
    records = copy.deepcopy(records)
    records["settings"][0]["configuration"]["mamba"]["horizon"] = 7
    assert cells_of_theory(records)["sgld", "measured_x100"].shown == DASH
    for record in records["regret"]:
        record["trusted"] = False
    assert cells_of_theory(records)["sgld", "measured_over_foreseen"].shown == NOT_TRUSTED
    for record in records["tuning"]:
        record["best"] = None
    assert cells_of_theory(records)["sgld", "foreseen_x100"].shown == NO_ARM


def test_choices_for_short_runs_are_held_against_that_for_the_longest(records):
    cells = cells_by(make("horizons", records), "tuner", "detail", "metric")
    # Errors of 0.2 and 0.3 in two runs, and of half as much.
    assert cells["mamba", "1 s", "xi_white_x100"].value == pytest.approx(25)
    assert cells["mamba", "10 s", "xi_white_x100"].value == pytest.approx(12.5)
    assert cells["mamba", "1 s", "xi_white_x100"].se == pytest.approx(5)
    assert cells["mamba", "1 s", "foreseen_x100"].value == pytest.approx(25)
    for metric in ("over_longest", "over_longest_xi"):
        assert cells["mamba", "1 s", metric].value == pytest.approx(2)
        # In every run twice as much.
        assert cells["mamba", "1 s", metric].se == pytest.approx(0, abs=1e-12)
    for tuner, seconds in (("mamba", "10 s"), ("theory", "1 s"), ("theory", "10 s")):
        assert cells[tuner, seconds, "over_longest"].value == 1
        assert cells[tuner, seconds, "over_longest"].se is None
    assert cells["mamba", "10 s", "log10_step_size"].value == pytest.approx(-6)
