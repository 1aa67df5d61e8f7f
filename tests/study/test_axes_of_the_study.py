"""A grid with further axes from the configuration to the tables, by the functions that the pipeline calls."""

import pytest
from artifact_records import make, record_of, records_of
from config_files import valid
from small_models import small_logistic_model

from sgtune import CostTable
from sgtune.samplers import resolve_sampler, sampler_names
from sgtune.study.config.sections import settings_of
from sgtune.study.experiments.evaluate import evaluate_tuned
from sgtune.study.experiments.tune import chosen_arms, tune_sampler, with_facts
from sgtune.study.pipeline.parts import Task
from sgtune.study.pipeline.plan import shapes_of
from sgtune.study.report.labels import METRICS
from sgtune.study.report.table import NO_ARM
from sgtune.support.axes import AXES

N_DATA = 500


@pytest.fixture(scope="module")
def records():
    """The records behind the tables, made by the pipeline's functions from the configuration.

    SGHMC has a friction and an estimate of the noise in its grid; SGLD has neither.
    """
    grid = {"log10_step_sizes": [-2, -3], "batch_fractions": [0.1], "n_leapfrogs": [2]}
    config = valid(
        models=["logistic"],
        data__logistic__n_rows=700,
        data__logistic__n_train=N_DATA,
        grids__logistic={**grid, "friction": [0.02, 0.1], "noise_estimate": [0, 0.01]},
        mamba={"seconds": 0.03, "pruning_rate": 2, "points": 20, "score_fraction": 1},
        grid={"n_steps": 30, "points": 20},
        tuning={"replicates": 1},
        estimates={"batch_fraction": 0.1, "batch_fractions": [1]},
        evaluation={"curves": {"seconds": [0.01], "replicates": 2, "ksd_points": 0}, "ksd_points": 10},
    )
    files, model = {"tuning": {}, "evaluation": {}}, small_logistic_model(n_data=N_DATA)
    section = {**config["evaluation"], "seconds": 0.02, "prediction_draws": 5, "replicates": 1}
    shapes = shapes_of(settings_of(config, "cost", "logistic"), N_DATA)
    cost = CostTable(dict.fromkeys(shapes, 1e-3))
    for sampler in ("sgld", "sghmc"):
        task = Task(model, sampler, settings_of(config, "screen", "logistic")["grids"], cost)
        tuners = ("mamba-ksd", "grid", "heuristic")
        tuned = tune_sampler(task, {name: settings_of(config, "tuning", "logistic", name) for name in tuners})
        judged = evaluate_tuned(task, chosen_arms(tuned), section)
        judged["tuners"] = with_facts(judged["tuners"], tuned)
        for kind, record in (("tuning", {"tuners": tuned}), ("evaluation", judged)):
            files[kind][f"logistic/{sampler}"] = {**task.names, "task": model.task, **record}
    return records_of(files)


def of(records, kind, sampler, tuner):
    return record_of(records, "logistic", sampler, tuner, kind)


def test_records_have_a_further_axis_where_the_sampler_has_it(records):
    arms = {
        (row["friction"], row["noise_estimate"]) for row in of(records, "tuning", "sghmc", "grid")["rungs"]
    }
    assert arms == {(a, b) for a in (0.02, 0.1) for b in (0, 0.01)}
    for kind in ("tuning", "evaluation"):
        best = of(records, kind, "sghmc", "mamba-ksd")["best"]
        assert list(best) == ["step_size", "batch_size", "n_leapfrog", "friction", "noise_estimate"]
        assert list(of(records, kind, "sgld", "grid")["best"]) == ["step_size", "batch_size", "n_leapfrog"]
    assert all(row["ksd"] > 0 for row in of(records, "evaluation", "sghmc", "mamba-ksd")["table"])


def test_the_tables_have_a_place_for_it(records):
    best = of(records, "tuning", "sghmc", "mamba-ksd")["best"]
    cells = {(c.sampler, c.tuner, c.metric): c for c in make("table5", records)}
    assert cells["sghmc", "mamba-ksd", "friction"].value == best["friction"]
    assert cells["sghmc", "mamba-ksd", "noise_estimate"].value == best["noise_estimate"]
    # A tuner that does not vary it, and a sampler that does not have it, have no cell.
    others = {(s, t) for s, t, metric in cells if metric == "friction"}
    assert others <= {("sghmc", "grid"), ("sghmc", "mamba-ksd")}
    shown = {(c.sampler, c.tuner): c.shown for c in make("table4", records)}
    assert shown["sghmc", "grid"] == "h, a, b (8)"
    assert shown["sgld", "grid"] == "h (2)"


def test_a_tuner_without_an_arm_has_no_number_on_the_axes_that_it_tried(records):
    record = {**of(records, "tuning", "sghmc", "grid"), "best": None}
    found = make("table5", {"tuning": [record]})
    axes = ["log10_step_size", "batch_percent", "n_leapfrog", "friction", "noise_estimate"]
    assert [(cell.metric, cell.shown) for cell in found] == [(name, NO_ARM) for name in axes]


def test_every_axis_is_printed_and_has_a_sampler():
    printed = {"step_size": "log10_step_size", "batch_size": "batch_percent"}
    had = {axis.name for name in sampler_names() for axis in resolve_sampler(name)[0].axes}
    assert had == set(AXES)
    assert {printed.get(name, name) for name in AXES} <= set(METRICS)
