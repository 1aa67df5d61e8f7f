"""The forecast of a run against sums by hand."""

import re
import subprocess
from dataclasses import replace

import pytest
from config_files import ROOT, changed, raw_config
from forecasts import STEP, config_of, costs_of
from workflow_runs import snakemake

from sgtune.study.catalogue import losses_of
from sgtune.study.config.validate import validate_config
from sgtune.study.experiments.screen import RANDOM_ARMS
from sgtune.study.pipeline.forecast import LastRun, forecast, read_costs_of, read_last_run
from sgtune.study.pipeline.forecast.jobs import StudyOfModel
from sgtune.study.pipeline.forecast.run import START_UP
from sgtune.study.pipeline.forecast.seen import (
    DISTINCT,
    FORESEEING,
    FORESEEING_AN_ARM,
    OVERHEAD,
    PREDICTION,
    SCORES,
)
from sgtune.tuning.halving import halving_schedule, single_rung


def last_run(**facts) -> LastRun:
    """An earlier run without overhead and without gain from lockstep."""
    share = {"race": 1.0, "single": 1.0}
    plain = {"lockstep": share, "races": share, "overhead": dict.fromkeys(OVERHEAD, 0.0)}
    return LastRun(**(plain | facts))


def seconds_of(rule: str, config: dict, step: float = 1e-9, **facts) -> list[float]:
    """The seconds of a rule's jobs; by default steps and scores cost nothing."""
    found = forecast(config, {"logistic": costs_of(step)}, {"logistic": last_run(**facts)})
    return next(row.jobs for row in found.rows if row.rule == rule)


def study() -> StudyOfModel:
    return StudyOfModel(config_of(), "logistic", costs_of(), last_run())


def test_a_race_of_cheap_steps_takes_the_budget_of_its_schedule():
    schedule = halving_schedule(9, 3, 1.0)
    seconds, points = study().race(schedule, [1e-6] * 9, at_most=10)
    assert seconds == pytest.approx(schedule.total)
    # Points grow as arms get fewer: 9 arms of 10, 3 of 30.
    assert points == [(90, 10), (90, 30)]


def test_arms_make_ten_steps_at_any_cost():
    schedule = halving_schedule(9, 3, 1.0)
    first, second = (rung.amount for rung in schedule.rungs)
    cheap, expensive = 1e-6, (first + second) / 5
    seconds, points = study().race(schedule, [cheap] * 6 + [expensive] * 3)
    # Expensive arms take twice the budget of both rungs in the first, and make no steps in the second.
    assert seconds == pytest.approx(6 * first + 3 * 2 * (first + second) + 3 * 6 / 9 * second)
    assert study().race(single_rung(4, 100), [0.5] * 4, in_steps=True)[0] == pytest.approx(4 * 100 * 0.5)
    assert points[0][0] >= 90


def test_tuning_is_the_races_of_all_replicates():
    # Six arms, pruned by 3 once: T = 6 R.
    assert seconds_of("tune_sampler", config_of()) == pytest.approx([6.0], rel=1e-3)
    five = config_of(tuning={"replicates": 5, "validation_fraction": 0})
    assert seconds_of("tune_sampler", five) == pytest.approx([30.0], rel=1e-3)
    # All in one rung.
    races = {"race": 3.0, "single": 0.5}
    assert seconds_of("tune_sampler", five, races=races) == pytest.approx([15.0], rel=1e-3)
    by_the_clock = changed(five, mamba__clock="wall")
    assert seconds_of("tune_sampler", by_the_clock, races=races) == pytest.approx([30.0], rel=1e-3)


def test_tuning_scores_its_points_by_all_data():
    seconds = seconds_of("tune_sampler", config_of(), step=STEP)[0]
    assert seconds == pytest.approx(6.0 + 6 * 10 * SCORES["logistic"] * 10 * STEP, rel=1e-3)
    forecast_of = seconds_of("tune_sampler", config_of(), step=STEP, scores=(2.0, 1000))[0]
    assert forecast_of == pytest.approx(6.0 + 6 * 10 * 2.0 * 10 * STEP, rel=1e-3)
    # Measured scores of a hundredth of the data are not used for scores of all data.
    assert seconds_of("tune_sampler", config_of(), step=STEP, scores=(2.0, 10))[0] == pytest.approx(seconds)


def test_judges_that_look_ahead_score_rows_and_theory_runs_nothing():
    free, costly = (
        seconds_of("tune_sampler", config_of(tuners=["mamba"], mamba__score_rows=50), step=step)[0]
        for step in (1e-9, STEP)
    )
    # 60 points, each of two gradients of 50 rows, which cost an SGLD step of 100.
    assert costly - free == pytest.approx(6 * 10 * STEP, rel=1e-3)
    # Scores of more rows than there are data are exact.
    more, most = (
        seconds_of("tune_sampler", config_of(tuners=["mamba"], mamba__score_rows=rows), step=STEP)[0]
        for rows in (1_000, 100_000)
    )
    assert more == most == pytest.approx(free + 6 * 10 * 10 * STEP, rel=1e-3)
    theory = seconds_of("tune_sampler", config_of(tuners=["theory"]), step=STEP)
    assert theory == pytest.approx([3 * (FORESEEING + 6 * FORESEEING_AN_ARM)])


