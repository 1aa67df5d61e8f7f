"""The table of regret, by hand and for small records."""

# ruff: noqa: RUF001 - tables print signs of mathematics

import math

import numpy as np
import pytest
from artifact_records import MODELS, cells_by, choose, make_files, records_of
from sgtune.study.mamba.regret_remarks import unknown_said
from sgtune.study.report.layout import AT_CAP, NO_ARM, NOT_TRUSTED

from sgtune.study.catalogue import MODELS as STUDIED
from sgtune.study.mamba.regret import losses_of, regret_cells
from sgtune.study.report import TABLES
from sgtune.study.report.labels import METRICS, READ_BY
from sgtune.study.report.means import metric_of

# Two fresh replicates (rows) of three arms.
LOSSES = np.array([[2.0, 1.0, 4.0], [4.0, 1.0, 8.0]])


def record(**changes):
    """A record of one sampler, by the losses of `LOSSES` at 10 s and half of them at 20 s."""
    arms = [{"step_size": 10.0**-i, "batch_size": 8, "n_leapfrog": None} for i in range(3)]
    runs = [
        {"arm": i, "seconds": seconds, "steps": 5, "diverged": [False, False]}
        | {"losses": {"xi_white": (LOSSES[:, i] / factor).tolist()}}
        for seconds, factor in ((10.0, 1), (20.0, 2))
        for i in range(3)
    ]
    return {
        "model": "logistic",
        "sampler": "sgld",
        "losses": ["xi_white"],
        "trusted": True,
        "screen": {"seconds": 1.0, "replicates": 2, "n_arms": 3, "diverged": []},
        "random": [2, 1],
        "arms": arms,
        "runs": runs,
        "finalists": {"xi_white": [0, 1]},
        "chosen": [{"tuner": "mamba-ksd", "arms": [0, 2]}, {"tuner": "heuristic", "arms": [1]}],
        "oracles": {"xi_white": [1, 0]},
        "frozen": {"xi_white": 4.0},
    } | changes


def shown(**changes):
    """(tuner, metric) -> the printed text, after 10 s."""
    cells = [cell for cell in regret_cells([record(**changes)]) if cell.detail == "after 10 s"]
    return {(cell.tuner, cell.metric.removeprefix("xi_white_x100_")): cell.shown for cell in cells}


def number(text):
    return float(text.split(" ")[0])


def test_a_table_of_regret_by_hand():
    cells = shown()
    assert cells["mamba-ksd", "regret"] == "4.5 ± 2.1"
    assert cells["heuristic", "regret"] == "1.00"  # the best finalist itself
    assert cells["finalist", "xi_white_x100"] == "100 ± 0"
    # The oracle's arms have means 1 and 3: 2 on average.
    assert number(cells["oracle", "regret"]) == pytest.approx(2, abs=0.051)
    assert number(cells["heuristic", "over_oracle"]) == pytest.approx(0.5, abs=0.051)
    assert number(cells["mamba-ksd", "over_oracle"]) == pytest.approx(2.25, abs=0.051)
    # The random arms' have means 6 and 1: 3.5 on average.
    assert number(cells["random", "regret"]) == pytest.approx(3.5, abs=0.051)
    assert number(cells["random", "over_oracle"]) == pytest.approx(1.75, abs=0.051)
    assert cells["frozen", "regret"] == "4.00"
    assert number(cells["frozen", "over_oracle"]) == pytest.approx(2, abs=0.051)
    assert ("oracle", "over_oracle") not in cells


def test_each_loss_is_compared_with_its_own_oracle():
    """Of the second loss the oracle chose arms of means 1 and 1, and the tuner arms of means 3 and 6."""
    runs = [
        {**run, "losses": {**run["losses"], "xi_rel": run["losses"]["xi_white"]}} for run in record()["runs"]
    ]
    both = {"losses": ["xi_white", "xi_rel"], "runs": runs, "frozen": {"xi_white": 4.0, "xi_rel": 4.0}}
    both["finalists"] = {"xi_white": [0, 1], "xi_rel": [0, 1]}
    own = shown(**both, oracles={"xi_white": [1, 0], "xi_rel": [1, 1]})
    assert number(own["mamba-ksd", "over_oracle"]) == pytest.approx(2.25, abs=0.051)
    assert number(own["mamba-ksd", "xi_rel_x100_over_oracle"]) == pytest.approx(4.5, abs=0.051)
    assert ("mamba-ksd", "xi_rel_x100_over_oracle") not in shown(**both)
    files = make_files(1, ("logistic",))
    assert "its own oracle" not in TABLES["regret"](records_of(files)).caption
    for held in files["regret"].values():
        held["oracles"] = dict.fromkeys(held["losses"], next(iter(held["oracles"].values())))
    table = TABLES["regret"](records_of(files))
    assert "each loss has its own oracle" in table.caption
    headline, other = map(metric_of, STUDIED["logistic"].losses)
    metrics = [row.cells[0].metric for row in table.rows if row.cells[0].tuner == "mamba-ksd"]
    of_each = [f"{headline}_over_oracle", f"{headline}_regret", f"{other}_over_oracle", f"{other}_regret"]
    assert metrics == 2 * of_each  # after 1 s and after 10 s


