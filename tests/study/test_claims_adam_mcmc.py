"""What README and the documentation say in words of AdamMCMC is what its published tables and figures show."""

import re
from math import hypot, sqrt

import pandas as pd
import pytest
from published_results import published
from workflow_runs import ROOT

from sgtune.study.adam_mcmc.verdicts import COVERAGE, is_beyond, t_quantile

SHOWN = "0.7"


@pytest.fixture(scope="module")
def pairs() -> pd.DataFrame:
    """Of every target and gamma / s at the s of E x^2: the chains without and with noise along the update."""
    found = published("adam_mcmc", "adam_acceptance")
    labels = found["detail"].str.split(", ", expand=True)
    found = found.assign(ratio=labels[0].astype(float), along=labels[1].astype(int), scale=labels[2])
    found = found[found["scale"] == SHOWN]
    wide = found.pivot(
        index=["model", "ratio"],
        columns=["metric", "along"],
        values=["value", "se", "shown", "replicates"],
    )
    rows = pd.DataFrame(index=wide.index)
    for name, along in (("without", 0), ("with", 1)):
        rows[name] = wide["value", "acceptance_rate", along].astype(float)
        rows[f"{name}_star"] = wide["shown", "acceptance_rate", along].str.endswith("*")
        rows[f"{name}_square"] = wide["value", "second_moment", along].astype(float)
        rows[f"{name}_square_se"] = wide["se", "second_moment", along].astype(float)
    rows["gain"] = rows["with"] - rows["without"]
    rows["se"] = [hypot(*own) for own in wide["se", "acceptance_rate"].astype(float).to_numpy()]
    rows["n"] = wide["replicates", "acceptance_rate", 0].astype(int)
    dimensions = {"logistic": 10} | {f"gaussian-{d}": d for d in (10, 100, 1_000, 10_000)}
    rows["length"] = [ratio * sqrt(dimensions[model]) for model, ratio in rows.index]
    together = 1 - (1 - COVERAGE) / len(rows)
    raised = rows.apply(lambda row: is_beyond(row["gain"], row["se"], row["n"], together), axis=1)
    assert not (raised & (rows["gain"] < 0)).any()
    return rows.assign(raised=raised)


def test_noise_along_the_update_raises_acceptance_where_updates_are_as_long_as_s(pairs):
    assert len(pairs) == 18
    assert pairs["raised"][pairs["length"] >= 1].all()
    assert (pairs["gain"][pairs["raised"] & (pairs["length"] < 1)] < 0.01).all()


def test_most_of_these_draws_are_biased_and_most_chains_without_the_noise_stuck_or_too_slow(pairs):
    raised = pairs[pairs["raised"]]
    beyond = (raised["with_square"] - 1).abs() - 0.1
    biased = beyond > raised["n"].map(t_quantile) * raised["with_square_se"]
    assert biased.sum() > 0.7 * len(raised)
    assert raised["without_star"].sum() > 0.7 * len(raised)


def test_the_only_pair_with_long_updates_that_has_settled_is_too_wide_without_the_noise_and_too_narrow_with_it(
    pairs,
):
    settled = pairs[(pairs["length"] >= 1) & ~pairs["without_star"] & ~pairs["with_star"]]
    assert list(settled.index) == [("gaussian-100", 0.1)]
    [row] = settled.to_dict("records")
    assert row["gain"] == pytest.approx(0.2, abs=0.01)
    assert row["without_square"] - 3 * row["without_square_se"] > 1.1
    assert row["with_square"] + 3 * row["with_square_se"] < 0.9


@pytest.fixture(scope="module")
def bias() -> pd.DataFrame:
    """E x^2 and acceptance by D, gamma / s and variant; and whether the interval of E x^2 excludes 1."""
    found = published("adam_mcmc", "adam_bias")
    wide = found.pivot(
        index=["model", "detail"], columns=["metric", "sampler"], values=["value", "se", "replicates"]
    )
    return (
        wide.astype(float).reset_index(level="detail").assign(ratio=lambda own: own["detail"].astype(float))
    )


