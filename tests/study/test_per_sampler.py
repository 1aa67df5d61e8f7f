"""Interrupted tuning jobs continue where they stopped."""

import json

import pytest
from job_pieces import Calls, Log
from small_models import small_logistic_model

from sgtune import CostTable
from sgtune.study.catalogue import TUNERS as ENTRIES
from sgtune.study.config.sections import n_races
from sgtune.study.experiments import per_sampler as jobs
from sgtune.study.experiments.per_sampler import (
    chosen_arms,
    tune_sampler,
    tuning_arguments,
)
from sgtune.tuning import TUNERS as METHODS
from sgtune.tuning import AllDivergedError, Settings

GRIDS = {"log10_step_sizes": [-3, -4, -5, 6], "batch_fractions": [0.1], "n_leapfrogs": [2]}
MAMBA = {
    "seconds": 0.03,
    "pruning_rate": 2,
    "clock": "calibrated",
    "thin": 10,
    "points": 20,
    "score_fraction": 1,
}
GRID = {"n_steps": 30, "batch_fraction": 0.1, "start_noise": 0.2, "points": 10}
HEURISTIC = {"batch_fraction": 0.1, "n_leapfrog": 10}
TUNING = {"replicates": 1, "validation_fraction": 0}
TUNERS = {
    "mamba-ksd": {"grids": GRIDS, "tuning": TUNING, "mamba": MAMBA},
    "grid": {"grids": GRIDS, "tuning": TUNING, "grid": GRID},
    "heuristic": {"grids": GRIDS, "tuning": TUNING, "heuristic": HEURISTIC},
}
COST = CostTable({("sgld", 20, None): 1e-3})


@pytest.fixture(scope="module")
def model():
    return small_logistic_model(n_data=200)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "parts"


def without_seconds(records):
    """As they are on every machine. All else in a record must repeat."""
    return [{k: v for k, v in record.items() if k not in ("seconds", "rung_seconds")} for record in records]


def tune_all(model, folder, settings=TUNERS, inputs="1", seed=0, **options):
    log = Log(folder)
    common = {
        "cost": COST,
        "seed": seed,
        "parts": log.parts,
        "inputs": {"data": inputs},
        "report": log.append,
    }
    return tune_sampler(model, "sgld", settings, **common, **options), log


def changed(tuner, section, **values):
    settings = json.loads(json.dumps(TUNERS))
    settings[tuner][section] |= values
    return settings


@pytest.fixture
def tuned(monkeypatch):
    """The names of the tuners that ran."""
    return Calls(monkeypatch, "tune", lambda *_, tuner, **__: tuner)


def test_a_job_that_was_killed_goes_on_after_the_last_tuner_that_ended(model, folder, tmp_path, tuned):
    whole, log = tune_all(model, tmp_path / "whole", startup=2.5)
    assert [record["tuner"] for record in whole] == list(TUNERS)
    assert [record["reason"] for record in whole] == [""] * 3
    assert (log.taken(), log.other()) == ([], [])
    for record in whole:
        seconds = record["seconds"]
        assert seconds["startup"] == 2.5
        assert seconds["cold"] == 2.5 + seconds["total"] + seconds["shared_compilation"]
        assert seconds["warm"] == pytest.approx(seconds["total"] - seconds["compilation"])
    tuned.clear()

    tuned.killed_at = "grid"
    with pytest.raises(KeyboardInterrupt):
        tune_all(model, folder)
    assert tuned == ["mamba-ksd"]
    tuned.clear()
    tuned.killed_at = None
    kept = folder.joinpath("mamba-ksd_0.json").read_text()
    records, log = tune_all(model, folder)
    assert tuned == ["grid", "heuristic"]
    assert (log.taken(), log.other()) == (["mamba-ksd 0"], [])
    assert without_seconds(records) == without_seconds(whole)
    assert folder.joinpath("mamba-ksd_0.json").read_text() == kept
    assert f'"total": {records[0]["seconds"]["total"]!r}' in kept, "its seconds are those of its own run"


def test_a_change_of_its_settings_reruns_a_tuner(model, folder, tuned):
    """A tuner's own settings rerun only this tuner; inputs and the seed rerun all tuners."""
    tune_all(model, folder)
    cases = [
        (["mamba-ksd"], {"settings": changed("mamba-ksd", "mamba", points=19)}),
        (["mamba-ksd"], {"settings": changed("mamba-ksd", "mamba", seconds=0.02)}),
        (["grid"], {"settings": changed("grid", "grids", log10_step_sizes=[-3, -4])}),
        (["heuristic"], {"settings": changed("heuristic", "heuristic", batch_fraction=0.5)}),
        (list(TUNERS), {"inputs": "2"}),
        (list(TUNERS), {"seed": 1}),
        ([], {}),
    ]
    for repeated, changes in cases:
        tune_all(model, folder)
        tuned.clear()
        records, log = tune_all(model, folder, **changes)
        assert tuned == repeated
        assert log.other() == [f"{tuner} 0" for tuner in repeated]
        assert log.taken() == [f"{tuner} 0" for tuner in TUNERS if tuner not in repeated]
        assert [record["tuner"] for record in records] == list(TUNERS)
    assert records[2]["best"]["batch_size"] == 20


