"""Regret: its arithmetic and standard error, the table of all samplers and the short one of their means."""

import math

import numpy as np
import pytest
from artifact_records import MODELS, SAMPLERS, cells_by, make, make_files, records_of

from sgtune.study.catalogue import MODELS as STUDIED
from sgtune.study.mamba.regret import after, losses_of, regret_cells, seconds_of
from sgtune.study.report.labels import COMPARED_ARMS, METRICS
from sgtune.study.report.means import best_of, chosen_losses, metric_of, over_loss, ratio
from sgtune.study.report.table import AT_CAP, DIVERGED, NO_ARM, NOT_TRUSTED

# Two fresh replicates (rows) of three arms.
LOSSES = np.array([[2.0, 1.0, 4.0], [4.0, 1.0, 8.0]])


def test_ratios_by_hand():
    assert best_of(LOSSES, [0, 1, 2]) == 1
    assert best_of(LOSSES, [2, 0]) == 0
    # Two tuning runs chose the arms 0 and 2, with means 3 and 6: their sd / √2 is 1.5, independent of the replicates'
    # (6 and 3 without the one or the other, so 1.5 too).
    above = chosen_losses(LOSSES, [0, 2], "xi_white")
    assert ratio(above, LOSSES[:, [1]]) == pytest.approx((4.5, math.hypot(1.5, 1.5)))
    assert over_loss(6.0, LOSSES[:, [0]]) == pytest.approx((2.0, math.sqrt(0.5 * (0.75**2 + 0.75**2))))
    assert ratio(LOSSES[:1, [0]], LOSSES[:1, [1]]) == (2.0, None)
    # A tuning run without an arm counts as the cap of the loss.
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


def test_choices_like_the_oracles_are_as_good_as_the_oracles_for_certain():
    """The jackknife leaves out tuning runs and replicates of both, so that the ratio is always 1."""
    columns = chosen_losses(LOSSES, [0, 2], "xi_white")
    assert ratio(columns, columns) == (1.0, 0.0)
    others = ratio(columns, columns[:, ::-1])
    assert others.value == 1.0
    assert others.se > 0


@pytest.mark.parametrize(("n_choices", "over_oracle"), [(1, False), (5, False), (5, True)])
def test_standard_errors_are_the_spread_of_simulated_records(n_choices, over_oracle):
    """Over 2,000 records of 12 replicates: root mean square of the standard errors against the sd of the ratios.

    The sd has a standard error of 1.6%; the jackknife over few tuning runs and the noise that its columns have in
    common with the replicates' make the standard error larger, never smaller, by some percent.
    """
    rng, means = np.random.default_rng(1), np.array([1.0, 1.5, 2.0, 3.0, 5.0])
    found = []
    for _ in range(2_000):
        choices = rng.integers(1, 5, n_choices) if n_choices > 1 else [2]
        below = rng.integers(0, 2, n_choices) if over_oracle else [0]
        # A factor that all arms have in common within a replicate, and factors of their own.
        losses = means * rng.lognormal(0, 0.3, (12, 1)) * rng.lognormal(0, 0.2, (12, len(means)))
        found.append(ratio(losses[:, choices], losses[:, below]))
    values, errors = np.array(found).T
    assert 0.95 < math.sqrt(np.mean(errors**2)) / np.std(values, ddof=1) < 1.09


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
        "random": [2, 1],
        "arms": arms,
        "runs": runs,
        "finalists": {"xi_white": [0, 1]},
        "chosen": [{"tuner": "mamba-ksd", "arms": [0, 2]}, {"tuner": "heuristic", "arms": [1]}],
        "oracles": {"xi_white": [1, 0]},
        "frozen": {"xi_white": 4.0},
    } | changes


def cells_of(seconds=10, **changes):
    """(tuner, metric) -> the cell."""
    found = [cell for cell in regret_cells([record(**changes)]) if cell.detail == after(seconds)]
    return {(cell.tuner, cell.metric.removeprefix("xi_white_x100_")): cell for cell in found}