def excludes_1(bias, variant):
    known = bias[bias["value", "second_moment", variant].notna()]
    return [
        is_beyond(row["value", "second_moment", variant] - 1, row["se", "second_moment", variant], int(n))
        for (_, row), n in zip(known.iterrows(), known["replicates", "second_moment", variant], strict=True)
    ]


def test_as_printed_the_algorithm_does_not_keep_its_target_and_the_exact_variant_does(bias):
    printed = excludes_1(bias, "isotropic") + excludes_1(bias, "prolate")
    assert sum(printed) > 0.8 * len(printed)
    exact = excludes_1(bias, "exact")
    assert (len(exact), sum(exact)) == (15, 0)


def test_the_bias_changes_its_sign_without_noise_along_the_update_and_vanishes_with_gamma(bias):
    for _, own in bias.groupby(level="model"):
        squares = own.sort_values("ratio")["value", "second_moment", "isotropic"].dropna()
        assert squares.min() < 0.95 < 1.4 < squares.max()
        assert abs(squares.iloc[0] - 1) < 0.08
        with_noise = own.sort_values("ratio")["value", "second_moment", "prolate"]
        assert abs(with_noise.iloc[0] - 1) < 0.08 < 0.2 < abs(with_noise.iloc[-1] - 1)


def test_gradients_of_minibatches_mostly_make_the_bias_smaller_and_a_test_on_them_adds_one(bias):
    squares = bias["value", "second_moment"]
    smaller = (squares["prolate-batch"] - 1).abs() < (squares["prolate"] - 1).abs()
    assert smaller.mean() > 0.7
    assert (squares["minibatch-test"][bias["ratio"] == 0.01] > 1.8).all()
    rates = bias["value", "acceptance_rate"]
    assert (rates["exact"] < rates["prolate"]).all()


def test_adam_mcmc_with_the_own_decays_of_adam_converges_at_the_rate_of_its_second_moment():
    """By the legend of the figure: by a factor of about b2 a step, for more than a thousand steps, after about 100."""
    figure = (ROOT / "results/published/adam_mcmc/figures/adam_distances.svg").read_text("utf-8")
    [lines] = re.findall(r"<!-- (AdamMCMC, exact, Adam's b₁, b₂: .*?off\)) -->", figure, re.DOTALL)
    [(factor, first, last)] = re.findall(r"([\d.]+) a step.*\(steps (\d+) to (\d+)", lines, re.DOTALL)
    assert (1 - float(factor)) / (1 - 0.999) == pytest.approx(1, abs=0.15)
    assert int(first) < 150
    assert int(last) - int(first) > 1000


def differs(first, second, n):
    return is_beyond(first["value"] - second["value"], hypot(first["se"], second["se"]), n)


def test_no_difference_between_the_acceptance_rate_and_the_default_tuner_is_clear():
    found = published("adam_mcmc", "adam_regret").set_index(["sampler", "tuner", "metric"])
    for sampler in ("mala", "hmc"):
        for metric in ("xi_white_x100_regret", "relative_sd_error_x100_regret"):
            own = found.loc[sampler].xs(metric, level="metric")
            assert not differs(own.loc["acceptance"].fillna(0), own.loc["mamba"], 3)
        assert found.loc[(sampler, "mamba-ksd", "acceptance_percent"), "value"] == 0


@pytest.mark.parametrize("metric", ["relative_sd_error_x100", "xi_white_x100"])
def test_samplers_with_a_test_and_sgld_do_not_differ_clearly_after_the_same_seconds(metric):
    """By the 95% t interval of three races."""
    found = published("adam_mcmc", "adam_evaluation")
    errors = found[found["metric"] == metric].set_index("sampler")
    for sampler in ("adam-mcmc", "mala", "hmc"):
        assert not differs(errors.loc["sgld"], errors.loc[sampler], 3)
    draws = found[found["metric"] == "n_samples"].set_index("sampler")["value"]
    assert draws["sgld"] < draws["adam-mcmc"]