def test_tuners_that_judge_by_predictions_hold_out_rows(model, folder, monkeypatch):
    """The mode without these rows is found with the configured settings, before a tuner's time starts."""
    found = []
    monkeypatch.setattr(jobs, "map_result", lambda fewer, **settings: found.append((fewer, settings)))
    settings = {
        tuner: own | {"map": {"epochs": 7}, "tuning": {"replicates": 1, "validation_fraction": 0.2}}
        for tuner, own in TUNERS.items()
    }
    records, _ = tune_all(model, folder, settings)
    plain, _ = tune_all(model, folder.with_name("plain"))
    assert [(fewer.n_data, of_map) for fewer, of_map in found] == [(160, {"epochs": 7})]
    values = {
        number: {record["tuner"]: [row["discrepancy"] for row in record["rungs"]] for record in made}
        for number, made in enumerate((records, plain))
    }
    assert values[0]["mamba-ksd"] == values[1]["mamba-ksd"]
    assert values[0]["grid"] != values[1]["grid"]


def test_a_tuner_without_an_arm_says_why_and_the_others_go_on(model, folder):
    """The record of a tuner without an arm is saved like any other."""
    settings = changed("mamba-ksd", "grids", log10_step_sizes=[9, 8])
    warned = []
    records, _ = tune_all(model, folder, settings, warn=warned.append)
    assert [record["best"] is None for record in records] == [True, False, False]
    lost = records[0]
    assert lost["reason"].startswith("step_size: all 2 arms of sgld diverged")
    assert [row["reason"] for row in lost["rungs"]] == ["diverged"] * 2
    assert lost["seconds"]["cold"] >= lost["seconds"]["warm"] > 0
    assert warned == [f"mamba-ksd found no arm of sgld for logistic: {lost['reason']}"]
    again, log = tune_all(model, folder, settings)
    assert log.taken() == [f"{tuner} 0" for tuner in TUNERS]
    assert again == records


def test_each_replicate_is_a_race_of_its_own(model, folder, tuned):
    """Deterministic tuners run once. If more replicates are requested, existing ones are reused."""

    def settings(n):
        return {tuner: own | {"tuning": TUNING | {"replicates": n}} for tuner, own in TUNERS.items()}

    records, _ = tune_all(model, folder, settings(3))
    assert [(record["tuner"], record["replicate"]) for record in records] == [
        *(("mamba-ksd", i) for i in range(3)),
        *(("grid", i) for i in range(3)),
        ("heuristic", 0),
    ]
    values = [[row["discrepancy"] for row in record["rungs"]] for record in records[:3]]
    assert values[0] != values[1] != values[2]
    assert chosen_arms(records) == {
        "mamba-ksd": [record["best"] for record in records[:3]],
        "grid": [record["best"] for record in records[3:6]],
        "heuristic": [records[6]["best"]],
    }


def test_the_configurations_words_become_the_tuners_arguments():
    given = tuning_arguments(TUNERS["mamba-ksd"], "mamba-ksd-smaller")
    assert given["tuner"] == "mamba-ksd"
    assert given["budget"].given() == {"seconds": 0.03}
    assert given["settings"] == Settings(
        log10_step_sizes=(-3, -4, -5, 6),
        batch_fractions=(0.1,),
        n_leapfrogs=(2,),
        pruning_rate=2,
        clock="calibrated",
        thin=10,
        points=20,
        score_fraction=1,
    )
    assert tuning_arguments(TUNERS["grid"], "grid")["budget"].given() == {"steps": 30}
    assert tuning_arguments(TUNERS["heuristic"], "heuristic")["budget"] is None
    assert TUNERS["mamba-ksd"]["mamba"]["seconds"] == 0.03, "the configuration stays as it was"


def test_other_errors_of_a_tuner_end_the_job(model, folder, monkeypatch):
    """Errors of bad input end the job; only a tuner that finds no arm does not."""
    settings = changed("mamba-ksd", "mamba", points=0)
    with pytest.raises(ValueError, match=r"^points: 0") as caught:
        tune_all(model, folder, settings)
    assert not isinstance(caught.value, AllDivergedError)
    assert not folder.exists()


def test_pieces_of_another_version_of_the_code_are_made_again(model, folder, tuned, monkeypatch):
    tuned.killed_at = "heuristic"
    with pytest.raises(KeyboardInterrupt):
        tune_all(model, folder)
    tuned.killed_at = None
    monkeypatch.setattr(jobs, "code_digest", lambda: "of another version")
    _, log = tune_all(model, folder)
    assert log.taken() == []
    assert log.other() == ["mamba-ksd 0", "grid 0"]


def test_a_grid_search_may_have_fewer_races_than_the_other_tuners():
    def races(tuner, section, **own):
        settings = TUNERS[tuner] | {"tuning": TUNING | {"replicates": 5}}
        return n_races(tuner, settings | {section: TUNERS[tuner][section] | own})

    assert races("mamba-ksd", "mamba") == races("grid", "grid") == races("grid", "grid", replicates=None) == 5
    assert races("grid", "grid", replicates=3) == 3
    assert races("grid", "grid", replicates=7) == 5
    assert races("heuristic", "heuristic") == 1


def test_tuners_without_randomness_are_those_that_have_one_race():
    for name, entry in ENTRIES.items():
        assert entry.is_random == (METHODS[entry.method or name].judge is not None)
