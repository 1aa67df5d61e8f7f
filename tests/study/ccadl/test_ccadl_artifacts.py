"""The tables and figures of the study, from small records."""

import numpy as np
import pytest
from config_files import ROOT
from matplotlib.figure import Figure

from sgtune.study.ccadl import tables
from sgtune.study.ccadl.artifacts import STUDY
from sgtune.study.ccadl.figures import draw_runs, ellipse_of
from sgtune.study.report.records import load_records
from sgtune.study.report.table import DASH

LOST = {"diverged": True}
FIRST, LAST = "h = 0.001, A = 1", "h = 0.01, A = 10"
OF_CLIPPING = ("clipped_percent", "friction_needed")
BIAS = {"mu": {"value": 0.04, "se": 0.001}, "gamma": {"value": 0.001, "se": 0.001}}


def record_of(method, runs, lost=None, of_cell=(), **common):
    """With both settings; the last run of the last setting is ``lost``."""
    both = runs, runs if lost is None else [*runs[:-1], lost]
    cells = [
        {"step_size": h, "friction": a, "replicates": [{"statistics": {}} | run for run in own]}
        | dict(of_cell)
        for (h, a), own in zip(((0.001, 1), (0.01, 10)), both, strict=True)
    ]
    return {"method": method, "cells": cells, **common}


def normal_record(method, rmse, time, lost=None):
    """Runs that differ by 0.1%. The time of μ is 21% shorter than that of γ."""
    own = {"batch_means_time": time / 2, "sd_ratio": 1.0}
    clipped = {"clipped_share": 0.25, "friction_needed": 4.0} if method == "sghmc" else {}
    runs = [{"diverged": False, "crossings": 0, "statistics": clipped} for _ in range(4)]
    for i, run in enumerate(runs):
        for name, factor in (("gamma", 1), ("mu", 0.79)):
            run[name] = own | {"density_rmse": rmse * (1 + 0.001 * i), "time": factor * time}
    both = dict.fromkeys(("mu", "gamma"), np.array([0.5, 1, 2, 1, 0.5]))
    common = {"edges": dict.fromkeys(both, np.linspace(0.0, 1.0, 6)), "exact": both}
    return record_of(method, runs, lost, of_cell={"density": both, "bias": BIAS}, **common)


@pytest.fixture
def records():
    times = {"sghmc": (3, 236), "sgnht": (2, 238), "ccadl": (1, 238)}
    published = load_records([ROOT / "workflow/resources/ccadl/published.csv"], STUDY.kinds)
    return {"normal": [normal_record(name, *own) for name, own in times.items()]} | {
        "published": published["published"]
    }


@pytest.fixture
def logistic():
    """CCAdL is as good as NUTS from the third pass on, and SGNHT is not; one run of CCAdL diverges."""

    def curves(method, end, lost=None):
        runs = [{"log_likelihoods": [-2, -0.3, end, end + 0.001 * i]} for i in range(3)]
        return record_of(method, runs, lost, passes=[1.0, 2.0, 3.0, 4.0])

    moments = {"diverged": False, "xi_white": None, "xi_rel": 0.1, "mean_error": 0.1}
    moments["covariance"] = [[4.0, 0.0], [0.0, 1.0]]
    runs = [moments | {"mean": [0.1 * i, 0.0]} for i in range(3)]
    common = {"coordinates": [1, 4], "truth_log_likelihood": -0.1}
    truth = {"mean": [0.0] * 5, "sd": [1.0] * 5, "diagnostics": {"r_hat": 1.01, "ess_bulk": 90.0}}
    lost = {"log_likelihoods": [-1, None, None, None]}
    return {
        "logistic_curves": [curves("sgnht", -0.5), curves("ccadl", -0.105, lost)],
        "logistic_draws": [record_of("sgnht", runs, **common), record_of("ccadl", runs, LOST, **common)],
        "logistic_reference": [truth],
    }


@pytest.fixture
def drbm():
    """Of letter, where a run of the last setting diverges, and of acoustic, which no source has."""
    runs = [{"errors": [0.5, 0.2 + 0.01 * i], "log_losses": [1.0, 0.5]} for i in range(3)]
    lost, of_letter = {"errors": [0.5, None], "log_losses": [1.0, None]}, {"set": "letter", "missing": None}
    without = {"set": "acoustic", "missing": "no source has it"}
    about = of_letter | {"passes": [1.0, 2.0], "burn_in_passes": 1.0}
    at_map = of_letter | {"test": {"accuracy": 0.75, "log_loss": 1.0}, "n_parameters": 241}
    own = [record_of(method, runs, lost, **about) for method in ("sgnht", "ccadl")]
    return {"drbm": [*own, without | {"method": "sgnht"}], "map": [at_map, without]}


