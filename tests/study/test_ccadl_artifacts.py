"""The tables and figures of the CCAdL study, from small records."""

# ruff: noqa: RUF001 - tables print Greek letters

import csv
import json

import numpy as np
import pytest
from ccadl_records import PROVENANCE, PUBLISHED, cells_of, logistic_records, normal_record
from config_files import valid
from matplotlib.figure import Figure
from sgtune.study.ccadl.deviations_table import ccadl_deviations
from sgtune.study.ccadl.findings import order_of, pairs_said
from sgtune.study.ccadl.logistic_table import logistic_convergence, logistic_errors
from sgtune.study.ccadl.looks import THIN, draw_runs
from sgtune.study.ccadl.normal_order import normal_order
from sgtune.study.ccadl.normal_table import normal, normal_details
from sgtune.study.report.layout import DASH, Cell
from sgtune.study.report.studies import STUDIES

from sgtune.study.report import make_figure, make_table
from sgtune.study.report.records import load_records
from sgtune.support.files import write_json


@pytest.fixture
def records():
    published = load_records([PUBLISHED], STUDIES["ccadl"].kinds)["published"]
    times = {"sghmc": [236, 333, 29.8, 39.3], "sgnht": [238, 407, 26.7, 55], "ccadl": [238, 402, 26.7, 80]}
    own = [
        normal_record(method, rmse, times[method])
        for method, rmse in (("sghmc", 3), ("sgnht", 2), ("ccadl", 1))
    ]
    return {"normal": own, "published": published}


def test_published_numbers_are_the_papers():
    rows = load_records([PUBLISHED], STUDIES["ccadl"].kinds)["published"]
    assert len([row for row in rows if row["table"] == "table1"]) == 24
    values = {
        (r["model"], r["sampler"], r["step_size"], r["friction"], r["metric"]): r["value"] for r in rows
    }
    assert values["normal", "sghmc", "0.01", "1", "density_rmse"] == 0.0531
    assert values["normal", "ccadl", "0.01", "10", "autocorrelation_time"] == 54.43
    assert values["normal", "sgnht", "0.001", "10", "autocorrelation_time"] == 406.71
    assert values["letter", "", "", "", "n_parameters"] == 4326
    assert values["connect-4", "", "", "", "n_test"] == 13_511


def test_times_stand_beside_the_papers_and_are_counted(records):
    table = normal(records)
    cells = cells_of(table)
    where = "h = 0.001, A = 10"
    assert cells["sgnht", "time_paper", where].shown == "406.71"
    assert cells["sgnht", "time_ratio_gamma", where].value == pytest.approx(407 / 406.71)
    assert cells["ccadl", "time_ratio_gamma", "h = 0.01, A = 10"].value == pytest.approx(80 / 54.43)
    assert "Of 12 times of the paper, 11 are within 20% of the time to a negative pair of γ" in table.caption
    assert "and 1 of the time of μ" in table.caption
    assert "γ: mixes more slowly than μ, and most of its times are nearer to the paper's." in table.caption
    assert "sd of √(2/N), 14%" in table.caption
    assert [heading for _, heading in table.columns] == [
        "h = 0.001, A = 1",
        where,
        "h = 0.01, A = 1",
        "h = 0.01, A = 10",
    ]


def test_a_sampler_is_best_only_where_it_differs_from_all_others(records):
    best = {key[0] for key, cell in cells_of(normal(records)).items() if cell.best}
    assert best == {"ccadl"}
    records["normal"][1] = normal_record("sgnht", 1.0001, [238, 407, 26.7, 55])
    assert not any(cell.best for cell in cells_of(normal(records)).values())


def test_a_sampler_that_the_paper_lacks_has_no_paper_rows(records):
    records["normal"].append(normal_record("mccadl", 0.5, [1, 1, 1, 1]))
    labels = [row.labels for row in normal(records).rows]
    assert ("mCCAdL", "Time to negative pair, γ") in labels
    assert ("mCCAdL", "Time, paper") not in labels
    assert ("CCAdL", "Time, paper") in labels


def test_details_have_a_bias_only_where_it_differs_from_zero_and_the_clipped_share(records):
    cells = cells_of(normal_details(records))
    where = "h = 0.01, A = 1"
    assert cells["ccadl", "density_bias_mu", where].value == pytest.approx(0.2)
    assert cells["ccadl", "density_bias_gamma", where].shown == DASH
    assert cells["sghmc", "clipped_percent", where].value == 25
    assert cells["sghmc", "friction_needed", where].value == 5.5
    assert ("CCAdL", "Clipped (%)") not in [row.labels for row in normal_details(records).rows]


def test_a_chain_that_diverged_is_left_out_of_means_and_said_to(records):
    cell = records["normal"][2]["cells"][0]
    cell["replicates"][0] = {"replicate": 0, "diverged": True, "statistics": {}}
    records["normal"][1]["cells"][0]["replicates"] = [
        {"replicate": 0, "diverged": True, "statistics": {}}
    ] * 2
    cells = cells_of(normal(records))
    where = "h = 0.001, A = 1"
    assert cells["ccadl", "density_rmse_mu", where].shown.endswith("(3/4)")
    assert not cells["ccadl", "density_rmse_mu", where].best
    assert cells["sgnht", "density_rmse_mu", where].shown == "diverged"
    assert cells["sgnht", "time_ratio_gamma", where].value is None


