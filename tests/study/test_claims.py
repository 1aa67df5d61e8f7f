"""What README and the documentation say in words of the published results is what the published tables show."""

import json
import math
import re
from datetime import datetime
from pathlib import Path

import pandas as pd
import pytest
from config_files import ROOT, page, published

from sgtune.study.report.publish import CLAIMS

OF_LOGISTIC = "xi_white_x100_over_oracle"


def numbers_of_paper(model: str) -> pd.Series:
    found = pd.read_csv(ROOT / "workflow/resources/published.csv").query("model == @model")
    return found.set_index(["table", "tuner", "metric", "sampler"])["value"].sort_index()


def headline(study: str, model: str) -> pd.DataFrame:
    """By tuner: the mean over samplers of the main error over the oracle's, ``value``, and its error, ``se``."""
    found = published(study, "headline")
    found = found[(found["model"] == model) & (found["metric"] == "over_oracle")]
    # Each further error with an oracle has a detail of its own.
    return found[found["detail"].fillna("") == found["detail"].fillna("").iloc[0]].set_index("tuner")


def cells_of(study: str, table: str, metric: str) -> pd.DataFrame:
    """By tuner and sampler."""
    found = published(study, table)
    return found[found["metric"] == metric].set_index(["tuner", "sampler"]).sort_index()


def is_larger(one: pd.Series, other: pd.Series) -> bool:
    return one["value"] - other["value"] > 2 * math.hypot(one["se"], other["se"])


def differ(one: pd.Series, other: pd.Series) -> bool:
    return is_larger(one, other) or is_larger(other, one)


def mean_over_samplers(found: pd.DataFrame, tuner: str) -> pd.Series:
    own = found.loc[tuner]
    return pd.Series({"value": own["value"].mean(), "se": math.hypot(*own["se"]) / len(own)})


@pytest.mark.parametrize(
    ("study", "highest_mean", "highest_bound"), [("judges", 1.10, 1.25), ("small_pmf_2", 1.25, math.inf)]
)
def test_claims_that_are_called_met_are_met(study, highest_mean, highest_bound):
    """The bounds are those of the first comment of config/{study}.yaml."""
    configuration = Path(ROOT / f"config/{study}.yaml").read_text("utf-8")
    assert all(
        f"{bound:.2f}" in configuration for bound in (highest_mean, highest_bound) if math.isfinite(bound)
    )
    section = (ROOT / "docs/studies/tuning.md").read_text("utf-8").split(f"(`config/{study}.yaml`)")[1]
    assert "The claim is met" in section.split("\n**")[0]
    row = headline(study, {"judges": "logistic", "small_pmf_2": "pmf"}[study]).loc["mamba"]
    assert row["finite"] == row["replicates"]
    assert row["value"] <= highest_mean
    assert row["value"] + 2 * row["se"] <= highest_bound


def test_on_the_logistic_regression_ours_are_near_the_oracle_and_the_papers_are_not():
    ten, two = headline("judges", "logistic"), headline("paper", "logistic")
    assert abs(ten.loc["mamba", "value"] - 1) <= 2 * ten.loc["mamba", "se"]
    assert abs(two.loc["mamba", "value"] - 1) <= 2 * two.loc["mamba", "se"]
    assert is_larger(ten.loc["mamba"], ten.loc["theory"])
    for found, tuners in (
        (ten, ["mamba-ksd", "heuristic"]),
        (two, ["mamba-ksd", "heuristic", "grid", "grid-ksd"]),
    ):
        assert all(is_larger(found.loc[tuner], found.loc["mamba"]) for tuner in tuners)
    ksd, grid = two.loc["mamba-ksd"], two.loc["grid-ksd"]
    assert round(ksd["value"]) == round(grid["value"]) == 3
    assert round(ten.loc["mamba-ksd", "value"]) == 2
    assert not differ(ksd, grid)


@pytest.mark.parametrize("study", ["judges", "paper"])
def test_the_papers_fssd_leaves_the_posterior_for_sgld_and_sghmc(study):
    assert headline(study, "logistic").loc["mamba-fssd", "shown"].startswith("≥")
    found = cells_of(study, "regret", OF_LOGISTIC).loc["mamba-fssd"]
    # Only after 1 s, so that each sampler has one row.
    shown = found[found["detail"] == "after 1 s"]["shown"]
    assert {sampler for sampler, cell in shown.items() if cell.startswith("≥")} == {
        "sgld",
        "sgld-cv",
        "sghmc",
        "sghmc-cv",
    }


