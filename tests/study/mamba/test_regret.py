"""Regret: its arithmetic and standard error, the table of all samplers and the short one of their means."""

import math

import numpy as np
import pytest
from artifact_records import make, reference_records

from sgtune.study.mamba.regret import after, regret_cells
from sgtune.study.report.labels import COMPARED_ARMS
from sgtune.study.report.means import best_of, chosen_losses, ratio
from sgtune.study.report.table import AT_CAP, DIVERGED, NO_ARM, NOT_TRUSTED

# Two fresh replicates (rows) of three arms.
LOSSES = np.array([[2.0, 1.0, 4.0], [4.0, 1.0, 8.0]])


def test_the_best_is_a_finalist_one_replicate_has_no_error_and_no_arm_counts_as_the_cap_of_the_loss():
    assert best_of(LOSSES, [2, 0]) == 0
    assert ratio(LOSSES[:1, [0]], LOSSES[:1, [1]]) == (2.0, None)
    for loss, cap in (("xi_white", 10.0), ("log_loss", 10.0), ("brier", 2.0)):
        assert chosen_losses(LOSSES, [1, None], loss).tolist() == [[1.0, cap], [1.0, cap]]


@pytest.mark.parametrize(
    ("columns", "same_tunings"), [((3, 3), True), ((3, 3), False), ((3, 2), True), ((1, 4), True)]
)
def test_standard_errors_are_those_of_deleting_rows_and_columns_one_by_one(columns, same_tunings):
    rng = np.random.default_rng(3)
    above, below = (rng.lognormal(size=(5, n)) for n in columns)

    def part(n, value):
        return (n - 1) * np.var([value(i) for i in range(n)])

    def without(losses, i, axis):
        return np.delete(losses, i, axis).mean() if losses.shape[axis] > 1 else losses.mean()

    variance = part(5, lambda i: without(above, i, 0) / without(below, i, 0))
    if columns[0] == columns[1] and same_tunings:
        variance += part(columns[0], lambda j: without(above, j, 1) / without(below, j, 1))
    else:
        variance += part(columns[0], lambda j: without(above, j, 1) / below.mean())
        variance += part(columns[1], lambda j: above.mean() / without(below, j, 1))
    expected = (above.mean() / below.mean(), math.sqrt(variance))
    assert ratio(above, below, same_tunings=same_tunings) == pytest.approx(expected, rel=1e-12)


def runs_of(losses=LOSSES, names=("xi_white",)):
    """Runs of 10 s with these losses (replicates, arms) under each of the names, and of 20 s with half of them."""
    return [
        {"arm": i, "seconds": seconds, "diverged": [False] * len(losses)}
        | {"losses": {name: (losses[:, i] / factor).tolist() for name in names}}
        for seconds, factor in ((10.0, 1), (20.0, 2))
        for i in range(3)
    ]


def record(*, losses=("xi_white",), **changes):
    """A record of one sampler."""
    return {
        "model": "logistic",
        "sampler": "sgld",
        "losses": losses,
        "trusted": True,
        "random": [2, 1],
        "arms": [{"step_size": 10.0**-i, "batch_size": 8, "n_leapfrog": None} for i in range(3)],
        "runs": runs_of(names=losses),
        "finalists": {key: [0, 1] for key in losses},
        "chosen": [{"tuner": "mamba-ksd", "arms": [0, 2]}, {"tuner": "heuristic", "arms": [1]}],
        "oracles": {"xi_white": [1, 0]},
        "frozen": dict.fromkeys(losses, 4.0),
    } | changes


def cells_of(seconds=10, **changes):
    """(tuner, metric) -> the cell."""
    found = [cell for cell in regret_cells([record(**changes)]) if cell.detail == after(seconds)]
    return {(cell.tuner, cell.metric.removeprefix("xi_white_x100_")): cell for cell in found}


def test_a_table_of_regret_by_hand():
    cells = cells_of()
    # The chosen arms' means are 3 and 6, the best finalist's 1, the oracle's arms' 1 and 3, the random arms' 6 and 1.
    regrets = {"mamba-ksd": 4.5, "heuristic": 1.0, "oracle": 2.0, "random": 3.5, "frozen": 4.0}
    expected = {(tuner, "regret"): value for tuner, value in regrets.items()}
    expected |= {(tuner, "over_oracle"): value / 2 for tuner, value in regrets.items() if tuner != "oracle"}
    expected["finalist", "xi_white_x100"] = 100.0
    assert {key: cell.value for key, cell in cells.items()} == pytest.approx(expected)
    # The sd / √2 of the chosen arms is 1.5, independent of the replicates' (6 and 3 without the one or the other, so
    # 1.5 too).
    assert cells["mamba-ksd", "regret"].se == pytest.approx(math.hypot(1.5, 1.5))
    # Of a chain that never moves only the denominator has an error: 1.5 and 3 without the one or the other replicate.
    frozen = cells_of(oracles={"xi_white": [0]}, frozen={"xi_white": 6.0})["frozen", "over_oracle"]
    assert (frozen.value, frozen.se) == pytest.approx((2.0, 0.75))
    # All losses are halved in the longer runs, so that ratios stay, but for the frozen chain, which has no run.
    expected |= {
        ("frozen", "regret"): 8.0,
        ("frozen", "over_oracle"): 4.0,
        ("finalist", "xi_white_x100"): 50.0,
    }
    assert {key: cell.value for key, cell in cells_of(20).items()} == pytest.approx(expected)


