"""Pieces of a job: kept under a fingerprint of all that they depend on, and found only under it."""

import json

import pytest

from sgtune.study.pipeline import parts as module
from sgtune.study.pipeline.parts import Parts

TAKEN = "kept from an unfinished job"
DAMAGED = "kept from an unfinished job, but damaged: made again"
OTHER = "kept from an unfinished job, but with other settings, inputs or code: made again"
RECORD = {"rows": [1, 0.1, None, "x"], "best": {"step_size": 1e-7}}


class Maker:
    """Makes `RECORD`, or what it was given, and counts how often."""

    def __init__(self, record=RECORD):
        self.record, self.n_calls = record, 0

    def __call__(self):
        self.n_calls += 1
        return self.record


@pytest.fixture
def lines():
    return []


@pytest.fixture
def parts(tmp_path, lines):
    return Parts(tmp_path / "parts", lines.append)


@pytest.mark.parametrize("record", [RECORD, [1, 2], None, {}])
def test_a_piece_is_made_once_also_for_another_process(parts, lines, record):
    make = Maker(record)
    assert parts.once("grid", {"seed": 1}, make) == record
    assert lines == []
    assert parts.once("grid", {"seed": 1.0}, make) == record
    assert Parts(parts.folder).once("grid", {"seed": 1}, make) == record
    assert make.n_calls == 1
    assert lines == [f"grid: {TAKEN}"]


@pytest.mark.parametrize("depends_on", [{"seed": 2}, {"seed": 1, "grid": [1]}, {}])
def test_a_piece_that_depends_on_something_else_is_made_again(parts, lines, depends_on):
    parts.once("grid", {"seed": 1}, Maker())
    assert parts.once("grid", depends_on, Maker({"other": 1})) == {"other": 1}
    assert lines == [f"grid: {OTHER}"]
    make = Maker()
    parts.once("grid", depends_on, make)
    assert make.n_calls == 0, "it replaces the earlier one"


def test_a_piece_of_other_code_is_made_again(parts, lines, monkeypatch):
    parts.once("grid", {}, Maker())
    monkeypatch.setattr(module, "code_digest", lambda: "of another version")
    make = Maker()
    parts.once("grid", {}, make)
    assert (make.n_calls, lines) == (1, [f"grid: {OTHER}"])


def test_a_piece_that_fails_is_not_kept(parts):
    def fail():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        parts.once("grid", {}, fail)
    assert parts.once("grid", {}, Maker()) == RECORD


@pytest.mark.parametrize("text", ["", '{"fingerprint": "a", "rec', "[]", "3", '{"fingerprint": "a"}', "\x00"])
def test_a_damaged_file_is_made_again(parts, lines, text):
    parts.once("grid", {}, Maker())
    (path,) = parts.folder.iterdir()
    path.write_text(text)
    make = Maker()
    parts.once("grid", {}, make)
    parts.once("grid", {}, make)
    assert (make.n_calls, lines) == (1, [f"grid: {DAMAGED}", f"grid: {TAKEN}"])


def test_names_of_any_characters_are_names_of_files(parts, tmp_path):
    names = ["table 0 of h=1e-07 n=80 L=5", "../../outside", "a/b", "ümläut:*?", ".hidden"]
    for name in names:
        parts.once(name, {}, Maker({"name": name}))
    for name in names:
        assert parts.once(name, {}, Maker()) == {"name": name}
    assert [path.name for path in tmp_path.iterdir()] == ["parts"]
    files = list(parts.folder.iterdir())
    assert len(files) == len(names)
    assert all(path.name.isascii() and path.suffix == ".json" for path in files)
    assert all(json.loads(path.read_text())["record"] for path in files)


def test_names_that_share_a_file_do_not_share_a_record(parts):
    parts.once("a b", {}, Maker({"n": 1}))
    assert parts.once("a/b", {}, Maker({"n": 2})) == {"n": 2}
    assert parts.once("a b", {}, Maker({"n": 1})) == {"n": 1}


def test_a_cleared_job_starts_from_scratch(parts, lines):
    parts.clear()
    parts.once("grid", {}, Maker())
    parts.clear()
    assert not parts.folder.exists()
    make = Maker()
    parts.once("grid", {}, make)
    assert (make.n_calls, lines) == (1, [])


def test_without_a_folder_nothing_is_kept():
    parts, make = Parts(), Maker()
    parts.once("grid", {}, make)
    parts.once("grid", {}, make)
    parts.clear()
    assert make.n_calls == 2