def test_the_papers_own_fssd_did_not_choose_the_largest_step_size():
    found = published("paper", "published_comparison")
    steps = found[(found["tuner"] == "mamba-fssd") & (found["metric"] == "log10_step_size")]
    steps = steps.pivot_table(index="sampler", columns="detail", values="value")
    steps = steps.loc[["sgld", "sgld-cv", "sghmc", "sghmc-cv"]]
    assert set(steps["Table 5, ours"]) == {-1.0}
    assert set(steps["Table 5, paper"]) <= {-5.0, -5.5, -6.0}


def test_on_the_logistic_regression_mambas_ksds_are_lower_than_those_of_grid_and_heuristic():
    found = cells_of("paper", "table1", "ksd")
    ours, others = found.loc["mamba-ksd"], [found.loc[tuner] for tuner in ("grid", "heuristic")]
    assert all(is_larger(other.loc["sgnht"], ours.loc["sgnht"]) for other in others)
    for sampler in ("sgld", "sgld-cv", "sghmc", "sghmc-cv"):
        # Of a KSD that is not told from zero the table has the upper end.
        assert all(
            ours.loc[sampler, ["value", "upper"]].max() < other.loc[sampler, "value"] for other in others
        )
    assert ours.loc["sgnht-cv", "shown"].startswith("<")
    assert found.loc[("mamba-fssd", "sgnht-cv"), "shown"].startswith("<")
    # The paper has the heuristic first for SGNHT.
    theirs = numbers_of_paper("logistic").xs(("table1", "ksd", "sgnht"), level=("table", "metric", "sampler"))
    assert theirs.idxmin() == "heuristic"
    accuracies = cells_of("paper", "table6", "accuracy_percent")["value"]
    assert accuracies.max() - accuracies.min() < 0.1


def test_on_movielens_mambas_ksds_are_lowest_for_two_samplers_and_its_predictions_last():
    found = cells_of("paper", "table2", "ksd")
    ours, others = found.loc["mamba-ksd"], [found.loc[tuner] for tuner in ("grid", "heuristic")]
    lowest = {one for one in ours.index if all(is_larger(other.loc[one], ours.loc[one]) for other in others)}
    assert lowest == {"sghmc", "sghmc-cv"}
    assert all(ours.loc["sgnht", "value"] > 3 * other.loc["sgnht", "value"] for other in others)
    found = cells_of("paper", "table8", "rmse")
    ours, others = found.loc["mamba-ksd"], [found.loc[tuner] for tuner in ("grid", "heuristic")]
    assert len(ours) == 6
    assert all((ours["value"] > other.loc[ours.index, "value"]).all() for other in others)
    theirs = numbers_of_paper("pmf").loc["table8"]
    for metric, margin in (("ksd", 0), ("rmse", 0.011)):
        own = theirs.xs(metric, level="metric").unstack("tuner")
        assert len(own) == 6
        assert (own["mamba-ksd"] <= own.min(axis=1) + margin).all()
    reference = published("paper", "reference")
    errors = reference[(reference["model"] == "pmf") & (reference["metric"] == "relative_sd_error_x100")]
    assert round(errors["value"].dropna().item()) == 5


def test_on_movielens_mamba_is_no_better_than_the_papers_ksd_and_the_heuristic_as_good_as_the_oracle():
    found = headline("paper", "pmf")
    ours, ksd = found.loc["mamba"], found.loc["mamba-ksd"]
    readme, text = ((ROOT / name).read_text("utf-8") for name in ("README.md", "docs/studies/tuning.md"))
    assert f"{ours['value']:.2f} times the oracle's error" in readme
    assert f"{ours['value']:.2f} times the oracle's error" in text
    assert not differ(ours, ksd)
    assert abs(found.loc["heuristic", "value"] - 1) <= 2 * found.loc["heuristic", "se"]
    assert is_larger(ksd, found.loc["heuristic"])
    losses = cells_of("paper", "regret", "functional_error_over_oracle")
    assert all(1.6 < losses.loc[(tuner, "sgnht"), "value"] < 1.8 for tuner in ("mamba", "mamba-ksd"))
    best = cells_of("paper", "regret", "functional_error").loc["finalist"]["value"]
    assert best.idxmin() == "sgnht"
    chosen = cells_of("paper", "table7", "batch_percent")
    batches = {tuner: chosen.loc[(tuner, "sgnht"), "value"] for tuner in ("mamba", "mamba-ksd", "grid")}
    assert batches == {"mamba": 100, "mamba-ksd": 100, "grid": 10}
    draws = cells_of("paper", "table8", "n_samples")["value"]
    assert round(draws[("grid", "sgnht")] / draws[("mamba-ksd", "sgnht")], 1) == 4.5


