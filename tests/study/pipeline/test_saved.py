"""The files that finished jobs save, and a run's folder restored from them, with small files for jobs."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from sgtune.study.pipeline import saved
from sgtune.study.pipeline.saved import check_inputs, exit_if_data_changed, read_notes, restore, save_job
from sgtune.study.posteriors.store import StoredSet
from sgtune.support.errors import DataError

RUN, SAVED = Path("results/mine"), Path("results/saved/mine")
FACTS, MAP, COST = (str(RUN / name) for name in ("data/pmf.json", "data/pmf.map.npz", "cost/pmf.json"))
TUNED, JUDGED = (str(RUN / kind / "pmf/sgld.json") for kind in ("tuning", "evaluation"))
SETTINGS = {
    "find_map/pmf": {"map": {"epochs": 3}},
    "calibrate_cost/pmf": None,
    "tune_sampler/pmf-sgld": {"grid": {"mamba": {"seconds": 1.0}}},
    "evaluate_sampler/pmf-sgld": {"evaluation": {"seconds": 2}},
}


def write(path: str | Path, text: str) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text, encoding="utf-8")


def finish(name: str, inputs: list[str], outputs: dict[str, str]) -> None:
    """A job by its name: it writes ``outputs``, and saves copies."""
    for path, text in outputs.items():
        write(path, text)
    rule, _, values = name.partition("/")
    wildcards = dict(zip(("model", "sampler"), values.split("-"), strict=False))
    save_job("mine", rule, wildcards, SETTINGS[name], inputs, list(outputs))


@pytest.fixture
def finished(tmp_path, monkeypatch):
    """A folder with a run of four jobs, each of which uses the outputs of earlier jobs."""
    monkeypatch.chdir(tmp_path)
    write(FACTS, '{"rows": 5, "provenance": {"created": "Monday"}}')
    finish("find_map/pmf", [FACTS], {MAP: "the mode"})
    finish("calibrate_cost/pmf", [FACTS, MAP], {COST: '{"rows": [1]}'})
    finish("tune_sampler/pmf-sgld", [FACTS, MAP, COST], {TUNED: '{"best": 1}'})
    finish("evaluate_sampler/pmf-sgld", [FACTS, TUNED], {JUDGED: '{"xi": 0.1}'})


def lose(rows: int = 5) -> None:
    """The run's folder is gone, and its data are made again, on another day."""
    shutil.rmtree(RUN)
    write(FACTS, json.dumps({"rows": rows, "provenance": {"created": "Tuesday"}}))


def contents(folder: Path) -> dict[str, str]:
    return {str(path): path.read_text("utf-8") for path in folder.rglob("*") if path.is_file()}


def test_all_finished_jobs_are_there_again_each_as_new_as_what_it_was_made_of(finished):
    before = contents(RUN)
    lose()
    done = restore("mine", SETTINGS)
    assert contents(RUN) == before | {FACTS: Path(FACTS).read_text(encoding="utf-8")}
    rules = {name.partition("/")[0]: 1 for name in SETTINGS}
    assert {rule: len(sizes) for rule, sizes in done.files.items()} == rules
    assert (done.left_out, done.absent, done.chains) == ({}, {}, [])
    # What is still there is not copied, but as new as the rest.
    os.utime(JUDGED, (1e9, 1e9))
    Path(TUNED).unlink()
    restore("mine", SETTINGS)
    for note in read_notes("mine"):
        newest = max(os.stat(path).st_mtime_ns for path in note.inputs)
        assert all(os.stat(path).st_mtime_ns >= newest for path in note.outputs)


def test_another_configuration_is_one_line_that_names_the_key_and_nothing_is_copied(finished):
    lose()
    before = contents(Path("results"))
    other = SETTINGS | {"tune_sampler/pmf-sgld": {"grid": {"mamba": {"seconds": 3}}}}
    with pytest.raises(DataError) as failure:
        restore("mine", other)
    (line,) = str(failure.value).splitlines()
    assert line.startswith("results/saved/mine/tuning/pmf/sgld.json: made with another configuration")
    assert "grid.mamba.seconds: 1 then, 3 now" in line
    assert contents(Path("results")) == before
    with pytest.raises(DataError, match=r"pmf.map.npz and 1 more: .*map.epochs: 3 then, 'nothing' now"):
        restore("mine", other | {"find_map/pmf": {"map": {}}})
    # 1 and 1.0 are the same setting.
    restore("mine", SETTINGS | {"tune_sampler/pmf-sgld": {"grid": {"mamba": {"seconds": 1}}}})