def test_a_table_of_regret_by_hand():
    cells = cells_of()
    values = {key: cell.value for key, cell in cells.items()}
    # The chosen arms' means are 3 and 6, the best finalist's 1, the oracle's arms' 1 and 3, the random arms' 6 and 1.
    expected = {
        ("mamba-ksd", "regret"): 4.5,
        ("mamba-ksd", "over_oracle"): 2.25,
        ("heuristic", "regret"): 1.0,
        ("heuristic", "over_oracle"): 0.5,
        ("oracle", "regret"): 2.0,
        ("random", "regret"): 3.5,
        ("random", "over_oracle"): 1.75,
        ("frozen", "regret"): 4.0,
        ("frozen", "over_oracle"): 2.0,
        ("finalist", "xi_white_x100"): 100.0,
    }
    assert values == pytest.approx(expected)
    assert cells["mamba-ksd", "regret"].se == pytest.approx(math.hypot(1.5, 1.5))
    # All losses are halved in the longer runs, so that ratios stay, but for the frozen chain, which has no run.
    longer = {key: cell.value for key, cell in cells_of(20).items()}
    assert longer == pytest.approx(
        expected
        | {("frozen", "regret"): 8.0, ("frozen", "over_oracle"): 4.0, ("finalist", "xi_white_x100"): 50.0}
    )


def test_each_loss_is_compared_with_its_own_oracle():
    """Of the second loss the oracle chose arms of means 1 and 1, and the tuner arms of means 3 and 6."""
    runs = record()["runs"]
    for run in runs:
        run["losses"]["xi_rel"] = run["losses"]["xi_white"]
    both = {"losses": ["xi_white", "xi_rel"], "runs": runs, "frozen": {"xi_white": 4.0, "xi_rel": 4.0}}
    both["finalists"] = {"xi_white": [0, 1], "xi_rel": [0, 1]}
    own = cells_of(**both, oracles={"xi_white": [1, 0], "xi_rel": [1, 1]})
    assert own["mamba-ksd", "over_oracle"].value == pytest.approx(2.25)
    assert own["mamba-ksd", "xi_rel_x100_over_oracle"].value == pytest.approx(4.5)
    assert ("mamba-ksd", "xi_rel_x100_over_oracle") not in cells_of(**both)


def test_what_diverged_counts_as_the_cap_and_is_counted():
    runs = record()["runs"]
    runs[0] |= {"diverged": [True, False], "losses": {"xi_white": [10.0, 4.0]}}
    cell = cells_of(runs=runs)["mamba-ksd", "regret"]
    # Means 7 and 6 over 1; of the four runs one was lost.
    assert (cell.value, cell.finite, cell.replicates) == (pytest.approx(6.5), 3, 4)
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


def test_a_finite_run_at_the_cap_makes_a_lower_bound_and_no_denominator():
    runs = record()["runs"]
    runs[0] |= {"losses": {"xi_white": [10.0, 4.0]}}
    cells = cells_of(runs=runs)
    assert cells["mamba-ksd", "regret"].shown.startswith("≥ 6.50 ± ")
    assert not cells["heuristic", "regret"].shown.startswith("≥")
    # Arm 0 is one of the oracle's: a ratio to what may be anything is not known.
    for name in ("mamba-ksd", "heuristic", "random", "frozen"):
        assert (cells[name, "over_oracle"].shown, cells[name, "over_oracle"].value) == (AT_CAP, None)
    assert cells["frozen", "regret"].value == 4.0
    assert cells_of(oracles={"xi_white": [1, None]})["heuristic", "over_oracle"].shown == AT_CAP
    # A run that diverged is counted, and is no bound.
    runs[0]["diverged"] = [True, False]
    assert not cells_of(runs=runs)["mamba-ksd", "regret"].shown.startswith("≥")


