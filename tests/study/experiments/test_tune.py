"""A sampler is tuned by all its tuners, for one run or for several horizons, and killed jobs go on."""

import json

import numpy as np
import pytest
from job_pieces import Calls, Log
from small_models import small_logistic_model

from sgtune import CostTable, metrics
from sgtune.mode.find import map_position
from sgtune.study.catalogue import TUNERS as ENTRIES
from sgtune.study.experiments import losses, tune
from sgtune.study.experiments import tune as module
from sgtune.study.pipeline.plan import n_races
from sgtune.tuning import TUNERS as METHODS
from sgtune.tuning import Grid, GridSearch, Halving, Heuristic, Theory

GRIDS = {"log10_step_sizes": [-3, -4, -5, 6], "batch_fractions": [0.1], "n_leapfrogs": [2]}
SETTINGS = {"pruning_rate": 2, "clock": "calibrated", "thin": 10, "points": 20, "score_fraction": 1}
MAMBA = {"seconds": 0.03, **SETTINGS}
GRID = {"n_steps": 30, "batch_fraction": 0.1, "start_noise": 0.2, "points": 10}
TUNING = {"replicates": 1, "validation_fraction": 0}
TUNERS = {
    "mamba-ksd": {"grids": GRIDS, "tuning": TUNING, "mamba": MAMBA},
    "grid": {"grids": GRIDS, "tuning": TUNING, "grid": GRID},
    "heuristic": {"grids": GRIDS, "tuning": TUNING, "heuristic": {"batch_fraction": 0.1, "n_leapfrog": 10}},
}
COST = CostTable({("sgld", 20, None): 1e-3})


@pytest.fixture(scope="module")
def model():
    return small_logistic_model(n_data=200)


@pytest.fixture
def tuned(monkeypatch):
    """The tuner and the replicate of each race."""
    names = {Halving: "mamba-ksd", GridSearch: "grid", Heuristic: "heuristic"}
    return Calls(
        monkeypatch, module, "tune", lambda *_, tuner, replicate, **__: (names[type(tuner)], replicate)
    )


def tune_all(model, folder, settings=TUNERS, inputs="1", seed=0, **options):
    log = Log(folder, model, "sgld", cost=COST, seed=seed, depends_on={"inputs": inputs})
    return tune.tune_sampler(log.task, settings, **options), log


def changed(tuner, section, **values):
    settings = json.loads(json.dumps(TUNERS))
    settings[tuner][section] |= values
    return settings


def without_seconds(records):
    return [{k: v for k, v in record.items() if k not in ("seconds", "rung_seconds")} for record in records]


def test_a_killed_job_goes_on_after_its_last_race_and_equals_an_unbroken_one(model, tmp_path, tuned):
    """Each replicate is a race of its own."""
    settings = {tuner: own | {"tuning": TUNING | {"replicates": 2}} for tuner, own in TUNERS.items()}
    whole, _ = tune_all(model, tmp_path / "whole", settings, startup=2.5)
    races = [("mamba-ksd", 0), ("mamba-ksd", 1), ("grid", 0), ("grid", 1), ("heuristic", 0)]
    assert [(record["tuner"], record["replicate"]) for record in whole] == tuned == races
    first, second = ([row["discrepancy"] for row in record["rungs"]] for record in whole[:2])
    assert first != second
    best = [record["best"] for record in whole]
    assert tune.chosen_arms(whole) == {"mamba-ksd": best[:2], "grid": best[2:4], "heuristic": best[4:]}
    for record in whole:
        seconds = record["seconds"]
        assert seconds["cold"] == 2.5 + seconds["total"] + seconds["shared_compilation"]
        assert seconds["warm"] == pytest.approx(seconds["total"] - seconds["compilation"])
    tuned.clear()
    tuned.killed_at = ("grid", 1)
    with pytest.raises(KeyboardInterrupt):
        tune_all(model, tmp_path, settings)
    records, log = tune_all(model, tmp_path, settings)
    assert tuned == races, "each once"
    assert log.taken() == ["mamba-ksd 0", "mamba-ksd 1", "grid 0"]
    assert without_seconds(records) == without_seconds(whole)


@pytest.mark.parametrize(
    ("repeated", "changes"),
    [
        (["mamba-ksd"], {"settings": changed("mamba-ksd", "mamba", points=19)}),
        (["grid"], {"settings": changed("grid", "grids", log10_step_sizes=[-3, -4])}),
        (list(TUNERS), {"inputs": "2"}),
    ],
)
def test_a_race_is_run_again_if_anything_that_it_depends_on_changes(
    model, tmp_path, tuned, repeated, changes
):
    tune_all(model, tmp_path)
    tuned.clear()
    _, log = tune_all(model, tmp_path, **changes)
    assert tuned == [(tuner, 0) for tuner in repeated]
    assert log.other() == [f"{tuner} 0" for tuner in repeated]


