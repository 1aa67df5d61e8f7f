"""Each chosen arm runs once for all tuners that chose it, and an interrupted job continues where it stopped."""

import copy

import pytest
from job_pieces import Calls, Log
from small_models import small_logistic_model

from sgtune import CostTable
from sgtune.study.experiments.per_sampler import compare_clocks, evaluate_tuned

COST = CostTable({("sgld", 20, None): 1e-3})


@pytest.fixture(scope="module")
def model():
    return small_logistic_model(n_data=200)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "parts"


@pytest.fixture
def ran(monkeypatch):
    """(step size, replicate) of every run."""
    return Calls(
        monkeypatch, "evaluate_run", lambda model, sampler, arm, replicate, **_: (arm.step_size, replicate)
    )


SECTION = {
    "seconds": 0.05,
    "replicates": 2,
    "burn_in": 0.1,
    "kept_draws": 40,
    "prediction_draws": 5,
    "thin": 1,
    "ksd_points": 10,
    "curves": {"seconds": [0.01, 0.03], "replicates": 3, "ksd_points": 0, "prediction_draws": 0},
}
ARM = {"step_size": 1e-3, "batch_size": 20, "n_leapfrog": None}
SMALLER = {**ARM, "step_size": 1e-4}
CHOSEN = {"mamba-ksd": [ARM, SMALLER], "grid": [SMALLER], "heuristic": [None], "grid-ksd": [dict(ARM)]}


def evaluate(model, folder, chosen=CHOSEN, section=SECTION, inputs="1"):
    log = Log(folder)
    depends_on = {"inputs": inputs, "section": section}
    common = {"cost": COST, "seed": 0, "parts": log.parts, "depends_on": depends_on, "report": log.append}
    return evaluate_tuned(model, "sgld", chosen, section, reference=None, **common), log


RUNS = [(1e-3, 0), (1e-4, 1), (1e-3, 2), (1e-4, 0), (1e-4, 2), (1e-3, 1)]
"""The runs of the first tuner, which has two races, in replicates 0, 1, 2; then the further runs of the others."""


def test_a_replicate_runs_what_its_race_chose_and_all_who_chose_it_share_the_run(model, folder, ran):
    record, log = evaluate(model, folder)
    assert ran == RUNS
    assert record["clock"] == "calibrated"
    assert record["tuners"] == [
        {"tuner": "mamba-ksd", "arms": [ARM, SMALLER], "runs": [0, 1, 2]},
        {"tuner": "grid", "arms": [SMALLER], "runs": [3, 1, 4]},
        {"tuner": "heuristic", "arms": [None], "runs": [None, None, None]},
        {"tuner": "grid-ksd", "arms": [ARM], "runs": [0, 5, 2]},
    ]
    assert [(run["arm"]["step_size"], run["replicate"]) for run in record["runs"]] == RUNS
    for run in record["runs"]:
        assert [(row["seconds"], row["n_samples"]) for row in run["curves"]] == [(0.01, 10), (0.03, 30)]
        # Runs that no table uses are as short as a curve.
        if run["replicate"] < 2:
            assert run["table"]["n_samples"] == 50
        else:
            assert run["table"] is None
    assert len(log) == len(RUNS)
    assert log[1].startswith("run 2/6, 1 of h=0.0001 n=20: 50 samples, ksd ")


def test_no_arm_is_nothing_to_run(model, folder, ran):
    record, _ = evaluate(model, folder, {tuner: [None] for tuner in CHOSEN})
    nothing = [{"tuner": tuner, "arms": [None], "runs": [None] * 3} for tuner in CHOSEN]
    assert record == {"clock": "calibrated", "runs": [], "tuners": nothing}
    assert ran == []


def strip_clock(record):
    """The rows without measured seconds."""
    record = copy.deepcopy(record)
    for run in record["runs"]:
        for row in [run["table"]] * (run["table"] is not None) + run["curves"]:
            assert row.pop("wall_seconds") > 0
    return record


def test_finished_runs_are_kept_of_a_job_that_was_killed(model, folder, tmp_path, ran):
    """With a cost table the rows are bit for bit equal with and without the interruption."""
    whole, _ = evaluate(model, tmp_path / "whole")
    ran.clear()
    ran.killed_at = RUNS[4]
    with pytest.raises(KeyboardInterrupt):
        evaluate(model, folder)
    assert ran == RUNS[:4]
    ran.clear()
    ran.killed_at = None
    record, log = evaluate(model, folder)
    assert ran == RUNS[4:]
    assert len(log.taken()) == 4
    assert strip_clock(record) == strip_clock(whole)
    ran.clear()
    again, log = evaluate(model, folder)
    assert ran == []
    assert again == record
    assert len(log.taken()) == len(RUNS)
    evaluate(model, folder, inputs="2")
    assert ran == RUNS


def test_a_new_arm_is_run_and_the_others_are_kept(model, folder, ran):
    evaluate(model, folder)
    ran.clear()
    record, log = evaluate(model, folder, CHOSEN | {"heuristic": [{**ARM, "step_size": 1e-5}]})
    assert ran == [(1e-5, replicate) for replicate in range(3)]
    assert [one["runs"] for one in record["tuners"]] == [[0, 1, 2], [3, 1, 4], [5, 6, 7], [0, 8, 2]]
    assert log.other() == []


def test_a_run_by_the_other_clock_is_the_same_chain(model, folder):
    """For the first tuner with an arm in every replicate; under the wall clock its numbers of steps differ."""
    section = SECTION | {"replicates": 3}
    evaluated, _ = evaluate(model, folder, section=section)
    found = compare_clocks(model, "sgld", evaluated, section, reference=None, cost=COST, seed=0)
    assert (found["tuner"], found["arm"]) == ("mamba-ksd", ARM)
    assert found["calibrated"] == [evaluated["runs"][place]["table"] for place in (0, 1, 2)]
    assert [row["replicate"] for row in found["wall"]] == [0, 1, 2]
    assert all(row["wall_seconds"] >= row["seconds"] == 0.05 for row in found["wall"])
    again = compare_clocks(
        model, "sgld", evaluated | {"clock": "wall"}, section, reference=None, cost=COST, seed=0
    )
    for row, first in zip(again["calibrated"], found["calibrated"], strict=True):
        assert row | {"wall_seconds": 0} == first | {"wall_seconds": 0}


def test_without_an_arm_there_are_no_clocks_to_compare(model, folder):
    evaluated, _ = evaluate(model, folder, {"grid": [ARM, None]})
    found = compare_clocks(model, "sgld", evaluated, SECTION, reference=None, cost=COST, seed=0)
    assert found == {"tuner": "grid", "arm": None, "wall": [], "calibrated": []}