def test_without_a_reference_that_is_trusted_no_number_is_printed():
    assert {cell.shown for cell in cells_of(trusted=False).values()} == {NOT_TRUSTED}
    assert NOT_TRUSTED not in {cell.shown for cell in cells_of(trusted=None).values()}
    files = make_files(1)
    for name, held in files["regret"].items():
        held["trusted"] = False if name.startswith("pmf") else held["trusted"]
    cells = [cell for cell in make("regret", records_of(files)) if cell.model == "pmf"]
    assert all(cell.value is None and cell.missing == NOT_TRUSTED for cell in cells)
    assert not {cell.tuner for cell in cells} & set(COMPARED_ARMS)
    assert {cell.metric for cell in cells} == {"functional_error_over_oracle"}


def test_without_a_reference_of_the_parameters_their_error_is_left_out():
    files = make_files(1)
    metrics = {}
    for r_hat in (1.04, 1.06):
        reference = files["reference"]["pmf/nuts"]
        reference["blocks"]["items"] = reference["blocks"]["items"] | {"r_hat_p99": r_hat}
        found = make("regret", records_of(files))
        metrics[r_hat] = {cell.metric for cell in found if cell.model == "pmf" and cell.value is not None}
    of_xi = {"relative_sd_error_x100", "relative_sd_error_x100_regret"}
    assert metrics[1.04] - metrics[1.06] == of_xi
    assert "functional_error_over_oracle" in metrics[1.06]


def test_the_table_has_its_main_loss_first_and_what_to_compare_with():
    files = make_files(1, choices=[("logistic/sgld", "mamba-fssd", [None, None])])
    found = make("regret", records_of(files))
    for model in MODELS:
        main, other = map(metric_of, STUDIED[model].losses)
        assert losses_of(files["regret"][f"{model}/sgld"]) == [main, other]
        metrics = [f"{main}_over_oracle", f"{main}_regret", f"{other}_regret"]
        own = [cell for cell in found if cell.model == model and cell.sampler == "sgld"]
        for tuner, of_tuner in {
            "mamba-ksd": metrics,
            "oracle": metrics[1:2],
            "finalist": [main, other],
            "random": metrics,
            "frozen": metrics,
        }.items():
            shown = [(cell.metric, cell.detail) for cell in own if cell.tuner == tuner]
            assert shown == [(metric, when) for metric in of_tuner for when in ("after 1 s", "after 10 s")]
    assert {
        cell.shown
        for cell in found
        if (cell.model, cell.sampler, cell.tuner) == ("logistic", "sgld", "mamba-fssd")
    } == {NO_ARM}


def with_a_winner(tunings, kept, *, below=0.1):
    """With equal losses for all other tuners, MAMBA-KSD is ahead of them by far."""
    files = make_files(4, ("logistic",), tunings=tunings)
    for held in files["regret"].values():
        held["oracles"] = {name: [2] * tunings for name in held["oracles"]}
        for chosen in held["chosen"]:
            chosen["arms"] = [0 if chosen["tuner"] == "mamba-ksd" else 1] * tunings
        for run in held["runs"]:
            run["diverged"] = [False] * kept
            noise = [0.99, 1.0, 1.01, 1.0][:kept]
            value = {0: below, 1: 1.0}.get(run["arm"], 0.5)
            run["losses"] = {name: [value * factor for factor in noise] for name in run["losses"]}
    return files


@pytest.mark.parametrize("name", ["regret", "headline"])
def test_the_best_is_marked_unless_there_is_one_tuning_run_or_few_replicates(name):
    def marked(*arguments, **options):
        return {
            cell.tuner for cell in make(name, records_of(with_a_winner(*arguments, **options))) if cell.best
        }

    assert marked(2, 4) == {"mamba-ksd"}
    assert marked(1, 4) == set()
    assert marked(2, 2) == set()
    # Ahead by less than two standard errors of the difference.
    assert "mamba-ksd" not in marked(2, 4, below=1.0)


