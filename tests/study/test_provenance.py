"""The provenance of results and their commit; only results of one clean commit may be published."""

import json
import re
import subprocess

import pytest
from artifact_records import PROVENANCE

from sgtune.study.pipeline import provenance
from sgtune.study.report.publish import publish
from sgtune.support.errors import DataError
from sgtune.support.files import file_sha256

CLEAN, OTHER = "a" * 40, "b" * 40


def git(folder, *arguments):
    own = ["-c", "user.name=sgtune", "-c", "user.email=sgtune@localhost"]
    done = subprocess.run(["git", *own, *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def clone(tmp_path, monkeypatch):
    """A repository that tracks the package, from which the package is imported."""
    source = tmp_path / "clone" / provenance.SOURCE
    source.parent.mkdir(parents=True)
    source.write_text("first\n")
    git(tmp_path / "clone", "init", "--quiet")
    git(tmp_path / "clone", "add", ".")
    git(tmp_path / "clone", "commit", "--quiet", "--message", "first")
    monkeypatch.setattr(provenance, "__file__", str(source))
    return tmp_path / "clone"


def test_a_dirty_tree_is_noted(clone):
    head = git(clone, "rev-parse", "HEAD")
    assert provenance.collect("quick", 0).finish()["commit"] == head
    # Results are untracked files in the clone.
    (clone / "results.json").write_text("{}")
    assert provenance.collect("quick", 0).finish()["commit"] == head
    (clone / "results/saved").mkdir(parents=True)
    (clone / "results/saved/note.json").write_text("{}")
    git(clone, "add", "results/saved")
    assert provenance.collect("quick", 0).finish()["commit"] == head
    (clone / provenance.SOURCE).write_text("changed\n")
    assert provenance.collect("quick", 0).finish()["commit"] == f"{head}-dirty"
    git(clone, "add", ".")
    assert provenance.collect("quick", 0).finish()["commit"] == f"{head}-dirty"


def test_provenance_names_machine_versions_and_seconds():
    found = provenance.collect("quick", 3).finish()
    assert (found["run"], found["seed"]) == ("quick", 3)
    assert found["versions"]["jax"]
    assert found["cores"] >= 1
    assert found["cpu"]
    assert found["seconds"] >= 0
    assert found["commit"] is None or re.fullmatch(r"[0-9a-f]{40,64}(-dirty)?", found["commit"])
    assert json.loads(json.dumps(found)) == found


def test_summary_holds_every_distinct_value():
    summary = provenance.summarise(
        [PROVENANCE, PROVENANCE | {"seed": 8, "load_before": [2.0, 1.0, 1.0]}, {"seed": None}]
    )
    assert summary["files"] == 3
    assert summary["seed"] == [7, 8]
    assert summary["seconds"] == 4.0
    assert summary["highest_load_before"] == 2.0
    # From the start of the first job to the end of the last: a long job that started first may end last.
    first, last, end = (f"2026-01-02T{time}.000+00:00" for time in ("03:04:05", "03:30:00", "04:04:05"))
    jobs = {"created": first, "seconds": 3_600.0}, {"created": last}
    assert provenance.summarise(jobs)["created"] == [first, end]
    assert provenance.summarise(jobs[1:])["created"] == [last]
    assert provenance.summarise([{"seed": 1}])["created"] == []
    assert summary["versions"] == {"jax": ["1.2.3"]}


def manifest(folder, commits):
    """A run of two tables, the second made by ``commits``."""
    for number, made_by in enumerate(([CLEAN], commits), 1):
        table = folder / f"run/tables/table{number}.json"
        table.parent.mkdir(parents=True, exist_ok=True)
        table.write_text(json.dumps({"sources": {"commit": made_by}}))
    files = {f"tables/{path.name}": file_sha256(path) for path in (folder / "run/tables").iterdir()}
    origin = {"cores": 2, "cpu": "a CPU", "created": "2026-01-02T03:04:05"}
    (folder / "run/manifest.json").write_text(
        json.dumps({"run": "mine", "files": files, "provenance": origin})
    )
    return folder / "run/manifest.json"


def test_results_of_one_clean_commit_are_published(tmp_path):
    publish(manifest(tmp_path, [CLEAN]), tmp_path / "published")
    names = {path.name for path in (tmp_path / "published").rglob("*") if path.is_file()}
    assert names == {"README.md", "manifest.json", "table1.json", "table2.json"}


@pytest.mark.parametrize("commits", [[], [CLEAN, OTHER], [f"{CLEAN}-dirty"], [CLEAN, f"{CLEAN}-dirty"]])
def test_results_of_other_commits_are_not_published(tmp_path, commits):
    publish(manifest(tmp_path, [CLEAN]), tmp_path / "published")
    before = {path: path.read_bytes() for path in (tmp_path / "published").rglob("*") if path.is_file()}
    shown = ", ".join(commits) or "no commit"
    with pytest.raises(DataError, match=rf"table2\.json: made by {shown}; .* one clean commit$"):
        publish(manifest(tmp_path, commits), tmp_path / "published")
    after = {path: path.read_bytes() for path in (tmp_path / "published").rglob("*") if path.is_file()}
    assert after == before