@pytest.mark.parametrize("study", ["paper", "evidence"])
def test_on_gaussians_mamba_is_near_the_oracle_and_no_arm_escapes_or_hardly_moves(study):
    found = published(study, "gaussian_ladder")
    mamba = {metric: cells["value"] for metric, cells in found[found["tuner"] == "mamba"].groupby("metric")}
    assert (mamba["ladder_over_oracle"] <= 1.25).all()
    assert (mamba["ladder_escaped"] == 0).all()
    assert (mamba["ladder_frozen"] == 0).all()


def test_on_the_small_factorisation_mamba_chooses_the_oracles_arms_and_the_others_do_not():
    found = headline("small_pmf_2", "pmf")
    assert found.loc["mamba", "value"] == 1
    assert found.loc["mamba", "se"] == 0
    others = found.drop(["mamba", "random", "frozen"])
    assert {"theory", "mamba-psd", "mamba-ksd"} <= set(others.index)
    assert (others["value"] - 2 * others["se"].fillna(0) > 1).all()


SAMPLERS = ["sgld", "sgld-cv", "sghmc", "sghmc-cv", "sgnht", "sgnht-cv"]
OF_PAPER = ["mamba-ksd", "grid", "heuristic"]


def test_on_the_network_the_papers_ksd_predicts_little_better_than_the_mode_and_mamba_best():
    found = cells_of("paper", "further_metrics", "log_loss")
    found = found[found["model"] == "bnn"]
    modes = published("paper", "modes", "model", "metric")
    mode = modes.loc[("bnn", "log_loss"), "value"].item()
    ours, ksd = found.loc["mamba"], found.loc["mamba-ksd"]
    assert sorted(ours.index) == sorted(ksd.index) == sorted(SAMPLERS)
    assert all(
        (found.loc[tuner].loc[SAMPLERS, "value"] > ours.loc[SAMPLERS, "value"]).all() for tuner in OF_PAPER
    )
    clear = {
        sampler
        for sampler in SAMPLERS
        if all(is_larger(found.loc[tuner, sampler], ours.loc[sampler]) for tuner in OF_PAPER)
    }
    assert clear == {"sgld", "sgld-cv", "sghmc", "sghmc-cv"}
    of_smaller = [found.loc[(tuner, "sgnht"), "value"] for tuner in ("mamba-ksd-smaller", "grid-smaller")]
    assert min(of_smaller) > ours.loc["sgnht", "value"]
    text, of_tuning, readme = (
        page(name) for name in ("docs/studies/paper.md", "docs/studies/tuning.md", "README.md")
    )
    assert "{:.3f} to {:.3f}, and that of the mode {:.3f}".format(*_extremes(ksd["value"]), mode) in text
    mean = found["value"].groupby("tuner").mean()
    for text, words in (
        (
            of_tuning,
            f"a log-loss of {mean['mamba-ksd']:.3f} against {mode:.3f}. `mamba` has {mean['mamba']:.3f}, "
            f"step size 1/N {mean['heuristic']:.3f} and grid search {mean['grid']:.3f}",
        ),
        (
            readme,
            f"log-loss is {mean['mamba']:.3f}; that of step size 1/N is {mean['heuristic']:.3f}, of the paper's KSD "
            f"{mean['mamba-ksd']:.3f}, of the mode {mode:.3f}",
        ),
    ):
        assert words in text


def test_on_the_network_the_papers_arms_are_found_again_and_its_eces_of_sghmc_are_not():
    theirs = numbers_of_paper("bnn")
    ours = cells_of("paper", "table9", "log10_step_size").loc["mamba-ksd", "value"]
    steps = theirs["table9", "mamba-ksd", "log10_step_size"]
    assert len(steps) == 5
    assert set((steps - ours[steps.index]).round(6)) == {0, 0.5}
    assert sorted({*ours.index} - {*steps.index}) == ["sgnht"]
    assert ours["sgnht"] == -7.5
    text = page("docs/studies/paper.md")
    eces = cells_of("paper", "table10", "ece_percent")
    pair = [eces.loc[tuner].loc[["sgnht", "sgnht-cv"]] for tuner in ("mamba", "mamba-ksd")]
    assert all(is_larger(pair[0].loc[one], pair[1].loc[one]) for one in pair[0].index)
    said = "{:.1f}% and {:.1f}%, where MAMBA-KSD has {:.1f}% and {:.1f}%"
    assert said.format(*pair[0]["value"], *pair[1]["value"]) in text
    assert [one for one in SAMPLERS if is_larger(eces.loc["mamba-ksd", one], eces.loc["mamba", one])] == [
        "sgld-cv",
        "sghmc",
    ]
    # The median of three is the lowest: one race of one sampler chose other batches.
    batches = cells_of("paper", "table9", "batch_percent").loc["mamba-ksd"]
    assert (batches[["value", "lowest"]] == 1).all(axis=None)
    assert (batches["replicates"] == 3).all()
    assert list(batches.index[batches["highest"] > 1]) == ["sgnht"]
    of_published = cells_of("paper", "further_metrics", "ece_as_published_percent")["value"]
    eces = cells_of("paper", "table10", "ece_percent")["value"]
    for found, n_near in ((of_published, 6), (eces, 4)):
        least = found.loc[["mamba-ksd", "grid", "heuristic"]].groupby("sampler").min()
        assert (found["mamba-ksd"] <= least + 0.5).sum() == n_near
    large = theirs.loc["table3", ["grid", "heuristic"], "ece_percent", ["sghmc", "sghmc-cv"]]
    own = of_published.loc[["grid", "heuristic"], ["sghmc", "sghmc-cv"]]
    text = page("docs/studies/paper.md")
    assert "The paper prints ECEs of {:.0f}% to {:.0f}% for SGHMC".format(*_extremes(large)) in text
    assert "in the same measure ours are {:.1f}% to {:.1f}%".format(*_extremes(own)) in text