BOTH = ("xi_white", "relative_sd_error")


def test_each_loss_is_compared_with_its_own_oracle():
    """Of the second loss the oracle chose arms of means 1 and 1, and the tuner arms of means 3 and 6."""
    own = cells_of(losses=BOTH, oracles={"xi_white": [1, 0], "relative_sd_error": [1, 1]})
    assert own["mamba-ksd", "over_oracle"].value == pytest.approx(2.25)
    assert own["mamba-ksd", "relative_sd_error_x100_over_oracle"].value == pytest.approx(4.5)
    assert ("mamba-ksd", "relative_sd_error_x100_over_oracle") not in cells_of(losses=BOTH)


def test_what_diverged_counts_as_the_cap_and_is_counted():
    runs = runs_of()
    runs[0] |= {"diverged": [True, False], "losses": {"xi_white": [10.0, 4.0]}}
    cell = cells_of(runs=runs)["mamba-ksd", "regret"]
    # Means 7 and 6 over 1; of the four runs one was lost.
    assert (cell.value, cell.finite, cell.replicates) == (pytest.approx(6.5), 3, 4)
    assert cell.shown.startswith("≥ 6.50 ± ")
    assert cell.shown.endswith(" (3/4)")
    runs[1] |= {"diverged": [True, True], "losses": {"xi_white": [10.0, 10.0]}}
    cells = cells_of(runs=runs)
    assert cells["heuristic", "regret"].shown == cells["heuristic", "over_oracle"].shown == DIVERGED
    assert cells["mamba-ksd", "regret"].shown == AT_CAP  # the best finalist is now an arm that diverged once
    none = [{"tuner": "mamba-ksd", "arms": [None, None]}, {"tuner": "heuristic", "arms": [1]}]
    assert cells_of(chosen=none)["mamba-ksd", "regret"].shown == NO_ARM
    once = [{"tuner": "mamba-ksd", "arms": [0, None]}, {"tuner": "heuristic", "arms": [1]}]
    cell = cells_of(chosen=once)["mamba-ksd", "regret"]
    assert (cell.value, cell.finite, cell.replicates) == (pytest.approx(6.5), 2, 4)
    assert cell.shown.startswith("≥ 6.5")


def test_a_finite_run_at_the_cap_makes_a_lower_bound_and_no_denominator():
    runs = runs_of()
    runs[0] |= {"losses": {"xi_white": [10.0, 4.0]}}
    cells = cells_of(runs=runs)
    assert cells["mamba-ksd", "regret"].shown.startswith("≥ 6.50 ± ")
    assert not cells["heuristic", "regret"].shown.startswith("≥")
    # Arm 0 is one of the oracle's: a ratio to what may be anything is not known.
    for name in ("mamba-ksd", "heuristic", "random", "frozen"):
        assert (cells[name, "over_oracle"].shown, cells[name, "over_oracle"].value) == (AT_CAP, None)
    assert cells["frozen", "regret"].value == 4.0
    assert cells_of(oracles={"xi_white": [1, None]})["heuristic", "over_oracle"].shown == AT_CAP


def made(name, *records, reference=()):
    return make(name, {"regret": list(records), "reference": list(reference)})


def test_without_a_reference_that_is_trusted_no_number_is_printed():
    assert {cell.shown for cell in cells_of(trusted=False).values()} == {NOT_TRUSTED}
    assert NOT_TRUSTED not in {cell.shown for cell in cells_of(trusted=None).values()}
    cells = made("regret", record(losses=BOTH, trusted=False))
    assert {(cell.metric, cell.value, cell.missing) for cell in cells} == {
        ("xi_white_x100_over_oracle", None, NOT_TRUSTED)
    }
    assert not {cell.tuner for cell in cells} & set(COMPARED_ARMS)