def keyed(cells):
    found = {(cell.sampler, cell.metric, cell.detail): cell for cell in cells}
    assert len(found) == len(cells)
    return found


def test_times_stand_beside_the_papers_for_samplers_that_it_has(records):
    records["normal"].insert(0, normal_record("mccadl", 0.5, 1))
    cells = keyed(tables.normal(records))
    assert list(dict.fromkeys(sampler for sampler, *_ in cells)) == ["sghmc", "sgnht", "ccadl", "mccadl"]
    values = {
        **{("sghmc", "density_rmse_paper", LAST): 0.0132, ("sgnht", "time_paper", FIRST): 238.32},
        **{("sgnht", "time_gamma", FIRST): 238, ("sgnht", "batch_time_gamma", FIRST): 238 / 2},
        ("sgnht", "time_ratio_gamma", FIRST): 238 / 238.32,
        ("ccadl", "time_ratio_mu", LAST): 0.79 * 238 / 54.43,
    }
    assert [cells[where].value for where in values] == pytest.approx([*values.values()])
    of_mccadl = {metric for sampler, metric, _ in cells if sampler == "mccadl"}
    assert not {"time_paper", "density_rmse_paper", "time_ratio_mu"} & of_mccadl


def test_a_chain_that_diverged_is_left_out_of_means(records):
    records["normal"][2] = normal_record("ccadl", 1, 238, lost=LOST)
    records["normal"][1]["cells"][1]["replicates"] = [LOST] * 2
    cells = keyed(tables.normal(records))
    assert cells["ccadl", "density_rmse_mu", LAST].shown.endswith("(3/4)")
    assert not cells["ccadl", "density_rmse_mu", LAST].best
    assert cells["sgnht", "density_rmse_mu", LAST].shown == "diverged"
    assert cells["sgnht", "time_ratio_gamma", LAST].shown == "diverged"


def test_details_have_a_bias_only_where_it_differs_from_zero_and_the_clipped_share(records):
    for run in records["normal"][0]["cells"][1]["replicates"]:
        run["statistics"] = {"clipped_share": 0.0, "friction_needed": 10.0}
    cells = keyed(tables.normal_details(records))
    bias = cells["ccadl", "density_bias_mu", FIRST]
    assert (bias.value, bias.se) == pytest.approx((0.2, 0.001 / 0.4))
    assert cells["ccadl", "density_bias_gamma", FIRST].shown == DASH
    percent, needed = ([cells["sghmc", name, at] for at in (FIRST, LAST)] for name in OF_CLIPPING)
    assert [percent[0].value, needed[0].value] == [25, 4]
    assert [percent[1].shown, needed[1].shown] == ["0", "≤ 10"]
    assert ("ccadl", "clipped_percent", FIRST) not in cells


def test_passes_are_counted_until_a_curve_stays_near():
    for values, reached in (
        *(([-3, -1, -1, -1], 2), ([-3, -1, -3, -1], 4), ([-1, -1, -1, -3], None)),
        *(([-3, -1, None, -1], 4), ([-3, -1, -1, float("nan")], None)),
    ):
        assert tables.passes_to([1, 2, 3, 4], values, -1.5) == reached


def test_passes_are_counted_to_the_predictions_of_nuts_and_costs_are_where_they_were_measured(logistic):
    assert "seconds_per_pass" not in {cell.metric for cell in tables.logistic_convergence(logistic)}
    for record, factor in zip(logistic["logistic_curves"], (1, 4), strict=True):
        record["cost"] = {"step_size": 0.01, "friction": 10, "baseline_seconds": [0.1] * 9}
        record["cost"]["seconds"] = [factor * 0.1] * 9
    cells = keyed(tables.logistic_convergence(logistic))
    reached = cells["ccadl", "passes_to_reference", FIRST]
    # Runs are read every pass. SGNHT reaches the level in no run.
    assert (reached.value, reached.best, reached.se) == (3, True, pytest.approx(np.sqrt(1 / 12 / 3)))
    assert cells["sgnht", "passes_to_reference", FIRST].shown == "> 4"
    assert cells["ccadl", "passes_to_reference", LAST].finite == 2
    assert cells["ccadl", "log_likelihood_end", FIRST].best
    assert cells["ccadl", "seconds_per_pass", LAST].value == pytest.approx(4)
    assert cells["ccadl", "seconds_per_pass", FIRST].value is None
    assert cells["nuts", "log_likelihood_end", FIRST].value == -0.1


