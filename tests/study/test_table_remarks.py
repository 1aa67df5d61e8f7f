"""Captions: what they say about replicates, choices, the reference and the test set."""

# ruff: noqa: RUF001 - tables print signs of mathematics

import pytest
from artifact_records import SAMPLERS, cells_by, choose, make_files, make_records, records_of

from sgtune.study import catalogue
from sgtune.study.mamba.catalogue_tables import TABLES as CATALOGUED
from sgtune.study.mamba.choices import choice_cells
from sgtune.study.report import TABLES
from sgtune.study.report.labels import METRICS, TUNERS
from sgtune.study.report.means import SOURCES
from sgtune.study.report.remarks import by_model, floor_said, meanings, tuning_runs_said
from sgtune.study.report.trust import OF_POSITION
from sgtune.study.report.trust import OF_REFERENCE as NEED_REFERENCE

OF_EVALUATION = ("table1", "table2", "table3", "table6", "table8", "table10", "xi_by_block", "ood")


@pytest.mark.parametrize("name", OF_EVALUATION)
def test_captions_say_over_how_many_runs_and_whether_the_spread_is_of_tuning_too(name):
    model = CATALOGUED[name].model

    def caption(replicates, tunings):
        return TABLES[name](make_records(replicates, (model,), tunings)).caption

    assert (
        "Mean ± sd over n = 4 replicates, with the arms of 2 tuning runs in turn, so the sd is of tuning too"
        in caption(4, 2)
    )
    assert "Mean ± sd over n = 4 replicates, all with the arm of one tuning run." in caption(4, 1)
    assert "One run each, without a spread." in caption(1, 2)


@pytest.mark.parametrize("name", ["table1", "table10"])
def test_captions_name_the_tuners_of_the_run_that_the_paper_does_not_have(name):
    model = CATALOGUED[name].model

    def caption(**called):
        records = make_records(1, (model,))
        records["evaluation"] = [
            record | {"tuner": called.get(record["tuner"].replace("-", "_"), record["tuner"])}
            for record in records["evaluation"]
            if record["tuner"] not in ("mamba-ksd-scaled", "theory")
        ]
        return TABLES[name](records).caption

    ours = "\nCompared too, but not in the paper: "
    assert f"{ours}MAMBA (default)." in caption(heuristic="mamba")
    assert f"{ours}MAMBA-PSD, Theory." in caption(heuristic="theory", mamba_ksd="mamba-psd")
    assert "not in the paper" not in caption()


OF_REFERENCE = (
    "table1",
    "table2",
    "table6",
    "table8",
    "xi_by_block",
    "published_comparison",
    "clocks",
    "regret",
    "horizons",
)


@pytest.mark.parametrize("name", CATALOGUED)
def test_under_every_table_of_xi_stands_the_reference_s_own_error(name):
    """Captions give the Monte Carlo error of ξ, 1.2 hundredths, except for the network, which has no reference."""
    table = TABLES[name](make_records(1))
    shows = {cell.metric for row in table.rows for cell in row.cells}
    of_xi = any(metric.startswith(("relative_sd_error", "xi_")) for metric in shows)
    assert of_xi == (name in OF_REFERENCE)
    assert ("Monte Carlo error: ξ(σ̂) × 10²: 1.20" in table.caption) == of_xi
    assert ("reference" in CATALOGUED[name].kinds) >= of_xi


def test_a_reference_that_is_not_trusted_or_not_there_is_no_truth():
    files = make_files(1, ("logistic",))
    files["reference"]["logistic/nuts"]["trusted"] = False
    assert "ξ(σ̂) × 10²: 1.20 (NOT trusted, see its table)." in TABLES["table1"](records_of(files)).caption
    del files["reference"]["logistic/nuts"]
    assert "Monte Carlo" not in TABLES["table1"](records_of(files)).caption