def test_a_held_out_set_needs_a_mode_of_its_own_once():
    grid = config_of(tuners=["grid"], tuning={"replicates": 1, "validation_fraction": 0})
    held_out = config_of(tuners=["grid"], tuning={"replicates": 1, "validation_fraction": 0.1})
    mode = seconds_of("find_map", grid, step=STEP)[0]
    seconds = [seconds_of("tune_sampler", config, step=STEP)[0] for config in (grid, held_out)]
    assert mode > 0
    assert seconds[1] - seconds[0] == pytest.approx(mode)
    two = changed(held_out, samplers=["sgld", "sgnht"])
    jobs = seconds_of("tune_sampler", two, step=STEP)
    assert jobs[0] - jobs[1] == pytest.approx(mode)


def test_evaluation_runs_each_tuners_replicates_and_its_shorter_curves():
    # Two tuners, three runs of 10 s, two more of 4 s for the curves.
    distinct = 2 * DISTINCT["evaluation"]
    assert seconds_of("evaluate_sampler", config_of()) == pytest.approx(
        [distinct * (3 * 10 + 2 * 4)], rel=1e-3
    )
    assert seconds_of("compare_clocks", config_of()) == pytest.approx([3 * 10], rel=1e-3)
    judged = config_of(evaluation__ksd_points=20, evaluation__curves__prediction_draws=30)
    # A table of 20 points for 3 replicates, two rows of a curve for 5; a full-batch gradient costs ten steps.
    more = 3 * 20 * SCORES["logistic"] * 10 * STEP + 5 * 2 * 30 * PREDICTION * 10 * STEP
    assert seconds_of("evaluate_sampler", judged, step=STEP) == pytest.approx(
        [distinct * (38 + more)], rel=1e-3
    )


def test_regret_is_a_screen_of_all_arms_an_oracle_and_fresh_runs():
    n_losses = len(losses_of("logistic", True))
    # Six arms, three replicates of 2 s; a race of T = 6 for the main loss.
    assert seconds_of("screen_grid", config_of()) == pytest.approx([3 * 6 * 2 + 6], rel=1e-3)
    # Four finalists per loss, the oracle's arm, random arms, and an arm of each tuner; seven replicates of 5 s.
    n_arms = DISTINCT["regret"] * (n_losses * 4 + 1 + RANDOM_ARMS + 2)
    assert seconds_of("rerun_finalists", config_of()) == pytest.approx([7 * 5 * n_arms], rel=1e-3)


def test_by_a_given_table_a_slow_machine_takes_longer_for_the_same_steps():
    given, own = config_of(calibration__table="costs.json"), config_of()
    assert seconds_of("evaluate_sampler", own, slowness=2.0) == seconds_of("evaluate_sampler", own)
    slow, quick = (seconds_of("evaluate_sampler", given, slowness=slowness)[0] for slowness in (2.0, 1.0))
    assert slow == pytest.approx(2 * quick)
    by_the_clock = changed(given, evaluation__clock="wall")
    assert seconds_of("evaluate_sampler", by_the_clock, slowness=2.0)[0] == pytest.approx(quick)


def test_nuts_takes_its_iterations_leapfrogs_and_their_seconds():
    config = config_of(
        reference={"nuts": True, "chains": 2, "n_warmup": 50, "n_draws": 300, "max_tree_depth": 10}
    )
    facts = {"leapfrogs_per_draw": 8.0, "seconds_per_leapfrog": 0.5}
    assert seconds_of("sample_nuts", config, **facts) == pytest.approx([200 * 8 * 0.5] * 2)
    # Trajectories have at most the allowed length.
    shallow = changed(config, reference__max_tree_depth=2)
    assert seconds_of("sample_nuts", shallow, **facts) == pytest.approx([200 * 3 * 0.5] * 2)


def test_the_ladder_has_a_job_for_each_dimension_and_races_add_up():
    config = config_of(ladder__dimensions=[10, 1000])
    small, large = seconds_of("gaussian_ladder", config)
    assert 0 < small < large
    once, twice, three = (
        seconds_of("gaussian_ladder", changed(config, ladder__replicates=n))[1] for n in (1, 2, 3)
    )
    assert twice - once == pytest.approx(three - twice)
    # Tuners without chains cost nothing.
    more = changed(config, ladder__replicates=2, ladder__tuners=[*config["ladder"]["tuners"], "heuristic"])
    assert seconds_of("gaussian_ladder", more)[1] == pytest.approx(twice)


