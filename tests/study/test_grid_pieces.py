"""A long grid search is divided, and its pieces together are the whole search."""

import json

import pytest
from job_pieces import Calls, Log
from small_models import small_logistic_model

from sgtune import CostTable
from sgtune.study.experiments import grid_pieces
from sgtune.study.experiments.per_sampler import tune_sampler

GRIDS = {"log10_step_sizes": [6, -3, -4, -5, -5.5], "batch_fractions": [0.1], "n_leapfrogs": [2]}
GRID = {"n_steps": 30, "batch_fraction": 0.1, "start_noise": 0.2, "points": 10}
GRID_KSD = {"seconds": 0.03, "clock": "calibrated", "thin": 10, "points": 20, "score_fraction": 1}
TUNING = {"replicates": 1, "validation_fraction": 0}
SEARCHES = {
    "grid": {"grids": GRIDS, "tuning": TUNING, "grid": GRID},
    "grid-ksd": {"grids": GRIDS, "tuning": TUNING, "grid_ksd": GRID_KSD},
}
COST = CostTable({("sgld", 20, None): 1e-3})
SECONDS = 5 * 30 * 1e-3
"""Of a whole search."""


@pytest.fixture(scope="module")
def model():
    return small_logistic_model(n_data=200)


def search(model, folder, tuner, cost=COST, sizes=None):
    settings = json.loads(json.dumps({tuner: SEARCHES[tuner]}))
    settings[tuner]["grids"]["log10_step_sizes"] = sizes or GRIDS["log10_step_sizes"]
    log, warned = Log(folder), []
    common = {"cost": cost, "seed": 0, "parts": log.parts, "inputs": {}, "warn": warned.append}
    [record] = tune_sampler(model, "sgld", settings, **common)
    return record, log, warned


def arms(record):
    """All that a search says of each arm."""
    return [{name: row[name] for name in row if name != "samples"} for row in record["rungs"]]


@pytest.mark.parametrize("tuner", SEARCHES)
def test_pieces_together_are_the_whole_search(model, tmp_path, monkeypatch, tuner):
    whole, log, _ = search(model, tmp_path / "whole", tuner)
    monkeypatch.setattr(grid_pieces, "LONGEST", 0.4 * SECONDS)
    joined, log, warned = search(model, tmp_path / "joined", tuner)
    assert sorted(path.stem for path in log.parts.folder.iterdir() if "piece" in path.stem) == [
        f"{tuner}_0_piece_{number}" for number in range(3)
    ]
    assert arms(joined) == arms(whole)
    assert sum(not row["pruned"] for row in joined["rungs"]) == 1
    assert whole["rungs"][0]["reason"] == "diverged"
    for name in ("best", "steps", "gradient_evaluations", "warnings", "reason", "tuner", "replicate"):
        assert joined[name] == whole[name], name
    assert warned == []
    seconds = joined["seconds"]
    assert seconds["warm"] == pytest.approx(seconds["total"] - seconds["compilation"])
    assert seconds["sampling"] == pytest.approx(joined["rung_seconds"][0]["sampling"])
    assert seconds["nominal"] == (None if tuner == "grid" else pytest.approx(whole["seconds"]["nominal"]))


def test_a_search_that_was_killed_goes_on_after_its_last_piece(model, tmp_path, monkeypatch):
    monkeypatch.setattr(grid_pieces, "LONGEST", 0.4 * SECONDS)
    whole, _, _ = search(model, tmp_path / "whole", "grid")
    ran = Calls(monkeypatch, "tune", lambda *_, settings, **__: settings.log10_step_sizes)
    ran.killed_at = (-4, -5)
    with pytest.raises(KeyboardInterrupt):
        search(model, tmp_path / "killed", "grid")
    assert ran == [(6, -3)]
    ran.clear()
    ran.killed_at = None
    again, log, _ = search(model, tmp_path / "killed", "grid")
    assert ran == [(-4, -5), (-5.5,)]
    assert log.taken() == ["grid 0 piece 0"]
    assert arms(again) == arms(whole)
    assert again["best"] == whole["best"]


def test_a_search_without_an_arm_gives_one_reason(model, tmp_path, monkeypatch):
    sizes = [8, 7, 6]
    whole, _, said = search(model, tmp_path / "whole", "grid", sizes=sizes)
    assert len(said) == 1
    monkeypatch.setattr(grid_pieces, "LONGEST", 0.2 * SECONDS)
    joined, _, warned = search(model, tmp_path / "joined", "grid", sizes=sizes)
    assert joined["best"] is None
    assert joined["reason"] == whole["reason"]
    assert warned == said


def test_a_short_search_and_one_of_unknown_cost_are_not_divided(model, tmp_path, monkeypatch):
    ran = Calls(monkeypatch, "tune", lambda *_, settings, **__: settings.log10_step_sizes)
    monkeypatch.setattr(grid_pieces, "LONGEST", 1.01 * SECONDS)
    search(model, tmp_path / "short", "grid")
    monkeypatch.setattr(grid_pieces, "LONGEST", 0.01 * SECONDS)
    search(model, tmp_path / "unknown", "grid", cost=CostTable({("sgld", 7, None): 1e-3}))
    assert ran == [tuple(GRIDS["log10_step_sizes"])] * 2
