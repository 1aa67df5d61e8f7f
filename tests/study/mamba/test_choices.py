"""The tables of what tuners tune and choose, and of the settings that differ from the paper's."""

import math
from statistics import median_low

import pytest
from artifact_records import MODELS, N_DATA, TUNERS, cells_by, make, make_records, records_of
from config_files import valid

from sgtune.study.mamba.comparison import choice_cells


def test_what_was_tuned_and_how_many_arms_were_compared():
    cells = cells_by(make("table4", make_records(1)), "model", "sampler", "tuner")
    for model in MODELS:
        assert cells[model, "sgld", "mamba-ksd"].shown == "h, n (16)"
        assert cells[model, "sghmc", "grid"].shown == "h, L (8)"
        assert cells[model, "sgnht", "heuristic"].shown == "fixed"
    assert ("pmf", "sgld", "mamba-fssd") not in cells


@pytest.mark.parametrize(("name", "model"), [("table5", "logistic"), ("table7", "pmf"), ("table9", "bnn")])
def test_what_was_chosen(name, model):
    found = make(name, make_records(1))
    cells = cells_by(found, "sampler", "tuner", "metric")
    assert cells["sgld", "heuristic", "log10_step_size"].value == pytest.approx(-math.log10(N_DATA[model]))
    assert cells["sghmc", "heuristic", "batch_percent"].value == pytest.approx(10)
    of_hmc = {cell.sampler for cell in found if cell.metric == "n_leapfrog"}
    assert of_hmc == {"sghmc", "sghmc-cv"}
    assert {cell.tuner for cell in found} >= set(TUNERS[model])


def test_a_choice_is_the_lower_median_in_its_span_of_the_runs_that_found_an_arm():
    steps = (1e-4, None, 1e-6, 1e-5, 1e-7)
    arms = [h and {"step_size": h, "batch_size": 50, "n_leapfrog": None} for h in steps]
    record = {"model": "logistic", "sampler": "sgld", "tuner": "grid", "n_data": 1_000, "arms": arms}
    cells = {cell.metric: cell for cell in choice_cells(record)}
    step = cells["log10_step_size"]
    assert step.value == median_low([-4, -6, -5, -7]) == pytest.approx(-6)
    assert step.span == pytest.approx((-7, -4))
    assert (step.finite, step.replicates) == (4, 5)
    assert cells["batch_percent"].value == pytest.approx(5)
    assert "n_leapfrog" not in cells


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


def test_a_run_of_the_papers_value_or_without_the_tuner_has_no_row():
    config = valid(tuning__replicates=1, grid__n_steps=70, tuners=["mamba-ksd"], models=["logistic"])
    rows = differences(config | {"per_model": {}})
    assert "tuning.replicates" not in {key for key, _ in rows}
    assert {model for _, model in rows} == {""}
    assert not any(key.startswith("grid.") for key, _ in rows)