def test_what_diverged_counts_as_its_cap_and_is_named():
    runs = record()["runs"]
    runs[0] |= {"diverged": [True, False], "losses": {"xi_white": [10.0, 4.0]}}
    cells = shown(runs=runs)
    # Means 7 and 6 over 1; of the four runs one was lost.
    assert cells["mamba-ksd", "regret"].startswith("6.50 ± ")
    assert cells["mamba-ksd", "regret"].endswith(" (3/4)")
    runs[1] |= {"diverged": [True, True], "losses": {"xi_white": [10.0, 10.0]}}
    cells = shown(runs=runs)
    assert cells["heuristic", "regret"] == cells["heuristic", "over_oracle"] == "diverged"
    assert cells["mamba-ksd", "regret"] == AT_CAP  # the best finalist is now an arm that diverged once
    none = [{"tuner": "mamba-ksd", "arms": [None, None]}, {"tuner": "heuristic", "arms": [1]}]
    assert shown(chosen=none)["mamba-ksd", "regret"] == NO_ARM
    once = [{"tuner": "mamba-ksd", "arms": [0, None]}, {"tuner": "heuristic", "arms": [1]}]
    assert shown(chosen=once)["mamba-ksd", "regret"].startswith("6.5 ± ")
    assert shown(chosen=once)["mamba-ksd", "regret"].endswith(" (2/4)")


def test_what_lies_at_the_cap_may_be_anything_above_it():
    runs = record()["runs"]
    runs[0] |= {"losses": {"xi_white": [10.0, 4.0]}}
    cells = shown(runs=runs)
    assert cells["mamba-ksd", "regret"].startswith("≥ 6.50 ± ")
    assert not cells["heuristic", "regret"].startswith("≥")
    # Arm 0 is one of the oracle's: a ratio to what may be anything is not known.
    names = ("mamba-ksd", "heuristic", "random", "frozen")
    assert {cells[name, "over_oracle"] for name in names} == {AT_CAP}
    assert cells["frozen", "regret"] == "4.00"
    assert shown(oracles={"xi_white": [1, None]})["heuristic", "over_oracle"] == AT_CAP


def test_a_ratio_that_is_not_known_is_explained():
    files = make_files(1, ("logistic",))
    assert unknown_said([]) == ""
    held = files["regret"]["logistic/sgld"]
    held["oracles"] = {loss: [None] * len(arms) for loss, arms in held["oracles"].items()}
    caption = TABLES["regret"](records_of(files)).caption
    assert f"“{AT_CAP}”: not known, because a run of the oracle's arms" in caption


def test_without_a_reference_that_is_trusted_no_number_is_printed():
    assert set(shown(trusted=False).values()) == {NOT_TRUSTED}
    assert NOT_TRUSTED not in shown(trusted=None).values()
    files = make_files(1)
    for name, held in files["regret"].items():
        held["trusted"] = False if name.startswith("pmf") else held["trusted"]
    table = TABLES["regret"](records_of(files))
    cells = [cell for row in table.rows for cell in row.cells if cell.replicates]
    assert {cell.model for cell in cells if cell.missing == NOT_TRUSTED} == {"pmf"}
    assert all(cell.value is None for cell in cells if cell.model == "pmf")
    assert "the reference of PMF is not trusted" in table.caption


