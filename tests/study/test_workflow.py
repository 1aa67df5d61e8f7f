"""The workflow as a user runs it: a small study, killed four times on its way, and what it leaves behind."""

import json
import os
import shutil
import signal
import subprocess
import time
import zipfile
from datetime import datetime, timedelta
from pathlib import Path

import psutil
import pytest
from workflow_runs import ROOT, snakemake

from sgtune.study.ground_truth.draws import read_draws
from sgtune.study.report.publish import publish, published_folder, show_results
from sgtune.support.errors import DataError

OVERLAY = """
run: killed
models: [logistic]
samplers: [sgld]
tuners: [mamba-ksd, grid, heuristic]
reference: {chains: 2, n_draws: 2000, block: 100}
mamba: {seconds: 0.3}
evaluation: {seconds: 0.5}
artifacts: [table1, table5, regret, clocks, cost, figure3]
"""

WHOLE = "[!.]*"
"""Pattern of a file that was written to its end; the name of one still being written begins with a dot."""


@pytest.fixture(scope="module")
def workplace(tmp_path_factory) -> Path:
    """A folder with nothing but the configuration of a small study."""
    folder = tmp_path_factory.mktemp("workplace")
    (folder / "config").symlink_to(ROOT / "config")
    (folder / "killed.yaml").write_text(OVERLAY)
    return folder


def study(folder: Path, *arguments: str) -> list[str]:
    """The command that runs the small study in ``folder``."""
    overlays = ["--configfile", str(ROOT / "tests/tiny.yaml"), str(folder / "killed.yaml")]
    return snakemake(folder, *arguments, "--rerun-incomplete", *overlays)


def kill_job(folder: Path, rule: str, ready, target: Path) -> bool:
    """Run the study to ``target`` until a job of ``rule`` is at work and ``ready()``, and kill that job.

    Whether it left no ``target`` behind.
    """
    command = study(folder, str(target.relative_to(folder)))
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as run:
        victim, deadline = None, time.monotonic() + 120
        while victim is None and run.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
            jobs = [
                p for p in psutil.Process(run.pid).children(recursive=True) if f"{rule}.py" in _command(p)
            ]
            if jobs and ready():
                victim = jobs[0]
        assert victim is not None, f"no job of {rule} was seen at work: {run.communicate()[0][-2000:]}"
        os.kill(victim.pid, signal.SIGKILL)
        output = run.communicate(timeout=120)[0]
    assert run.returncode != 0, output[-2000:]
    return not target.exists()


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def kill_snakemake(folder: Path, rule: str, target: Path) -> list[psutil.Process]:
    """Run the study to ``target``, kill Snakemake itself (not its jobs) while a job of ``rule`` runs, and return the
    jobs that were running.

    A job that ends at that moment leaves a complete file that Snakemake has not recorded yet, and correctly makes
    again. The run has only this ``target``, so that no other rule's job can be in this state.
    """
    command = study(folder, str(target.relative_to(folder)))
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
        jobs, deadline = [], time.monotonic() + 120
        while not jobs and run.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
            children = psutil.Process(run.pid).children(recursive=True)
            jobs = [child for child in children if f"{rule}.py" in _command(child)]
        os.kill(run.pid, signal.SIGKILL)
    return jobs


