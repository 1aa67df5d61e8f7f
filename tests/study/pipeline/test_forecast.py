"""The budgets of a configuration, counted by hand, and the overhead of an earlier run."""

import pytest
from config_files import valid

from sgtune.study.pipeline.forecast import Jobs, budgets, forecast, read_seen
from sgtune.support.files import write_json


@pytest.fixture
def config():
    """One model, one sampler: two step sizes and two batch sizes, so races of four arms."""
    grids = {"log10_step_sizes": [-2, -3], "batch_fractions": [0.1, 1], "n_leapfrogs": [2]}
    own = {"models": ["logistic"], "samplers": ["sgld"], "tuners": ["mamba", "grid-ksd", "theory"]}
    own |= {"grids__logistic": grids, "mamba": {"seconds": 3, "pruning_rate": 2}, "tuning": {"replicates": 2}}
    own["grid_ksd"] = {"seconds": 5, "replicates": 1}
    own["evaluation"] = {"seconds": 10, "replicates": 2, "clock": "wall"}
    own["evaluation"]["curves"] = {"seconds": [1, 4], "replicates": 5, "ksd_points": 0}
    own["per_model__logistic__horizons"] = {"seconds": [1, 9], "replicates": 2}
    screen = {"seconds": 1, "replicates": 3}
    return valid(**own, regret={"screen": screen, "finalists": 2, "seconds": [7], "replicates": 2})


def of(jobs, rule):
    return next(one for one in jobs if one.rule == rule)


def test_budgets_are_what_the_configuration_says(config):
    jobs = budgets(config)
    # With eta = 2 four arms have K = 2 rungs: T = 3 * 4 * 2 / (1 + 2) = 8; grid-ksd: four arms of 5 s.
    assert of(jobs, "tune_sampler") == Jobs("tune_sampler", "logistic", 1, 2 * 8 + 20, True)
    # Three tuners, two runs of 10 s and three of 4 s each.
    assert of(jobs, "evaluate_sampler") == Jobs("evaluate_sampler", "logistic", 1, 3 * (20 + 12), True)
    # Four arms in three replicates, and two races of one oracle.
    assert of(jobs, "screen_grid").budget == 4 * 3 + 2 * 8
    # The best two by each of two losses, two oracles, five at random, and 2 + 1 + 1 choices.
    assert of(jobs, "rerun_finalists").budget == (2 * 2 + 2 + 5 + 4) * 2 * 7
    assert of(jobs, "compare_clocks") == Jobs("compare_clocks", "logistic", 1, 20, True)
    # For both horizons a race, and two runs of 9 s for each of two tuners.
    assert of(jobs, "compare_horizons").budget == 2 * (8 + 2 * 2 * 9)
    assert of(jobs, "sample_nuts").number == config["reference"]["chains"]


def test_what_a_run_took_for_its_budget_is_what_another_will_take(config, tmp_path):
    about = {"rule": "tune_sampler", "startup_seconds": 1.0, "compile_seconds": 2.0}
    for name, seconds, created in (("old", 300.0, "2026-01-01"), ("new", 21.0, "2026-01-02")):
        settings = {"configuration": config, "provenance": {"created": created}}
        tuned = {"model": "logistic", "provenance": about | {"process_seconds": seconds}}
        write_json(tmp_path / name / "mamba/settings.json", settings)
        write_json(tmp_path / name / "tuning/logistic/sgld.json", tuned)
    seen = read_seen(tmp_path)
    known = seen["tune_sampler", "logistic"]
    assert (known.run, known.start, known.overhead) == ("new", 3.0, pytest.approx(18 / 36))
    assert known.seconds(Jobs("tune_sampler", "logistic", 4, 100.0)) == pytest.approx(4 * 3 + 50)
    rows = {line.split()[0]: line.split() for line in forecast(config, seen, 2)}
    assert rows["tune_sampler"][1:] == ["logistic", "1", "36.0", "0.50", "21", "new"]
    assert rows["evaluate_sampler"][1:] == ["logistic", "1", "96.0", "1.00", "96", "-"]
    seconds = {rule: float(row[-2].replace(",", "")) for rule, row in rows.items() if row[-1] in ("new", "-")}
    timed = ("calibrate_cost", "tune_sampler", "evaluate_sampler", "compare_clocks")
    alone = sum(seconds.pop(rule) for rule in timed)
    hours = (alone + sum(seconds.values()) / 2) / 3600
    # In all so many hours, of which so many of timed jobs, rounded.
    assert [float(rows["In"][i]) for i in (2, 4)] == pytest.approx([hours, alone / 3600], abs=0.006)
