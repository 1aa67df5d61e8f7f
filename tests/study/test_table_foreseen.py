"""Predictions of tuners against measurements: the tables of theory and horizons, and the study of horizons."""

import copy
import math

import numpy as np
import pytest
from artifact_records import cells_by, make_records
from sgtune.study.report.layout import DASH, NO_ARM, NOT_TRUSTED
from small_models import small_logistic_model

from sgtune import CostTable, metrics
from sgtune.mode.find import map_position
from sgtune.study.experiments import horizons
from sgtune.study.experiments.horizons import AHEAD, compare_horizons
from sgtune.study.experiments.regret import run_arms
from sgtune.study.pipeline.parts import Parts
from sgtune.study.report import TABLES
from sgtune.study.report.records import foreseen_of


@pytest.fixture(scope="module")
def records():
    return make_records(2, ("logistic",))


def test_the_measured_error_is_the_root_mean_square_of_fresh_runs_as_long_as_planned(records):
    cells = cells_by(TABLES["theory"](records), "sampler", "metric")
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
    nuts = next(
        one for one in records["reference"] if one["model"] == "logistic" and "monte_carlo_error" in one
    )
    expected = math.hypot(0.2, nuts["monte_carlo_error"]["xi_white"])
    assert expected > 0.2
    assert (ratio.value, ratio.se) == (pytest.approx(error / expected), pytest.approx(se / expected))
    # The arm, here the heuristic's, diverges with SGHMC.
    assert cells["sghmc", "measured_x100"].shown == "diverged"


def test_what_was_not_run_as_long_or_is_not_known_is_a_dash(records):
    other = copy.deepcopy(records)
    other["settings"][0]["configuration"]["mamba"]["horizon"] = 7
    cells = cells_by(TABLES["theory"](other), "sampler", "metric")
    assert cells["sgld", "measured_x100"].shown == DASH
    for record in other["regret"]:
        record["trusted"] = False
    cells = cells_by(TABLES["theory"](other), "sampler", "metric")
    assert cells["sgld", "measured_over_foreseen"].shown == NOT_TRUSTED
    for record in other["tuning"]:
        record["best"] = None
    cells = cells_by(TABLES["theory"](other), "sampler", "metric")
    assert cells["sgld", "foreseen_x100"].shown == NO_ARM


def test_choices_for_short_runs_are_held_against_that_for_the_longest(records):
    cells = cells_by(TABLES["horizons"](records), "tuner", "detail", "metric")
    # Errors of 0.2 and 0.3 in two runs, and of half as much.
    assert cells["mamba", "1 s", "xi_white_x100"].value == pytest.approx(25)
    assert cells["mamba", "10 s", "xi_white_x100"].value == pytest.approx(12.5)
    assert cells["mamba", "1 s", "xi_white_x100"].se == pytest.approx(5)
    assert cells["mamba", "1 s", "over_longest"].value == pytest.approx(2)
    # In every run twice as much.
    assert cells["mamba", "1 s", "over_longest"].se == pytest.approx(0, abs=1e-12)
    for tuner, seconds in (("mamba", "10 s"), ("theory", "1 s"), ("theory", "10 s")):
        assert cells[tuner, seconds, "over_longest"].value == 1
        assert cells[tuner, seconds, "over_longest"].shown == "1.00"
    # Also in the paper's error.
    assert cells["mamba", "1 s", "over_longest_xi"].value == pytest.approx(2)
    assert cells["mamba", "10 s", "log10_step_size"].value == pytest.approx(-6)


def test_the_value_of_an_arm_is_that_of_the_last_rung_that_has_it():
    rows = [{"step_size": h, "rung": n, "discrepancy": h + n} for n in (1, 2) for h in (3, 4)]
    assert foreseen_of({"step_size": 3}, rows) == 5
    assert foreseen_of({"step_size": 9}, rows) is None


@pytest.fixture
def small(tmp_path):
    model = small_logistic_model(n_data=200)
    mode = np.asarray(map_position(model))
    draws = mode + 0.1 * np.random.default_rng(0).standard_normal((400, len(mode)))
    settings = {
        "grids": {"log10_step_sizes": [-3, -4, -5], "batch_fractions": [0.1], "n_leapfrogs": [2]},
        "tuning": {"replicates": 1, "validation_fraction": 0},
        "mamba": {"seconds": 0.05, "horizon": None, "pruning_rate": 3, "clock": "wall", "thin": None}
        | {"points": 20, "score_fraction": 1, "score_rows": 50},
        "horizons": {"seconds": [0.05, 0.2], "samplers": ["sgld"], "replicates": 2},
    }
    common = {
        "reference": metrics.Reference(sd=draws.std(axis=0), covariance=np.cov(draws.T)),
        **{"cost": CostTable({("sgld", 20, None): 1e-3}), "seed": 0, "inputs": {}},
    }
    return model, settings, common, tmp_path


def test_every_choice_is_run_for_the_longest_horizon(small, monkeypatch):
    model, settings, common, folder = small
    record = compare_horizons(model, settings, parts=Parts(folder), **common)
    (own,) = record["samplers"]
    assert [(one["tuner"], one["horizon"]) for one in own["chosen"]] == [
        (tuner, seconds) for tuner in AHEAD for seconds in (0.05, 0.2)
    ]
    assert {one["arm"] for one in own["chosen"]} == set(range(len(own["arms"])))
    # The seconds buy 50 and 200 steps.
    assert {(run["seconds"], run["steps"]) for run in own["runs"]} == {(0.05, 50), (0.2, 200)}
    assert len(own["runs"]) == 2 * len(own["arms"])
    # Longer runs of a stable arm have smaller predicted errors.
    foreseen = {(one["tuner"], one["horizon"]): one["foreseen"] for one in own["chosen"]}
    assert foreseen["theory", 0.2] < foreseen["theory", 0.05]
    # Existing results are not made again.
    monkeypatch.setattr(horizons, "tune", None)
    monkeypatch.setattr(horizons, "run_arms", None)
    assert compare_horizons(model, settings, parts=Parts(folder), **common) == record


def test_a_killed_comparison_of_horizons_loses_one_replicate(small, monkeypatch):
    model, settings, common, folder = small
    whole = compare_horizons(model, settings, parts=Parts(folder / "whole"), **common)
    ran = []

    def killed_in_the_second(*arguments, replicate, **options):
        if ran:
            raise KeyboardInterrupt
        ran.append(replicate)
        return run_arms(*arguments, replicate=replicate, **options)

    monkeypatch.setattr(horizons, "run_arms", killed_in_the_second)
    with pytest.raises(KeyboardInterrupt):
        compare_horizons(model, settings, parts=Parts(folder / "killed"), **common)
    monkeypatch.setattr(horizons, "tune", None)

    def rest(*arguments, replicate, **options):
        ran.append(replicate)
        return run_arms(*arguments, replicate=replicate, **options)

    monkeypatch.setattr(horizons, "run_arms", rest)
    assert compare_horizons(model, settings, parts=Parts(folder / "killed"), **common) == whole
    assert ran == ["horizons 0", "horizons 1"]
