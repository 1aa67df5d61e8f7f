"""What README and docs/studies/ccadl.md say in words of the published run is what its tables show."""

import math

import pytest
from config_files import ROOT, page, published

NAMES = ("sghmc", "sgnht", "ccadl", "mccadl")

SETS = ("connect-4", "letter")

STEPS = (0.0005, 0.001, 0.002, 0.004)
"""Of the logistic regression."""

SETTINGS = ["h = 0.001, A = 1", "h = 0.001, A = 10", "h = 0.01, A = 1", "h = 0.01, A = 10"]
"""Of the normal."""

TEXT = page("docs/studies/ccadl.md")

README = (ROOT / "README.md").read_text("utf-8")


def cells(table):
    return published("ccadl", table, "sampler", "metric", "detail")


def order(found, metric, where, first, second):
    """-1 or 1 where the first is smaller or larger by more than two standard errors; else 0."""
    one, other = (found.loc[(sampler, metric, where)] for sampler in (first, second))
    difference = one["value"] - other["value"]
    return int(math.copysign(abs(difference) > 2 * math.hypot(one["se"], other["se"]), difference))


@pytest.mark.parametrize(
    ("first", "second", "counts", "in_paper"),
    [("ccadl", "sgnht", (4, 1), 4), ("ccadl", "sghmc", (2, 2), 3), ("mccadl", "ccadl", (3, 0), None)],
)
def test_errors_on_the_normal_are_not_all_in_the_papers_order(first, second, counts, in_paper):
    found = cells("normal")
    metrics = ("density_rmse_mu", "density_rmse_gamma")
    signs = [order(found, metric, where, first, second) for metric in metrics for where in SETTINGS]
    assert (signs.count(-1), signs.count(1)) == counts
    if in_paper is not None:
        one, other = (found.loc[(name, "density_rmse_paper"), "value"] for name in (first, second))
        assert (one[SETTINGS] < other[SETTINGS]).sum() == in_paper


def test_times_of_the_paper_are_nearer_to_those_of_the_precision():
    ratios = published("ccadl", "normal", "metric")["value"]
    near = [(ratios[f"time_ratio_{name}"] - 1).abs() <= 0.2 for name in ("mu", "gamma")]
    assert [own.sum() for own in near] == [6, 11]
    assert len(near[0]) == 12


def test_ccadl_is_too_narrow_at_the_largest_step_and_friction_and_mccadl_is_not():
    found = cells("normal_details")
    ccadl, mccadl = (found.loc[(name, "sd_ratio_mu", SETTINGS[3])] for name in ("ccadl", "mccadl"))
    assert 1 - ccadl["value"] == pytest.approx(0.036, abs=5e-4)
    assert f"{abs(1 - mccadl['value']):.1%}" == "0.2%"
    bias = found.loc[("mccadl", "density_bias_gamma")]
    assert bias["value"].notna().tolist() == [False, False, True, True]
    assert "3.6% too small" in TEXT
    assert "it differs by 0.2%; its density of γ keeps a bias" in TEXT


def test_ccadl_needs_fewer_passes_at_equal_steps_and_diverges_at_steps_that_sgnht_takes():
    found = cells("logistic_convergence")
    passes, ends = (
        found.xs(metric, level="metric") for metric in ("passes_to_reference", "log_likelihood_end")
    )
    small = [f"h = 0.0005, A = {friction}" for friction in (1, 10)]
    for where in small:
        for first, second in (("ccadl", "mccadl"), ("ccadl", "sgnht"), ("mccadl", "sgnht")):
            assert order(found, "passes_to_reference", where, first, second) == -1
    assert [f"{passes.loc[(name, small[0]), 'value']:.0f}" for name in ("ccadl", "mccadl")] == ["56", "94"]
    # Where a run does not reach it the mean of the others is a lower bound.
    assert all(passes.loc[("sgnht", where), "value"] > 150 for where in small)
    assert "it needs 56, mCCAdL 94, and SGNHT more than 150" in TEXT
    finite = {
        name: [ends.loc[(name, f"h = {h}, A = {friction}"), "finite"] for h in STEPS for friction in (1, 10)]
        for name in ("sgnht", "ccadl", "mccadl")
    }
    assert finite == {"sgnht": [5] * 8, "ccadl": [5, 5, 1, 1, 0, 0, 0, 0], "mccadl": [5] * 8}
    for friction in (1, 10):
        sgnht, mccadl = (passes.loc[(name, f"h = 0.004, A = {friction}")] for name in ("sgnht", "mccadl"))
        assert f"it needs {sgnht['value']:.0f} passes at h = 0.004" in TEXT
        assert (mccadl["finite"], mccadl["replicates"]) == (2, 5)
    assert f"needs {passes.loc['mccadl', 'value']['h = 0.002, A = 1']:.0f} passes at h = 0.002" in TEXT


