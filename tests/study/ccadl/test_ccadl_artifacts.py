"""The tables and figures of the study, from small records."""

import numpy as np
import pytest
from ccadl_records import CELLS, LOST, PUBLISHED, drbm_records, logistic_records, normal_record
from matplotlib.figure import Figure

from sgtune.study.ccadl.artifacts import STUDY
from sgtune.study.ccadl.figures import (
    THIN,
    draw_runs,
    drbm_curves,
    ellipse_of,
    logistic_regression,
    normal_densities,
)
from sgtune.study.ccadl.tables import (
    drbm_errors,
    drbm_sets,
    logistic_convergence,
    logistic_errors,
    normal,
    normal_details,
    passes_to,
    pooled,
    pooled_sd_ratio,
    relative_cost,
)
from sgtune.study.report.records import load_records
from sgtune.study.report.table import DASH

WHERE = "h = 0.001, A = 10"


@pytest.fixture
def records():
    times = {"sghmc": [236, 333, 29.8, 39.3], "sgnht": [238, 407, 26.7, 55], "ccadl": [238, 402, 26.7, 80]}
    own = [normal_record(method, 3 - i, times[method]) for i, method in enumerate(times)]
    return {"normal": own, "published": load_records([PUBLISHED], STUDY.kinds)["published"]}


def keyed(cells):
    found = {(cell.sampler, cell.metric, cell.detail): cell for cell in cells}
    assert len(found) == len(cells)
    return found


def test_published_numbers_are_the_papers(records):
    rows = records["published"]
    assert len([row for row in rows if row["table"] == "table1"]) == 24
    names = ("model", "sampler", "step_size", "friction", "metric")
    values = {tuple(row[name] for name in names): row["value"] for row in rows}
    assert values["normal", "sghmc", "0.01", "1", "density_rmse"] == 0.0531
    assert values["normal", "ccadl", "0.01", "10", "autocorrelation_time"] == 54.43
    assert values["normal", "sgnht", "0.001", "10", "autocorrelation_time"] == 406.71
    assert values["letter", "", "", "", "n_parameters"] == 4326
    assert values["connect-4", "", "", "", "n_test"] == 13_511


def test_times_stand_beside_the_papers_for_samplers_that_it_has(records):
    records["normal"].append(normal_record("mccadl", 0.5, [1, 1, 1, 1]))
    cells = keyed(normal(records))
    assert cells["sgnht", "time_paper", WHERE].shown == "406.71"
    assert cells["sgnht", "time_gamma", WHERE].value == pytest.approx(407)
    assert cells["sgnht", "batch_time_gamma", WHERE].value == pytest.approx(407 / 2)
    assert cells["sgnht", "time_ratio_gamma", WHERE].value == pytest.approx(407 / 406.71)
    assert cells["ccadl", "time_ratio_mu", "h = 0.01, A = 10"].value == pytest.approx(0.79 * 80 / 54.43)
    assert not {"time_paper", "density_rmse_paper", "time_ratio_mu"} & {
        metric for sampler, metric, _ in cells if sampler == "mccadl"
    }


def test_a_sampler_is_best_only_where_it_differs_from_all_others(records):
    assert {cell.sampler for cell in normal(records) if cell.best} == {"ccadl"}
    records["normal"][1] = normal_record("sgnht", 1.0001, [238, 407, 26.7, 55])
    assert not any(cell.best for cell in normal(records))


def test_a_chain_that_diverged_is_left_out_of_means(records):
    records["normal"][2]["cells"][1]["replicates"][0] = LOST
    records["normal"][1]["cells"][1]["replicates"] = [LOST] * 2
    cells = keyed(normal(records))
    assert cells["ccadl", "density_rmse_mu", WHERE].shown.endswith("(3/4)")
    assert not cells["ccadl", "density_rmse_mu", WHERE].best
    assert cells["sgnht", "density_rmse_mu", WHERE].shown == "diverged"
    assert cells["sgnht", "time_ratio_gamma", WHERE].value is None


