"""Choices for several horizons, and fresh runs of all of them for the longest."""

import numpy as np
import pytest
from job_pieces import Calls, Log
from small_models import small_logistic_model

from sgtune import CostTable, metrics
from sgtune.mode.find import map_position
from sgtune.study.experiments import horizons
from sgtune.study.experiments.horizons import AHEAD, compare_horizons

SETTINGS = {
    "grids": {"log10_step_sizes": [-3, -4, -5], "batch_fractions": [0.1], "n_leapfrogs": [2]},
    "tuning": {"replicates": 1, "validation_fraction": 0},
    "mamba": {"seconds": 0.05, "horizon": None, "pruning_rate": 3, "clock": "wall", "thin": None}
    | {"points": 20, "score_fraction": 1, "score_rows": 50},
    "horizons": {"seconds": [0.05, 0.2], "samplers": ["sgld"], "replicates": 2},
}


@pytest.fixture(scope="module")
def compared():
    """`compare_horizons` of a small model, with pieces in a folder."""
    model = small_logistic_model(n_data=200)
    mode = np.asarray(map_position(model))
    draws = mode + 0.1 * np.random.default_rng(0).standard_normal((400, len(mode)))
    reference = metrics.Reference(sd=draws.std(axis=0), covariance=np.cov(draws.T))
    own = {"reference": reference, "cost": CostTable({("sgld", 20, None): 1e-3})}
    return lambda folder: compare_horizons(Log(folder, model, **own).task, SETTINGS)


def test_every_choice_is_run_for_the_longest_horizon_and_a_killed_job_loses_one_replicate(
    compared, tmp_path, monkeypatch
):
    record = compared(tmp_path / "whole")
    (own,) = record["samplers"]
    pairs = [(tuner, seconds) for tuner in AHEAD for seconds in (0.05, 0.2)]
    assert [(one["tuner"], one["horizon"]) for one in own["chosen"]] == pairs
    assert {one["arm"] for one in own["chosen"]} == set(range(len(own["arms"])))
    # The seconds buy 50 and 200 steps.
    assert {(run["seconds"], run["steps"]) for run in own["runs"]} == {(0.05, 50), (0.2, 200)}
    assert len(own["runs"]) == 2 * len(own["arms"])
    # Longer runs of a stable arm have smaller predicted errors.
    foreseen = {(one["tuner"], one["horizon"]): one["foreseen"] for one in own["chosen"]}
    assert foreseen["theory", 0.2] < foreseen["theory", 0.05]
    races = Calls(monkeypatch, horizons, "tune", lambda *_, tuner, horizon, **__: (tuner, horizon.seconds))
    runs = Calls(monkeypatch, horizons, "run_arms", lambda *_, replicate, **__: replicate)
    runs.killed_at = "horizons 1"
    with pytest.raises(KeyboardInterrupt):
        compared(tmp_path / "killed")
    assert compared(tmp_path / "killed") == record
    assert (races, runs) == (pairs, ["horizons 0", "horizons 1"])