def test_what_is_said_of_the_papers_claims_is_in_their_table():
    found = published("audit", "claims", "metric", "detail")
    ours = found.xs("ours", level="detail")
    value = ours["value"]
    text = page("docs/studies/audit.md")
    for words in (
        f"takes {value['grid_ksd_time']:.1f} times as long as MAMBA-KSD on average, in the middle",
        f"{value['time_logistic']:.1f} times as long as MAMBA-KSD, where the paper says about 3",
        f"on MovieLens {value['time_pmf']:.1f} times, where the paper says 2",
        f"timed once, it takes {value['time_bnn']:.1f} times as long",
    ):
        assert words in text
    ratios = published("paper", "tuning_time", "metric", "model", "tuner", "sampler").loc[
        "warm_ratio", "value"
    ]
    by_ksd = ratios["logistic", "grid-ksd"]
    assert list(by_ksd.index[by_ksd < 1]) == ["sgnht-cv"]
    assert "By sampler it takes {:.1f} to {:.1f} times".format(*_extremes(by_ksd)) in text
    others = [
        ratios[model, "grid"][["sgld", "sgld-cv", "sgnht", "sgnht-cv"]]
        for model in ("logistic", "pmf", "bnn")
    ]
    said = (
        "it takes {:.1f} to {:.1f} times as long on the logistic regression, {:.1f} times on MovieLens, and "
    )
    said += "{:.1f} to {:.1f} times on the network"
    assert said.format(*_extremes(others[0]), others[1].mean(), *_extremes(others[2])) in text
    assert _extremes(others[1].round(1)) == (0.2, 0.2)
    for name in ("stochastic", "thinned"):
        assert "{:.1f} to {:.1f}".format(*ours.loc[name, ["lowest", "highest"]]) in text
    batches = cells_of("paper", "table5", "batch_percent").loc["mamba-ksd", "value"]
    assert sorted(batches) == [0.1, 0.1, 1, 1, 100, 100]
    assert sorted(batches.index[batches == 100]) == ["sghmc", "sgnht"]
    counts = {"ksd_logistic": 6, "heuristic_logistic": 0, "ksd_pmf": 3, "ece_bnn": 4, "batches_bnn": 17 / 3}
    assert value[list(counts)].to_dict() == pytest.approx(counts)
    assert ours.loc["ksd_pmf", ["lowest", "highest"]].tolist() == [1, 5]
    verdicts = found.xs("verdict", level="detail")["shown"]
    assert f"six of [{len(verdicts)} claims]" in (ROOT / "README.md").read_text("utf-8")
    assert len(CLAIMS) == 6
    # What the network's smaller grid does to the ECE of SGNHT.
    eces = cells_of("paper", "table10", "ece_percent")["value"]
    own = [eces[tuner, "sgnht"] for tuner in ("mamba-ksd-smaller", "mamba-ksd", "grid", "grid-smaller")]
    said = "three races cannot tell ({:.1f}% against {:.1f}%). It lowers that of grid search, tuned once, "
    said += "from {:.1f}% to {:.1f}%"
    assert said.format(*own) in text
    assert verdicts[["ours_logistic", "ours_pmf", "heuristic_logistic"]].tolist() == [
        "holds",
        "fails",
        "fails",
    ]
    assert verdicts["ksd_logistic"].startswith("cannot tell")


