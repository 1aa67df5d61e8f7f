"""Digits, bold print and headings of the tables of AdamMCMC's study, from records made by hand."""

# ruff: noqa: RUF001 - tables print signs of mathematics

import pytest

from sgtune.study.adam_mcmc.distance_findings import DISTANCES, QUICK_NAMES, distance_findings
from sgtune.study.adam_mcmc.distances import LINES, QUICK
from sgtune.study.adam_mcmc.equal_time import remarks_on_ksd
from sgtune.study.adam_mcmc.evaluation_table import adam_evaluation, adam_predictions
from sgtune.study.adam_mcmc.regret_table import adam_choices, adam_regret, regret_findings

ARM = {"step_size": 0.1, "batch_size": 6, "n_leapfrog": None}


def evaluated(sampler, ksds, *, floor):
    """Runs with these values of the KSD; the accuracies 0.93894 and 0.93896 in turn."""
    rows = [
        {
            "replicate": i,
            "n_samples": 100,
            "ksd": ksd,
            "ksd_floor": floor,
            "accuracy": 0.93894 + 2e-5 * (i % 2),
        }
        for i, ksd in enumerate(ksds)
    ]
    return {
        **{"model": "logistic", "sampler": sampler, "tuner": "mamba", "best": ARM, "arms": [ARM]},
        **{
            "table": rows,
            "seconds": 3.0,
            "race_seconds": 1.0,
            "map": {"ksd": 3.162, "accuracy": 0.938912345},
        },
    }


def column(table, heading):
    place = [name for _, name in table.columns].index(heading)
    return {row.labels[1]: row.cells[place] for row in table.rows}


@pytest.mark.parametrize(("floor", "is_best"), [(79.0, False), (5.0, True)])
def test_a_ksd_below_the_ksd_of_exact_draws_is_never_the_best(floor, is_best):
    records = [
        evaluated("sgld", [100.0, 102.0, 104.0], floor=floor),
        evaluated("sgnht", [20.0, 21.0, 22.0], floor=floor),
    ]
    ksd = column(adam_evaluation({"evaluations": records}), "of the chain")
    assert ksd["SGNHT"].best == is_best
    assert not ksd["SGLD"].best


@pytest.mark.parametrize(
    ("model", "words"),
    [("logistic", "does not mean that draws are good"), ("bnn", "Laplace approximation, which is")],
)
def test_a_small_ksd_is_called_no_merit_only_where_its_floor_is_of_exact_draws(model, words):
    record = evaluated("sgnht", [20.0, 21.0, 22.0], floor=79.0) | {"model": model}
    (line,) = remarks_on_ksd({"sgnht": record})
    assert words in line
    assert ("exact draws" in line) == (model == "logistic")


def test_the_row_of_the_map_has_the_digits_of_its_column():
    records = {"evaluations": [evaluated("sgld", [100.0, 102.0, 104.0], floor=79.0)]}
    table = adam_predictions(records)
    # The standard error of 93.894, 93.896 and 93.894 is 0.00067; no number has more than 5 digits.
    accuracy = column(table, "Pred. acc. (%)")
    assert accuracy["SGLD"].shown == "93.895 ± 0.001"
    assert accuracy["MAP"].shown == "93.891"
    ksd = column(adam_evaluation(records), "of the chain")
    assert (ksd["SGLD"].shown, ksd["MAP"].shown) == ("102.0 ± 1.2", "3.2")
    assert column(table, "Log-loss")["MAP"].shown == "–"


@pytest.mark.parametrize(("counts", "text"), [([435] * 3, "435"), ([657, 655, 659], "657 ± 1")])
def test_equal_counts_of_draws_have_no_error(counts, text):
    record = evaluated("sgld", [100.0, 102.0, 104.0], floor=79.0)
    for row, count in zip(record["table"], counts, strict=True):
        row["n_samples"] = count
    table = adam_evaluation({"evaluations": [record]})
    assert column(table, "number")["SGLD"].shown == text


