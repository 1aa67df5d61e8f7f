"""Pieces of a job: kept under a fingerprint of all that they depend on, and found only under it."""

import pytest

from sgtune.study.pipeline import parts as module
from sgtune.study.pipeline.parts import Parts, Task

TAKEN = "grid: kept from an unfinished job"
OTHER = "grid: made again: damaged, or of other settings, inputs or code"
RECORD = {"rows": [1, 0.1, None, "x"], "best": {"step_size": 1e-7}}


@pytest.fixture
def parts(tmp_path):
    lines = []
    parts = Parts(tmp_path / "parts", lines.append)
    parts.lines = lines
    return parts


def is_made(parts, name="grid", depends_on=(), record=RECORD) -> bool:
    """Whether the piece was made now; either way it is ``record``."""
    made = []
    found = parts.once(name, {"seed": 1, **dict(depends_on)}, lambda: made.append(record) or record)
    assert found == record
    return bool(made)


@pytest.mark.parametrize("record", [RECORD, [1, 2], None, {}])
def test_a_piece_is_made_once_also_for_another_process(parts, record):
    assert is_made(parts, record=record)
    assert parts.lines == []
    assert not is_made(parts, depends_on={"seed": 1.0}, record=record)
    assert not is_made(Parts(parts.folder), record=record)
    assert parts.lines == [TAKEN]


def test_a_piece_that_depends_on_something_else_is_made_again(parts, monkeypatch):
    is_made(parts)
    for depends_on in ({"seed": 2}, {"grid": [1]}):
        assert is_made(parts, depends_on=depends_on, record={"other": 1})
        assert not is_made(parts, depends_on=depends_on, record={"other": 1}), "it replaces the earlier one"
    monkeypatch.setattr(module, "code_digest", lambda: "of another version")
    assert is_made(parts, depends_on=depends_on)
    assert parts.lines == [OTHER, TAKEN, OTHER, TAKEN, OTHER]


@pytest.mark.parametrize("changed", [{"seed": 2}, {"depends_on": {"inputs": "b"}}])
def test_the_pieces_of_a_task_depend_on_its_seed_and_inputs_and_on_what_they_name(parts, changed):
    task = Task(None, seed=1, parts=parts, depends_on={"inputs": "a"})
    found = [task.once("run", lambda i=i: i, arm=3) for i in range(2)]
    assert found == [0, 0]
    assert task._replace(**changed).once("run", lambda: 2, arm=3) == 2
    assert task._replace(**changed).once("run", lambda: 3, arm=4) == 3


def test_a_piece_that_fails_is_not_kept(parts):
    with pytest.raises(ZeroDivisionError):
        parts.once("grid", {"seed": 1}, lambda: 1 / 0)
    assert is_made(parts)


@pytest.mark.parametrize("text", ["", '{"fingerprint": "a", "rec', "[]", '{"fingerprint": "a"}', "\x00"])
def test_a_damaged_file_is_made_again(parts, text):
    is_made(parts)
    (path,) = parts.folder.iterdir()
    path.write_text(text)
    assert is_made(parts)
    assert not is_made(parts)
    assert parts.lines == [OTHER, TAKEN]


def test_a_cleared_job_starts_from_scratch_and_without_a_folder_nothing_is_kept(parts):
    parts.clear()
    for own in (parts, Parts()):
        assert is_made(own)
        own.clear()
        assert is_made(own)
    assert parts.lines == []