def test_details_have_a_bias_only_where_it_differs_from_zero_and_the_clipped_share(records):
    cells = keyed(normal_details(records))
    assert cells["ccadl", "density_bias_mu", WHERE].value == pytest.approx(0.2)
    assert cells["ccadl", "density_bias_mu", WHERE].se == pytest.approx(0.001 / 0.4)
    assert cells["ccadl", "density_bias_gamma", WHERE].shown == DASH
    assert cells["sghmc", "clipped_percent", WHERE].value == 25
    assert cells["sghmc", "friction_needed", WHERE].value == 5.5
    assert ("ccadl", "clipped_percent", WHERE) not in cells
    for run in records["normal"][0]["cells"][1]["replicates"]:
        run["statistics"] = {"clipped_share": 0.0, "friction_needed": 10.0}
    cells = keyed(normal_details(records))
    assert cells["sghmc", "clipped_percent", WHERE].shown == "0"
    assert cells["sghmc", "friction_needed", WHERE].shown == "≤ 10"


@pytest.mark.parametrize(
    ("values", "reached"),
    [
        ([-3, -1, -1, -1], 2),
        ([-3, -1, -3, -1], 4),
        ([-1, -1, -1, -3], None),
        ([-3, -1, None, -1], 4),
        ([-3, -1, -1, float("nan")], None),
    ],
)
def test_passes_are_counted_until_a_curve_stays_near(values, reached):
    assert passes_to([1, 2, 3, 4], values, -1.5) == reached


def test_passes_are_counted_to_the_predictions_of_nuts_and_costs_are_where_they_were_measured():
    records, first, second = logistic_records(), "h = 0.1, A = 10", "h = 0.2, A = 10"
    assert "seconds_per_pass" not in {cell.metric for cell in logistic_convergence(records)}
    setting = {"step_size": 0.2, "friction": 10, "batch_size": 5, "steps": 50}
    for record, factor in zip(records["logistic_curves"], (1, 4), strict=True):
        record["cost"] = {**setting, "seconds": [factor * 0.1] * 9, "baseline_seconds": [0.1] * 9}
    cells = keyed(logistic_convergence(records))
    assert cells["ccadl", "passes_to_reference", first].value == 3
    assert cells["sgnht", "passes_to_reference", first].shown == "> 4"
    assert cells["ccadl", "passes_to_reference", second].shown == "diverged"
    assert cells["ccadl", "log_likelihood_end", first].best
    # One sampler reaches the level in all its runs, the other in none.
    assert cells["ccadl", "passes_to_reference", first].best
    # Runs are read every pass.
    assert cells["ccadl", "passes_to_reference", first].se == pytest.approx(np.sqrt(1 / 12 / 3))
    assert cells["ccadl", "seconds_per_pass", second].value == pytest.approx(4)
    assert cells["ccadl", "seconds_per_pass", first].value is None
    assert cells["sgnht", "seconds_per_pass", second].shown == "1.00"
    assert cells["nuts", "log_likelihood_end", first].value == -0.1


def test_errors_are_over_the_sds_of_nuts():
    records = logistic_records()
    for run in records["logistic_draws"][0]["cells"][0]["replicates"]:
        run["statistics"] = {"clipped_share": 1.0, "friction_needed": 60.0 + run["replicate"]}
    cells, where = keyed(logistic_errors(records)), "h = 0.1, A = 10"
    # The chains have variance 4 and means 0, 0.1 and 0.2.
    assert cells["sgnht", "sd_ratio_2", where].value == pytest.approx(np.sqrt(4 + 0.02 / 3))
    assert cells["sgnht", "sd_ratio_5", where].value == 1
    assert cells["sgnht", "xi_rel_x100", where].value == pytest.approx(10)
    assert cells["ccadl", "sd_ratio_2", "h = 0.2, A = 10"].shown == "diverged"
    assert "xi_white_x100" not in {metric for _, metric, _ in cells}
    assert cells["sgnht", "clipped_percent", where].shown == "100"
    assert cells["sgnht", "friction_needed", where].value == 61
    assert cells["nuts", "block_r_hat_max", where].value == 1.01


def test_errors_of_predictions_stand_beside_the_maps_and_a_set_without_source_is_marked():
    records = drbm_records()
    cells = keyed(drbm_errors(records))
    assert cells["ccadl", "error_percent", "h = 1, A = 10"].value == pytest.approx(21)
    assert cells["ccadl", "error_percent", "h = 2, A = 10"].shown.endswith("(2/3)")
    assert cells["map", "error_percent", "h = 2, A = 10"].value == 25
    assert (cells["", "error_percent", ""].model, cells["", "error_percent", ""].shown) == (
        "acoustic",
        "unavailable",
    )
    assert [
        cell.shown for cell in drbm_errors(drbm_records(["acoustic"]) | {"drbm": records["drbm"][2:]})
    ] == ["unavailable"]
    sizes = {(cell.model, cell.metric, cell.detail): cell.shown for cell in drbm_sets(records)}
    assert sizes["letter", "n_parameters", "here"] == "241"
    assert sizes["acoustic", "n_parameters", "here"] == "unavailable"


