"""What is in each table, from small records."""

# ruff: noqa: RUF001 - tables print signs of mathematics

import math

import numpy as np
import pandas as pd
import pytest
from artifact_records import (
    BLOCKS,
    MODELS,
    N_DATA,
    OOD_MISSING,
    PROVENANCE,
    SAMPLERS,
    TUNERS,
    WORKFLOW,
    choose,
    make_files,
    make_records,
    make_tables,
    record_of,
    records_of,
    write_files,
)

from sgtune.artifacts import MODEL_OF, TABLES, make_table
from sgtune.artifacts.layout import NO_ARM
from sgtune.artifacts.records import load_records
from sgtune.artifacts.regret import regret_cells
from sgtune.artifacts.tables import SOURCES
from sgtune.errors import DataError


@pytest.fixture(scope="module", params=[1, 3], ids=["one replicate", "three replicates"])
def made(request, tmp_path_factory):
    return make_tables(request.param, tmp_path_factory.mktemp("run"))


SHORT = {"table1": ("logistic", 5), "table2": ("pmf", 4), "table3": ("bnn", 6)}


@pytest.mark.parametrize("name", SHORT)
def test_short_tables_hold_mean_and_sd_of_the_replicates_and_name_the_diverged(made, name):
    folder, paths = made
    model, n_tuners = SHORT[name]
    table = pd.read_csv(folder / f"{name}.csv").set_index(["tuner", "metric", "sampler"])
    assert len(table) == n_tuners * 2 * 6
    record = record_of(load_records(paths), model, "sgld", "grid")
    metrics = table.index.unique("metric")
    for metric in metrics:
        key, factor = SOURCES[metric]
        values = np.array([factor * row[key] for row in record["table"]])
        cell = table.loc["grid", metric, "sgld"]
        assert cell["value"] == pytest.approx(values.mean(), rel=1e-12)
        assert cell["replicates"] == values.size
        if values.size > 1:
            assert cell["sd"] == pytest.approx(values.std(ddof=1), rel=1e-12)
            assert table.loc["grid", metric, "sghmc-cv"]["shown"].endswith("(2/3)")
        else:
            assert math.isnan(cell["sd"])
            assert "±" not in cell["shown"]
        assert table.loc["heuristic", metric, "sghmc"]["shown"] == "diverged"
    assert set(metrics) == (
        {"ece_percent", "mce_percent"} if model == "bnn" else {"ksd", "relative_sd_error_x100"}
    )
    assert table.groupby(["metric", "sampler"])["best"].sum().ge(1).all()


@pytest.mark.parametrize(
    ("name", "metrics"),
    [
        ("table6", ["relative_sd_error_x100", "ksd", "ksd_scaled", "accuracy_percent", "n_samples"]),
        ("table8", ["relative_sd_error_x100", "ksd", "ksd_scaled", "rmse", "rmse_as_published", "n_samples"]),
        (
            "table10",
            [
                "ece_percent",
                "mce_percent",
                "ece_as_published_percent",
                "mce_as_published_percent",
                "accuracy_percent",
                "log_loss",
                "n_samples",
            ],
        ),
    ],
)
def test_long_tables_have_their_metrics_in_order(made, name, metrics):
    folder, paths = made
    table = pd.read_csv(folder / f"{name}.csv")
    assert list(dict.fromkeys(table["metric"])) == metrics
    assert set(table["model"]) == {MODEL_OF[name]}
    record = record_of(load_records(paths), MODEL_OF[name], "sgld", "mamba-ksd")
    values = table.set_index(["sampler", "tuner", "metric"])["value"]
    for metric in metrics:
        key, factor = SOURCES[metric]
        mean = factor * np.mean([row[key] for row in record["table"]])
        assert values["sgld", "mamba-ksd", metric] == pytest.approx(mean, rel=1e-12)