@pytest.fixture(scope="module")
def killed_run(workplace) -> dict:
    """The study, with SIGKILL to Snakemake, in a NUTS block, in a tuner and in an evaluation run, and then to
    its end."""
    results = workplace / "results/killed"
    checkpoints = results / "reference/logistic/checkpoints"
    unfinished = results / "unfinished"

    def has_blocks() -> bool:
        return len(list(checkpoints.rglob(WHOLE + ".npz"))) >= 3

    orphans = kill_snakemake(workplace, "find_map", results / "reference/logistic/map.json")
    _, left = psutil.wait_procs(orphans, timeout=20)
    locked = subprocess.run(study(workplace), capture_output=True, text=True, timeout=120)
    unlock = [*study(workplace)[:5], *study(workplace)[7:], "--unlock"]  # without --cores
    unlocked = subprocess.run(unlock, capture_output=True, text=True, timeout=120)

    left_nothing = [kill_job(workplace, "sample_nuts", has_blocks, results / "reference/logistic/nuts-0.nc")]
    blocks = {path: path.stat().st_mtime_ns for path in checkpoints.rglob(WHOLE + ".npz")}
    pieces = []
    for rule, kept, target in (
        (
            "tune_sampler",
            "tuning/logistic/sgld/mamba-ksd_0.json",
            results / "tuning/logistic/sgld.json",
        ),
        (
            "evaluate_sampler",
            f"evaluation/logistic/sgld/{WHOLE}.json",
            results / "evaluation/logistic/sgld.json",
        ),
    ):
        left_nothing.append(kill_job(workplace, rule, lambda kept=kept: any(unfinished.glob(kept)), target))
        pieces += [path.relative_to(unfinished) for path in unfinished.rglob(WHOLE + ".json")]
    before = {
        path: path.stat().st_mtime_ns
        for path in results.rglob(WHOLE + ".json")
        if unfinished not in path.parents
    }
    finished = subprocess.run(study(workplace), capture_output=True, text=True, timeout=600)
    assert finished.returncode == 0, finished.stderr[-3000:]
    return {
        **{"results": results, "blocks": blocks, "left_nothing": left_nothing, "before": before},
        **{"orphans": (orphans, left), "locked": locked, "unlocked": unlocked, "pieces": pieces},
    }


@pytest.mark.slow
def test_killed_run_goes_on_and_loses_at_most_one_block_tuner_or_run(killed_run):
    assert killed_run["left_nothing"] == [True] * 3
    assert len(killed_run["blocks"]) >= 3
    for path, written in (killed_run["blocks"] | killed_run["before"]).items():
        assert path.stat().st_mtime_ns == written, f"{path} was made again"
    logs = killed_run["results"] / "logs"
    assert "continues after iteration" in (logs / "sample_nuts/logistic-0.log").read_text()
    assert "again" not in (logs / "sample_nuts/logistic-1.log").read_text()
    assert {piece.parts[0] for piece in killed_run["pieces"]} == {"tuning", "evaluation"}
    assert "mamba-ksd 0: kept from an unfinished job" in (logs / "tune_sampler/logistic-sgld.log").read_text()
    assert "kept from an unfinished job" in (logs / "evaluate_sampler/logistic-sgld.log").read_text()


@pytest.mark.slow
def test_what_a_finished_job_kept_is_gone_so_that_forcerun_starts_from_scratch(killed_run, workplace):
    results = killed_run["results"]
    assert not list((results / "unfinished").rglob("*.json"))
    tuned = results / "tuning/logistic/sgld.json"
    before = json.loads(tuned.read_text())
    command = study(workplace, str(tuned.relative_to(workplace)), "--forcerun", "tune_sampler")
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    after = json.loads(tuned.read_text())
    assert after["provenance"]["created"] > before["provenance"]["created"]
    assert "kept" not in (results / "logs/tune_sampler/logistic-sgld.log").read_text()
    # The same costs give the same arms.
    assert [one["best"] for one in after["tuners"]] == [one["best"] for one in before["tuners"]]


@pytest.mark.slow
def test_jobs_end_with_a_snakemake_that_is_killed_and_the_next_start_says_what_to_do(killed_run):
    orphans, left = killed_run["orphans"]
    assert orphans
    assert not left
    said = killed_run["locked"].stdout + killed_run["locked"].stderr
    assert killed_run["locked"].returncode != 0
    assert "--unlock" in said
    assert killed_run["unlocked"].returncode == 0, killed_run["unlocked"].stderr[-1000:]