def mean_of_samplers(cells, records, metric):
    """What `headline` must have of MAMBA-KSD on the logistic regression, from the cells of its samplers."""
    own = [record for record in records["regret"] if record["model"] == "logistic"]
    which = ("mamba-ksd", f"{metric}_over_oracle", after(seconds_of(own)[-1]))
    each = [cell for cell in regret_cells(own) if (cell.tuner, cell.metric, cell.detail) == which]
    assert len(each) == len(SAMPLERS)
    se = math.sqrt(sum(cell.se**2 for cell in each)) / len(each)
    return pytest.approx((sum(cell.value for cell in each) / len(each), se))


@pytest.fixture(scope="module")
def files():
    return make_files()


def headline(records):
    return cells_by(make("headline", records), "model", "tuner", "detail")


def test_a_cell_of_the_short_table_is_the_mean_over_samplers_after_the_longest_runs(files):
    records = records_of(files)
    cells = headline(records)
    found = cells["logistic", "mamba-ksd", "ξ whitened"]
    assert (found.value, found.se) == mean_of_samplers(cells, records, "xi_white_x100")
    assert found.finite == found.replicates == len(SAMPLERS)
    assert {model for model, *_ in cells} == set(MODELS)
    # A second loss with an oracle, in which the arms are in another order, has a column of its own.
    for held in records["regret"]:
        if held["model"] == "logistic":
            held["oracles"]["relative_sd_error"] = held["oracles"]["xi_white"][::-1]
    both = headline(records)
    other = both["logistic", "mamba-ksd", METRICS["relative_sd_error_x100_regret"].label.split(",")[0]]
    assert (other.value, other.se) == mean_of_samplers(both, records, "relative_sd_error_x100")
    assert both["logistic", "mamba-ksd", "ξ whitened"].value == found.value


def runs_of_mamba_ksd(records):
    """The fresh runs of the arms that it chose for one sampler of the logistic regression."""
    held = next(one for one in records["regret"] if one["model"] == "logistic")
    arms = next(one for one in held["chosen"] if one["tuner"] == "mamba-ksd")["arms"]
    return [run for run in held["runs"] if run["arm"] in arms]


def test_a_sampler_whose_runs_all_diverged_is_counted_and_left_out(files):
    records = records_of(files)
    for run in runs_of_mamba_ksd(records):
        run["diverged"] = [True] * len(run["diverged"])
    cell = headline(records)["logistic", "mamba-ksd", "ξ whitened"]
    assert (cell.finite, cell.replicates) == (len(SAMPLERS) - 1, len(SAMPLERS))
    assert cell.shown.endswith(f"({cell.finite}/{cell.replicates})")


def test_a_mean_over_a_sampler_at_the_cap_is_a_lower_bound_without_an_error(files):
    records = records_of(files)
    for held in records["regret"]:
        # Not the arms that MAMBA-KSD chose: what is at the cap is no denominator.
        held["oracles"]["xi_white"] = held["random"][:1]
    for run in runs_of_mamba_ksd(records):
        run["losses"]["xi_white"][0] = 10
    cell = headline(records)["logistic", "mamba-ksd", "ξ whitened"]
    assert cell.shown.startswith("≥ ")
    assert cell.se is None
    assert cell.value is not None


def test_no_number_where_every_oracle_is_at_the_cap_or_the_reference_is_not_trusted(files):
    records = records_of(files)
    for held in records["regret"]:
        if held["model"] == "logistic":
            held["oracles"]["xi_white"] = [None]
        if held["model"] == "pmf":
            held["trusted"] = False
    cells = headline(records)
    assert {cells["logistic", name, "ξ whitened"].shown for name in ("mamba-ksd", "frozen")} == {AT_CAP}
    assert cells["pmf", "mamba-ksd", "Error of functionals"].shown == NOT_TRUSTED
    assert cells["bnn", "mamba-ksd", "Log-loss"].value is not None


def test_every_loss_of_the_study_has_a_name():
    for entry in STUDIED.values():
        for metric in map(metric_of, (*entry.losses, *entry.losses_without_reference)):
            assert {metric, f"{metric}_regret", f"{metric}_over_oracle"} <= METRICS.keys()