def test_a_tuner_that_was_not_run_has_no_row_and_a_missing_run_a_dash():
    records = make_records(1)
    records["evaluation"] = [
        record
        for record in records["evaluation"]
        if record["tuner"] != "mamba-fssd" and (record["tuner"], record["sampler"]) != ("grid", "sgld")
    ]
    table = TABLES["table1"](records)
    assert [row.labels[0] for row in table.rows[::2]] == [
        "MAMBA-KSD",
        "Grid",
        "Heuristic",
        "MAMBA-KSD scaled",
    ]
    assert [cell.shown for cell in table.rows[2].cells].count("–") == 1


def test_smaller_grids_have_a_column_with_dashes_where_they_were_not_run():
    table = TABLES["table9"](make_records(1))
    place = [heading for _, heading in table.columns].index("MAMBA-KSD, smaller grid")
    shown = {row.labels[0] for row in table.rows if row.cells[place].shown != "–"}
    assert shown == {"SGNHT"}


def test_table4_and_5_say_what_was_tuned_and_chosen(made):
    folder, _paths = made
    tuned = pd.read_csv(folder / "table4.csv").set_index(["model", "sampler", "tuner"])["shown"]
    for model in MODELS:
        assert tuned[model, "sgld", "mamba-ksd"] == "h, n (16)"
        assert tuned[model, "sghmc", "grid"] == "h, L (8)"
        assert tuned[model, "sgnht", "heuristic"] == "fixed"
    assert tuned["pmf", "sgld", "mamba-fssd"] == "–"
    for name, model in (("table5", "logistic"), ("table7", "pmf"), ("table9", "bnn")):
        chosen = pd.read_csv(folder / f"{name}.csv").set_index(["sampler", "tuner", "metric"])["value"]
        assert chosen["sgld", "heuristic", "log10_step_size"] == pytest.approx(-math.log10(N_DATA[model]))
        assert chosen["sghmc", "heuristic", "batch_percent"] == pytest.approx(10)
        assert chosen.xs("n_leapfrog", level="metric").count() == 2 * len(TUNERS[model])


JUDGED = {
    "logistic": {"relative_sd_error_x100": ("relative_sd_error", 100)},
    "pmf": {"relative_sd_error_x100": ("relative_sd_error", 100)},
    "bnn": {"ece_percent": ("ece", 100), "log_loss": ("log_loss", 1)},
}


@pytest.mark.parametrize("model", MODELS)
def test_regret_is_the_metric_of_the_chosen_arm_over_the_smallest(model):
    records = make_records(1, (model,))
    cells = {(cell.sampler, cell.tuner, cell.metric): cell for cell in regret_cells(records)}
    assert all(c.value >= 1 for (_, t, m), c in cells.items() if m.endswith("regret") and t != "heuristic")
    assert {metric for *_, metric in cells} == {
        *JUDGED[model],
        *(f"{metric}_regret" for metric in JUDGED[model]),
    }
    for sweep in records["sweep"]:
        for metric, (key, factor) in JUDGED[model].items():
            values = [row[key] for row in sweep["rows"] if not row["is_heuristic"]]
            smallest = min(value for value in values if value is not None)
            expected = None if sweep["sampler"] == "sghmc" else 0.3 / smallest
            assert cells[sweep["sampler"], "heuristic", f"{metric}_regret"].value == expected
            oracle = cells[sweep["sampler"], "oracle", metric]
            assert oracle.value == pytest.approx(factor * smallest)
            assert cells["sghmc", "heuristic", f"{metric}_regret"].shown == "diverged"


def test_regret_of_a_metric_that_the_sweep_did_not_compute_is_a_dash():
    records = make_records(1, ("bnn",))
    for sweep in records["sweep"]:
        sweep["rows"] = [row | {"ece": None} for row in sweep["rows"]]
    shown = {(cell.metric, cell.shown) for cell in regret_cells(records) if cell.metric.startswith("ece")}
    assert shown == {("ece_percent", "–"), ("ece_percent_regret", "–")}