def test_a_pass_of_ccadl_takes_three_times_as_long_as_one_of_sgnht():
    found = cells("logistic_convergence").xs("seconds_per_pass", level="metric").dropna(subset="value")
    costs = found.reset_index("detail")["value"]
    assert [round(costs[name]) for name in ("ccadl", "mccadl", "sghmc")] == [3, 3, 10]
    assert "A pass of CCAdL or mCCAdL takes about three times as long" in TEXT


def test_long_chains_of_ccadl_have_better_sds_along_the_posterior_and_no_clearly_better_means():
    found = cells("logistic_errors")
    columns = [f"h = {h}, A = 10" for h in STEPS]
    assert set(found.index.get_level_values("detail")) == {*columns}
    off = {name: found.loc[(name, "xi_white_x100"), "value"][columns].round() for name in NAMES}
    assert {*off["ccadl"][:3], *off["mccadl"][:3]} == {3, 4}
    assert (off["sgnht"][:3].min(), off["sgnht"][:3].max(), off["sgnht"].iloc[3]) == (24, 46, 58)
    assert "(ξ whitened) are 3 to 4% off, SGNHT's 24 to 46%, and at 0.004 SGNHT's are 58% off" in TEXT
    assert "sds that are 3 to 4% off where those of SGNHT are 24 to 46% off" in README
    for where in columns[:3]:
        one, other = (found.loc[(sampler, "mean_error_sds", where)] for sampler in ("ccadl", "sgnht"))
        # Of three comparisons: two standard errors become 2.4.
        assert abs(other["value"] - one["value"]) < 2.4 * math.hypot(one["se"], other["se"])
    least = found.xs("mean_error_sds", level="metric")["value"].groupby("detail").min()
    draws = [round(1 / least[where] ** 2, -1) for where in columns]
    assert draws == sorted(draws)
    assert f"about {draws[0]:.0f} independent draws at h = 0.0005 and of {draws[-1]:.0f} at 0.004" in TEXT


def test_the_reference_has_converged():
    reference = cells("logistic_errors").loc["nuts"]
    r_hats, sizes = (reference.loc[metric, "value"] for metric in ("block_r_hat_max", "block_ess_min"))
    assert f"R-hat up to {r_hats.max():.3f} and effective sample sizes from {sizes.min():,.0f}" in TEXT


def test_both_runs_of_every_setting_agree_on_the_discriminative_rbm_of_connect_4_and_not_of_letter():
    found = published("ccadl", "drbm_errors")
    errors = found[found["metric"] == "error_percent"].set_index(["model", "detail", "sampler"]).sort_index()
    assert not errors.loc[["connect-4", "letter"]].query("sampler != 'map' and replicates != 2").size
    at_mode = {name: errors.loc[name].xs("map", level="sampler")["value"].iloc[0] for name in SETS}
    for name in SETS:
        assert f"{at_mode[name]:.1f}% on {name}" in TEXT
        of_chains = errors.loc[name].drop("map", level="sampler")
        # Two runs are one standard error from their mean.
        assert (of_chains["value"] - of_chains["se"]).min() > at_mode[name]
    for _, own in errors.loc["connect-4"].groupby("detail"):
        own = own.droplevel("detail")
        lowest = min(own.loc[name, "value"] - own.loc[name, "se"] for name in ("sghmc", "sgnht"))
        for name in ("ccadl", "mccadl"):
            assert own.loc[name, "finite"] == 0 or own.loc[name, "value"] + own.loc[name, "se"] < lowest
    diverged = errors.loc["connect-4"].query("finite == 0").reset_index()
    assert diverged[["detail", "sampler"]].to_numpy().tolist() == [
        ["h = 0.002, A = 1", "ccadl"],
        ["h = 0.002, A = 10", "ccadl"],
    ]
    for _, own in errors.loc["letter", "value"].groupby("detail"):
        some = own.droplevel("detail")[["sgnht", "ccadl", "mccadl"]]
        assert some.max() - some.min() < 1
    costs = found.query("metric == 'seconds_per_pass' and model == 'connect-4'").dropna(subset="value")
    assert [round(costs.set_index("sampler").loc[name, "value"]) for name in ("ccadl", "mccadl")] == [9, 9]