@pytest.mark.parametrize("path", [FACTS, MAP, COST])
def test_other_data_and_another_file_in_the_runs_folder_are_refused(finished, path):
    lose(rows=6 if path == FACTS else 5)
    if path != FACTS:
        write(path, '{"another": 1}')
    before = contents(Path("results"))
    with pytest.raises(DataError, match=f"^{path}: (not the file that|another file than the saved one)"):
        restore("mine", SETTINGS)
    assert contents(Path("results")) == before


def test_what_was_made_from_an_earlier_tuning_is_left_out(finished):
    finish("tune_sampler/pmf-sgld", [FACTS, MAP, COST], {TUNED: '{"best": 2}'})
    lose()
    left_out = restore("mine", SETTINGS).left_out
    assert left_out == {"evaluate_sampler/pmf-sgld": f"{TUNED} was made again after it"}
    assert Path(TUNED).read_text(encoding="utf-8") == '{"best": 2}'
    assert not Path(JUDGED).exists()


@pytest.mark.parametrize("text", [None, '{"best": 7}'])
def test_what_was_not_saved_whole_and_what_rests_on_it_are_left_out(finished, text):
    (SAVED / "jobs/calibrate_cost/pmf.json").unlink()
    twin = SAVED / "data/pmf.map.npz"
    twin.unlink() if text is None else twin.write_text(text)
    lose()
    done = restore("mine", {name: own for name, own in SETTINGS.items() if not name.startswith("evaluate")})
    assert "not saved completely" in done.left_out["find_map/pmf"]
    assert "made from" in done.left_out["tune_sampler/pmf-sgld"]
    assert done.left_out["evaluate_sampler/pmf-sgld"] == "this configuration has no such job"
    assert contents(RUN).keys() == {FACTS}


def test_a_large_file_is_not_saved_and_what_was_made_from_it_is_restored(finished, monkeypatch):
    monkeypatch.setattr(saved, "LARGEST", 50)
    finish("find_map/pmf", [FACTS], {MAP: "m" * 51})
    # An earlier, smaller file is not restored in its place.
    assert not (SAVED / "data/pmf.map.npz").exists()
    finish("calibrate_cost/pmf", [FACTS, MAP], {COST: '{"rows": [1]}'})
    lose()
    done = restore("mine", SETTINGS)
    assert done.absent == {MAP: 51}
    assert Path(COST).is_file()
    assert any("Too large to be saved" in line and MAP in line for line in done.lines("mine"))


def test_a_chain_goes_on_from_its_state_unless_it_is_finished(finished):
    for chain in (0, 1):
        write(SAVED / f"reference/pmf/nuts-{chain}.npz", f"state {chain}")
    lose()
    write(RUN / "reference/pmf/nuts-1.nc", "draws")
    state = RUN / "reference/pmf/checkpoints/0/restored.npz"
    assert restore("mine", SETTINGS).chains == [str(state)]
    assert state.read_text("utf-8") == "state 0"
    lose()
    write(RUN / "reference/pmf/nuts.json", "{}")
    assert not restore("mine", SETTINGS).chains


def test_a_reader_refuses_a_file_that_its_job_did_not_write(finished):
    inputs = [FACTS, MAP, COST, TUNED]
    check_inputs("mine", inputs)
    # Data that are made again are the same data, whenever that was; nothing is known of files without a job.
    write(FACTS, '{"rows": 6}')
    write(TUNED, '{"best": 1, "provenance": {"created": "Tuesday"}}')
    check_inputs("mine", [*inputs, "config/other.yaml"])
    for path, text in ((TUNED, '{"best": 2}'), (MAP, "the Mode")):
        before = Path(path).read_text(encoding="utf-8")
        write(path, text)
        with pytest.raises(DataError, match=f"^{path}: of another configuration, or changed .*delete it"):
            check_inputs("mine", inputs)
        write(path, before)


def test_data_of_the_same_size_with_another_sum_stop_a_run(tmp_path):
    arrays = {"ratings": np.arange(6.0, dtype=np.float32)}
    path = tmp_path / "data/toy.json"
    StoredSet("its rule", {"ratings": (np.float32, ("n",))}).write(path, arrays)
    write(tmp_path / "data/without.json", '{"missing": "no images"}')
    exit_if_data_changed(tmp_path)
    array = tmp_path / "data/toy/ratings.npy"
    array.write_bytes(array.read_bytes()[:-4] + b"\0\0\0\0")
    with pytest.raises(SystemExit, match=r"^Error: .*ratings\.npy: truncated or changed.*delete toy\.json"):
        exit_if_data_changed(tmp_path)
