"""The workflow as a user runs it: a small study, killed three times on its way, and what it leaves behind."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path

import psutil
import pytest

from sgtune.errors import DataError
from sgtune.reference.draws import read_draws
from sgtune.workflow import publish, show_results

ROOT = Path(__file__).parent.parent
TIMED = {"calibrate_cost", "tune_sampler", "evaluate_sampler"}

OVERLAY = """
run: killed
models: [logistic]
samplers: [sgld, sghmc-cv]
tuners: [mamba-ksd, heuristic]
reference: {chains: 2, n_draws: 4000, block: 100}
mamba: {seconds: 0.3}
evaluation: {seconds: 0.5}
"""


def snakemake(directory: Path, *arguments: str) -> list[str]:
    """The command that runs the workflow in ``directory``."""
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile"), "--cores", "2"]
    return [*command, "--directory", str(directory), *arguments]


def run_here(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "snakemake", "--cores", "2", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )


@pytest.fixture(scope="module")
def workplace(tmp_path_factory) -> Path:
    """A folder with the configuration of a small study, and nothing else."""
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


@pytest.fixture(scope="module")
def killed_run(workplace) -> dict:
    """The study, with SIGKILL in a NUTS block, in a tune job and in an evaluation, and then to its end."""
    results = workplace / "results/killed"
    checkpoints = results / "reference/logistic/checkpoints"

    def has_blocks() -> bool:
        return len(list(checkpoints.rglob("*.npz"))) >= 3

    left_nothing = [kill_job(workplace, "sample_nuts", has_blocks, results / "reference/logistic/nuts-0.nc")]
    blocks = {path: path.stat().st_mtime_ns for path in checkpoints.rglob("*.npz")}
    for rule, job, target in (
        ("tune_sampler", "sghmc-cv-mamba-ksd", results / "tuning/logistic/sghmc-cv/mamba-ksd.json"),
        ("evaluate_sampler", "sgld-heuristic", results / "evaluation/logistic/sgld/heuristic.json"),
    ):
        log = results / f"logs/{rule}/logistic-{job}.log"
        left_nothing.append(kill_job(workplace, rule, log.exists, target))
    before = {path: path.stat().st_mtime_ns for path in results.rglob("*.json")}
    finished = subprocess.run(study(workplace), capture_output=True, text=True, timeout=600)
    assert finished.returncode == 0, finished.stderr[-3000:]
    return {"results": results, "blocks": blocks, "left_nothing": left_nothing, "before": before}


@pytest.mark.slow
def test_killed_run_goes_on_and_loses_at_most_one_block_or_job(killed_run):
    assert killed_run["left_nothing"] == [True] * 3
    assert len(killed_run["blocks"]) >= 3
    for path, written in (killed_run["blocks"] | killed_run["before"]).items():
        assert path.stat().st_mtime_ns == written, f"{path} was made again"
    logs = killed_run["results"] / "logs/sample_nuts"
    assert "goes on after iteration" in (logs / "logistic-0.log").read_text()
    assert "anew" not in (logs / "logistic-1.log").read_text()


@pytest.mark.slow
def test_timed_jobs_run_alone(killed_run):
    results, intervals = killed_run["results"], []
    origins = {path: json.loads(path.read_text()).get("provenance") for path in results.rglob("*.json")}
    nuts = results / "reference/logistic/nuts-0.nc"
    origins[nuts] = json.loads(read_draws(nuts).posterior.attrs["provenance"])
    for path, origin in origins.items():
        if origin is not None and path.parent.name != "tables":
            start = datetime.fromisoformat(origin["created"])
            end = start + timedelta(seconds=origin["seconds"])
            kind = path.relative_to(results).parts[0]
            intervals.append((start, end, kind in ("cost", "tuning", "evaluation"), path))
    timed = [interval for interval in intervals if interval[2]]
    assert len(timed) == 1 + 2 * 2 + 2 * 2
    for start, end, _, path in timed:
        beside = [other for s, e, _, other in intervals if other != path and s < end and e > start]
        assert not beside, f"{path} ran beside {beside}"


@pytest.mark.slow
def test_every_artifact_is_there_and_says_which_run_made_it(killed_run):
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
    tuned = killed_run["results"] / "tuning/logistic/sgld/heuristic.json"
    record = json.loads(tuned.read_text())
    original = tuned.read_text()
    tuned.write_text(json.dumps(record | {"config": "0" * 64}))
    try:
        target = "results/killed/evaluation/logistic/sgld/heuristic.json"
        done = subprocess.run(study(workplace, target), capture_output=True, text=True, timeout=120)
    finally:
        tuned.write_text(original)
    assert done.returncode != 0
    lines = [line for line in (done.stdout + done.stderr).splitlines() if "another configuration" in line]
    assert lines, (done.stdout + done.stderr)[-2000:]
    assert "tuning/logistic/sgld/heuristic.json" in lines[0]


@pytest.mark.slow
def test_report_shows_every_table_and_figure(killed_run, workplace):
    done = subprocess.run(
        study(workplace, "--report", "report.zip"), capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    with zipfile.ZipFile(workplace / "report.zip") as archive:
        names = " ".join(archive.namelist())
    for name in ("table1.html", "figure3.svg", "regret.html", "widths.svg"):
        assert name in names


def test_every_rule_takes_the_machine_and_timed_rules_the_whole_of_it():
    done = run_here("--dry-run", "--forceall", "all", "publish")
    assert done.returncode == 0, done.stderr[-2000:]
    seen = {}
    for block in re.split(r"\n(?=\[)", done.stdout):
        found = re.search(r"^(?:local)?rule (\w+):", block, re.M)
        if found and found[1] != "all":
            machine = re.search(r"machine=(\d+)", block)
            assert machine, f"{found[1]} does not take the resource machine"
            seen[found[1]] = int(machine[1])
    assert {rule for rule, machine in seen.items() if machine == 1000} == TIMED
    assert all(machine == 1 for rule, machine in seen.items() if rule not in TIMED)
    assert len(seen) >= 19


def planned(folder: Path, *arguments: str) -> Counter:
    """How many jobs a dry run has of each (rule, model); the model is None for rules that are of no model."""
    done = subprocess.run(snakemake(folder, "--dry-run", *arguments), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    jobs = Counter()
    for block in re.split(r"\n(?=\[)", done.stdout):
        rule = re.search(r"^(?:local)?rule (\w+):", block, re.M)
        model = re.search(r"wildcards: .*\bmodel=(\w+)", block)
        if rule:
            jobs[rule[1], model and model[1]] += 1
    return jobs


def test_a_run_has_the_jobs_of_all_three_models(workplace):
    jobs = planned(workplace)
    expected = {"logistic": 6 * 6, "pmf": 6 * 4, "bnn": 6 * 4 + 2}
    for model, n_tuned in expected.items():
        assert jobs["tune_sampler", model] == jobs["evaluate_sampler", model] == n_tuned
        assert jobs["sweep_grid", model] == 6
        for rule in ("find_map", "calibrate_cost", "estimate_discrepancies"):
            assert jobs[rule, model] == 1
    for model, n_chains in {"logistic": 2, "pmf": 2, "bnn": 0}.items():
        assert jobs["sample_nuts", model] == n_chains
        assert jobs["combine_nuts", model] == jobs["measure_widths", model] == (n_chains > 0)
    assert {rule for rule, _ in jobs} >= {"simulate_logistic", "prepare_movielens", "prepare_mnist"}


def test_smaller_grid_is_run_for_its_sampler_alone(workplace):
    done = subprocess.run(snakemake(workplace, "--dry-run"), capture_output=True, text=True, check=True)
    smaller = set(re.findall(r"output: (results/quick/tuning/\S+-smaller.json)", done.stdout))
    folder = "results/quick/tuning/bnn/sgnht"
    assert smaller == {f"{folder}/mamba-ksd-smaller.json", f"{folder}/grid-smaller.json"}


@pytest.mark.parametrize("model", ["logistic", "pmf", "bnn"])
def test_a_models_name_is_the_target_of_its_study_and_of_no_other(workplace, model):
    jobs = planned(workplace, model)
    assert {of_model for _, of_model in jobs} == {model, None}
    for rule in ("tune_sampler", "evaluate_sampler", "sweep_grid", "estimate_discrepancies"):
        assert jobs[rule, model] > 0
    assert min(jobs["make_table", None], jobs["make_figure", None]) >= 1


def test_a_model_without_a_reference_waits_for_none(workplace, tmp_path):
    overlay = tmp_path / "no-reference.yaml"
    overlay.write_text(
        "run: bare\nmodels: [pmf]\nper_model: {pmf: {reference: {nuts: false}, sweep: {prediction_draws: 5}}}\n"
    )
    jobs = planned(workplace, "--configfile", str(overlay))
    assert jobs["evaluate_sampler", "pmf"] == 24
    assert not {"sample_nuts", "combine_nuts", "measure_widths"} & {rule for rule, _ in jobs}


def test_simulated_data_need_no_download(workplace):
    jobs = planned(workplace, "--configfile", str(ROOT / "tests/tiny.yaml"))
    assert not {rule for rule, _ in jobs if rule.startswith("download")}
    assert jobs["prepare_movielens", None] == jobs["prepare_mnist", None] == 1


def test_the_limit_holds_whatever_resources_the_caller_gives():
    done = run_here("--dry-run", "--resources", "mem_mb=8000", "--default-resources", "runtime=10")
    assert done.returncode == 0
    assert "machine=1000" in done.stdout


def test_a_bad_configuration_is_one_line_before_any_work():
    done = run_here("--dry-run", "--config", "tuners=[mamba-kds]")
    assert done.returncode != 0
    lines = [line for line in done.stderr.splitlines() if "tuners" in line]
    assert len(lines) == 1
    assert "mamba-kds" in lines[0]
    assert "mamba-ksd" in lines[0]
    assert "Traceback" not in done.stderr


def test_readme_shows_the_published_run_and_nothing_else(tmp_path):
    shutil.copytree(ROOT / "results/published", tmp_path / "results/published")
    readme = shutil.copy(ROOT / "README.md", tmp_path / "README.md")
    show_results(Path(readme), tmp_path / "results/published")
    assert Path(readme).read_text() == (ROOT / "README.md").read_text()


def test_published_files_are_those_of_the_manifest(tmp_path):
    published = ROOT / "results/published"
    publish(published / "manifest.json", tmp_path / "again")
    names = {
        str(path.relative_to(tmp_path / "again"))
        for path in (tmp_path / "again").rglob("*")
        if path.is_file()
    }
    assert names == {str(path.relative_to(published)) for path in published.rglob("*") if path.is_file()}
    (tmp_path / "again/tables/table1.md").write_text("another")
    with pytest.raises(DataError, match=r"table1\.md"):
        publish(tmp_path / "again/manifest.json", tmp_path / "refused")
    assert not (tmp_path / "refused").exists()