def test_errors_are_over_the_sds_of_nuts(logistic):
    cells = keyed(tables.logistic_errors(logistic))
    # The chains have variance 4 and means 0, 0.1 and 0.2.
    assert cells["sgnht", "sd_ratio_2", FIRST].value == pytest.approx(np.sqrt(4 + 0.02 / 3))
    assert cells["sgnht", "sd_ratio_5", FIRST].value == 1
    assert cells["sgnht", "xi_rel_x100", FIRST].value == pytest.approx(10)
    assert (cells["ccadl", "sd_ratio_2", LAST].finite, cells["ccadl", "xi_rel_x100", LAST].finite) == (2, 2)
    assert "xi_white_x100" not in {metric for _, metric, _ in cells}
    of_nuts = [cells["nuts", name, FIRST].value for name in ("block_r_hat_max", "block_ess_min")]
    assert of_nuts == [1.01, 90]


def test_errors_of_predictions_stand_beside_the_maps_and_a_set_without_source_is_marked(drbm, records):
    cells = keyed(tables.drbm_errors(drbm))
    assert cells["ccadl", "error_percent", FIRST].value == pytest.approx(21)
    assert cells["ccadl", "error_percent", LAST].shown.endswith("(2/3)")
    assert [cells["map", name, LAST].value for name in ("error_percent", "log_loss_end")] == [25, 1.0]
    lost = cells["", "error_percent", ""]
    assert (lost.model, lost.shown) == ("acoustic", "unavailable")
    found = [cell for cell in tables.drbm_sets(drbm | records) if cell.metric == tables.SIZES[-1]]
    sizes = {(cell.model, cell.detail): cell for cell in found}
    assert (sizes["letter", "here"].value, sizes["letter", "paper"].value) == (241, 4326)
    assert sizes["acoustic", "here"].shown == "unavailable"


def test_relative_cost_is_a_median_that_one_slow_round_does_not_move():
    ratios, baseline = np.array([3.0, 4.0, 5.0, 6.0, 700.0]), np.random.default_rng(0).uniform(1, 2, 5)
    middle, error = tables.relative_cost({"seconds": ratios * baseline, "baseline_seconds": baseline})
    assert middle == pytest.approx(5)
    # The median absolute deviation is 1; of normal ratios it is 0.6745 sds.
    assert error == pytest.approx(np.sqrt(np.pi / 2) / 0.6745 / np.sqrt(5), rel=1e-3)


def test_chains_are_pooled_as_if_they_were_one_and_the_error_is_the_jackknifes():
    apart = np.array([[[0, 1]], [[2, 0]], [[1, 1]]])
    chains = apart + np.random.default_rng(0).standard_normal((3, 5_000, 2))
    runs = [{"diverged": False, "mean": c.mean(axis=0), "covariance": np.cov(c.T)} for c in chains]
    mean, covariance = tables.pooled([*runs, LOST])
    assert np.allclose(mean, chains.reshape(-1, 2).mean(axis=0))
    assert np.allclose(covariance, np.cov(chains.reshape(-1, 2).T), rtol=1e-3)
    ratio, error = tables.pooled_sd_ratio(runs, 1, 2.0)
    left = [np.sqrt(tables.pooled(runs[:i] + runs[i + 1 :])[1][1, 1]) / 2 for i in range(3)]
    assert ratio == pytest.approx(chains[:, :, 1].std() / 2, rel=1e-3)
    assert error == pytest.approx(np.sqrt(2 * np.var(left)), rel=1e-9)
    assert tables.pooled_sd_ratio(runs[:2], 0, 2.0)[1] is None
    assert tables.pooled_sd_ratio([], 0, 2.0) == (None, None)


def test_ellipses_hold_95_percent_of_a_gaussian():
    mean, covariance = np.array([1.0, -2.0]), np.array([[2.0, 0.9], [0.9, 0.5]])
    outline = ellipse_of(mean, covariance) - mean
    # The squared distance is chi-squared with two degrees of freedom: exp(-q / 2) is outside.
    squares = np.sum(outline * np.linalg.solve(covariance, outline.T).T, axis=1)
    assert np.allclose(np.exp(-squares / 2), 0.05)
    # A chain that never moves has a point.
    assert np.allclose(ellipse_of(mean, np.zeros((2, 2))), mean)


def test_curves_are_thick_as_far_as_all_runs_have_numbers_and_thin_from_there_on():
    axis = Figure().subplots()
    draw_runs(axis, [1, 2, 3, 4], np.array([[1, 2, 3, 4], [3, 4, np.nan, np.nan]], float), linewidth=2)
    thick, thin = axis.lines
    assert thin.get_linewidth() < thick.get_linewidth() == 2
    np.testing.assert_array_equal(thick.get_xydata(), [[1, 2], [2, 3], [3, np.nan], [4, np.nan]])
    np.testing.assert_array_equal(thin.get_xydata(), [[1, np.nan], [2, 3], [3, 3], [4, 4]])