def test_what_is_said_of_the_defects_is_in_their_table():
    found = published("audit", "defects", "tuner", "metric", "detail", "sampler")["value"]
    theirs = numbers_of_paper("logistic")
    text = page("docs/studies/audit.md")
    ksd, xi = (found.loc["heuristic", metric] for metric in ("ksd", "relative_sd_error_x100"))
    of_paper = [
        theirs["table1", "heuristic", metric, "sghmc"] for metric in ("ksd", "relative_sd_error_x100")
    ]
    said = "its KSD is {:,.0f} and its ξ {:.0f}, where the paper prints {:,.0f} and {:.0f}. "
    said += "Why they are larger still is not known. With the leapfrog they are"
    said = said.format(
        round(ksd["explicit", "sghmc"], -2), xi["explicit", "sghmc"] / 100, of_paper[0], of_paper[1] / 100
    )
    assert f"{said} {ksd['none', 'sghmc']:.0f} and {xi['none', 'sghmc'] / 100:.2f}" in text
    regret = cells_of("paper", "regret", "xi_white_x100_over_oracle").loc["heuristic", "sghmc"]
    regret = regret[regret["detail"] == "after 5 s"]["value"].item()
    assert f"1/N still has {regret:.0f} times the oracle's error" in text
    steps = found.loc["mamba-fssd", "log10_step_size"]
    four = ["sgld", "sgld-cv", "sghmc", "sghmc-cv"]
    assert set(steps["none"][four]) == {-1}
    assert _extremes(steps["u_statistic"]) == (-5.5, -4)
    printed = theirs["table5", "mamba-fssd", "log10_step_size"]
    assert ((steps["as_published"] - printed[steps["as_published"].index]).abs() <= 0.5).all()
    assert len(steps["as_published"]) == 6
    # About half of the paper's, or less; only an upper end of that for SGNHT is known.
    cells = published("audit", "defects", "tuner", "metric", "detail", "sampler").loc["mamba-ksd", "ksd"]
    most = cells["value"].fillna(cells["upper"])["as_published"]
    assert (most / theirs["table1", "mamba-ksd", "ksd"])[["sgld", "sgnht"]].max() < 0.56
    # With the U-statistic alone, and no race at 0.1, a chain is near the posterior for SGLD-CV alone.
    errors = found.loc["mamba-fssd", "relative_sd_error_x100", "u_statistic"][four]
    assert list(errors.index[errors < 100]) == ["sgld-cv"]
    assert (found.loc["mamba-fssd", "relative_sd_error_x100", "as_published"][four] > 1e6).all()
    highest = published("audit", "defects", "tuner", "metric", "detail", "sampler")["highest"]
    assert (highest.loc["mamba-fssd", "log10_step_size", "as_published"] == -1).any()
    steps = found.loc["mamba-ksd", "log10_step_size"]
    assert ((steps["restarts"] - steps["none"]).abs() <= 0.5).all()


def test_what_is_said_of_the_limits_is_in_their_table():
    found = published("audit", "limit_ratios", "metric", "model", "tuner", "sampler")
    text = page("docs/studies/audit.md")
    errors, rates = (found.loc[name, "value"] for name in ("error_over_nuts", "ess_rate_over_nuts"))
    with_cv, without = ["sgld-cv", "sghmc-cv", "sgnht-cv"], ["sgld", "sghmc", "sgnht"]
    own = [one["logistic", "mamba"][samplers] for samplers in (with_cv, without) for one in (errors, rates)]
    words = (
        "have {:.1f} to {:.1f} times the Monte Carlo error of NUTS, and {:.1f} to {:.1f} times its effective draws",
        "lose to NUTS: {:.0f} to {:.0f} times its error, and {:.2f} to {:.2f} times its effective draws",
    )
    for said, pair in zip(words, (own[:2], own[2:]), strict=True):
        assert said.format(*_extremes(pair[0]), *_extremes(pair[1])) in text
    for one in (errors, rates):
        ours, theirs = one["logistic", "mamba"], one["logistic", "mamba-ksd"]
        assert list(ours.index[ours > theirs]) == ["sgnht"]
    of_pmf = [one["pmf"].loc[["mamba", "mamba-ksd"]] for one in (errors, rates)]
    assert "ratings are {:.0f} to {:.0f} times that of the reference".format(*_extremes(of_pmf[0])) in text
    assert "second are {:.1f} to {:.1f} times those of NUTS".format(*_extremes(of_pmf[1])) in text

    def gains(metric: str, model: str) -> tuple[pd.Series, list[str]]:
        """Numbers in Laplace coordinates over those without a preconditioner; and where they clearly differ."""
        before, after = (found.loc[metric, model, f"mamba-{which}"] for which in ("none", "laplace"))
        return after["value"] / before["value"], [
            one for one in SAMPLERS if differ(before.loc[one], after.loc[one])
        ]

    ratios, clear = gains("error_over_nuts", "logistic")
    assert (clear, (ratios[clear] < 1).all()) == (["sghmc", "sgnht", "sgnht-cv"], True)
    ratios, clear = gains("ess_rate_over_nuts", "logistic")
    assert (len(clear), (ratios > 1).all()) == (5, True)
    assert f"for five samplers, up to {ratios.max():.0f} times as many" in text
    ratios, clear = gains("error_over_nuts", "pmf")
    assert (clear, (ratios < 1).all()) == (list(SAMPLERS), True)
    by = "{:.0%} to {:.0%}".format(*_extremes(1 - ratios))
    assert f"ratings are smaller for all six, by {by}" in text
    assert f"errors of ratings are {by} smaller than without" in page("README.md")


