"""The provenance of results, and the commit that made them."""

import json
import re
import subprocess
from pathlib import Path

import pytest
from config_files import ROOT

from sgtune.study.pipeline import provenance
from sgtune.support.errors import DataError


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
    assert provenance.Provenance().finish()["commit"] == head
    # Results are untracked files in the clone.
    (clone / "results.json").write_text("{}")
    assert provenance.Provenance().finish()["commit"] == head
    (clone / provenance.SOURCE).write_text("changed\n")
    started = provenance.Provenance()
    assert started.finish()["commit"] == f"{head}-dirty"
    # What is committed while a job runs is not what it ran.
    git(clone, "commit", "--quiet", "--all", "--message", "second")
    assert started.finish()["commit"] == f"{head}-dirty"


def test_provenance_names_machine_versions_and_seconds():
    assert (ROOT / provenance.SOURCE).is_file(), "the file by which the repository is known"
    found = provenance.Provenance().finish()
    assert found["versions"]["jax"]
    assert found["cpu"]
    assert found["cores"] >= 1
    assert found["commit"] is None or re.fullmatch(r"[0-9a-f]{40,64}(-dirty)?", found["commit"])
    assert json.loads(json.dumps(found)) == found
    if not Path("/proc/cpuinfo").is_file():
        return
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    described = [line.partition(":")[2].split() for line in lines]
    assert all([found[name]] in described for name in ("cpu_family", "cpu_model"))
    flags = found["cpu_vectors"].split()
    assert flags
    assert any(set(flags) <= set(line) for line in described)


def test_summary_holds_every_distinct_value_from_the_first_start_to_the_last_end():
    first, last, end = (f"2026-01-02T{time}.000+00:00" for time in ("03:04:05", "03:30:00", "04:04:05"))
    long = {"seed": 7, "created": first, "seconds": 3_600.0, "load_before": [1.0, 1.0, 1.0]}
    long["versions"] = {"jax": "1.2.3"}
    long["cpu_model"] = "1"
    late = {"seed": 8, "cpu_model": "2", "created": last, "seconds": 2.0, "load_before": [2.0, 1.0, 1.0]}
    summary = provenance.summarise([long, late, {"seed": None}])
    assert (summary["files"], summary["seed"], summary["seconds"]) == (3, [7, 8], 3_602.0)
    assert summary["cpu_model"] == ["1", "2"]
    assert summary["highest_load_before"] == 2.0
    # A long job that started first may end last.
    assert summary["created"] == [first, end]
    assert summary["versions"] == {"jax": ["1.2.3"]}
    assert provenance.summarise([{"seed": 1}])["created"] == []
    # Commits are abbreviated, of SHA-1 and of SHA-256.
    commits = ["a" * 40, "b" * 64, "c" * 40 + "-dirty"]
    described = provenance.describe(provenance.summarise([{"commit": commit} for commit in commits]))
    assert f"commit {'a' * 10}, {'b' * 10}, {'c' * 10}-dirty ·" in described


def test_a_reader_refuses_a_file_that_its_job_did_not_write(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    mode, tuned, data = (f"results/mine/{name}" for name in ("pmf.map.npz", "pmf.json", "data.json"))
    for path in (mode, tuned, data):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text("as written", encoding="utf-8")
    provenance.keep_sums("mine", "find_map-pmf", [mode])
    provenance.keep_sums("mine", "tune_sampler-pmf-sgld", [tuned])
    # Another run may have downloaded it again.
    shared = Path("results/downloads/source.json")
    shared.parent.mkdir()
    shared.write_text("as written", encoding="utf-8")
    provenance.keep_sums("mine", "download_ood", [str(shared)])
    shared.write_text("changed", encoding="utf-8")
    provenance.check_inputs("mine", [str(shared)])
    provenance.check_inputs("mine", [mode, tuned, data])
    # Nothing is known of a file without a job, or of another run.
    Path(data).write_text("changed", encoding="utf-8")
    provenance.check_inputs("mine", [mode, tuned, data])
    Path(mode).write_text("changed", encoding="utf-8")
    provenance.check_inputs("mine", [tuned, data])
    provenance.check_inputs("other", [mode])
    with pytest.raises(DataError, match=f"^{mode}: of another .* the job find_map-pmf wrote it; delete it"):
        provenance.check_inputs("mine", [tuned, mode])
    # Its job runs again.
    provenance.keep_sums("mine", "find_map-pmf", [mode])
    provenance.check_inputs("mine", [mode])
