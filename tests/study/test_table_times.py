"""Tables of seconds: the cost of a step, and the time of a run by rule."""

# ruff: noqa: RUF001 - tables print signs of mathematics

import pandas as pd
import pytest
from artifact_records import (
    PROVENANCE,
    cells_by,
    make_files,
    records_of,
    write_files,
)

from sgtune.study.report import TABLES, make_table


def cost_files(**changes):
    rows = [
        {"sampler": "sgld", "batch_size": 8_000, "n_leapfrog": None, "seconds_per_step": 0.002},
        {"sampler": "sghmc", "batch_size": 80_000, "n_leapfrog": 5, "seconds_per_step": 0.03},
        {"sampler": "sghmc", "batch_size": 8_000, "n_leapfrog": 10, "seconds_per_step": 0.006},
    ]
    record = {"model": "logistic", "n_data": 800_000, "dimension": 10, "rows": rows, "provenance": PROVENANCE}
    return {"cost": {"logistic": record | changes}}


def shown_costs(files):
    table = TABLES["cost"](records_of(files))
    return table, {row.labels[1:]: [cell.shown for cell in row.cells] for row in table.rows}


def test_cost_of_a_step_in_milliseconds():
    table, shown = shown_costs(cost_files())
    assert [heading for _, heading in table.columns] == ["Here (ms)"]
    assert sorted(shown.values()) == [["2.00"], ["30.0"], ["6.00"]]
    assert "The run used these costs." in table.caption
    assert "calibration.table" not in table.caption


def test_cost_of_a_step_beside_the_table_that_the_run_went_by():
    given = [
        {"sampler": "sghmc", "batch_size": 8_000, "n_leapfrog": 10, "seconds_per_step": 0.004},
        {"sampler": "sgld", "batch_size": 8_000, "n_leapfrog": None, "seconds_per_step": 0.008},
        # A shape that is not in this run.
        {"sampler": "sghmc", "batch_size": 8_000, "n_leapfrog": 5, "seconds_per_step": 1.0},
    ]
    table, shown = shown_costs(cost_files(table=given))
    assert [heading for _, heading in table.columns] == ["Here (ms)", "Table (ms)", "Here / table"]
    assert sorted(shown.values()) == [
        ["2.00", "8.00", "0.250"],
        ["30.0", "–", "–"],
        ["6.00", "4.00", "1.50"],
    ]
    assert "calibration.table" in table.caption
    assert "The run used these costs." not in table.caption


def test_costs_stand_by_model_and_sampler_from_the_largest_batch_down():
    files = cost_files()
    steps = [(80_000, 2), (8_000, 5), (8_000, 2)]
    rows = [
        {"sampler": "sghmc", "batch_size": n, "n_leapfrog": steps, "seconds_per_step": 0.01}
        for n, steps in steps
    ]
    files["cost"]["pmf"] = files["cost"]["logistic"] | {"model": "pmf", "rows": rows}
    table, _ = shown_costs(files)
    assert [row.labels for row in table.rows] == [
        ("Logistic regression", "SGLD", "n = 8,000"),
        ("Logistic regression", "SGHMC", "n = 80,000, L = 5"),
        ("Logistic regression", "SGHMC", "n = 8,000, L = 10"),
        ("PMF", "SGHMC", "n = 80,000, L = 2"),
        ("PMF", "SGHMC", "n = 8,000, L = 2"),
        ("PMF", "SGHMC", "n = 8,000, L = 5"),
    ]


RULES = {
    "find_map": 3,
    "sample_nuts": 4,
    "combine_nuts": 2,
    "calibrate_cost": 3,
    "tune_sampler": 18,
    "evaluate_sampler": 18,
    "screen_grid": 18,
    "rerun_finalists": 18,
    "compare_clocks": 3,
    "estimate_discrepancies": 3,
    "measure_widths": 2,
    "compare_horizons": 1,
    "gaussian_ladder": 2,
    "measure_sensitivity": 1,
}


def test_timings_have_every_rule_in_the_order_of_the_pipeline_and_the_sum(tmp_path):
    formats = {kind: tmp_path / f"timings.{kind}" for kind in ("csv", "md", "html")}
    make_table("timings", write_files(make_files(1), tmp_path / "run"), **formats)
    table = pd.read_csv(formats["csv"]).set_index(["metric", "detail"])["value"]
    jobs = {rule: int(n) for rule, n in table["jobs"].items()}
    assert list(jobs.items()) == [*RULES.items(), ("all of these", sum(RULES.values()))]
    # Every job took 10 s, of which 1 to start and 2 to compile.
    for rule, n in jobs.items():
        metrics = [
            *("total_seconds", "median_seconds", "longest_seconds"),
            *("startup_percent", "compilation_percent", "peak_memory_gb"),
        ]
        assert [table[metric, rule] for metric in metrics] == [10 * n, 10, 10, 10, 20, 0.5]


def test_timings_by_hand():
    def account(rule, process, startup, compilation, memory):
        return PROVENANCE | {
            "rule": rule,
            "process_seconds": process,
            "startup_seconds": startup,
            "compile_seconds": compilation,
            "peak_memory_gb": memory,
        }

    files = make_files(1, ("logistic",))
    tunings = [
        one | {"provenance": account("tune_sampler", *numbers)}
        for one, numbers in zip(
            files["tuning"].values(),
            [(10.0, 1.0, 2.0, 0.5), (60.0, 2.0, 3.0, 2.5), (20.0, 3.0, 4.0, 1.0)],
            strict=False,
        )
    ]
    nuts = files["reference"]["logistic/nuts"] | {
        "chains": [
            account("sample_nuts", 100.0, 0.0, 10.0, 3.0),
            account("sample_nuts", 310.0, 1.0, 10.0, 1.0),
        ],
        "provenance": PROVENANCE,  # of a version that did not say its rule
    }
    made = {"tuning": dict(enumerate(tunings)), "reference": {"logistic/nuts": nuts}}
    cells = cells_by(TABLES["timings"](records_of(made)), "detail", "metric")
    assert {detail for detail, _ in cells} == {"tune_sampler", "sample_nuts", "all of these"}
    values = {key: cell.value for key, cell in cells.items()}
    for rule, expected in {
        "tune_sampler": (3, 90, 20, 60, 100 * 6 / 90, 10, 2.5),
        "sample_nuts": (2, 410, 205, 310, 100 / 410, 2000 / 410, 3),
        "all of these": (5, 500, 60, 310, 1.4, 5.8, 3),
    }.items():
        metrics = ("jobs", "total_seconds", "median_seconds", "longest_seconds")
        metrics += ("startup_percent", "compilation_percent", "peak_memory_gb")
        assert [values[rule, metric] for metric in metrics] == pytest.approx(expected)
    assert cells["tune_sampler", "jobs"].shown == "3"
    assert cells["tune_sampler", "startup_percent"].shown == "6.67"
