"""The table of tuning times, and the comparison of the two clocks."""

# ruff: noqa: RUF001 - tables print signs of mathematics

import math

import pytest
from artifact_records import MODELS, SAMPLERS, TUNERS, cells_by, make_files, make_records, records_of

from sgtune.study.report import TABLES


def test_tuning_time_is_compared_with_mamba():
    cells = cells_by(TABLES["tuning_time"](make_records(1)), "model", "tuner", "sampler", "metric")
    for (model, tuner, sampler, metric), cell in cells.items():
        if metric in ("warm_ratio", "nominal_ratio") and tuner in ("mamba-ksd", "mamba-ksd-scaled"):
            seconds = metric.replace("ratio", "seconds")
            own, mamba = (cells[model, name, sampler, seconds].value for name in (tuner, "mamba-ksd"))
            assert cell.value == pytest.approx(own / mamba)


SECONDS = {
    **{
        "total": 30.0,
        "warm": 24.0,
        "cold": 37.0,
        "startup": 2.0,
        "compilation": 6.0,
        "shared_compilation": 5.0,
    },
    **{"sampling": 15.0, "gradients": 8.0, "discrepancy": 0.5, "nominal": 12.0, "overrun": 3.0},
}


HEADINGS = {
    "tuning_time": {"Budget": 1, "Warm": 2, "Cold": 2, "Over MAMBA-KSD": 2},
    "tuning_parts": {"Warm (s)": 4, "Cold, before that (s)": 2, "Beyond T": 1, "Gradients": 1},
}


@pytest.mark.parametrize("name", HEADINGS)
def test_tables_of_tuning_have_a_row_per_tuner_and_its_times_under_headings(name):
    table = TABLES[name](make_records(1, ("pmf",)))
    assert [row.labels for row in table.rows[:2]] == [("SGLD", "MAMBA-KSD"), ("SGLD", "Grid †")]
    assert len(table.rows) == len(SAMPLERS) * len(TUNERS["pmf"])
    above = [heading for heading, _ in table.columns]
    assert {heading: above.count(heading) for heading in dict.fromkeys(above)} == HEADINGS[name]


def tuned_by_hand():
    """Two tuning runs of SGLD per tuner, with means `SECONDS` where seconds are given."""
    files = make_files(1, ("logistic",))
    tuned = {(one["tuner"], one["replicate"]): one for one in files["tuning"]["logistic/sgld"]["tuners"]}
    changes = {
        "mamba-ksd": {},
        "mamba-fssd": {"warm": 12.0, "nominal": 18.0},
        # Its budget is in steps.
        "grid": {"warm": 48.0, "nominal": None, "overrun": None},
    }
    for tuner, change in changes.items():
        seconds = SECONDS | change
        for replicate, factor in enumerate((0.5, 1.5)):
            own = {name: value and value * factor for name, value in seconds.items()}
            # Only the first run compiles, so the cold time is from the first run.
            first = {name: seconds[name] for name in ("cold", "startup", "compilation", "shared_compilation")}
            own |= first if replicate == 0 else dict.fromkeys(first, 1e6)
            tuned[tuner, replicate].update(seconds=own, gradient_evaluations=2_500_000_000 * factor)
    return records_of(files)


def shown_in(name, records):
    cells = cells_by(TABLES[name](records), "tuner", "metric", "sampler")
    return {key[:2]: cell.shown for key, cell in cells.items() if key[2] == "sgld"}


def test_tuning_time_by_hand():
    shown = shown_in("tuning_time", tuned_by_hand())
    expected = {
        "nominal_seconds": "12.0",
        "warm_seconds": "24.0 ± 17.0",  # of 12 and 36
        "warm_per_budget": "2.00",
        "cold_seconds": "37.0",
        "cold_per_budget": "3.08",
        "warm_ratio": "1.00",
        "nominal_ratio": "1.00",
    }
    assert {metric: text for (tuner, metric), text in shown.items() if tuner == "mamba-ksd"} == expected
    assert shown["mamba-fssd", "warm_ratio"] == "0.500"
    assert shown["mamba-fssd", "nominal_ratio"] == "1.50"
    of_grid = {metric: text for (tuner, metric), text in shown.items() if tuner == "grid"}
    in_budgets = ("nominal_seconds", "warm_per_budget", "cold_per_budget", "nominal_ratio")
    assert {of_grid.pop(metric) for metric in in_budgets} == {"–"}
    assert of_grid == {"warm_seconds": "48.0 ± 33.9", "cold_seconds": "37.0", "warm_ratio": "2.00"}
    # The heuristic runs once, compares nothing, and has no budget to exceed.
    assert shown["heuristic", "nominal_seconds"] == "0"
    assert shown["heuristic", "warm_seconds"] == "1.00 × 10⁻⁴"
    assert shown["heuristic", "warm_per_budget"] == "–"