def sweep_of(errors, heuristic):
    rows = [
        {
            "step_size": 10.0**-i,
            "batch_size": 8,
            "n_leapfrog": None,
            "relative_sd_error": e,
            "is_heuristic": False,
        }
        for i, e in enumerate(errors)
    ]
    arm = {"step_size": 0.5, "batch_size": 8, "n_leapfrog": None, "is_heuristic": True}
    rows.append(arm | {"relative_sd_error": heuristic})
    return {"model": "logistic", "sampler": "sgld", "rows": rows}


@pytest.mark.parametrize(
    ("tuner", "step_size", "shown"),
    [
        ("grid", 1.0, "diverged"),
        ("grid", float(np.float32(0.1)), "2.00"),
        ("grid", 0.01, "1.00"),
        ("grid", 0.03, "–"),
        ("heuristic", 0.5, "0.500"),
    ],
)
def test_regret_by_hand(tuner, step_size, shown):
    best = {"step_size": step_size, "batch_size": 8, "n_leapfrog": None}
    tuning = {"model": "logistic", "sampler": "sgld", "tuner": tuner, "best": best}
    cells = regret_cells({"tuning": [tuning], "sweep": [sweep_of([None, 0.4, 0.2], 0.1)]})
    assert cells[0].shown == shown
    assert cells[-1].value == pytest.approx(20)


def test_errors_by_block_are_in_the_order_of_print_beside_that_of_all():
    records = make_records(3)
    table = TABLES["xi_by_block"](records)
    assert table.stub == ("Tuner", "Block")
    first = [row.labels[1] for row in table.rows[: len(BLOCKS) + 1]]
    assert first[:3] == ["U (users)", "V (items)", "Mean of U"]
    assert first[-1] == "all parameters"
    cells = {(c.sampler, c.tuner, c.detail): c for row in table.rows for c in row.cells}
    rows = record_of(records, "pmf", "sgld", "grid")["table"]
    errors = [100 * row["relative_sd_error_by_block"]["items"] for row in rows]
    assert cells["sgld", "grid", "items"].value == pytest.approx(np.mean(errors))
    assert cells["sgld", "grid", "items"].sd == pytest.approx(np.std(errors, ddof=1))
    whole = [100 * row["relative_sd_error"] for row in rows]
    assert cells["sgld", "grid", "all parameters"].value == pytest.approx(np.mean(whole))
    assert cells["sghmc", "heuristic", "users"].shown == "diverged"


def test_ood_table_holds_the_entropies_and_how_well_they_tell_the_sets_apart():
    records = make_records(1)
    table = TABLES["ood"](records)
    cells = {(c.sampler, c.tuner, c.metric): c for row in table.rows for c in row.cells}
    account = record_of(records, "bnn", "sgld", "mamba-ksd")["table"][0]["ood"]
    for metric in ("auroc", "entropy_test", "entropy_ood"):
        assert cells["sgld", "mamba-ksd", metric].value == account[metric]
    assert "Fashion-MNIST" in table.caption
    own = [c for (s, _, m), c in cells.items() if (s, m) == ("sgld", "auroc") and c.value is not None]
    assert [c.value for c in own if c.best] == [max(c.value for c in own)]


@pytest.mark.parametrize(
    ("account", "words"),
    [(OOD_MISSING, "Fashion-MNIST is missing (no source of it answered)"), (None, "prediction_draws is 0")],
)
def test_ood_table_says_why_there_is_nothing(account, words):
    records = make_records(1)
    for record in records["evaluation"]:
        for row in record["table"]:
            row.pop("ood", None)
            row.update({} if account is None or record["model"] != "bnn" else {"ood": account})
    table = TABLES["ood"](records)
    assert words in table.caption
    assert {cell.shown for row in table.rows for cell in row.cells} == {"–", "diverged"}


