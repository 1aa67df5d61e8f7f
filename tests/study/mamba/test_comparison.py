"""What tuners tune and choose; our numbers, settings and choices beside the paper's; and the two clocks."""

import math

import pytest
from artifact_records import MODELS, N_DATA, cells_by, make, make_files, make_records, records_of
from config_files import valid

from sgtune.samplers import resolve_sampler, sampler_names
from sgtune.study.mamba.comparison import choice_cells
from sgtune.study.report.labels import METRICS
from sgtune.study.report.table import NO_ARM
from sgtune.support.axes import AXES


@pytest.fixture(scope="module")
def records():
    return make_records(1)


def test_what_was_tuned_and_how_many_arms_were_compared(records):
    cells = cells_by(make("table4", records), "model", "sampler", "tuner")
    for model in MODELS:
        assert cells[model, "sgld", "mamba-ksd"].shown == "h, n (16)"
        assert cells[model, "sghmc", "grid"].shown == "h, L (8)"
        assert cells[model, "sgnht", "heuristic"].shown == "fixed"
    assert ("pmf", "sgld", "mamba-fssd") not in cells


@pytest.mark.parametrize(("name", "model"), [("table5", "logistic"), ("table7", "pmf"), ("table9", "bnn")])
def test_what_was_chosen(records, name, model):
    found = make(name, records)
    cells = cells_by(found, "sampler", "tuner", "metric")
    assert cells["sgld", "heuristic", "log10_step_size"].value == pytest.approx(-math.log10(N_DATA[model]))
    assert cells["sghmc", "heuristic", "batch_percent"].value == pytest.approx(10)
    assert {cell.sampler for cell in found if cell.metric == "n_leapfrog"} == {"sghmc", "sghmc-cv"}
    assert {cell.tuner for cell in found} >= {"mamba-ksd", "mamba", "grid", "heuristic"}


def test_a_choice_is_the_lower_median_in_its_span_of_the_runs_that_found_an_arm():
    steps = (1e-4, None, 1e-6, 1e-5, 1e-7)
    arms = [h and {"step_size": h, "batch_size": 50, "n_leapfrog": None} for h in steps]
    record = {"model": "logistic", "sampler": "sgld", "tuner": "grid", "n_data": 1_000, "arms": arms}
    cells = {cell.metric: cell for cell in choice_cells(record)}
    step = cells["log10_step_size"]
    assert (step.value, step.span) == (pytest.approx(-6), pytest.approx((-7, -4)))
    assert (step.finite, step.replicates) == (4, 5)
    assert cells["batch_percent"].value == pytest.approx(5)
    assert "n_leapfrog" not in cells


def test_tables_have_a_place_for_a_further_axis_of_a_sampler():
    arm = {"batch_size": 50, "n_leapfrog": 2}
    arms = [{"step_size": h} | arm | {"friction": a} for h in (1e-2, 1e-3) for a in (0.02, 0.1)]
    record = {"model": "logistic", "sampler": "sghmc", "tuner": "grid", "n_data": 500, "replicate": 0}
    record |= {"best": arms[1], "arms": [arms[1]], "rungs": [{"rung": 1} | arm for arm in arms]}
    [cell] = make("table4", {"tuning": [record]})
    assert cell.shown == "h, a (4)"
    cells = {cell.metric: cell for cell in make("table5", {"tuning": [record]})}
    assert cells["friction"].value == 0.1
    lost = make("table5", {"tuning": [record | {"best": None, "arms": [None]}]})
    axes = ["log10_step_size", "batch_percent", "n_leapfrog", "friction"]
    assert [(cell.metric, cell.shown) for cell in lost] == [(name, NO_ARM) for name in axes]
    had = {axis.name for name in sampler_names() for axis in resolve_sampler(name)[0].axes}
    assert had == set(AXES)
    assert had - {"step_size", "batch_size"} <= set(METRICS)


def compared(records, *whose):
    """By detail: the cells of a model, sampler, tuner and metric."""
    found = make("published_comparison", records)
    return {
        cell.detail: cell for cell in found if (cell.model, cell.sampler, cell.tuner, cell.metric) == whose
    }


