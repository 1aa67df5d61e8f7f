"""A job makes a task of its files, sets XLA's flags unless the user has, and keeps pieces under their fingerprints."""

import io
import os
import socket
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from sgtune.study.config.sections import fingerprint
from sgtune.study.pipeline import job as module
from sgtune.study.pipeline.job import Job
from sgtune.study.pipeline.parts import Parts, Task
from sgtune.support import machine
from sgtune.support.errors import DataError
from sgtune.support.files import read_json, write_json

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
    monkeypatch.setattr("sgtune.study.pipeline.parts.code_digest", lambda: "of another version")
    assert is_made(parts, depends_on=depends_on)
    assert parts.lines == [OTHER, TAKEN, OTHER, TAKEN, OTHER]


@pytest.mark.parametrize("changed", [{"seed": 2}, {"depends_on": {"inputs": "b"}}])
def test_the_pieces_of_a_task_depend_on_its_seed_and_inputs_and_on_what_they_name(parts, changed):
    task = Task(None, seed=1, parts=parts, depends_on={"inputs": "a"})
    assert [task.once("run", lambda i=i: i, arm=3) for i in range(2)] == [0, 0]
    assert [task._replace(**changed).once("run", lambda i=i: i, arm=i) for i in (3, 4)] == [3, 4]


@pytest.mark.parametrize("text", ["", '{"fingerprint": "a", "rec', "[]", '{"fingerprint": "a"}', "\x00"])
def test_a_damaged_file_is_made_again(parts, text):
    is_made(parts)
    (path,) = parts.folder.iterdir()
    path.write_text(text)
    assert is_made(parts)
    assert not is_made(parts)
    assert parts.lines == [OTHER, TAKEN]


def test_of_a_piece_that_fails_of_a_cleared_job_and_without_a_folder_nothing_is_kept(parts):
    with pytest.raises(ZeroDivisionError):
        parts.once("grid", {"seed": 1}, lambda: 1 / 0)
    for own in (parts, Parts()):
        assert is_made(own)
        own.clear()
        assert is_made(own)
    assert parts.lines == []


SETTINGS = {"regret": {"seconds": [1, 2]}, "grids": {"n_leapfrogs": [2]}}
OF_COSTS, OF_REFERENCE = {"calibration": {"seconds": 1}}, {"reference": {"n_draws": 100}}
ROW = {"sampler": "sgld", "batch_size": 10, "n_leapfrog": None, "seconds_per_step": 0.5}


class Named(SimpleNamespace):
    """The inputs or the parameters of a job, as Snakemake names them."""

    def get(self, name, default=None):
        return getattr(self, name, default)

    def __iter__(self):
        return iter(self.__dict__.values())


def rule_with(inputs: dict, log=(), **params) -> SimpleNamespace:
    """What Snakemake gives a script."""
    whole = {"settings": SETTINGS, "cost_settings": OF_COSTS, "reference_settings": OF_REFERENCE, **params}
    named = {
        "input": Named(**inputs),
        "params": Named(**whole),
        "wildcards": Named(model="toy", sampler="sgld"),
    }
    about = {"config": {"run": "trial", "seed": 3}, "rule": "a_rule", "threads": 1}
    return SimpleNamespace(**about, **named, output=[], log=log)


def job_with(inputs: dict, **params) -> Job:
    return Job(rule_with(inputs, **params))


@pytest.fixture
def files(tmp_path):
    """The files of a cost table and of a reference, by name."""
    moments = {"mean": [0.0, 1.0], "sd": [1.0, 2.0], "n_draws": 100, "config": fingerprint(OF_REFERENCE)}
    records = {"cost": {"rows": [ROW], "config": fingerprint(OF_COSTS)}, "reference": moments}
    for name, record in records.items():
        write_json(tmp_path / f"{name}.json", record)
    return {name: str(tmp_path / f"{name}.json") for name in records}


def test_a_task_is_of_the_files_that_a_rule_gives_in_all_their_forms(files, monkeypatch):
    job = job_with({"cost": files["cost"], "reference": [files["reference"]], "ood": []})
    assert [job.file(name) for name in ("cost", "reference", "ood", "data")] == [*files.values(), None, None]
    loaded = []
    monkeypatch.setattr(Job, "load_model", lambda self, name: loaded.append(name))
    task = job.task()
    assert task.depends_on["settings"] == SETTINGS
    assert task.depends_on["inputs"].keys() == {*files.values()}
    assert (task.sampler, task.grid, task.seed) == ("sgld", {"n_leapfrogs": [2]}, 3)
    assert task.cost.lookup("sgld", 10, None) == 0.5
    np.testing.assert_array_equal(task.reference.sd, [1.0, 2.0])
    without = job_with({"cost": [], "reference": []})
    assert without.reference_record() is None
    task = without.task("other", sampler="mala", grid={})
    assert (task.sampler, task.grid, task.cost, task.reference) == ("mala", {}, None, None)
    assert loaded == [None, "other"]