def test_tuning_time_is_compared_with_mamba(made):
    folder, _paths = made
    table = (
        pd.read_csv(folder / "tuning_time.csv")
        .set_index(["model", "tuner", "metric", "sampler"])["value"]
        .sort_index()
    )
    for model in MODELS:
        for time in ("warm", "nominal"):
            assert np.allclose(table[model, "mamba-ksd", f"{time}_ratio"], 1)
            seconds = [table[model, tuner, f"{time}_seconds"] for tuner in ("mamba-ksd-scaled", "mamba-ksd")]
            assert np.allclose(table[model, "mamba-ksd-scaled", f"{time}_ratio"], seconds[0] / seconds[1])


def cells_by(table, *fields):
    """The cells of a table that are of a tuner, a rule or a step, by these fields."""
    return {tuple(getattr(cell, field) for field in fields): cell for row in table.rows for cell in row.cells}


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


def test_tuning_time_has_a_row_per_tuner_and_its_times_under_headings():
    table = TABLES["tuning_time"](make_records(1, ("pmf",)))
    assert [row.labels for row in table.rows[:2]] == [("SGLD", "MAMBA-KSD"), ("SGLD", "Grid")]
    assert len(table.rows) == len(SAMPLERS) * len(TUNERS["pmf"])
    headings = [above for above, _ in table.columns]
    assert list(dict.fromkeys(headings)) == ["Warm (s)", "Cold (s)", "Budget", "Over MAMBA-KSD", "Gradients"]
    assert [headings.count(above) for above in dict.fromkeys(headings)] == [5, 3, 4, 2, 1]


def test_tuning_time_by_hand():
    files = make_files(1, ("logistic",))
    tuned = {one["tuner"]: one for one in files["tuning"]["logistic/sgld"]["tuners"]}
    tuned["mamba-ksd"].update(seconds=SECONDS, gradient_evaluations=2_500_000_000)
    tuned["mamba-fssd"].update(seconds=SECONDS | {"warm": 12.0, "nominal": 18.0})
    # Their budget is in steps.
    tuned["grid"].update(seconds=SECONDS | {"warm": 48.0, "nominal": None, "overrun": None})
    cells = cells_by(TABLES["tuning_time"](records_of(files)), "tuner", "metric", "sampler")
    shown = {key[:2]: cell.shown for key, cell in cells.items() if key[2] == "sgld"}
    expected = {
        "warm_seconds": "24.0",
        "sampling_seconds": "15.0",
        "score_seconds": "8.00",
        "discrepancy_seconds": "0.500",
        "other_seconds": "0.500",
        "cold_seconds": "37.0",
        "compile_seconds": "11.0",
        "startup_seconds": "2.00",
        "nominal_seconds": "12.0",
        "overrun_percent": "25.0",
        "warm_per_budget": "2.00",
        "cold_per_budget": "3.08",
        "warm_ratio": "1.00",
        "nominal_ratio": "1.00",
        "gradient_evaluations_x1e-9": "2.50",
    }
    assert {metric: text for (tuner, metric), text in shown.items() if tuner == "mamba-ksd"} == expected
    assert shown["mamba-fssd", "warm_ratio"] == "0.500"
    assert shown["mamba-fssd", "nominal_ratio"] == "1.50"
    of_grid = {metric: text for (tuner, metric), text in shown.items() if tuner == "grid"}
    in_budgets = ("nominal_seconds", "overrun_percent", "warm_per_budget", "cold_per_budget", "nominal_ratio")
    assert {of_grid.pop(metric) for metric in in_budgets} == {"–"}
    assert "–" not in of_grid.values()
    assert (of_grid["warm_seconds"], of_grid["cold_seconds"]) == ("48.0", "37.0")
    assert of_grid["warm_ratio"] == "2.00"
    # Nothing is compared, so there is no budget to be over.
    assert shown["heuristic", "overrun_percent"] == "–"
    assert shown["heuristic", "nominal_seconds"] == "0"