def races():
    """Three races of MALA: MAMBA chose arm 0 twice and arm 1 once; the losses of arm 0 are the smallest."""
    losses = {0: [0.20, 0.22, 0.24], 1: [0.30, 0.33, 0.36], 2: [0.60, 0.66, 0.72]}
    accepted = {0: 0.757, 1: 0.188, 2: 0.0}
    best = {"step_size": 1e-5, "batch_size": 10, "n_leapfrog": None}
    race = {"judge": "mamba", "replicate": 0, "best": best, "n_arms": 3, "reason": ""}
    return {
        **{"model": "logistic", "sampler": "mala", "n_data": 100, "seconds": 1.0, "trusted": True},
        "races": [race],
        "regret": {
            "losses": ["xi_white"],
            "arms": [{"step_size": 10.0**-i} for i in range(3)],
            "finalists": {"xi_white": [0, 1]},
            "chosen": [{"tuner": "mamba", "arms": [0, 1, 0]}, {"tuner": "mamba-ksd", "arms": [2, 2, 2]}],
            "oracles": {"xi_white": [0]},
            "random": [1, 1],
            "frozen": {"xi_white": 0.66},
            "runs": [
                {"arm": arm, "seconds": 2.0, "steps": 5, "diverged": [False] * 3}
                | {"losses": {"xi_white": values}, "acceptance": [accepted[arm]] * 3}
                for arm, values in losses.items()
            ],
        },
    }


def test_ratios_and_the_error_that_they_are_over_are_told_apart():
    table = adam_regret({"races": [races()]})
    assert table.columns[0] == ("Regret (error / best arm's error)", "ξ whitened")
    shown = {row.labels[1]: row.cells[0].shown for row in table.rows}
    assert shown["Best arm, its own error"] == "ξ × 10² = 22.0 ± 1.2"
    # Every loss of arm 2 is three times the loss of arm 0: a ratio without spread.
    assert shown["MAMBA-KSD"] == "3.00"
    assert "not a ratio" in table.caption


def test_equal_acceptance_rates_stand_once_with_their_number():
    shown = {row.labels[1]: row.cells[-1].shown for row in adam_regret({"races": [races()]}).rows}
    assert shown["MAMBA (default)"] == "75.7 (2 races); 18.8"
    assert shown["MAMBA-KSD"] == "stuck (3 races)"
    assert shown["Random arm"] == "18.8 (2 arms)"
    assert shown["Oracle"] == "75.7"


def test_three_races_that_agree_by_chance_are_no_difference():
    """Each arm by acceptance has three times the loss of MAMBA's arm of the same race, and in turn it has not."""
    record = races()
    runs = record["regret"]["runs"]
    runs.append(
        runs[1] | {"arm": 3, "losses": {"xi_white": [3 * loss for loss in runs[1]["losses"]["xi_white"]]}}
    )
    record["regret"]["arms"].append({"step_size": 1.0})
    record["regret"]["chosen"].append({"tuner": "acceptance", "arms": [2, 3, 2]})
    line = regret_findings({"races": [record]})[0]
    assert "is 3.00 ± 0.78: no difference is shown." in line


def test_choices_say_what_h_is_of_each_sampler():
    caption = adam_choices({"races": [races()]}).caption
    for words in ("AdamMCMC's γ", "MALA's drift step e", "HMC's squared leapfrog step"):
        assert words in caption


@pytest.mark.parametrize(("end", "is_biased"), [(0.03, True), (0.015, False)])
def test_theorem_2_has_the_decay_rates_and_the_end_of_the_printed_algorithm(end, is_biased):
    line = {
        "name": "adam-mcmc",
        "steps": [0, 1, 2],
        "distances": [1.0, end, end],
        "plateau": end,
        "fit": None,
    }
    *_, rates, ends = distance_findings({"floor": 0.01, "lines": [line]}, DISTANCES)
    assert rates == "The curves of AdamMCMC without a mark have b₁ = 0.5 and b₂ = 0.9."
    assert ends.startswith(
        f"The algorithm as printed ends at a distance of {end:g} (AdamMCMC, γ / s = 0.1), as many exact draws at 0.01"
    )
    assert ends.endswith("bias of the algorithm.") == is_biased


def test_the_curves_without_a_mark_have_the_decay_rates_of_the_finding():
    assert QUICK == {"b1": 0.5, "b2": 0.9}
    assert {name for name, (_, numbers) in LINES.items() if numbers.items() >= QUICK.items()} == set(
        QUICK_NAMES
    )
