"""The workflow as a user runs it: a small study is killed three times, finished and reported.

One run serves all tests. A job is killed by itself, right after it has written a certain file, so that no test depends
on how fast the machine is.
"""

import json
import os
import time
import zipfile
from datetime import datetime, timedelta
from pathlib import Path

import psutil
import pytest
from config_files import ROOT, snakemake

from sgtune.study.ground_truth.draws import read_draws
from sgtune.support import files

pytestmark = pytest.mark.slow

OVERLAY = """
run: killed
models: [logistic]
samplers: [sgld]
tuners: [mamba-ksd, heuristic]
reference: {chains: 2, n_draws: 120, block: 20}
artifacts: [table1, regret, figure3]
"""
TUNED, JUDGED = (f"results/killed/{kind}/logistic/sgld.json" for kind in ("tuning", "evaluation"))
REFERENCE = "results/killed/reference/logistic"

ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
"""A locale in which a text file that is read or written by the locale's encoding fails."""

KILLER = """
import os, pathlib, re, signal, time

replace, written = os.replace, []
pattern, number, victim = os.environ["TEST_KILL"].split()

def replace_and_die(source, target, **options):
    replace(source, target, **options)
    if re.search(pattern, str(target)):
        written.append(target)
        if len(written) == int(number):
            if victim == "job":
                os.kill(os.getpid(), signal.SIGKILL)
            pathlib.Path(os.environ["TEST_KILLED"]).write_text(str(os.getpid()))
            os.kill(int(os.environ["SGTUNE_WORKFLOW_PROCESS"].split()[0]), signal.SIGKILL)
            time.sleep(3600)

os.replace = replace_and_die
"""
"""A `sitecustomize` for the jobs: after a file whose path has the pattern was written so many times, the job gets a
SIGKILL; or Snakemake does, while the job has an hour of work left."""


def study(folder: Path, *arguments: str, overlay: str = "killed.yaml", **environment: str):
    """The finished command that runs the small study in ``folder``."""
    overlays = ["--configfile", str(ROOT / "tests/tiny.yaml"), str(folder / overlay)]
    return snakemake(
        folder, *arguments, "--rerun-incomplete", *overlays, env=os.environ | ASCII | environment
    )


def killed(folder: Path, pattern: str, target: str, *, number: int = 1, victim: str = "job"):
    """The command up to ``target``, of which a job that has written a file with ``pattern`` is killed, or Snakemake."""
    (folder / "killer").mkdir(exist_ok=True)
    (folder / "killer/sitecustomize.py").write_text(KILLER)
    paths = filter(None, [str(folder / "killer"), os.environ.get("PYTHONPATH")])
    variables = {"TEST_KILL": f"{pattern} {number} {victim}", "TEST_KILLED": str(folder / "pid")}
    return study(folder, target, PYTHONPATH=os.pathsep.join(paths), **variables)