def test_without_clipping_no_more_friction_is_needed(records):
    for cell in records["normal"][0]["cells"]:
        for run in cell["replicates"]:
            run["statistics"] = {"clipped_share": 0.0, "friction_needed": float(cell["friction"])}
    cells = cells_of(normal_details(records))
    assert cells["sghmc", "clipped_percent", "h = 0.01, A = 10"].shown == "0"
    assert cells["sghmc", "friction_needed", "h = 0.01, A = 10"].shown == "≤ 10"


def test_orders_are_those_of_two_standard_errors_and_stand_beside_the_papers(records):
    assert order_of((1.0, 0.3), (2.0, 0.3)) == "<"
    assert order_of((2.0, 0.3), (1.0, 0.3)) == ">"
    assert order_of((1.0, 0.3), (1.8, 0.3)) == "not separated"
    assert order_of((1.0, 0.3), (9.0, None)) is None
    records["normal"][0] = normal_record("sghmc", 1.0001, [236, 333, 29.8, 39.3])
    records["normal"][1]["cells"][3]["replicates"][0] = {"replicate": 0, "diverged": True, "statistics": {}}
    table = normal_order(records)
    signs = {row.labels: [cell.shown for cell in row.cells] for row in table.rows}
    assert signs["CCAdL, SGNHT", "RMSE, μ"] == ["<", "<", "<", DASH]
    assert signs["CCAdL, SGNHT", "RMSE, paper"] == ["<", "<", "<", "<"]
    assert signs["CCAdL, SGHMC", "RMSE, γ"] == ["not separated"] * 4
    # Of the paper's Table 1: 0.0031 against 0.0029 at h = 0.001 and A = 10.
    assert signs["CCAdL, SGHMC", "RMSE, paper"] == ["<", ">", "<", "<"]
    assert "CCAdL has a smaller error than SGNHT in 6 of 6 comparisons" in table.caption
    assert "Algorithm 1" not in table.caption


def test_a_bias_of_algorithm_1_is_said_where_it_is_separated_from_none(records):
    records["normal"].append(normal_record("mccadl", 0.5, [1, 1, 1, 1]))
    for i, run in enumerate(records["normal"][2]["cells"][3]["replicates"]):
        run["mu"] = run["mu"] | {"sd_ratio": 0.95 + 0.001 * i}
    caption = normal_order(records).caption
    assert "At h = 0.01, A = 10 the sd of μ by CCAdL is 4.8% ± 0.1% too small" in caption
    assert "By mCCAdL, whose splitting is symmetric, it differs by 0.0% ± 0.0%" in caption


def test_passes_are_counted_to_the_predictions_of_nuts():
    cells = cells_of(logistic_convergence(logistic_records()))
    first, second = "h = 0.1, A = 10", "h = 0.2, A = 10"
    assert cells["ccadl", "passes_to_reference", first].value == 3
    assert cells["sgnht", "passes_to_reference", first].shown == "> 4"
    assert cells["ccadl", "passes_to_reference", second].shown == "diverged"
    assert cells["ccadl", "log_likelihood_end", first].best
    # One sampler reaches the level in all its runs, the other in none.
    assert cells["ccadl", "passes_to_reference", first].best
    assert cells["ccadl", "passes_to_reference", first].se == pytest.approx(np.sqrt(1 / 12 / 3))


def test_errors_are_over_the_sds_of_nuts():
    table = logistic_errors(logistic_records())
    cells = cells_of(table)
    # The chains have variance 4 and means 0, 0.1 and 0.2.
    assert cells["sgnht", "sd_ratio_2", "h = 0.1, A = 10"].value == pytest.approx(np.sqrt(4 + 0.02 / 3))
    assert cells["sgnht", "sd_ratio_5", "h = 0.1, A = 10"].value == 1
    assert cells["ccadl", "sd_ratio_2", "h = 0.2, A = 10"].shown == "diverged"
    assert not [row for row in table.rows if "whitened" in row.labels[1]]
    assert "belongs to n = 100 at h = 0.1, A = 10, 100 at h = 0.2, A = 10" in table.caption


