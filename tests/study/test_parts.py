"""Pieces of a job: saved under a fingerprint of all that they depend on, and found only under it."""

import json

import pytest

from sgtune.study.pipeline.parts import Parts

TAKEN = "kept from an unfinished job"
DAMAGED = "kept from an unfinished job, but damaged: made again"
OTHER = "kept from an unfinished job, but with other settings, inputs or code: made again"


@pytest.fixture
def lines():
    return []


@pytest.fixture
def parts(tmp_path, lines):
    return Parts(tmp_path / "parts", lines.append)


def test_a_record_comes_back_under_its_fingerprint_only(parts, lines):
    assert parts.get("grid", "a") is None
    assert lines == []
    assert not parts.folder.exists()
    record = {"rows": [1, 0.1, None, "x"], "best": {"step_size": 1e-7}}
    parts.keep("grid", "a", record)
    assert parts.get("grid", "a") == record
    assert parts.get("grid", "b") is None
    assert parts.get("grid-ksd", "a") is None
    assert lines == [f"grid: {TAKEN}", f"grid: {OTHER}"]
    parts.keep("grid", "b", {"rows": []})
    assert parts.get("grid", "b") == {"rows": []}
    assert parts.get("grid", "a") is None


def test_another_process_finds_it(parts, tmp_path):
    parts.keep("grid", "a", {"rows": [2]})
    assert Parts(tmp_path / "parts").get("grid", "a") == {"rows": [2]}


@pytest.mark.parametrize(
    "text",
    [
        "",
        '{"fingerprint": "a", "rec',
        "[]",
        "3",
        '{"record": {}}',
        '{"fingerprint": "a"}',
        '{"fingerprint": "a", "record": 3}',
        "\x00",
    ],
)
def test_a_damaged_file_is_made_again(parts, lines, text):
    parts.keep("grid", "a", {"rows": []})
    (path,) = parts.folder.iterdir()
    path.write_text(text)
    assert parts.get("grid", "a") is None
    # A file with a record but without a fingerprint is complete, but belongs to something else.
    is_whole = text == '{"record": {}}'
    assert lines == [f"grid: {OTHER if is_whole else DAMAGED}"]
    parts.keep("grid", "a", {"rows": [1]})
    assert parts.get("grid", "a") == {"rows": [1]}


def test_names_of_any_characters_are_names_of_files(parts, tmp_path):
    names = ["table 0 of h=1e-07 n=80 L=5", "../../outside", "a/b", "ümläut:*?", ".hidden"]
    for name in names:
        parts.keep(name, name, {"name": name})
    for name in names:
        assert parts.get(name, name) == {"name": name}
    assert [path.name for path in tmp_path.iterdir()] == ["parts"]
    files = list(parts.folder.iterdir())
    assert len(files) == len(names)
    assert all(path.name.isascii() and path.suffix == ".json" for path in files)
    assert all(json.loads(path.read_text())["record"] for path in files)


def test_names_that_share_a_file_do_not_share_a_record(parts):
    """Fingerprints distinguish the pieces; the later one replaces the earlier one."""
    parts.keep("a b", "first", {"n": 1})
    parts.keep("a/b", "second", {"n": 2})
    assert parts.get("a b", "first") is None
    assert parts.get("a/b", "second") == {"n": 2}


def test_a_cleared_job_starts_from_scratch(parts, lines):
    parts.clear()
    parts.keep("grid", "a", {})
    parts.keep("grid-ksd", "a", {})
    parts.clear()
    assert not parts.folder.exists()
    assert parts.get("grid", "a") is None
    assert lines == []