def whole(folder: Path, pattern: str) -> dict[Path, int]:
    """When the files of ``pattern`` below ``folder`` were written; a file still being written begins with a dot."""
    return {path: path.stat().st_mtime_ns for path in folder.rglob(pattern) if not path.name.startswith(".")}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A folder with nothing but the configuration of a small study."""
    folder = tmp_path_factory.mktemp("workplace")
    (folder / "config").symlink_to(ROOT / "config")
    (folder / "killed.yaml").write_text(OVERLAY)
    return folder


@pytest.fixture(scope="module")
def run(folder) -> dict:
    """SIGKILL to Snakemake in a NUTS block, to a job in a tuner and in an evaluation run; then the study to its end."""
    results = folder / "results/killed"
    found = {"results": results}
    nuts = f"{REFERENCE}/nuts-0.nc"
    found["snakemake"] = killed(folder, r"checkpoints/0/[^.]", nuts, number=3, victim="snakemake")
    orphan = int((folder / "pid").read_text("utf-8"))
    while psutil.pid_exists(orphan) and psutil.Process(orphan).status() != psutil.STATUS_ZOMBIE:
        time.sleep(0.1)
    found["locked"] = study(folder, nuts)
    found["unlocked"] = study(folder, "--unlock")
    found["stopped"] = [(found["snakemake"].returncode != 0, (folder / nuts).exists())]
    for pattern, target in (("unfinished/tuning/", TUNED), ("unfinished/evaluation/", JUDGED)):
        stopped = killed(folder, pattern, target)
        found["stopped"].append((stopped.returncode != 0, (folder / target).exists()))
    found["blocks"] = whole(results / "reference/logistic/checkpoints", "*.npz")
    parts = whole(results / "unfinished", "*.json")
    found["parts"] = {path.relative_to(results / "unfinished").parts[0] for path in parts}
    found["before"] = {path: at for path, at in whole(results, "*.json").items() if path not in parts}
    found["finished"] = study(folder, "all", "results/killed/cost/table.json")
    assert found["finished"].returncode == 0, found["finished"].stderr[-3000:]
    return found


def test_a_killed_run_goes_on_and_loses_at_most_one_block_tuner_or_run(run):
    assert run["stopped"] == [(True, False)] * 3, "a killed job leaves nothing that looks whole"
    assert len(run["blocks"]) >= 3
    for path, written in (run["blocks"] | run["before"]).items():
        assert path.stat().st_mtime_ns == written, f"{path} was made again"
    assert "evaluation" in run["parts"]
    logs = run["results"] / "logs"
    assert "continues after iteration" in (logs / "sample_nuts/logistic-0.log").read_text("utf-8")
    assert "again" not in (logs / "sample_nuts/logistic-1.log").read_text("utf-8")
    assert "kept from an unfinished job" in (logs / "tune_sampler/logistic-sgld.log").read_text("utf-8")
    assert "kept from an unfinished job" in (logs / "evaluate_sampler/logistic-sgld.log").read_text("utf-8")
    assert not whole(run["results"] / "unfinished", "*.json")


def test_jobs_end_with_a_snakemake_that_is_killed_and_the_next_start_says_what_to_do(run):
    """The fixture waits until the job has ended: it had an hour of work left."""
    assert run["snakemake"].returncode == -9
    assert run["locked"].returncode != 0
    assert "--unlock" in run["locked"].stdout + run["locked"].stderr
    assert run["unlocked"].returncode == 0, run["unlocked"].stderr[-1000:]


def test_timed_jobs_run_alone(run):
    results, intervals = run["results"], []
    origins = {
        path: json.loads(path.read_text("utf-8")).get("provenance") for path in whole(results, "*.json")
    }
    nuts = results / "reference/logistic/nuts-1.nc"
    origins[nuts] = json.loads(read_draws(nuts).posterior.attrs["provenance"])
    for path, origin in origins.items():
        if origin is not None and path.parent.name != "tables":
            start = datetime.fromisoformat(origin["created"])
            kind = path.relative_to(results).parts[0]
            is_timed = kind in ("cost", "tuning") and path.name != "table.json"
            intervals.append((start, start + timedelta(seconds=origin["seconds"]), is_timed, path))
    timed = [interval for interval in intervals if interval[2]]
    assert len(timed) == 1 + 1
    for start, end, _, path in timed:
        beside = [other for s, e, _, other in intervals if other != path and s < end and e > start]
        assert not beside, f"{path} ran beside {beside}"


def test_artifacts_are_those_requested_and_say_which_run_made_them(run):
    folder = run["results"] / "mamba"
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    assert {path.stem for path in (folder / "tables").iterdir()} == {"table1", "regret"}
    assert {path.name for path in (folder / "figures").iterdir()} == {
        f"figure3.{form}" for form in ("svg", "pdf", "html")
    }
    for name in manifest["files"]:
        if Path(name).suffix in (".md", ".html", ".svg", ".json"):
            assert "killed" in (folder / name).read_text("utf-8"), f"{name} does not name its run"


def test_a_result_of_another_configuration_is_refused_by_name(run, folder):
    """And once it is put right, as old as it was, the run is made whole again."""
    judged, table = folder / JUDGED, "results/killed/mamba/tables/table1.html"
    own, times = judged.read_text("utf-8"), (judged.stat().st_atime_ns, judged.stat().st_mtime_ns)
    judged.write_text(json.dumps(json.loads(own) | {"config": "0" * 64}))
    done = study(folder, table)
    assert done.returncode != 0
    lines = [line for line in (done.stdout + done.stderr).splitlines() if "another configuration" in line]
    assert lines, (done.stdout + done.stderr)[-2000:]
    assert JUDGED in lines[0]
    assert not (folder / table).exists()
    judged.write_text(own)
    os.utime(judged, ns=times)
    assert study(folder, "all").returncode == 0
    assert "are as its manifests have them" in study(folder, "verify").stdout


def test_the_report_has_the_artifacts_by_their_titles(run, folder):
    done = study(folder, "--report", "report.zip")
    assert done.returncode == 0, done.stderr[-2000:]
    with zipfile.ZipFile(folder / "report.zip") as archive:
        names = " ".join(archive.namelist())
        texts = [
            archive.read(name).decode() for name in archive.namelist() if name.endswith((".html", ".js"))
        ]
    for name in ("table1.html", "figure3.html", "regret.html"):
        assert name in names
    for title in ("Table 1. Logistic regression: accuracy of the tuned samplers", "Regret of the tuners"):
        assert title in "".join(texts)


def test_what_a_killed_job_has_left_is_removed(folder, run):
    # No machine has a process of that number.
    left = folder / f"results/killed/.data-{files._host()}-{2**22 + 1}-0123abcd.json"
    left.touch()
    assert study(folder, "table1", "--forcerun", "make_table").returncode == 0
    assert not left.exists()