def test_in_longer_races_on_the_network_mamba_is_best_for_sghmc_and_worse_than_the_mode_for_sgld_cv():
    found = cells_of("evidence", "regret", "log_loss_over_oracle")
    found = found[found["model"] == "bnn"]
    mamba, frozen, held_out = (found.loc[tuner] for tuner in ("mamba", "frozen", "mamba-log-loss"))
    assert mamba.loc["sghmc", "value"] == 1
    assert is_larger(frozen.loc["sghmc"], mamba.loc["sghmc"])
    assert is_larger(mamba.loc["sgld-cv"], frozen.loc["sgld-cv"])
    assert (held_out["value"] <= 1).all()


def test_races_of_ten_seconds_take_no_longer_than_claimed():
    ours = cells_of("evidence", "tuning_time", "warm_per_budget").loc["mamba"].set_index("model")
    for model, limit in (("logistic", 1.0), ("pmf", 0.8), ("bnn", 1.5)):
        assert len(ours.loc[model]) == 2
        assert (ours.loc[model, "value"] < limit).all()
    # Races of this length in the paper's run.
    of_paper = cells_of("paper", "tuning_time", "warm_per_budget").loc["mamba"]
    of_pmf, of_bnn = (of_paper[of_paper["model"] == model]["value"] for model in ("pmf", "bnn"))
    assert list(of_pmf.index[of_pmf >= 0.8]) == ["sgld-cv"]
    assert sorted(of_bnn.index[of_bnn >= 1.5]) == ["sghmc", "sghmc-cv"]
    text = page("docs/studies/tuning.md")
    assert f"SGLD-CV ({of_pmf['sgld-cv']:.2f}) and met by the other five" in text
    said = "missed by SGHMC ({:.2f}) and SGHMC-CV ({:.2f}) and met by the other four"
    assert said.format(*of_bnn[["sghmc", "sghmc-cv"]]) in text


def test_in_xi_mamba_is_no_better_than_the_papers_ksd_and_worse_than_the_scaled_one():
    found = cells_of("judges", "regret", "relative_sd_error_x100_regret")
    mamba, ksd, scaled = (
        mean_over_samplers(found, tuner) for tuner in ("mamba", "mamba-ksd", "mamba-ksd-scaled")
    )
    assert not is_larger(ksd, mamba)
    assert is_larger(mamba, scaled)
    # Over the oracle that sees xi.
    over = cells_of("judges", "regret", "relative_sd_error_x100_over_oracle")
    of_oracle = {name: mean_over_samplers(over, name) for name in ("mamba", "mamba-ksd", "mamba-ksd-scaled")}
    one = pd.Series({"value": 1.0, "se": 0.0})
    assert is_larger(of_oracle["mamba"], one)
    assert not is_larger(of_oracle["mamba-ksd"], of_oracle["mamba"])
    assert abs(of_oracle["mamba-ksd-scaled"]["value"] - 1) <= 2 * of_oracle["mamba-ksd-scaled"]["se"]
    assert is_larger(mamba, mean_over_samplers(found, "mamba-psd"))
    # ... which are worse where the posterior is far from Gaussian.
    small = headline("small_pmf_2", "pmf")["value"]
    assert min(small["mamba-ksd-scaled"], small["mamba-psd"]) > small["mamba"]


def test_arms_for_100_s_are_better_than_arms_for_1_s_in_all_directions_and_no_worse_in_xi():
    found = published("horizons", "horizons")
    short = found[found["detail"] == "1 s"]
    gains = short[short["metric"] == "over_longest"]
    assert len(gains) == 2
    assert (gains["value"] > 2).all()
    assert (gains["value"] < 3).all()
    assert (gains["value"] - 2 * gains["se"] > 1.5).all()
    # docs/horizons.md: less than a standard error apart.
    gains = short[short["metric"] == "over_longest_xi"]
    assert ((gains["value"] - 1).abs() < gains["se"]).all()