@pytest.mark.slow
def test_timed_jobs_run_alone(killed_run):
    results, intervals = killed_run["results"], []
    origins = {
        path: json.loads(path.read_text()).get("provenance") for path in results.rglob(WHOLE + ".json")
    }
    nuts = results / "reference/logistic/nuts-0.nc"
    origins[nuts] = json.loads(read_draws(nuts).posterior.attrs["provenance"])
    for path, origin in origins.items():
        if origin is not None and path.parent.name != "tables":
            start = datetime.fromisoformat(origin["created"])
            end = start + timedelta(seconds=origin["seconds"])
            kind = path.relative_to(results).parts[0]
            intervals.append((start, end, kind in ("cost", "tuning", "clocks"), path))
    timed = [interval for interval in intervals if interval[2]]
    assert len(timed) == 1 + 1 + 1
    for start, end, _, path in timed:
        beside = [other for s, e, _, other in intervals if other != path and s < end and e > start]
        assert not beside, f"{path} ran beside {beside}"


@pytest.mark.slow
def test_artifacts_are_those_requested_and_say_which_run_made_them(killed_run):
    results = killed_run["results"]
    manifest = json.loads((results / "manifest.json").read_text())
    assert {path.suffix for path in (results / "tables").iterdir()} == {".csv", ".md", ".html", ".json"}
    assert {path.suffix for path in (results / "figures").iterdir()} == {".svg", ".pdf"}
    for name in manifest["files"]:
        path = results / name
        if path.suffix in (".md", ".html", ".svg", ".json"):
            assert "killed" in path.read_text(), f"{name} does not name its run"


@pytest.mark.slow
def test_result_of_another_configuration_is_refused_by_name(killed_run, workplace):
    tuned = killed_run["results"] / "tuning/logistic/sgld.json"
    record = json.loads(tuned.read_text())
    original = tuned.read_text()
    tuned.write_text(json.dumps(record | {"config": "0" * 64}))
    try:
        target = "results/killed/evaluation/logistic/sgld.json"
        done = subprocess.run(study(workplace, target), capture_output=True, text=True, timeout=120)
    finally:
        tuned.write_text(original)
    assert done.returncode != 0
    lines = [line for line in (done.stdout + done.stderr).splitlines() if "another configuration" in line]
    assert lines, (done.stdout + done.stderr)[-2000:]
    assert "tuning/logistic/sgld.json" in lines[0]


@pytest.mark.slow
def test_report_shows_artifacts_by_the_names_that_readers_know(killed_run, workplace):
    done = subprocess.run(
        study(workplace, "--report", "report.zip"), capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    with zipfile.ZipFile(workplace / "report.zip") as archive:
        names = " ".join(archive.namelist())
        listed = "".join(
            archive.read(name).decode() for name in archive.namelist() if name.endswith((".html", ".js"))
        )
    for name in ("table1.html", "figure3.svg", "regret.html", "clocks.html"):
        assert name in names
    # Names are the ones that readers know.
    for title in ("Table 1. Logistic regression: accuracy of the tuned samplers", "Regret of the tuners"):
        assert title in listed


PUBLISHED = sorted(path.parent.name for path in (ROOT / "results/published").glob("*/manifest.json"))
"""The studies of which a run is published."""


def test_readme_shows_the_published_run_and_nothing_else(tmp_path):
    # The small factorisation, too, whose regret stands beside it.
    shutil.copytree(published_folder(ROOT).parent, published_folder(tmp_path).parent)
    readme = shutil.copy(ROOT / "README.md", tmp_path / "README.md")
    show_results(Path(readme), published_folder(tmp_path))
    assert Path(readme).read_text() == (ROOT / "README.md").read_text()


@pytest.mark.parametrize("study", PUBLISHED)
def test_published_files_are_those_of_the_manifest(tmp_path, study):
    published, again = published_folder(ROOT, study), tmp_path / "again" / study
    publish(published / "manifest.json", again)
    files = {path.relative_to(again): path.read_bytes() for path in again.rglob("*") if path.is_file()}
    assert files == {
        path.relative_to(published): path.read_bytes() for path in published.rglob("*") if path.is_file()
    }


def test_a_file_that_is_not_the_manifests_is_not_published(tmp_path):
    publish(published_folder(ROOT) / "manifest.json", tmp_path / "again")
    (tmp_path / "again/tables/table1.md").write_text("another")
    with pytest.raises(DataError, match=r"table1\.md"):
        publish(tmp_path / "again/manifest.json", tmp_path / "refused")
    assert not (tmp_path / "refused").exists()