def test_clipping_and_costs_are_said_where_the_files_have_them():
    records = logistic_records(("sgnht", "ccadl"))
    for table in (logistic_convergence(records), logistic_errors(records)):
        assert not [row for row in table.rows if row.labels[1] in ("Clipped (%)", "A needed")]
    caption = logistic_convergence(records).caption
    assert "Seconds per pass" not in caption
    assert "Least time" not in caption
    best = "Fewest passes to NUTS, by more than two standard errors: CCAdL at h = 0.1, A = 10; no sampler in 1 of 2"
    assert caption.startswith(best)
    # There is no comparison if a run of one sampler has diverged.
    assert (
        "end, by more than two standard errors: CCAdL against SGNHT below in 0, above in 1 of 1 columns."
        in caption
    )
    setting = {"step_size": 0.2, "friction": 10, "batch_size": 5, "steps": 50}
    for record, factor in zip(records["logistic_curves"], (1, 4), strict=True):
        record["cost"] = {**setting, "seconds": [factor * 0.1] * 9, "baseline_seconds": [0.1] * 9}
    for run in records["logistic_draws"][0]["cells"][0]["replicates"]:
        run["statistics"] = {"clipped_share": 1.0, "friction_needed": 60.0 + run["replicate"]}
    table = logistic_convergence(records)
    cells = cells_of(table)
    assert cells["ccadl", "seconds_per_pass", "h = 0.2, A = 10"].value == pytest.approx(4)
    assert cells["ccadl", "seconds_per_pass", "h = 0.1, A = 10"].value is None
    assert cells["sgnht", "seconds_per_pass", "h = 0.2, A = 10"].shown == "1.00"
    # 3 passes, read off with an error of rounding of sqrt(1 / 12 / 3) = 0.17, of four times the cost.
    assert "in passes of SGNHT: CCAdL 12.00 ± 0.67 (h = 0.1, A = 10).\n" in table.caption
    assert "median of at least 9 rounds of 50 steps in turn with SGNHT" in table.caption
    errors = cells_of(logistic_errors(records))
    assert errors["sgnht", "clipped_percent", "h = 0.1, A = 10"].shown == "100"
    assert errors["sgnht", "friction_needed", "h = 0.1, A = 10"].value == 61


def test_deviations_follow_the_configuration():
    config = valid()

    def whats(section):
        record = {"configuration": {"ccadl": section}}
        return {row.labels: row.cells[1].text for row in ccadl_deviations({"settings": [record]}).rows}

    paper = whats(config["ccadl"])
    assert ("Normal", "Draws") not in paper
    assert paper["All", "Further samplers"] == "mCCAdL"
    config["ccadl"]["normal"]["steps"] = 5_000
    config["ccadl"]["data"]["simulated"] = 600
    other = whats(config["ccadl"])
    assert other["Normal", "Draws"] == "5,000 in each of 10 chains"
    assert other["All", "Data sets"] == "600 simulated rows of each"


def test_files_of_every_format_are_written_with_their_provenance(records, tmp_path):
    paths = [PUBLISHED]
    every = {**logistic_records(), "normal": records["normal"]}
    for kind, found in every.items():
        for record in found:
            paths.append(tmp_path / f"ccadl/{kind}/{record.get('method', 'nuts')}.json")
            write_json(paths[-1], record)
    paths.append(tmp_path / "ccadl/settings.json")
    write_json(paths[-1], {"configuration": {"ccadl": valid()["ccadl"]}, "provenance": PROVENANCE})
    for name in (
        "normal",
        "normal_order",
        "normal_details",
        "logistic_convergence",
        "logistic_errors",
        "ccadl_deviations",
    ):
        out = {ending: tmp_path / f"{name}.{ending}" for ending in ("csv", "md", "html")}
        make_table(name, paths, **out)
        with out["csv"].open(encoding="utf-8") as file:
            shown = [row["shown"] for row in csv.DictReader(file)]
        assert len(shown) > 5
        printed = out["md"].read_text(encoding="utf-8").replace("\\|", "|")
        assert all(text in printed for text in shown)
        assert json.loads((tmp_path / f"{name}.json").read_text())["sources"]["run"] == ["mine"]
    for name in ("normal_densities", "logistic_regression"):
        make_figure(name, paths, svg=tmp_path / "f.svg", pdf=tmp_path / "f.pdf")
        assert "mine" in (tmp_path / "f.svg").read_text()


def test_the_line_of_a_mean_is_thin_after_a_run_has_diverged():
    axis = Figure().subplots()
    values = np.array([[1.0, 2.0, np.nan, np.nan], [3.0, 4.0, 5.0, np.nan]])
    draw_runs(axis, [1, 2, 3, 4], values, {"linewidth": 1.1})
    whole, thin = axis.lines
    assert np.array_equal(whole.get_ydata(), [2, 3, np.nan, np.nan], equal_nan=True)
    assert np.array_equal(thin.get_ydata(), [np.nan, 3, 5, np.nan], equal_nan=True)
    assert thin.get_linewidth() == THIN < whole.get_linewidth()
    draw_runs(axis, [1, 2], values[:, :2], {})
    assert len(axis.lines) == 3


def test_nothing_is_claimed_of_two_runs():
    def cells(n):
        numbers = {"finite": n, "replicates": n, "se": 0.1}
        return {
            method: [{"error_percent": Cell("", method, "", "error_percent", value, **numbers)}]
            for method, value in (("ccadl", 1.0), ("sgnht", 2.0))
        }

    assert pairs_said(cells(2), "error_percent") == ""
    said = pairs_said(cells(3), "error_percent", "Letter: ")
    assert said.startswith("Letter: Error (%), by more than two")
    assert said.endswith("CCAdL against SGNHT below in 1, above in 0 of 1 columns.")
