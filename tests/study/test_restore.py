"""The rule `restore` as a user runs it: a small study is lost after half of its jobs, restored, and run on, to the
numbers of the same study before it was lost."""

import json
import re
import shutil
import subprocess
from pathlib import Path

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
TUNED = "results/lost/tuning/logistic/sgld.json"
JUDGED = "results/lost/evaluation/logistic/sgld.json"
SCREENED = "results/lost/screen/logistic/sgld.json"
REGRET = "results/lost/regret/logistic/sgld.json"
REFERENCE = "results/lost/reference/logistic"
COSTS = "results/lost/cost/table.json"
SECOND_HALF = ("evaluate_sampler", "screen_grid", "rerun_finalists")
"""Rules whose jobs were not finished when the study was lost."""


def study(folder: Path, *arguments: str, overlay: str = "lost.yaml") -> subprocess.CompletedProcess:
    """The small study in ``folder``."""
    overlays = ["--configfile", str(ROOT / "tests/tiny.yaml"), str(folder / overlay)]
    return subprocess.run(
        snakemake(folder, *arguments, *overlays), capture_output=True, text=True, timeout=300
    )


def jobs_of(printed: str) -> set[str]:
    """The rules of the jobs that Snakemake names."""
    return set(re.findall(r"^(?:local)?rule (\w+):", printed, re.M))


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def lost(tmp_path_factory) -> Path:
    """A folder with a lost study: ``finished`` is what it made in the end, and ``before`` what it had when it was lost,
    tuned and with its reference, of which the saved copies are left."""
    folder = tmp_path_factory.mktemp("lost")
    (folder / "config").symlink_to(ROOT / "config")
    (folder / "lost.yaml").write_text(OVERLAY)
    done = study(folder, TUNED, JUDGED, REGRET, f"{REFERENCE}/nuts.json", COSTS)
    assert done.returncode == 0, done.stderr[-2000:]
    (folder / "results/lost").rename(folder / "finished")
    shutil.copytree(folder / "finished", folder / "before")
    jobs = folder / "results/saved/lost/jobs"
    for note in [note for rule in SECOND_HALF for note in jobs.glob(f"{rule}/*.json")]:
        for name in json.loads(note.read_text())["outputs"]:
            (folder / name.replace("results/", "results/saved/", 1)).unlink()
            (folder / name.replace("results/lost/", "before/", 1)).unlink()
        note.unlink()
    return folder


def numbers_in(part: object) -> object:
    """A part of a record without seconds and origin."""
    if isinstance(part, dict):
        return {name: numbers_in(own) for name, own in part.items() if name not in OF_THE_MACHINE}
    return [numbers_in(own) for own in part] if isinstance(part, list) else part


OF_THE_MACHINE = {"provenance", "chains", "seconds", "rung_seconds", "wall_seconds"}


def lose_again(folder: Path, *, with_metadata: bool) -> None:
    """Delete the run's folder and, if asked, Snakemake's metadata, which another machine does not have."""
    shutil.rmtree(folder / "results/lost", ignore_errors=True)
    if with_metadata:
        shutil.rmtree(folder / ".snakemake")


@pytest.mark.slow
@pytest.mark.parametrize("with_metadata", [False, True], ids=["folder", "folder-and-metadata"])
def test_what_was_finished_is_not_done_again(lost, with_metadata):
    lose_again(lost, with_metadata=with_metadata)
    restored = study(lost, "restore")
    assert restored.returncode == 0, restored.stderr[-2000:]
    assert jobs_of(restored.stderr) == {"simulate_logistic", "restore"}
    assert "tune_sampler" in restored.stdout
    before, after = contents(lost / "before"), contents(lost / "results/lost")
    for name in before:
        if not name.startswith(("data/logistic.json", "logs/", "reference/logistic/checkpoints/")):
            assert after[name] == before[name], name
    planned = jobs_of(study(lost, "--dry-run", JUDGED, TUNED, "results/lost/widths/logistic.json").stdout)
    assert planned == {"evaluate_sampler", "measure_widths"}