def test_tuning_parts_by_hand():
    shown = shown_in("tuning_parts", tuned_by_hand())
    expected = {
        "sampling_seconds": "15.0",
        "score_seconds": "8.00",
        "discrepancy_seconds": "0.500",
        "other_seconds": "0.500",
        "compile_seconds": "11.0",
        "startup_seconds": "2.00",
        "overrun_percent": "25.0",
        "gradient_evaluations_x1e-9": "2.50",
    }
    assert {metric: text for (tuner, metric), text in shown.items() if tuner == "mamba-ksd"} == expected
    assert shown["grid", "overrun_percent"] == "–"
    assert shown["heuristic", "overrun_percent"] == "–"


def test_tuning_time_has_the_papers_claim_for_each_model_of_the_run():
    claims = {"logistic": "about 3 times (Log", "pmf": "about 2 times (PMF", "bnn": "4 to 6 times (Neu"}
    for models in (MODELS, ("pmf",)):
        caption = TABLES["tuning_time"](make_records(1, models)).caption
        assert {model for model in MODELS if claims[model] in caption} == set(models)
        assert "n = 2 tuning runs" in caption


@pytest.mark.parametrize("name", ["tuning_time", "tuning_parts"])
def test_tables_of_tuning_seconds_say_that_jobs_ran_beside_each_other(name):
    beside = (
        "\nA given cost table decided, so tuning jobs ran beside other jobs: alone they would take less time."
    )
    files = make_files(1)
    captions = []
    for table in (None, "costs.json"):
        files[""]["settings"]["configuration"] |= {"calibration": {"table": table, "seconds": 1}}
        captions.append(TABLES[name](records_of(files)).caption)
    assert beside not in captions[0]
    assert captions[0] == captions[1].replace(beside, "")
    assert beside in captions[1]


def test_the_two_clocks_are_compared_by_hand():
    files = make_files(1, ("pmf", "bnn"))
    held = files["clocks"]["pmf"]
    for clock, factor in (("calibrated", 1), ("wall", 2)):
        for i, row in enumerate(held[clock]):
            row |= {
                "n_samples": 1000 * factor,
                "functional_error": 0.1 * factor * (i + 1),
                "wall_seconds": 9.0 + i,
            }
    held["wall"][2]["diverged"] = True
    table = TABLES["clocks"](records_of(files))
    assert [heading for _, heading in table.columns] == [
        "by measured costs",
        "by the wall clock",
        "wall / measured",
    ]
    shown = {row.labels: [cell.shown for cell in row.cells] for row in table.rows}
    assert shown["PMF", "Seconds meant"] == ["10.0", "10.0 (2/3)", "–"]
    assert shown["PMF", "Seconds taken"] == ["10.0 ± 1.0", "9.50 ± 0.71 (2/3)", "–"]
    assert shown["PMF", "# of samples"][2] == "2.00 ± 0.00"
    # 0.2 ± 0.1/√3 and 0.3 ± 0.1.
    se = 1.5 * math.hypot(0.5 / math.sqrt(3), 1 / 3)
    assert shown["PMF", "Error of functionals"] == [
        "0.200 ± 0.100",
        "0.300 ± 0.141 (2/3)",
        f"1.50 ± {se:.2f}",
    ]
    metrics = [metric for model, metric in shown if model == "Neural network"]
    assert metrics == ["Seconds meant", "Seconds taken", "# of samples", "Log-loss", "Brier score"]
    assert "PMF: SGLD as tuned by MAMBA-KSD (h=" in table.caption
    assert "n = 3 runs by each" in table.caption