def test_the_study_of_disturbed_draws_is_counted_once_and_by_its_replicates():
    def seconds(**section) -> float:
        return seconds_of("measure_sensitivity", config_of(sensitivity=plain | section))[0]

    plain = {"dimensions": [1000], "points": [100], "replicates": 10}
    # Replicates and dimensions add up; the start-up counts once.
    ten, twenty, two = seconds(), seconds(replicates=20), seconds(dimensions=[1000, 1001])
    assert twenty - ten == pytest.approx(ten - START_UP)
    assert two - ten == pytest.approx(ten - START_UP, rel=0.01)
    assert seconds(dimensions=[50_000]) > 10 * ten
    # At most as many draws are read as fit into memory.
    assert seconds(dimensions=[50_000], points=[500]) == seconds(dimensions=[50_000])


def test_unknown_numbers_are_named():
    config = config_of(
        reference={"nuts": True, "chains": 1, "n_warmup": 50, "n_draws": 300, "max_tree_depth": 10}
    )
    facts = {
        "leapfrogs_per_draw": 8.0,
        "seconds_per_leapfrog": 0.5,
        "cut_short": 0.7,
        "origin": "results/before (x)",
    }
    found = forecast(config, {"logistic": costs_of()}, {"logistic": last_run(**facts)})
    assert any("70% in results/before were cut short" in line for line in found.unknown)
    assert any("downloads" in line for line in found.unknown)


def test_steps_to_a_mode_are_those_of_a_run_that_came_as_near():
    """None at all, where Adam came near enough; unknown, where the earlier run's tolerance was larger."""
    large = replace(costs_of(), dimension=1_000)

    def mode(**facts) -> tuple[float, list[str]]:
        config = config_of(map={"epochs": 20, "tolerance": 0.05, "max_steps": 5_000})
        study = StudyOfModel(config, "logistic", large, last_run(**facts))
        return study.mode(), study.unknown

    only_adam, unknown = mode(lbfgs_steps=0, map_tolerance=0.05)
    assert not unknown
    some, unknown = mode(lbfgs_steps=100, map_tolerance=0.01)
    assert not unknown
    assert some > only_adam
    most, (line,) = mode(lbfgs_steps=100, map_tolerance=0.1)
    assert line.startswith("how many steps the mode of logistic takes: 2,000 are counted")
    assert mode(lbfgs_steps=None)[0] == most > some


@pytest.mark.parametrize("run", ["quick", "horizons"])
def test_the_jobs_are_those_of_the_workflow(run, tmp_path, monkeypatch):
    """Also of a run whose configuration names its ``artifacts``."""
    monkeypatch.chdir(ROOT)
    config = raw_config(run)
    validate_config(config)
    costs = {model: costs_of() for model in config["models"]}
    found = forecast(config, costs, {model: last_run() for model in config["models"]})
    counts = {}
    for row in found.rows:
        counts[row.rule] = counts.get(row.rule, 0) + len(row.jobs)
    (tmp_path / "config").symlink_to(ROOT / "config")
    configured = ["--configfile", str(ROOT / f"config/{run}.yaml")] if run != "quick" else []
    done = subprocess.run(
        snakemake(tmp_path, "--dry-run", *configured), capture_output=True, text=True, check=True
    )
    planned = dict(re.findall(r"^(\w+) +(\d+)$", done.stdout, re.M))
    known = {rule: int(n) for rule, n in planned.items() if rule in counts}
    assert known == {rule: n for rule, n in counts.items() if rule != "data" and n}
    others = ("download", "simulate", "prepare", "record", "describe", "all", "total")
    assert all(rule in known or rule.startswith(others) for rule in planned)


def test_timed_rules_are_those_of_the_workflow():
    for clock, timed in (("calibrated", set()), ("wall", {"evaluate_sampler"})):
        found = forecast(
            config_of(evaluation__clock=clock), {"logistic": costs_of()}, {"logistic": last_run()}
        )
        assert {row.rule for row in found.rows if row.timed} == timed | {
            *("calibrate_cost", "tune_sampler", "compare_clocks")
        }


@pytest.mark.parametrize("run", ["quick", "medium", "paper", "tiny"])
def test_every_configuration_of_the_study_has_a_forecast(run, monkeypatch):
    """Uses the study's own cost table, and no earlier run."""
    monkeypatch.chdir(ROOT)
    config = raw_config(run)
    validate_config(config)
    costs = {model: read_costs_of(config | {"run": "none"}, model) for model in config["models"]}
    last = {model: read_last_run(model, -1, costs[model]) for model in config["models"]}
    found = forecast(config, costs, last)
    assert {row.model for row in found.rows} == {*config["models"], ""}
    assert all(seconds > 0 for row in found.rows for seconds in row.jobs)
    assert 0 < found.hours(2) < 200


def test_every_loss_with_an_oracle_has_its_races():
    one, two, three = (
        seconds_of("screen_grid", changed(config_of(), regret__screen__oracle_losses=n))[0] for n in (1, 2, 3)
    )
    # Six arms, pruned by 3 once, for each replicate of tuning; the model has two losses.
    assert two - one == pytest.approx(6.0, rel=1e-3)
    assert three == two