@pytest.mark.parametrize(
    ("table", "whose", "metric", "paper"),
    [
        (1, ("logistic", "sgld", "mamba-ksd"), "ksd", 66),
        # Only the appendix has this tuner.
        (1, ("logistic", "sgnht-cv", "grid-ksd"), "relative_sd_error_x100", 16.9),
        (8, ("pmf", "sghmc-cv", "mamba-ksd"), "rmse_as_published", 1.10),
        (3, ("bnn", "sgnht", "grid-smaller"), "mce_as_published_percent", 42.2),
        # Of hyperparameters there is no ratio.
        (5, ("logistic", "sgld", "mamba-ksd"), "log10_step_size", -6),
        (9, ("bnn", "sgnht", "mamba-ksd-smaller"), "batch_percent", 1),
    ],
)
def test_comparison_has_the_papers_result_and_the_ratio_of_ours_to_it(records, table, whose, metric, paper):
    found = compared(records, *whose, metric)
    ours = found.pop(f"Table {table}, ours").value
    assert found.pop(f"Table {table}, paper").value == paper
    if metric not in ("log10_step_size", "batch_percent"):
        assert found.pop(f"Table {table}, ratio").value == pytest.approx(ours / paper)
    # It is in no other table.
    assert not found


def test_an_upper_end_is_compared_as_one():
    files = make_files(3, ("logistic",))
    for run in files["evaluation"]["logistic/sgld"]["runs"]:
        run["table"]["ksd_squared"] = (-1) ** run["replicate"] * 100.0
    found = compared(records_of(files), "logistic", "sgld", "mamba-ksd", "ksd")
    ours, ratio = (found[f"Table 1, {detail}"] for detail in ("ours", "ratio"))
    assert (ratio.value, ratio.upper) == (None, pytest.approx(ours.upper / 66))


def differences(config):
    """(key, model) -> this run's value and the paper's."""
    records = records_of({"": {"settings": {"configuration": config}}})
    found = {}
    for cell in make("deviations", records):
        found.setdefault((cell.metric, cell.model), {})[cell.detail] = cell.shown
    return {key: (one["this run"], one["the paper"]) for key, one in found.items()}


def test_each_key_that_differs_is_a_row_of_its_model_or_of_all():
    config = valid(tuning__replicates=2, data__bnn__simulated=300, grid__n_steps=70)
    config["reference"]["n_draws"] = config["per_model"]["pmf"]["reference"]["n_draws"] = 300
    del config["data"]["bnn"]["n_hidden"]
    rows = differences(config)
    assert rows["tuning.replicates", "logistic"] == ("2", "1")
    assert rows["reference.n_draws", "logistic"] == ("300", "20,000")
    assert rows["reference.n_draws", "pmf"] == ("300", "10,000")
    assert rows["data.bnn.simulated", "bnn"] == ("300", "null")
    assert rows["mamba.clock", ""] == ("calibrated", "wall")
    assert rows["grid.n_steps", "logistic"] == ("70", "5,000")
    # Equal to the paper's, or a key that an older run does not have.
    assert not {key for key, _ in rows} & {"mamba.pruning_rate", "data.logistic.n_rows", "data.bnn.n_hidden"}
    # The paper has no reference of the network.
    assert ("reference.n_draws", "bnn") not in rows


def test_the_two_clocks_are_compared_by_hand():
    files = make_files(1, ("pmf", "bnn"))
    held = files["clocks"]["pmf"]
    for clock, factor in (("calibrated", 1), ("wall", 2)):
        for i, row in enumerate(held[clock]):
            row |= {"n_samples": 1000 * factor, "functional_error": 0.1 * factor * (i + 1)}
            row |= {"wall_seconds": 9.0 + i}
    held["wall"][2]["diverged"] = True
    found = make("clocks", records_of(files))
    shown = {(cell.metric, cell.detail): cell.shown for cell in found if cell.model == "pmf"}
    # 0.2 ± 0.1/√3 and 0.3 ± 0.1.
    se = 1.5 * math.hypot(0.5 / math.sqrt(3), 1 / 3)
    assert shown["budget_seconds", "wall"] == "10.0 (2/3)"
    assert shown["wall_seconds", "calibrated"] == "10.0 ± 1.0"
    assert shown["wall_seconds", "wall"] == "9.50 ± 0.71 (2/3)"
    assert ("wall_seconds", "wall_over_calibrated") not in shown
    assert shown["n_samples", "wall_over_calibrated"] == "2.00 ± 0.00"
    assert shown["functional_error", "calibrated"] == "0.200 ± 0.100"
    assert shown["functional_error", "wall_over_calibrated"] == f"1.50 ± {se:.2f}"
    metrics = dict.fromkeys(cell.metric for cell in found if cell.model == "bnn")
    assert list(metrics) == ["budget_seconds", "wall_seconds", "n_samples", "log_loss", "brier"]