@pytest.mark.parametrize("name", ["table2", "table8", "xi_by_block"])
def test_nothing_is_best_by_a_distance_from_a_reference_that_is_not_trusted(name):
    def made(trusted, tunings=2, **block):
        files = make_files(3, ("pmf",), tunings=tunings)
        reference = files["reference"]["pmf/nuts"]
        reference["trusted"] = trusted
        reference["blocks"]["users"] = reference["blocks"]["users"] | block
        for record in files["evaluation"].values():
            # The runs of one tuner have one number, so the best one is certain.
            for rank, tuner in enumerate(record["tuners"], 1):
                for run in (record["runs"][place] for place in tuner["runs"] if place is not None):
                    for key in (
                        ("relative_sd_error", "xi_rel", "functional_error", "ksd") if run["table"] else ()
                    ):
                        # No KSD is below its floor: such a KSD is not marked.
                        run["table"][key] = (10.0 if key == "ksd" else 0.1) * rank + 1e-6 * run["replicate"]
        table = TABLES[name](records_of(files))
        return {cell.metric for row in table.rows for cell in row.cells if cell.best}, table.caption

    marked, caption = made(True)
    assert marked & set(NEED_REFERENCE)
    assert "Never marked" not in caption
    unmarked, caption = made(False)
    assert unmarked == marked - set(NEED_REFERENCE)
    assert "Never marked, because the reference of PMF is not trusted for it: ξ(σ̂) × 10²" in caption
    # The functionals can be known although the parameters are not.
    of_functionals, caption = made(True, r_hat_p99=1.06)
    assert of_functionals == marked - set(OF_POSITION)
    assert "Never marked, because the reference of PMF is not trusted for it: ξ(σ̂) × 10²" in caption
    # What needs no reference is marked as before.
    assert ("ksd" in unmarked) == (name != "xi_by_block")
    # The error of the runs of one arm is not that of a tuner.
    alone, caption = made(True, tunings=1)
    assert not alone
    assert "No tuner is marked as the best, because with one tuning run" in caption


def test_metrics_of_the_caption_are_those_of_the_table_with_all_that_the_reference_knows_of():
    caption = TABLES["table6"](make_records(1)).caption
    assert "ξ(σ̂) × 10²: 1.20, ξ relative × 10²: 1.30, ξ whitened × 10²: 1.40." in caption
    assert "Error of functionals: 0.0150." in TABLES["table8"](make_records(1)).caption
    for name in ("table6", "table8", "table10"):
        metrics = CATALOGUED[name].model and catalogue.MODELS[CATALOGUED[name].model].study.long[1]
        assert meanings(metrics) in TABLES[name](make_records(1)).caption
        assert set(metrics) <= METRICS.keys() & SOURCES.keys()


def test_a_short_table_says_what_exact_draws_would_have():
    rows = [
        {"ksd_floor": floor, "ksd_se": se} for floor, se in ((2.0, 0.1), (4.0, 0.2), (3.0, 0.9), (None, None))
    ]
    said = floor_said([{"table": rows[:2]}, {"table": rows[2:]}])
    assert "As many exact draws have a KSD of 2.00 to 4.00;" in said
    assert "median standard error of 0.200" in said
    assert not floor_said([{"table": rows[3:]}])
    assert "As many exact draws have a KSD of 2.80;" in TABLES["table1"](make_records(1)).caption
    assert "exact draws" not in TABLES["table3"](make_records(1)).caption


def test_the_caption_says_that_calibration_errors_are_not_proper_scores():
    records = make_records(1)
    for name in ("table3", "table10"):
        assert "crosses zero on its way; MCE depends on a handful of images." in TABLES[name](records).caption
    assert "crosses zero" not in TABLES["table1"](records).caption


def test_words_of_models_that_say_the_same_are_said_once():
    records = [{"model": "pmf", "n": 1}, {"model": "logistic", "n": 1}, {"model": "bnn", "n": 2}]
    assert (
        by_model(records, lambda own: f"{own[0]['n']} s")
        == "1 s (Logistic regression, PMF); 2 s (Neural network)"
    )
    assert by_model(records[:2], lambda own: f"{own[0]['n']} s") == "1 s"


