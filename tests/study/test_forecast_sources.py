"""The sources of a forecast: costs of a step, and the measured times of an earlier run."""

import pytest
from forecasts import STEP, config_of, costs_of, write

from sgtune.sampling.budget import CostTable
from sgtune.study.pipeline.forecast import StepCosts, forecast, read_costs_of, read_last_run
from sgtune.support.errors import DataError


def test_a_step_costs_what_the_table_says():
    table = CostTable({("sghmc", 100, 5): 2.0, ("sgld", 100, None): 0.5})
    assert StepCosts(table, 3).step("sghmc", 100, 5) == 2.0
    assert not StepCosts(table, 3).guessed


def test_a_step_that_is_not_in_the_table_is_estimated_from_its_neighbours():
    table = {
        ("sghmc", 100, 5): 1.0,
        ("sghmc", 100, 10): 2.0,
        ("sghmc", 10_000, 5): 5.0,
        ("sgld", 100, None): 0.5,
    }
    costs = StepCosts(CostTable(table), 3)
    # 0.2 s a leapfrog at 100 rows, 1 s at 10,000; half-way between their logarithms lies 1,000 with the root of both.
    assert costs.step("sghmc", 1000, 2) == pytest.approx(2 * (0.2 * 1.0) ** 0.5)
    assert costs.step("sghmc", 20_000, 1) == pytest.approx(2.0)
    assert costs.step("sghmc", 10, 1) == pytest.approx(0.2)
    assert costs.step("new", 200, None) == pytest.approx(1.0)
    assert costs.gradient(400) == pytest.approx(2.0)
    assert len(costs.guessed) == 4


def test_beyond_the_batches_of_a_sampler_its_steps_grow_as_those_of_sgld():
    table = CostTable(
        {
            ("sgld", 100, None): 1.0,
            ("sgld", 1000, None): 6.0,
            ("sgld", 8000, None): 20.0,
            ("sghmc-cv", 100, 5): 15.0,
        }
    )
    costs = StepCosts(table, 3, n_data=8000)
    # 3 s a leapfrog at 100 rows, six times that at 1,000.
    assert costs.step("sghmc-cv", 1000, 10) == pytest.approx(180)
    # A full batch needs neither a gather nor a correction.
    assert costs.step("sghmc-cv", 8000, 10) == pytest.approx(200)
    assert costs.step("sgnht", 8000, None) == 20.0
    unknown = StepCosts(table, 3)
    assert unknown.step("sghmc-cv", 8000, 10) == pytest.approx(10 * 3 * 20)