def test_tuning_time_has_the_papers_claim_for_each_model_of_the_run():
    claims = {"logistic": "about 3 times (Log", "pmf": "about 2 times (PMF", "bnn": "4 to 6 times (Neu"}
    for models in (MODELS, ("pmf",)):
        caption = TABLES["tuning_time"](make_records(1, models)).caption
        assert {model for model in MODELS if claims[model] in caption} == set(models)


def test_modes_and_reference_say_what_was_reached():
    records = make_records(1)
    table = TABLES["modes"](records)
    headings = [column[-1] for column in table.columns]
    shown = {
        row.labels: dict(zip(headings, (cell.shown for cell in row.cells), strict=True)) for row in table.rows
    }
    assert shown[("PMF",)]["RMSE"] == "0.987"
    assert shown[("PMF",)]["Log-loss"] == "–"
    assert shown[("Neural network",)]["Pred. acc. (%)"] == "95.0"
    assert shown[("Logistic regression",)]["|∇ log π|"] == "78.9"
    table = TABLES["reference"](records)
    assert table.rows[0].labels == ("Logistic regression", "all")
    assert len(table.rows) == 1 + len(BLOCKS)
    assert "25% of the trajectories cut" in table.caption
    assert "PMF: 2 chains of 500 draws, 3 divergences" in table.caption
    assert "All have converged" in TABLES["modes"](records).caption
    far = next(
        record for record in records["reference"] if "converged" in record and record["model"] == "pmf"
    )
    far |= {"converged": False, "distance": None}
    table = TABLES["modes"](records)
    assert "NOT converged: PMF." in table.caption
    assert "–" in [cell.shown for cell in next(row for row in table.rows if row.labels == ("PMF",)).cells]
    del far["converged"]
    with pytest.raises(DataError, match="the MAP of pmf is of another version of sgtune"):
        TABLES["modes"](records)
    alone = TABLES["modes"](make_records(1, models=("pmf",)))
    assert alone.stub == ("Model",)


def test_tuners_that_chose_the_same_arm_show_the_same_numbers_and_share_the_bold():
    files = make_files(3, ("logistic",))
    choose(files, "logistic", "sgld", "grid", like="mamba-ksd")
    choose(files, "logistic", "sgld", "grid-ksd", like="heuristic")
    evaluation = files["evaluation"]["logistic/sgld"]
    shared = next(tuned["arm"] for tuned in evaluation["tuners"] if tuned["tuner"] == "grid")
    for row in evaluation["arms"][shared]["table"]:
        row["ksd"] /= 1e6
    records = records_of(files)
    for name in ("table1", "table6"):
        cells = cells_by(TABLES[name](records), "tuner", "metric", "sampler")
        ksd = {tuner: cell for (tuner, *rest), cell in cells.items() if rest == ["ksd", "sgld"]}
        assert {tuner for tuner, cell in ksd.items() if cell.best} == {"grid", "mamba-ksd"}
        assert (ksd["grid"].value, ksd["grid"].sd) == (ksd["mamba-ksd"].value, ksd["mamba-ksd"].sd)
        assert ksd["grid"].shown == ksd["mamba-ksd"].shown != ksd["heuristic"].shown


# What a tuner chose, or how good that is: all others say what it tried and what that took.
OF_CHOICES = {
    *("table1", "table2", "table3", "table5", "table6", "table7", "table8", "table9", "table10"),
    *("regret", "published_comparison", "xi_by_block", "ood"),
}
FIELDS = ("model", "sampler", "tuner", "metric", "detail")
WHY = " “– (no arm)”: the tuner chose none, because every arm that it tried diverged."