@pytest.mark.slow
def test_a_large_file_is_made_again_only_for_a_job_that_needs_it(lost):
    """Missing draws stand in for draws that were too large to be saved."""
    lose_again(lost, with_metadata=False)
    everything = contents(lost / "results/saved")
    for job in ("sample_nuts/logistic-0", "combine_nuts/logistic"):
        path = lost / f"results/saved/lost/jobs/{job}.json"
        note = json.loads(path.read_text())
        for name, facts in note["outputs"].items():
            if name.endswith(".nc"):
                facts["saved"] = False
                (lost / name.replace("results/", "results/saved/", 1)).unlink()
        path.write_text(json.dumps(note))
    restored = study(lost, "restore")
    judged = study(lost, "--dry-run", JUDGED)
    widths = study(lost, "--dry-run", "results/lost/widths/logistic.json")
    for name, text in everything.items():
        (lost / "results/saved" / name).write_bytes(text)
    assert "Too large to be saved" in restored.stdout
    assert not (lost / REFERENCE / "nuts.nc").exists()
    assert jobs_of(judged.stdout) == {"evaluate_sampler"}
    assert jobs_of(widths.stdout) == {"sample_nuts", "combine_nuts", "measure_widths"}


@pytest.mark.slow
def test_a_chain_on_its_way_goes_on_from_its_saved_state(lost):
    """The draws count as too large to be saved, and the chains as not combined."""
    lose_again(lost, with_metadata=True)
    everything = contents(lost / "results/saved")
    for name in ("nuts-0.nc", "nuts.nc", "nuts.json"):
        (lost / f"results/saved/lost/reference/logistic/{name}").unlink()
    restored = study(lost, "restore")
    done = study(lost, f"{REFERENCE}/nuts-0.nc")
    for name, text in everything.items():
        (lost / "results/saved" / name).write_bytes(text)
    assert "NUTS continues from" in restored.stdout
    assert done.returncode == 0, done.stderr[-2000:]
    assert jobs_of(done.stderr) == {"sample_nuts"}
    log = lost / "results/lost/logs/sample_nuts/logistic-0.log"
    assert "continues after iteration" in log.read_text()


@pytest.mark.slow
def test_another_configuration_is_refused_in_one_line(lost):
    lose_again(lost, with_metadata=False)
    (lost / "other.yaml").write_text(OVERLAY + "heuristic: {n_leapfrog: 3}\n")
    refused = study(lost, "restore", overlay="other.yaml")
    assert refused.returncode != 0
    lines = [line for line in refused.stderr.splitlines() if line.startswith("Error in restore:")]
    assert len(lines) == 1
    assert "made with another configuration" in lines[0]
    assert "heuristic.n_leapfrog: 2 then, 3 now" in lines[0]
    assert not (lost / "results/lost").exists(), "before data are made again"


@pytest.mark.slow
def test_a_forgotten_restore_gives_a_warning(lost):
    lose_again(lost, with_metadata=False)
    done = study(lost, "results/lost/data/logistic.json")
    assert "stop here and run the rule `restore` first" in done.stderr


@pytest.mark.slow
def test_a_restored_run_goes_on_to_the_numbers_of_one_that_was_never_lost(lost):
    lose_again(lost, with_metadata=True)
    study(lost, "restore")
    done = study(lost, JUDGED, REGRET)
    assert done.returncode == 0, done.stderr[-2000:]
    assert jobs_of(done.stderr) == set(SECOND_HALF)
    # Every draw goes into these numbers, and so do the measured costs: with those saved they agree bit for bit.
    finished = lost / "finished"
    for name in (JUDGED, SCREENED, REGRET):
        there = json.loads((finished / name.removeprefix("results/lost/")).read_text())
        here = json.loads((lost / name).read_text())
        assert here["provenance"] != there["provenance"], name
        assert numbers_in(here) == numbers_in(there), name
    for path in [finished / "tuning/logistic/sgld.json", *(finished / "data").rglob("*.np?")]:
        assert (lost / "results/lost" / path.relative_to(finished)).read_bytes() == path.read_bytes(), (
            path.name
        )
    results = [f"results/lost/{name}" for name in ("widths/logistic.json", "estimates/logistic.json")]
    planned = jobs_of(study(lost, "--dry-run", *results, JUDGED, TUNED, REGRET).stdout)
    assert planned == {"measure_widths", "estimate_discrepancies"}