def test_costs_are_the_runs_own_else_of_the_table_it_was_given_else_those_that_come_with_the_study(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    rows = [{"sampler": "sgld", "batch_size": 10, "n_leapfrog": None, "seconds_per_step": 1.0}]
    of_model = {"n_data": 1000, "dimension": 3, "rows": rows}
    machine = {"cpu": "abacus", "cores": 4, "created": "2020-02-02"}
    write("config/cost/quick.json", {"models": {"logistic": of_model}, **machine})
    found = read_costs_of(config_of(), "logistic")
    assert found.origin == "config/cost/quick.json (abacus, 4 cores, 2020-02-02)"
    assert found.step("sgld", 10, None) == 1.0
    write("given.json", {"models": {"logistic": of_model}})
    given = config_of(calibration__table="given.json")
    assert read_costs_of(given, "logistic").origin == "given.json (unknown machine)"
    write("results/mine/cost/logistic.json", {"provenance": machine, **of_model})
    own = read_costs_of(given, "logistic")
    assert own.measured_here
    assert own.origin.startswith("results/mine/cost/logistic.json (abacus")
    with pytest.raises(DataError, match=r"^config/cost/quick.json: has no costs for pmf$"):
        read_costs_of(config_of(), "pmf")


def about(rule: str, seconds: float, created: str = "2026-01-02") -> dict:
    times = {"process_seconds": seconds, "startup_seconds": 1.0, "compile_seconds": 2.0}
    return {"rule": rule, "created": created, "cpu": "abacus", "cores": 4, **times}


def rung(number: int, step_size: float, steps: int) -> dict:
    return {
        "rung": number,
        "step_size": step_size,
        "batch_size": 100,
        "n_leapfrog": None,
        "steps": steps,
        "points": 10,
    }


@pytest.fixture
def earlier(tmp_path, monkeypatch):
    """Results of a run, of an older one, and of a newer one on other data."""
    monkeypatch.chdir(tmp_path)
    seconds = {"sampling": 0.6, "gradients": 0.9}
    race = {"rungs": [rung(1, 1.0, 100), rung(1, 2.0, 100), rung(2, 1.0, 200)], "seconds": seconds}
    # 300 steps of 100 rows, and 30 scores of 1,000.
    race["gradient_evaluations"] = 300 * 100 + 30 * 1000
    grid = {
        "rungs": [rung(1, 1.0, 500)],
        "seconds": {"sampling": 0.1, "gradients": 0.0},
        "gradient_evaluations": 50_000,
    }
    none = {"rungs": [], "seconds": dict.fromkeys(seconds, 0.0), "gradient_evaluations": 0}
    for run, day, n_data in (("older", 1, 1000), ("last", 2, 1000), ("other", 3, 999)):
        record = {"model": "logistic", "sampler": "sgld", "n_data": n_data, "tuners": [race, grid, none]}
        write(
            f"results/{run}/tuning/logistic/sgld.json",
            record | {"provenance": about("tune_sampler", 9, f"2026-01-0{day}")},
        )
    checks = {
        "leapfrogs": 600,
        "leapfrogs_per_draw": 6.0,
        "draws": 50,
        "seconds": 34.0,
        "max_tree_depth_share": 0.25,
    }
    chains = [about("sample_nuts", 23.0), about("sample_nuts", 21.0)]
    summary = {
        "model": "logistic",
        "diagnostics": checks,
        "chains": chains,
        "provenance": about("combine_nuts", 4),
    }
    write("results/last/reference/logistic/nuts.json", summary)
    rows = [{"sampler": "sgld", "batch_size": 100, "n_leapfrog": None, "seconds_per_step": 2 * STEP}]
    write(
        "results/last/cost/logistic.json",
        {"rows": rows, "model": "logistic", "provenance": about("calibrate_cost", 8)},
    )
    return tmp_path


def test_the_last_run_is_the_newest_on_as_much_data(earlier):
    last = read_last_run("logistic", 1000, costs_of())
    assert last.origin == "results/last (abacus, 4 cores, 2026-01-02)"
    assert last.seconds["tune_sampler"] == 9
    assert last.total["sample_nuts"] == 44.0
    assert last.overhead["sample_nuts"] == 3.0
    # A step costs twice as much here as in the table.
    assert last.slowness == pytest.approx(2.0)
    assert last.races["race"] == pytest.approx(0.6 / (300 * 2 * STEP))
    assert last.races["single"] == pytest.approx(0.1 / (500 * 2 * STEP))
    share, n_terms = last.scores
    assert n_terms == pytest.approx(1000)
    assert share == pytest.approx(0.9 / 30 / (2 * 10 * STEP))
    assert last.leapfrogs_per_draw == 6.0
    assert last.cut_short == 0.25
    assert last.seconds_per_leapfrog == pytest.approx((34 - 4) / 600)


def test_a_recorded_configuration_gives_the_warm_up_and_the_error_of_a_forecast_of_that_run(earlier):
    config = config_of(
        reference={"nuts": True, "chains": 2, "n_warmup": 25, "n_draws": 100, "max_tree_depth": 10}
    )
    write("results/last/settings.json", {"configuration": config})
    last = read_last_run("logistic", 1000, costs_of())
    assert last.seconds_per_leapfrog == pytest.approx((34 - 4) / (600 * 1.5))
    found = forecast(config, {"logistic": costs_of()}, {"logistic": last})
    assert any("that run would take" in line and "it took 65 s" in line for line in found.sources)


def test_without_an_earlier_run_there_are_defaults(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    last = read_last_run("logistic", 1000, costs_of())
    assert (last.origin, last.slowness, last.overhead) == ("", 1.0, {})
    assert set(last.lockstep) == {"race", "single"}
    assert last.races == last.lockstep