def test_without_a_reference_of_the_parameters_their_error_is_left_out():
    nuts = reference_records("logistic")["logistic/nuts"]
    metrics = {}
    for r_hat in (1.04, 1.06):
        nuts["blocks"] = {"logistic": nuts["blocks"]["logistic"] | {"r_hat_p99": r_hat}}
        found = made("regret", record(losses=BOTH), reference=[nuts])
        metrics[r_hat] = {cell.metric for cell in found if cell.value is not None}
    assert metrics[1.04] - metrics[1.06] == {"relative_sd_error_x100", "relative_sd_error_x100_regret"}
    assert "xi_white_x100_over_oracle" in metrics[1.06]


@pytest.mark.parametrize("name", ["regret", "headline"])
def test_the_best_is_marked_unless_there_is_one_tuning_run_or_few_replicates(name):
    def marked(tunings, replicates, losses=(0.1, 1.0, 0.5)):
        """With the first arm for MAMBA-KSD, the second for the heuristic, and the third for the oracle."""
        noise = np.array([[0.99, 1.02, 1], [1.01, 0.98, 1], [1, 1.01, 1], [1, 0.99, 1]])
        arms = {"mamba-ksd": [0] * tunings, "heuristic": [1] * tunings}
        own = {"runs": runs_of((noise * losses)[:replicates]), "oracles": {"xi_white": [2] * tunings}}
        own["chosen"] = [{"tuner": tuner, "arms": chosen} for tuner, chosen in arms.items()]
        cells = made(name, *(record(sampler=sampler, **own) for sampler in ("sgld", "sghmc", "sgnht")))
        return {cell.tuner for cell in cells if cell.best}

    assert marked(2, 4) == {"mamba-ksd"}
    assert marked(1, 4) == set()
    assert marked(2, 2) == set()
    # Ahead by less than two standard errors of the difference.
    assert marked(2, 4, losses=(0.99, 1.0, 0.5)) == set()


def headline(*records):
    """(tuner, loss) -> the cell."""
    return {(cell.tuner, cell.detail): cell for cell in made("headline", *records)}


SECOND = {"sampler": "sgnht", "chosen": [{"tuner": "mamba-ksd", "arms": [1, 2]}]}
"""Of a second sampler MAMBA-KSD's mean losses are 1 and 6 over the oracle's 1 and 3."""


def test_a_cell_of_the_short_table_is_the_mean_over_samplers_after_the_longest_runs():
    cells = headline(record(), record(**SECOND))
    found = cells["mamba-ksd", "ξ whitened"]
    each = [cells_of(20, **changes)["mamba-ksd", "over_oracle"] for changes in ({}, SECOND)]
    assert [cell.value for cell in each] == pytest.approx([2.25, 1.75])
    assert (found.value, found.se) == pytest.approx((2.0, math.hypot(*(cell.se for cell in each)) / 2))
    assert (found.finite, found.replicates) == (2, 2)
    # Of a chain that never moves the loss is the same after the longer runs, whose losses are half as large.
    assert cells["frozen", "ξ whitened"].value == pytest.approx(4.0)
    # A second loss with an oracle has a column of its own.
    oracles = {"xi_white": [1, 0], "relative_sd_error": [1, 1]}
    both = headline(*(record(losses=BOTH, oracles=oracles, **changes) for changes in ({}, SECOND)))
    assert both["mamba-ksd", "ξ(σ̂)"].value == pytest.approx((4.5 + 3.5) / 2)
    assert both["mamba-ksd", "ξ whitened"] == found


def test_a_sampler_whose_runs_all_diverged_is_counted_and_left_out():
    runs = [run | {"diverged": [run["arm"] != 1] * 2} for run in runs_of()]
    lost = record(runs=runs, chosen=[{"tuner": "mamba-ksd", "arms": [0, 2]}])
    cell = headline(lost, record(**SECOND))["mamba-ksd", "ξ whitened"]
    assert (cell.value, cell.se, cell.finite, cell.replicates) == (pytest.approx(1.75), None, 1, 2)
    assert cell.shown == "≥ 1.75 (1/2)"


def test_a_mean_over_a_sampler_at_the_cap_is_a_lower_bound_and_without_an_oracle_or_a_reference_there_is_none():
    # Not of the arms of the oracle: what is at the cap is no denominator.
    losses = np.array([[2.0, 1.0, 20.0], [4.0, 1.0, 8.0]])
    cell = headline(record(runs=runs_of(losses)), record(**SECOND))["mamba-ksd", "ξ whitened"]
    assert (cell.shown, cell.se) == (f"≥ {cell.value:.2f}", None)
    cells = headline(record(oracles={"xi_white": [None]}))
    assert {cells[name, "ξ whitened"].shown for name in ("mamba-ksd", "frozen")} == {AT_CAP}
    assert headline(record(trusted=False))["mamba-ksd", "ξ whitened"].shown == NOT_TRUSTED