def test_readme_says_what_a_gpu_and_a_processor_showed():
    def parts_of(name):
        return json.loads((ROOT / f"benchmarks/published/{name}.json").read_text("utf-8"))["parts"]

    on_card, said = parts_of("h100"), page("README.md")
    for parts, words in (
        (on_card, "SGLD has {:.2f} to {:.2f}"),
        (parts_of("epyc"), "it has {:.1f} to {:.1f}"),
    ):
        ratios = [row["ratio"] for row in parts["steps"]["sgld"]]
        assert words.format(min(ratios), max(ratios)) + " times BlackJAX's speed" in said
    outcomes = on_card["tests"]["outcomes"]
    words = (
        f"{outcomes['FAILED']} of the {sum(outcomes.values())} tests that its limit of time allowed failed"
    )
    assert f"{words}, and a tuning did not end" in said
    assert "not done" in on_card["tuning"]["error"]


def test_readme_says_how_long_its_first_command_takes():
    manifest = json.loads((ROOT / "results/published/quick/manifest.json").read_text("utf-8"))
    moments = [each for source in manifest["sources"].values() for each in source["created"]]
    moments = sorted(map(datetime.fromisoformat, [*moments, manifest["provenance"]["created"]]))
    minutes = (moments[-1] - moments[0]).total_seconds() / 60
    said = re.search(r"small budgets: (\d+) minutes on two", (ROOT / "README.md").read_text("utf-8"))
    # Packages take about a minute.
    assert minutes < int(said[1]) < minutes + 2


def test_what_is_said_of_nuts_and_tuned_chains_after_equal_seconds_is_measured():
    held = json.loads((ROOT / "benchmarks/published/against_nuts.json").read_text("utf-8"))
    assert held["failed"] == []
    found = pd.DataFrame(held["ratios"])
    logs = (
        found["ratio"]
        .astype(float)
        .map(math.log)
        .groupby([found[key] for key in ("method", "n", "d", "budget")])
    )
    gains, errors = logs.mean().dropna(), logs.std() / logs.count() ** 0.5
    of_sgld = gains["sgld-cv"]
    assert len(of_sgld) >= 7
    assert (of_sgld < gains["sghmc-cv"].reindex(of_sgld.index)).all()
    smallest = ("sgld-cv", 10**4, 10, 16.0)
    assert gains[smallest] + 2 * errors[smallest] < 0
    found = found[found["method"] == "sghmc-cv"]
    laplace = {tuple(map(int, cell.split())): own["laplace"]["error"] for cell, own in held["truths"].items()}
    for (n, d), cells in found.groupby(["n", "d"]):
        # The error of NUTS over that of the tuned chain, unless NUTS has no draws yet.
        logs = cells["ratio"].astype(float).map(math.log).groupby(cells["budget"])
        means, ses = logs.mean().dropna(), (logs.std() / logs.count() ** 0.5)
        if (n, d) == (10**4, 10):
            assert (means.abs() < 2 * ses).all()
        if (n, d) == (10**4, 100):
            assert means.between(math.log(1.3), math.log(1.8)).all()
        if n >= 10**5:
            assert (means.map(math.exp) > (3 if n == 10**5 else 7)).all()
        assert len(means) == 0 if (n, d) == (10**7, 100) else len(means) > 0
        if n >= 10**6:
            assert laplace[n, d] < cells["error"].min()


def growth(**case) -> dict:
    """The row of `benchmarks/growth.py` of this case."""
    rows = json.loads((ROOT / "benchmarks/published/growth.json").read_text("utf-8"))["rows"]
    (found,) = (row for row in rows if case.items() <= row.items())
    return found


def test_what_is_said_of_data_in_a_file_is_measured():
    text = page("docs/your-own-model.md")
    of = {"of": "steps", "n": 10**8, "sampler": "sgld-cv", "batch": 1_000}
    speeds = [growth(**of, where=where)["steps_per_second"] for where in ("memory", "warm", "cold")]
    tunes = [growth(of="rows", n=10**8, where=where)["tune"] for where in ("memory", "file")]
    first = growth(**{**of, "sampler": "sgld", "where": "cold"})["steps_per_second"]
    assert "{:,.0f} in memory and {:,.0f} from the file".format(*speeds) in text
    assert f"{first:.1f} for `sgld`, and {speeds[2]:,.0f} for `sgld-cv` after it" in text
    assert "took {:,.0f} s in memory and {:,.0f} s from the file".format(*tunes) in text
    # Below 2 GB, and no more of 10^8 rows than of fewer.
    stored = [growth(of="rows", n=10**8, where="file")]
    stored += [growth(**{**of, "where": where}) for where in ("warm", "cold")]
    assert max(row["peak_gb"] for row in stored) < 2