@pytest.fixture(scope="module", params=["sgld", "sghmc-cv"])
def with_and_without_arm(request):
    """The records of a run in which grid search found arms everywhere, and of one in which of one sampler it
    found none."""
    files = make_files(1)
    before = records_of(files)
    for model in MODELS:
        choose(files, model, request.param, "grid")
    return before, records_of(files), request.param


@pytest.mark.parametrize("name", TABLES)
def test_a_tuner_without_an_arm_is_told_and_nothing_else_on_the_page_changes(with_and_without_arm, name):
    before, after, sampler = with_and_without_arm
    before, after = (TABLES[name](records) for records in (before, after))
    assert after.caption == before.caption + (WHY if name in OF_CHOICES else "")
    assert [(row.labels, len(row.cells)) for row in after.rows] == [
        (row.labels, len(row.cells)) for row in before.rows
    ]
    assert (after.title, after.columns, after.stub) == (before.title, before.columns, before.stub)
    before, after = cells_by(before, *FIELDS), cells_by(after, *FIELDS)
    own = set()
    for key, cell in after.items():
        of_grid = (cell.sampler, cell.tuner) == (sampler, "grid")
        if name in OF_CHOICES and of_grid and before[key].shown != "–" and cell.detail != "paper":
            own.add(cell.shown)
            if cell.detail == "ratio":
                assert cell.shown == "–"
            else:
                assert (cell.shown, cell.value, cell.best) == (NO_ARM, None, False)
        else:
            assert cell.shown == before[key].shown
        # Where it was the best, another one is now.
        assert cell.best == before[key].best or (cell.sampler == sampler and name in OF_CHOICES)
    assert own == (
        {NO_ARM} | ({"–"} if name == "published_comparison" else set()) if name in OF_CHOICES else own
    )
    assert bool(own) == (name in OF_CHOICES)


def test_no_arm_is_printed_in_every_format(tmp_path):
    files = make_files(1, ("logistic",))
    choose(files, "logistic", "sgld", "grid")
    formats = {kind: tmp_path / f"table1.{kind}" for kind in ("csv", "md", "html")}
    make_table("table1", write_files(files, tmp_path / "run"), **formats)
    texts = {kind: path.read_text(encoding="utf-8") for kind, path in formats.items()}
    table = pd.read_csv(formats["csv"]).set_index(["tuner", "sampler"])
    assert table.loc[("grid", "sgld"), "shown"].tolist() == [NO_ARM] * 2
    assert texts["csv"].count(NO_ARM) == 2
    assert texts["md"].count(f"| {NO_ARM} |") == 2
    assert texts["html"].count(f'<td class="missing">{NO_ARM}</td>') == 2
    assert all(WHY in texts[kind] for kind in ("md", "html"))


def test_ood_table_says_if_no_tuner_found_an_arm():
    files = make_files(1, ("bnn",))
    for sampler in SAMPLERS:
        for tuned in files["tuning"][f"bnn/{sampler}"]["tuners"]:
            choose(files, "bnn", sampler, tuned["tuner"])
    assert "There is nothing to show: no tuner found an arm." in TABLES["ood"](records_of(files)).caption


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
    assert "The run went by these." in table.caption
    assert "calibration.table" not in table.caption


def test_cost_of_a_step_beside_the_table_that_the_run_went_by():
    given = [
        {"sampler": "sghmc", "batch_size": 8_000, "n_leapfrog": 10, "seconds_per_step": 0.004},
        {"sampler": "sgld", "batch_size": 8_000, "n_leapfrog": None, "seconds_per_step": 0.008},
        # A shape that this run does not have.
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
    assert "The run went by these." not in table.caption


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
    "sweep_grid": 18,
    "estimate_discrepancies": 3,
    "measure_widths": 2,
}


def test_timings_have_every_rule_in_the_order_of_the_pipeline_and_the_sum(tmp_path):
    rules = "".join(path.read_text() for path in (WORKFLOW / "rules").glob("*.smk"))
    assert all(f"rule {rule}:" in rules for rule in RULES)
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