def test_without_a_reference_of_the_parameters_their_error_is_left_out():
    files = make_files(1)
    metrics = {}
    for r_hat in (1.04, 1.06):
        reference = files["reference"]["pmf/nuts"]
        reference["blocks"]["items"] = reference["blocks"]["items"] | {"r_hat_p99": r_hat}
        table = TABLES["regret"](records_of(files))
        cells = [
            cell for row in table.rows for cell in row.cells if cell.model == "pmf" and cell.value is not None
        ]
        metrics[r_hat] = {cell.metric for cell in cells}
    of_xi = {"relative_sd_error_x100", "relative_sd_error_x100_regret"}
    assert metrics[1.04] - metrics[1.06] == of_xi
    assert "functional_error_over_oracle" in metrics[1.06]
    assert "Left out, because the reference is not trusted for it: ξ(σ̂) × 10² (PMF)" in table.caption


@pytest.fixture(scope="module")
def table():
    files = make_files(1)
    for model, tuner in (("logistic", "mamba-fssd"), ("pmf", "grid")):
        choose(files, model, "sgld", tuner)
    return files, TABLES["regret"](records_of(files))


@pytest.mark.parametrize("model", MODELS)
def test_the_table_has_its_losses_headline_first_and_what_to_read_them_by(table, model):
    files, table = table
    headline, other = map(metric_of, STUDIED[model].losses)
    assert losses_of(files["regret"][f"{model}/sgld"]) == [headline, other]
    cells = [row.cells[0] for row in table.rows if row.cells[0].model == model]
    metrics = [f"{headline}_over_oracle", f"{headline}_regret", f"{other}_regret"]
    both = [cell.metric for cell in cells if cell.tuner == "mamba-ksd"]
    assert both == 2 * metrics  # after 1 s and after 10 s
    for tuner, of_tuner in {
        "oracle": metrics[1:2],
        "finalist": [headline, other],
        "random": metrics,
        "frozen": metrics,
    }.items():
        assert [cell.metric for cell in cells if cell.tuner == tuner] == 2 * of_tuner
    assert [row.labels[2] for row in table.rows[-8:]][::2] == [
        "Best finalist",
        "Random arm",
        "Random arm",
        "Frozen chain",
    ]


def test_the_caption_says_what_is_behind_the_numbers(table):
    _files, table = table
    for words in (
        "2 tuning runs, 4 fresh replicates; a screen of 16 to 32 arms, 2 replicates of 1 s",
        "R = 1 s (Logistic regression); R = 10 s (PMF, Neural network)",
        "counts as the cap, 10 (Brier score: 2) (the loss itself",
        "the reference's own error is in every loss",
        "Monte Carlo error: ξ(σ̂) × 10²: 1.20, ξ whitened × 10²: 1.40 (Logistic regression); ξ(σ̂) × 10²: 1.20, Error",
        "Logistic regression, SGHMC: h=1.25e-06 n=80000 L=10 (4 of 4)",
        "Arms that diverged in the screen: Logistic regression, SGLD: ",
        "an arm that the screen missed may be better than every finalist",
    ):
        assert words in table.caption


def test_bold_differs_from_all_others_and_is_never_an_arm_for_comparison():
    records = records_of(make_files(1, tunings=2))
    for chosen in (one for record in records["regret"] for one in record["chosen"]):
        chosen["arms"] = chosen["arms"][:1] * len(chosen["arms"])  # choices that do not vary
    table = TABLES["regret"](records)
    cells = cells_by(table, "model", "sampler", "detail", "metric", "tuner")
    marked = [key for key, cell in cells.items() if cell.best]
    assert marked
    for *group, tuner in marked:
        assert tuner not in READ_BY
        own = cells[*group, tuner]
        for (*other, _), cell in cells.items():
            others = other == group and cell.tuner not in READ_BY and cell.value is not None
            if others and cell.finite == cell.replicates and cell.of_runs != own.of_runs:
                assert cell.value - own.value > 2 * math.hypot(cell.se, own.se)


def test_nothing_is_bold_with_one_tuning_run():
    cells = cells_by(
        TABLES["regret"](records_of(make_files(1, tunings=1))),
        "model",
        "sampler",
        "detail",
        "metric",
        "tuner",
    )
    assert not [key for key, cell in cells.items() if cell.best]


def test_every_loss_of_the_study_has_a_name_in_the_table():
    for entry in STUDIED.values():
        for metric in map(metric_of, (*entry.losses, *entry.losses_without_reference)):
            assert {metric, f"{metric}_regret", f"{metric}_over_oracle"} <= METRICS.keys()
