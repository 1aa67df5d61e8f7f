"""Jobs that end before their time go on where they were; what tuners chose in common is run once."""

import copy
import json

import pytest
from small_models import small_logistic_model

from sgtune import CostTable
from sgtune.study import per_sampler as jobs
from sgtune.study.parts import Parts
from sgtune.study.per_sampler import (
    chosen_arms,
    compare_clocks,
    evaluate_tuned,
    tune_sampler,
    tuning_arguments,
)
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
TAKEN, OTHER = "kept from an unfinished job", "of other settings, inputs or code: made anew"


@pytest.fixture(scope="module")
def model():
    return small_logistic_model(n_data=200)


class Log(list):
    """Lines of a job, and what it does with pieces."""

    def __init__(self, folder):
        self.parts = Parts(folder, self.append)

    def taken(self):
        return [line.partition(":")[0] for line in self if line.endswith(TAKEN)]

    def other(self):
        return [line.partition(":")[0] for line in self if line.endswith(OTHER)]


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


class Calls(list):
    """Of a function of the module, from now on; the call ``killed_at`` never ends."""

    killed_at = None

    def __init__(self, monkeypatch, name, describe):
        function = getattr(jobs, name)

        def spy(*arguments, **options):
            call = describe(*arguments, **options)
            if call == self.killed_at:
                raise KeyboardInterrupt
            self.append(call)
            return function(*arguments, **options)

        monkeypatch.setattr(jobs, name, spy)


@pytest.fixture
def tuned(monkeypatch):
    """The tuners that are run."""
    return Calls(monkeypatch, "tune", lambda *_, tuner, **__: tuner)


@pytest.fixture
def ran(monkeypatch):
    """(step size, replicate) of every run."""
    return Calls(
        monkeypatch, "evaluate_run", lambda model, sampler, arm, replicate, **_: (arm.step_size, replicate)
    )


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


def test_what_a_tuner_depends_on_makes_it_anew(model, folder, tuned):
    """Its own settings that one alone; inputs and the seed all of them."""
    tune_all(model, folder)
    cases = [
        (["mamba-ksd"], {"settings": changed("mamba-ksd", "mamba", points=19)}),
        (["grid"], {"settings": changed("grid", "grids", log10_step_sizes=[-3, -4])}),
        (["heuristic"], {"settings": changed("heuristic", "heuristic", batch_fraction=0.5)}),
        (list(TUNERS), {"inputs": "2"}),
        (list(TUNERS), {"seed": 1}),
        ([], {}),
    ]
    for anew, changes in cases:
        tune_all(model, folder)
        tuned.clear()
        records, log = tune_all(model, folder, **changes)
        assert tuned == anew
        assert log.other() == [f"{tuner} 0" for tuner in anew]
        assert log.taken() == [f"{tuner} 0" for tuner in TUNERS if tuner not in anew]
        assert [record["tuner"] for record in records] == list(TUNERS)
    assert records[2]["best"]["batch_size"] == 20


def test_rows_are_held_out_from_those_who_judge_by_predictions(model, folder, monkeypatch):
    """And the mode of the others is found as the configuration says, before a tuner's time begins."""
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
    """Its record is kept like any other."""
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
    """But of a tuner in which nothing is random there is one; those that are there are kept when more are wanted."""

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
"""Of the first tuner, whose races are two, in replicates 0, 1, 2; then what the others need beside those."""


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
        # Runs beyond those of the tables are as short as a curve.
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
    """The rows without what only a clock tells."""
    record = copy.deepcopy(record)
    for run in record["runs"]:
        for row in [run["table"]] * (run["table"] is not None) + run["curves"]:
            assert row.pop("wall_seconds") > 0
    return record


def test_finished_runs_are_kept_of_a_job_that_was_killed(model, folder, tmp_path, ran):
    """And by a cost table the rows are the same bits, in one go or in two."""
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
    """Of the first tuner that found an arm in every replicate; by the clock it makes other numbers of steps."""
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


def test_other_errors_of_a_tuner_end_the_job(model, folder, monkeypatch):
    """Bad input is no arm that was not found."""
    settings = changed("mamba-ksd", "mamba", points=0)
    with pytest.raises(ValueError, match=r"^points: 0") as caught:
        tune_all(model, folder, settings)
    assert not isinstance(caught.value, AllDivergedError)
    assert not folder.exists()


def test_what_another_version_of_the_code_has_made_is_made_anew(model, folder, tuned, monkeypatch):
    tuned.killed_at = "heuristic"
    with pytest.raises(KeyboardInterrupt):
        tune_all(model, folder)
    tuned.killed_at = None
    monkeypatch.setattr(jobs, "code_digest", lambda: "of another version")
    _, log = tune_all(model, folder)
    assert log.taken() == []
    assert log.other() == ["mamba-ksd 0", "grid 0"]
