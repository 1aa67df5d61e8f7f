"""The rule `restore` as a user runs it: a small study is lost after half of its jobs, restored, and run on, to the
numbers of the same study before it was lost."""

import json
import re
import shutil
import subprocess

import pytest
from workflow_runs import ROOT, snakemake

OVERLAY = """
run: lost
models: [logistic]
samplers: [sgld]
tuners: [mamba-ksd, heuristic]
reference: {chains: 1, n_draws: 60, block: 40}
tuning: {replicates: 1}
"""
JUDGED = "results/lost/evaluation/logistic/sgld.json"
OF_THE_MACHINE = {"provenance", "wall_seconds"}


@pytest.fixture
def study(tmp_path):
    """Runs the small study with the given targets; a second overlay is added to its configuration."""
    (tmp_path / "config").symlink_to(ROOT / "config")

    def run(*arguments: str, more: str = "") -> subprocess.CompletedProcess:
        (tmp_path / "lost.yaml").write_text(OVERLAY + more)
        overlays = ["--configfile", str(ROOT / "tests/tiny.yaml"), str(tmp_path / "lost.yaml")]
        return subprocess.run(
            snakemake(tmp_path, *arguments, *overlays), capture_output=True, text=True, check=False
        )

    return run


def jobs_of(printed: str) -> set[str]:
    """The rules of the jobs that Snakemake names."""
    return set(re.findall(r"^(?:local)?rule (\w+):", printed, re.M))


def numbers_in(part: object) -> object:
    """A part of a record without seconds and origin."""
    if isinstance(part, dict):
        return {name: numbers_in(own) for name, own in part.items() if name not in OF_THE_MACHINE}
    return [numbers_in(own) for own in part] if isinstance(part, list) else part


@pytest.mark.slow
def test_a_restored_run_goes_on_to_the_numbers_of_one_that_was_never_lost(study, tmp_path):
    done = study(JUDGED)
    assert done.returncode == 0, done.stderr[-2000:]
    (tmp_path / "results/lost").rename(tmp_path / "finished")
    # The evaluation was not finished when the study was lost, on another machine: Snakemake remembers nothing.
    shutil.rmtree(tmp_path / ".snakemake")
    shutil.rmtree(tmp_path / "results/saved/lost/evaluation")
    shutil.rmtree(tmp_path / "results/saved/lost/jobs/evaluate_sampler")

    refused = study("restore", more="heuristic: {n_leapfrog: 3}\n")
    lines = [line for line in refused.stderr.splitlines() if line.startswith("Error in restore:")]
    assert len(lines) == 1
    assert "heuristic.n_leapfrog: 2 then, 3 now" in lines[0]
    assert not (tmp_path / "results/lost").exists(), "before data are made again"

    # Whoever forgets to restore is told so.
    assert "stop here and run the rule `restore` first" in study("results/lost/data/logistic.json").stderr
    restored = study("restore")
    assert jobs_of(restored.stderr) == {"restore"}, restored.stderr[-2000:]
    for name in ("tuning/logistic/sgld.json", "cost/logistic.json", "reference/logistic/nuts.json"):
        assert (tmp_path / "results/lost" / name).read_bytes() == (tmp_path / "finished" / name).read_bytes()
    done = study(JUDGED)
    assert done.returncode == 0, done.stderr[-2000:]
    assert jobs_of(done.stderr) == {"evaluate_sampler"}
    # Every draw goes into these numbers, and so do the measured costs: with those saved they agree bit for bit.
    records = [tmp_path / folder / "evaluation/logistic/sgld.json" for folder in ("results/lost", "finished")]
    here, there = (json.loads(path.read_text()) for path in records)
    assert here["provenance"] != there["provenance"]
    assert numbers_in(here) == numbers_in(there)
    planned = jobs_of(study("--dry-run", "results/lost/widths/logistic.json", JUDGED).stdout)
    assert planned == {"measure_widths"}
