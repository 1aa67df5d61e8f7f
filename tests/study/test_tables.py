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
    TUNERS,
    make_records,
    make_tables,
    record_of,
)

from sgtune.errors import DataError
from sgtune.study.artifacts import TABLES, artifact
from sgtune.study.artifacts.records import load_records
from sgtune.study.artifacts.regret import regret_cells
from sgtune.study.artifacts.tables import SOURCES


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
    assert set(table["model"]) == {artifact(name).model}
    record = record_of(load_records(paths), artifact(name).model, "sgld", "mamba-ksd")
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


def test_modes_say_what_was_reached():
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