def test_tuners_that_judge_by_predictions_hold_out_rows(model, monkeypatch):
    """The mode without these rows is found with the configured settings, before a tuner's time starts."""
    found = []
    monkeypatch.setattr(module, "map_result", lambda fewer, **own: found.append((fewer.n_data, own)))
    of_all = {"map": {"epochs": 7}, "tuning": {"replicates": 1, "validation_fraction": 0.2}}
    records, _ = tune_all(model, None, {tuner: own | of_all for tuner, own in TUNERS.items()})
    assert found == [(160, {"epochs": 7})]
    assert [record["validation_fraction"] for record in records] == [0, 0.2, 0]
    (row,) = module.with_facts([{"tuner": "grid", "arms": []}], records)
    assert row == {"tuner": "grid", "arms": [], "reason": "", "validation_fraction": 0.2}


def test_a_tuner_without_an_arm_says_why_and_the_others_go_on(model):
    settings, warned = changed("mamba-ksd", "grids", log10_step_sizes=[9, 8]), []
    records, _ = tune_all(model, None, settings, warn=warned.append)
    assert [record["best"] is None for record in records] == [True, False, False]
    assert records[0]["reason"].startswith("step_size: all 2 arms of sgld diverged")
    assert warned == [f"mamba-ksd found no arm of sgld for logistic: {records[0]['reason']}"]


def test_the_configurations_words_become_the_tuners_arguments():
    given = tune.tuning_arguments(TUNERS["mamba-ksd"], "mamba-ksd-smaller")
    tuner = given["tuner"]
    assert given["budget"].given() == {"seconds": 0.03}
    assert tuner.grid == Grid((-3, -4, -5, 6), (0.1,), n_leapfrogs=(2,))
    assert tuner.judge.scores == {"score_fraction": SETTINGS["score_fraction"]}
    others = {name: number for name, number in SETTINGS.items() if name != "score_fraction"}
    assert tuner == Halving(tuner.judge, grid=tuner.grid, **others)
    assert tune.tuning_arguments(TUNERS["grid"], "grid")["budget"].given() == {"steps": 30}
    assert tune.tuning_arguments(TUNERS["heuristic"], "heuristic")["budget"] is None


def test_only_tuners_that_race_have_replicates_and_a_grid_search_may_have_fewer():
    for name, entry in ENTRIES.items():
        assert entry.is_random == (METHODS[entry.method or name].judge is not None)

    def races(tuner, section, **own):
        settings = TUNERS[tuner] | {"tuning": TUNING | {"replicates": 5}}
        return n_races(tuner, settings | {section: TUNERS[tuner][section] | own})

    assert races("mamba-ksd", "mamba") == races("grid", "grid") == races("grid", "grid", replicates=7) == 5
    assert races("grid", "grid", replicates=3) == 3
    assert races("heuristic", "heuristic") == 1


def test_every_choice_is_run_for_the_longest_horizon_and_a_killed_job_loses_one_replicate(
    model, tmp_path, monkeypatch
):
    mode = np.asarray(map_position(model))
    draws = mode + 0.1 * np.random.default_rng(0).standard_normal((400, len(mode)))
    reference = metrics.Reference(sd=draws.std(axis=0), covariance=np.cov(draws.T))
    settings = {
        "grids": GRIDS | {"log10_step_sizes": [-3, -4, -5]},
        "tuning": TUNING,
        "mamba": MAMBA | {"seconds": 0.05, "thin": None},
        "horizons": {"seconds": [0.05, 0.2], "samplers": ["sgld"], "replicates": 2},
    }

    def compared(folder):
        return tune.compare_horizons(Log(folder, model, reference=reference, cost=COST).task, settings)

    record = compared(tmp_path / "whole")
    (own,) = record["samplers"]
    pairs = [(tuner, seconds) for tuner in tune.AHEAD for seconds in (0.05, 0.2)]
    assert [(one["tuner"], one["horizon"]) for one in own["chosen"]] == pairs
    assert {one["arm"] for one in own["chosen"]} == set(range(len(own["arms"])))
    # The seconds buy 50 and 200 steps.
    assert {(run["seconds"], run["steps"]) for run in own["runs"]} == {(0.05, 50), (0.2, 200)}
    assert len(own["runs"]) == 2 * len(own["arms"])
    # Longer runs of a stable arm have smaller predicted errors.
    predicted = {(one["tuner"], one["horizon"]): one["predicted"] for one in own["chosen"]}
    assert predicted["theory", 0.2] < predicted["theory", 0.05]
    names = {Halving: "mamba", Theory: "theory"}
    races = Calls(
        monkeypatch, module, "tune", lambda *_, tuner, horizon, **__: (names[type(tuner)], horizon.seconds)
    )
    runs = Calls(monkeypatch, losses, "run_arms", lambda *_, replicate, **__: replicate)
    runs.killed_at = "horizons 1"
    with pytest.raises(KeyboardInterrupt):
        compared(tmp_path / "killed")
    assert compared(tmp_path / "killed") == record
    assert (races, runs) == (pairs, ["horizons 0", "horizons 1"])