def test_tuners_that_judge_by_the_test_set_have_a_dagger_unless_they_held_out_training_data():
    files = make_files(1, ("bnn",))
    names = ("table3", "table4", "table9", "table10", "regret", "ood", "tuning_time", "published_comparison")
    for held_out in (False, True):
        for held in (*files["tuning"].values(), *files["evaluation"].values(), *files["regret"].values()):
            for tuned in held.get("tuners", held.get("chosen")):
                tuned["validation_fraction"] = 0.2 if held_out else 0
        for name in names:
            table = TABLES[name](records_of(files))
            printed = {words for row in table.rows for words in row.labels} | {
                name for _, name in table.columns
            }
            marked = {words.removesuffix(" †") for words in printed if words.endswith("†")}
            assert marked == (set() if held_out else {"Grid", "Grid, smaller grid"})
            assert ("†: judges arms by the test set" in table.caption) != held_out
            assert {cell.tuner for row in table.rows for cell in row.cells if cell.at_test_set} == {
                tuner for tuner in ("grid", "grid-smaller") if TUNERS[tuner] in marked
            }


def chosen(*step_sizes, sampler="sgld", tuner="grid"):
    arms = [h and {"step_size": h, "batch_size": 80, "n_leapfrog": None} for h in step_sizes]
    whose = {"model": "logistic", "sampler": sampler, "tuner": tuner, "n_data": 8_000}
    return {cell.metric: cell for cell in choice_cells(whose | {"arms": arms, "best": None})}


def test_choices_are_medians_of_the_tuning_runs_with_their_span():
    assert chosen(1e-5)["log10_step_size"].shown == "−5"
    cells = chosen(1e-5, 1e-7, 1e-6, 1e-4)
    assert cells["log10_step_size"].shown == "−6 [−7, −4]"  # the lower of the two in the middle
    assert cells["batch_percent"].shown == "1"
    assert chosen(1e-5, None, 1e-6)["log10_step_size"].shown == "−6 [−6, −5] (2/3)"
    assert chosen(None, None)["log10_step_size"].shown == "– (no arm)"
    assert "n_leapfrog" not in chosen(1e-5)


def test_a_table_of_choices_has_a_column_per_tuner_and_says_how_often_it_tuned():
    files = make_files(1, ("logistic",), tunings=3)
    choose(files, "logistic", "sgld", "grid", like="heuristic", tunings=(0, 1, 2))
    table = TABLES["table5"](records_of(files))
    assert "n = 3 tuning runs:" in table.caption
    cells = cells_by(table, "sampler", "tuner", "metric")
    for sampler in SAMPLERS:
        record = files["tuning"][f"logistic/{sampler}"]
        counts = {cells[sampler, tuned["tuner"], "log10_step_size"].replicates for tuned in record["tuners"]}
        assert counts == {1, 3}
    assert (
        cells["sgld", "grid", "log10_step_size"].shown == cells["sgld", "heuristic", "log10_step_size"].shown
    )
    # The comparison with the paper has the number only.
    cells = cells_by(
        TABLES["published_comparison"](records_of(files)), "sampler", "tuner", "metric", "detail"
    )
    choices = [cell.shown for key, cell in cells.items() if key[2] == "log10_step_size"]
    assert not any("[" in words for words in choices)


def test_tuners_with_fewer_tuning_runs_are_named():
    counts = {"mamba": 5, "grid": 3, "grid-ksd": 3, "heuristic": 1, "theory": 1}
    fewer = f"{TUNERS['grid']}, {TUNERS['grid-ksd']}: 3"
    assert tuning_runs_said(counts.items()) == f"5 tuning runs ({fewer})"
    assert tuning_runs_said(counts.items(), at_most=4) == f"4 tuning runs ({fewer})"
    assert tuning_runs_said(counts.items(), at_most=3) == "3 tuning runs"
    assert tuning_runs_said({"heuristic": 1, "mamba": 1}.items()) == "1 tuning run"
