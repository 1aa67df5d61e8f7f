"""The contents of each table, from small records."""

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
    cells_by,
    make_records,
    make_tables,
    record_of,
)

from sgtune.study.report import TABLES, artifact
from sgtune.study.report.means import SOURCES, evaluation_cells
from sgtune.study.report.records import load_records
from sgtune.support.errors import DataError


@pytest.fixture(scope="module", params=[1, 3], ids=["one replicate", "three replicates"])
def made(request, tmp_path_factory):
    return make_tables(request.param, tmp_path_factory.mktemp("run"))


SHORT = {"table1": ("logistic", 6), "table2": ("pmf", 4), "table3": ("bnn", 6)}
OF_SHORT = {
    "logistic": ["ksd", "relative_sd_error_x100"],
    "pmf": ["ksd", "relative_sd_error_x100"],
    "bnn": ["log_loss", "brier", "ece_percent", "mce_percent"],
}


@pytest.mark.parametrize("name", SHORT)
def test_short_tables_hold_mean_and_sd_of_the_replicates_and_name_the_diverged(made, name):
    folder, paths = made
    model, n_tuners = SHORT[name]
    table = pd.read_csv(folder / f"{name}.csv").set_index(["tuner", "metric", "sampler"])
    assert len(table) == n_tuners * len(OF_SHORT[model]) * 6
    record = record_of(load_records(paths), model, "sgld", "grid")
    metrics = table.index.unique("metric")
    for metric in metrics:
        key, factor = SOURCES[metric]
        values = np.array([factor * row[key] for row in record["table"]])
        cell = table.loc["grid", metric, "sgld"]
        assert cell["value"] == pytest.approx(values.mean(), rel=1e-12)
        assert cell["replicates"] == values.size
        if values.size > 1:
            assert cell["sd"] == pytest.approx(values.std(ddof=1), rel=1e-9)
            assert table.loc["grid", metric, "sghmc-cv"]["shown"].endswith("(2/3)")
        else:
            assert math.isnan(cell["sd"])
            assert "±" not in cell["shown"]
            assert not table["best"].any()
        assert table.loc["heuristic", metric, "sghmc"]["shown"] == "diverged"
    assert list(metrics) == OF_SHORT[model]


def replicates_of(values, arms):
    """One sampler's record of a tuner, of whose replicates ``values`` are the KSDs."""
    whose = {"model": "logistic", "sampler": "sgld", "tuner": "mamba-ksd", "best": {}, "arms": [{}] * arms}
    return whose | {"table": [{"replicate": i, "ksd": value} for i, value in enumerate(values)]}


def test_standard_errors_are_of_the_tuning_runs_where_these_differ_more_than_replicates():
    values = [1.0, 5.0, 1.2, 5.2, 1.1, 5.1]
    [alone] = evaluation_cells(replicates_of(values, arms=1), ["ksd"])
    assert alone.se == pytest.approx(np.std(values, ddof=1) / math.sqrt(6))
    # Two tuning runs, whose arms have means 1.1 and 5.1: six replicates say nothing about a third arm.
    [cell] = evaluation_cells(replicates_of(values, arms=2), ["ksd"])
    assert (cell.value, cell.sd) == pytest.approx((alone.value, alone.sd))
    assert cell.se == pytest.approx(np.std([1.1, 5.1], ddof=1) / math.sqrt(2))
    [alike] = evaluation_cells(replicates_of([1.0, 1.0, 3.0, 3.0], arms=2), ["ksd"])
    assert alike.se == pytest.approx(np.std([1, 1, 3, 3], ddof=1) / 2)


KSDS = ("ksd", "ksd_se", "ksd_floor", "ksd_scaled", "ksd_scaled_se", "ksd_scaled_floor")


@pytest.mark.parametrize(
    ("name", "metrics"),
    [
        (
            "table6",
            [
                "relative_sd_error_x100",
                "xi_rel_x100",
                "xi_white_x100",
                *KSDS,
                "accuracy_percent",
                "n_samples",
            ],
        ),
        (
            "table8",
            [
                *("relative_sd_error_x100", "xi_rel_x100", "functional_error", *KSDS),
                *("rmse", "rmse_as_published", "n_samples"),
            ],
        ),
        (
            "table10",
            [
                "log_loss",
                "brier",
                "ece_percent",
                "mce_percent",
                "ece_as_published_percent",
                "mce_as_published_percent",
                "accuracy_percent",
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


def test_the_error_of_a_ksd_and_its_floor_have_no_spread():
    cells = cells_by(TABLES["table6"](make_records(3, ("logistic",))), "sampler", "tuner", "metric")
    assert cells["sgld", "mamba-ksd", "ksd"].sd > 0
    for metric, shown in {"ksd_floor": "2.80", "ksd_scaled_floor": "0.140"}.items():
        assert cells["sgld", "mamba-ksd", metric].shown == shown
    assert cells["sgld", "mamba-ksd", "ksd_se"].sd is None


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
        "Grid †",
        "Heuristic",
        "MAMBA-KSD scaled",
        "Theory",
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
