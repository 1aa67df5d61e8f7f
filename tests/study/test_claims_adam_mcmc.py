"""What README and the documentation say in words of AdamMCMC is what its published tables and figures show."""

import re
from math import hypot, isnan, sqrt
from types import SimpleNamespace

import pytest
from config_files import ROOT, published

from sgtune.study.adam_mcmc.verdicts import COVERAGE, is_beyond


@pytest.fixture(scope="module")
def pairs() -> list[SimpleNamespace]:
    """Of every target and gamma / s, at the s of E x^2: the chains without and with noise along the update, how long
    an update is at most over s, and whether the noise raised acceptance, by intervals that hold together."""
    found = published("adam_mcmc", "adam_acceptance")
    cells = {
        (row["model"], *row["detail"].split(", "), row["metric"]): row for row in found.to_dict("records")
    }
    keys = [key for key in cells if key[2:] == ("0", "0.7", "acceptance_rate")]
    pairs = []
    for model, ratio, *_ in keys:
        without, along = (cells[model, ratio, noise, "0.7", "acceptance_rate"] for noise in "01")
        squares = [cells.get((model, ratio, noise, "0.7", "second_moment")) for noise in "01"]
        n, value, se = without["replicates"], without["value"], without["se"]
        # Where no acceptance is expected, the upper end of its rate counts.
        if isnan(value):
            value, se = without["upper"], 0.0
        gain, se = along["value"] - value, hypot(se, along["se"])
        pairs.append(
            SimpleNamespace(
                target=(model, ratio),
                without_has_settled="*" not in without["shown"],
                have_settled="*" not in without["shown"] + along["shown"],
                squares=squares,
                gain=gain,
                length=float(ratio) * sqrt(DIMENSIONS.get(model, 10)),
                is_raised=gain > 0 and is_beyond(gain, se, n, 1 - (1 - COVERAGE) / len(keys)),
                is_lowered=gain < 0 and is_beyond(gain, se, n),
                is_biased=squares[1] is not None and beyond_a_tenth(squares[1], n),
            )
        )
    return pairs


DIMENSIONS = {f"gaussian-{dimension}": dimension for dimension in (10, 100, 1_000, 10_000)}


def beyond_a_tenth(square, n):
    beyond = abs(square["value"] - 1) - 0.1
    return beyond > 0 and is_beyond(beyond, square["se"], n)


def test_noise_along_the_update_raises_acceptance_where_updates_are_as_long_as_s(pairs):
    assert (len(pairs), sum(pair.is_lowered for pair in pairs)) == (18, 0)
    assert all(pair.is_raised for pair in pairs if pair.length >= 1)
    assert all(pair.gain < 0.01 for pair in pairs if pair.length < 1)


def test_most_of_these_draws_are_biased_and_most_chains_without_the_noise_stuck_or_too_slow(pairs):
    raised = [pair for pair in pairs if pair.is_raised]
    assert sum(pair.is_biased for pair in raised) > 0.7 * len(raised)
    assert sum(not pair.without_has_settled for pair in raised) > 0.7 * len(raised)


def test_the_only_long_pair_that_has_settled_is_too_wide_without_the_noise_and_too_narrow_with_it(pairs):
    [pair] = [pair for pair in pairs if pair.have_settled and pair.length >= 1]
    assert pair.target == ("gaussian-100", "0.1")
    assert pair.gain == pytest.approx(0.2, abs=0.01)
    assert all(beyond_a_tenth(square, 12) for square in pair.squares)
    assert pair.squares[0]["value"] > 1 > pair.squares[1]["value"]


@pytest.fixture(scope="module")
def bias():
    """The cells of E x^2 and of acceptance by variant, D and gamma / s."""
    found = {"second_moment": {}, "acceptance_rate": {}}
    for row in published("adam_mcmc", "adam_bias").to_dict("records"):
        if row["finite"]:
            found[row["metric"]].setdefault(row["sampler"], {})[row["model"], row["detail"]] = row
    return found


def test_as_printed_the_algorithm_does_not_keep_its_target_and_the_exact_variant_does(bias):
    def excludes_1(variant):
        cells = bias["second_moment"][variant].values()
        return [is_beyond(cell["value"] - 1, cell["se"], cell["replicates"]) for cell in cells]

    printed = excludes_1("isotropic") + excludes_1("prolate")
    assert sum(printed) > 0.8 * len(printed)
    assert excludes_1("exact") == [False] * 15


def test_the_bias_vanishes_with_gamma_grows_with_dimensions_and_is_not_monotone(bias):
    for variant in ("isotropic", "prolate"):
        cells = bias["second_moment"][variant]
        for model in {model for model, _ in cells}:
            own = [cell for (of, _), cell in cells.items() if of == model]
            assert abs(own[0]["value"] - 1) < 0.08 < 0.2 < max(abs(cell["value"] - 1) for cell in own)
            signs = {
                cell["value"] > 1
                for cell in own
                if is_beyond(cell["value"] - 1, cell["se"], cell["replicates"])
            }
            assert signs == ({False, True} if variant == "isotropic" else {False})
        fewest, most = (cells[f"gaussian-{dimension}", 0.01] for dimension in (2, 50))
        assert most["value"] < fewest["value"]
        assert differs(most, fewest, most["replicates"])
    nearer, farther = (bias["second_moment"]["prolate"]["gaussian-50", ratio] for ratio in (0.1, 0.03))
    assert farther["value"] < nearer["value"] < 1
    assert differs(nearer, farther, nearer["replicates"])


def test_gradients_of_minibatches_mostly_make_the_bias_smaller_and_a_test_on_them_adds_one(bias):
    squares, rates = bias["second_moment"], bias["acceptance_rate"]
    smaller = [
        abs(cell["value"] - 1) < abs(squares["prolate"][key]["value"] - 1)
        for key, cell in squares["prolate-batch"].items()
    ]
    assert sum(smaller) > 0.7 * len(smaller)
    of_test = squares["minibatch-test"].items()
    assert all(cell["value"] > 1.8 for (_, ratio), cell in of_test if ratio == 0.01)
    assert all(cell["value"] < rates["prolate"][key]["value"] for key, cell in rates["exact"].items())


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
    found = published("adam_mcmc", "adam_regret", "sampler", "tuner", "metric")
    for sampler in ("mala", "hmc"):
        for metric in ("xi_white_x100_regret", "relative_sd_error_x100_regret"):
            own = found.loc[sampler].xs(metric, level="metric")
            assert not differs(own.loc["acceptance"].fillna(0), own.loc["mamba"], 3)
        assert found.loc[(sampler, "mamba-ksd", "acceptance_percent"), "value"] < 0.15


@pytest.mark.parametrize("metric", ["relative_sd_error_x100", "xi_white_x100"])
def test_samplers_with_a_test_and_sgld_do_not_differ_clearly_after_the_same_seconds(metric):
    """By the 95% t interval of three races."""
    found = published("adam_mcmc", "adam_evaluation", "metric", "sampler")
    errors, draws = found.loc[metric], found.loc["n_samples", "value"]
    for sampler in ("adam-mcmc", "mala", "hmc"):
        assert not differs(errors.loc["sgld"], errors.loc[sampler], 3)
    assert draws["sgld"] > draws["adam-mcmc"]