def test_sizes_of_differences_from_the_papers_are_those_of_the_published_runs():
    clocks = published("paper", "clocks")
    ratios = clocks[clocks["detail"] == "wall_over_calibrated"].dropna(subset=["value"])
    steps = ratios[ratios["metric"] == "n_samples"].set_index("model")["value"]
    errors = _extremes(ratios[ratios["metric"] != "n_samples"]["value"])
    parts = published("paper", "tuning_parts")
    overruns = parts[(parts["tuner"] == "mamba") & (parts["metric"] == "overrun_percent")]
    is_sghmc = overruns["sampler"].str.startswith("sghmc")
    by_model = {model: overruns["model"] == model for model in ("logistic", "bnn")}
    concerned = [by_model["logistic"] & is_sghmc, by_model["bnn"] & is_sghmc, by_model["bnn"] & ~is_sghmc]
    assert (overruns[~(by_model["bnn"] | concerned[0])]["value"] == 0).all()
    overrun = [end for which in concerned for end in _extremes(overruns[which]["value"])]
    rmse = _extremes(as_published("paper", "table8", "rmse", ""))
    ece, mce = (_extremes(as_published("paper", "table10", metric, "_percent")) for metric in ("ece", "mce"))
    costs = published("paper", "cost", "model", "detail", "sampler")["value"].loc["pmf", "n = 80,000"]
    assert 4 < costs["sgld"] / costs["sgld-cv"] < 4.1
    chosen = cells_of("paper", "table7", "batch_percent").query("sampler == 'sgld'")
    assert (chosen[["value", "highest"]] < 100).all(axis=None)
    text = page("docs/differences.md")
    for words in (
        "made {:.2f} to {:.2f} times the steps on the logistic regression".format(
            *_extremes(steps[["logistic", "pmf"]])
        ),
        f"and {steps['bnn']:.2f} times on the network",
        "their errors were {:.3f} to {:.3f} times the others".format(*errors),
        "{:.0f}% and {:.0f}% of the budget to the races of `mamba` for SGHMC".format(*overrun[:2]),
        "{:.0f}% and {:.0f}% on the network, {:.0f}% to {:.0f}% to those of".format(*overrun[2:]),
        f"MovieLens has {costs['sgld']:.1f} ms, where SGLD-CV has {costs['sgld-cv']:.1f}.",
        "RMSE is {:.2f} to {:.2f} times ours".format(*rmse),
        "ECE {:.1f} to {:.1f} and its MCE {:.1f} to {:.1f} times ours".format(*ece, *mce),
    ):
        assert words in text


def as_published(study: str, table: str, metric: str, unit: str) -> pd.Series:
    """What the published code computed under the name of a metric, over ours, by tuner and sampler."""
    cells = pd.concat([published(study, table), published(study, "further_metrics")])
    cells = cells[cells["model"] == cells["model"].iloc[0]]
    cells = cells.pivot_table(index=["tuner", "sampler"], columns="metric", values="value")
    return (cells[f"{metric}_as_published{unit}"] / cells[f"{metric}{unit}"]).dropna()


def test_what_tuning_costs_is_as_the_pages_say():

    def of_budget(study: str, model: str) -> tuple[float, float]:
        found = cells_of(study, "tuning_time", "warm_per_budget").loc["mamba"]
        return _extremes(found[found["model"] == model]["value"])

    text = page("docs/choosing-a-tuner.md")
    assert (
        "{:.1f} to {:.1f} times its budget on the logistic regression".format(*of_budget("paper", "logistic"))
        in text
    )
    assert "{:.1f} to {:.1f} times on MovieLens".format(*of_budget("paper", "pmf")) in text
    assert "a race takes {:.1f} to {:.1f} times its budget".format(*of_budget("paper", "bnn")) in text
    over = published("paper", "tuning_time", "metric", "model", "tuner", "sampler").loc["warm_ratio", "value"]
    text = page("docs/studies/tuning.md")
    for words, model, pattern in (
        ("{:.0f} and {:.0f} times as long for SGHMC", "logistic", "grid"),
        ("{:.1f} and {:.1f} times on the factorisation", "pmf", "grid"),
        ("{:.1f} and {:.1f} times on the network, where it was timed once", "bnn", "grid"),
    ):
        assert words.format(*(over[model, pattern, name] for name in ("sghmc", "sghmc-cv"))) in text
    by_ksd = over.loc["logistic", "grid-ksd"]
    assert "by KSD takes {:.1f} to {:.1f} times as long".format(*_extremes(by_ksd)) in text


def test_hours_of_the_papers_run_are_those_of_its_jobs():
    timings = published("paper", "timings", "detail", "metric")
    total = timings.loc[("all of these", "total_seconds"), "value"].item()
    assert f"{total / 3600:.1f} hours" in (ROOT / "docs/reproducing.md").read_text("utf-8")


def _extremes(values: pd.Series) -> tuple[float, float]:
    return values.min(), values.max()