def test_pieces_depend_on_the_contents_of_inputs_and_not_on_when_they_were_made(files, tmp_path, monkeypatch):
    monkeypatch.setattr(Job, "load_model", lambda self, name: None)
    given = {"reference": [files["reference"]], "map": [str(tmp_path / "map.npz")]}
    seen = []
    for made, draws, mode in (
        ("first", 100, b"a"),
        ("second", 100, b"a"),
        ("third", 99, b"a"),
        ("third", 99, b"b"),
    ):
        write_json(
            given["reference"][0], read_json(given["reference"][0]) | {"provenance": made, "n_draws": draws}
        )
        (tmp_path / "map.npz").write_bytes(mode)
        seen.append(job_with(given).task().depends_on)
    assert seen[0] == seen[1] != seen[2] != seen[3]


def test_a_file_of_another_configuration_is_refused(files):
    job = job_with(files, cost_settings={"seed": 4}, reference_settings={"seed": 4})
    for read in (partial(job.cost_table, None), job.reference_record):
        with pytest.raises(DataError, match="another configuration"):
            read()


def test_bad_input_ends_a_job_with_one_line_for_the_user_and_keeps_its_pieces(
    files, tmp_path, monkeypatch, capfd
):
    monkeypatch.setattr(os, "_exit", sys.exit)
    write_json(tmp_path / "parts/piece.json", {})
    rule = rule_with(files, parts=str(tmp_path / "parts"), reference_settings={"seed": 4})
    with pytest.raises(SystemExit, match="1"), module.job(rule) as this:
        this.reference_record()
    (line,) = [line for line in capfd.readouterr().err.splitlines() if line.startswith("Error in a_rule: ")]
    assert "reference.json: made with another configuration" in line
    assert (tmp_path / "parts/piece.json").exists()


WORKS = """
import sys
from sgtune.study.pipeline.job import _claim
_claim("results/trial/logs/job.log")
print("ready", flush=True)
sys.stdin.read()
"""


def test_a_job_does_not_start_while_another_process_makes_its_results(tmp_path, monkeypatch, capfd):
    """As one does whose Snakemake was killed on a cluster; the next Snakemake has deleted its log."""
    rule = rule_with({}, log=["results/trial/logs/job.log"])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SLURM_JOB_ID", "45")
    monkeypatch.setenv("SLURM_CLUSTER_NAME", "large")
    monkeypatch.setattr(module, "PATIENCE_ON_CLUSTER", 0)
    monkeypatch.setattr(os, "_exit", sys.exit)
    monkeypatch.setattr(sys, "stdout", sys.stdout)
    monkeypatch.setattr(sys, "stderr", sys.stderr)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", WORKS], text=True, **pipes) as other:
        assert other.stdout.readline() == "ready\n"
        with pytest.raises(SystemExit, match="1"), module.job(rule):
            pytest.fail("a second job began")
        (line,) = {
            text for text in capfd.readouterr().err.splitlines() if text.startswith("Error in a_rule: ")
        }
        owner = f"process {other.pid} on {socket.gethostname()}, Slurm job 45 of large"
        assert f"another process makes the same results ({owner})" in line
        other.kill()
    with module.job(rule):
        pass
    assert Path(rule.log[0]).read_text("utf-8").startswith(f"process {os.getpid()} on ")
    (lock,) = module.LOCKS.iterdir()
    assert (
        lock.read_text("utf-8") == f"process {os.getpid()} on {socket.gethostname()}, Slurm job 45 of large\n"
    )


def test_a_job_refuses_an_input_that_is_not_what_its_job_wrote(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "_exit", sys.exit)
    path = "results/trial/tuning.json"
    writer, reader = rule_with({}), rule_with({"tuning": path})
    writer.output, writer.rule = [path], "another_rule"
    with module.job(writer) as this:
        this.write(path, {"rows": []})
    with module.job(reader):
        pass
    write_json(path, {"rows": [1]})
    with pytest.raises(SystemExit, match="1"), module.job(reader):
        pytest.fail("it began")
    assert f"Error in a_rule: {path}: of another configuration, or changed" in capfd.readouterr().err