def test_relative_cost_is_a_median_that_one_slow_round_does_not_move():
    ratios, baseline = np.array([3.0, 4.0, 5.0, 6.0, 700.0]), np.random.default_rng(0).uniform(1, 2, 5)
    middle, error = relative_cost({"seconds": ratios * baseline, "baseline_seconds": baseline})
    assert middle == pytest.approx(5)
    # The median absolute deviation is 1; of normal ratios it is 0.6745 sds.
    assert error == pytest.approx(np.sqrt(np.pi / 2) / 0.6745 / np.sqrt(5), rel=1e-3)


def test_chains_are_pooled_as_if_they_were_one_and_the_error_is_the_jackknifes():
    apart = np.array([[[0, 1]], [[2, 0]], [[1, 1]]])
    chains = apart + np.random.default_rng(0).standard_normal((3, 5_000, 2))
    runs = [{"diverged": False, "mean": c.mean(axis=0), "covariance": np.cov(c.T)} for c in chains]
    mean, covariance = pooled(runs)
    assert np.allclose(mean, chains.reshape(-1, 2).mean(axis=0))
    assert np.allclose(covariance, np.cov(chains.reshape(-1, 2).T), rtol=1e-3)
    assert np.array_equal(pooled([*runs, {"diverged": True}])[1], covariance)
    assert pooled([{"diverged": True}]) is None
    ratio, error = pooled_sd_ratio(runs, 1, 2.0)
    left = [np.sqrt(pooled(runs[:i] + runs[i + 1 :])[1][1, 1]) / 2 for i in range(3)]
    assert ratio == pytest.approx(chains[:, :, 1].std() / 2, rel=1e-3)
    assert error == pytest.approx(np.sqrt(2 * np.var(left)), rel=1e-9)
    assert pooled_sd_ratio(runs[:2], 0, 2.0)[1] is None
    assert pooled_sd_ratio([], 0, 2.0) == (None, None)


def test_ellipses_hold_95_percent_of_a_gaussian():
    mean, covariance = np.array([1.0, -2.0]), np.array([[2.0, 0.9], [0.9, 0.5]])
    inverse = np.linalg.inv(covariance)
    outline = ellipse_of(mean, covariance) - mean
    bounds = np.einsum("ni,ij,nj->n", outline, inverse, outline)
    # The squared distance is chi-squared with two degrees of freedom: exp(-q / 2) is outside.
    assert np.allclose(np.exp(-bounds / 2), 0.05)


def test_the_line_of_a_mean_is_thin_after_a_run_has_diverged():
    axis = Figure().subplots()
    values = np.array([[1.0, 2.0, np.nan, np.nan], [3.0, 4.0, 5.0, np.nan]])
    draw_runs(axis, [1, 2, 3, 4], values, linewidth=1.1)
    whole, thin = axis.lines
    assert np.array_equal(whole.get_ydata(), [2, 3, np.nan, np.nan], equal_nan=True)
    assert np.array_equal(thin.get_ydata(), [np.nan, 3, 5, np.nan], equal_nan=True)
    assert thin.get_linewidth() == THIN < whole.get_linewidth()
    draw_runs(axis, [1, 2], values[:, :2])
    assert len(axis.lines) == 3


@pytest.mark.parametrize("missing", [["acoustic"], ["acoustic", "letter"]])
def test_figures_have_a_panel_of_each_setting_also_where_sets_are_missing(records, missing):
    assert len(normal_densities(records).axes) == 2 * len(CELLS)
    assert len(logistic_regression(logistic_records()).axes) == 4
    found = drbm_records(missing)
    found["drbm"] = [one for one in found["drbm"] if one["missing"] or one["set"] not in missing]
    lines = [line for axis in drbm_curves(found).axes for line in axis.lines]
    assert bool(lines) == ("letter" not in missing)