def test_a_terminal_without_the_letters_of_a_line_shows_the_others(monkeypatch):
    terminal = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
    monkeypatch.setattr(sys, "__stdout__", terminal)
    job_with({}).show("\N{GREEK SMALL LETTER XI}: 2 \N{PLUS-MINUS SIGN} 1")
    assert terminal.buffer.getvalue().decode("latin-1") == "?: 2 \N{PLUS-MINUS SIGN} 1\n"


def test_a_result_has_the_fingerprint_of_its_settings_and_its_origin(tmp_path):
    job = job_with({}, parts=str(tmp_path / "parts"))
    assert job.parts.folder == tmp_path / "parts"
    assert job_with({}).parts.folder is None
    job.write(str(tmp_path / "result.json"), {"rows": []})
    found = read_json(tmp_path / "result.json")
    assert (found["run"], found["config"]) == ("trial", fingerprint(SETTINGS))
    origin = found["provenance"]
    assert (origin["rule"], origin["seed"]) == ("a_rule", 3)
    assert origin["process_seconds"] >= origin["startup_seconds"] > 0
    assert job.read(str(tmp_path / "result.json"), SETTINGS) == found


STARTS = """
from types import SimpleNamespace
from sgtune.study.pipeline.job import job
with job(SimpleNamespace(config={"run": "trial", "seed": 3}, rule="a_rule", log=[], threads=1, params={}, input={},
                         wildcards={}, output=[])):
    import jax
    jax.numpy.zeros(1) + 1
"""


def test_a_platform_that_jax_cannot_start_is_one_line_that_names_the_variable(tmp_path):
    environment = os.environ | {"JAX_PLATFORMS": "abacus"}
    done = subprocess.run(
        [sys.executable, "-c", STARTS], env=environment, cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 1
    # Without a log of its own, the line is on the terminal twice.
    assert {line.partition(": ")[2] for line in done.stderr.splitlines()} == {
        "JAX_PLATFORMS: 'abacus' does not start here; it must name what the machine has, such as cpu"
    }


LEVEL, PARTS = "--xla_backend_optimization_level=", "--xla_cpu_parallel_codegen_split_count="


@pytest.mark.parametrize(
    ("jaxlib", "named", "used"),
    [
        ("0.10.2", "", {LEVEL + "1", PARTS + "1"}),
        ("0.12.0.1", "", {LEVEL + "1", PARTS + "1"}),
        ("0.13.0.dev1", "", {LEVEL + "1"}),
        ("0.10.2", LEVEL + "3", {LEVEL + "3", PARTS + "1"}),
        ("0.10.2", PARTS + "4", {LEVEL + "1", PARTS + "4"}),
        (None, "", set()),
    ],
)
def test_xla_has_the_flags_that_it_knows_unless_the_user_names_others_or_there_is_an_accelerator(
    monkeypatch, jaxlib, named, used
):
    monkeypatch.setattr(module, "version", {"jaxlib": jaxlib or "0.10.2"}.get)
    monkeypatch.setenv("XLA_FLAGS", named)
    # With any plugin of JAX, unless the user names the CPU.
    monkeypatch.setattr(machine, "entry_points", lambda group: [group])
    monkeypatch.setenv("JAX_PLATFORMS", "cpu" if jaxlib else "")
    module.set_up_xla(1, Path("cache"))
    assert set(os.environ["XLA_FLAGS"].split()) == used


def test_threads_are_the_rules_and_programs_are_shared_on_one_kind_of_processor(monkeypatch, tmp_path):
    folders = []
    for number, processor in ((3, "avx2"), (2, "avx2"), (2, "avx512")):
        monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)
        monkeypatch.delenv("PJRT_NPROC", raising=False)
        monkeypatch.setattr(module, "of_processor", lambda *_, own=processor: own)
        # The second call changes nothing, as a user's own variables would.
        for threads, cache in ((number, tmp_path), (number + 1, tmp_path / "other")):
            module.set_up_xla(threads, cache)
            assert os.environ["PJRT_NPROC"] == str(number)
        folders.append(Path(os.environ["JAX_COMPILATION_CACHE_DIR"]))
    assert [folder.parent for folder in folders] == [tmp_path] * 3
    assert folders[0] == folders[1] != folders[2]
