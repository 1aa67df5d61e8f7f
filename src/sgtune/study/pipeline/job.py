"""The frame of every script of the workflow, around its one call into the library: its log, its files, and how XLA
compiles and runs its programs."""

import fcntl
import logging
import os
import re
import signal
import sys
import threading
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from socket import gethostname
from tempfile import TemporaryFile
from time import perf_counter, sleep
from typing import TYPE_CHECKING, TextIO
from zlib import crc32

import sgtune
from sgtune.study.config.sections import fingerprint
from sgtune.study.pipeline.parts import Parts, Task
from sgtune.study.pipeline.provenance import Provenance, check_inputs, keep_sums, of_processor
from sgtune.support.errors import DataError, InputError
from sgtune.support.files import file_sha256, full_disk_named, read_json, write_json
from sgtune.support.machine import OPTIMISATION, only_cpu

if TYPE_CHECKING:
    from sgtune.model import Model
    from sgtune.sampling.budget import CostTable

JUDGED_BY = ("data", "map", "laplace", "ood", "cost", "reference")
"""The input files of which all pieces of a job are made."""

LOCKS = Path("results", ".cache", "locks")
PATIENCE, PATIENCE_ON_CLUSTER = 10.0, 120.0
"""Seconds after which a job does not wait any longer for another one that makes the same results: one whose Snakemake
was killed ends within two, and a file system forgets the locks of a node that failed within some ninety."""

SLURM_JOB = "SLURM_JOB_ID"

WORKFLOW_PROCESS = "SGTUNE_WORKFLOW_PROCESS"
"""The environment variable that names the process of Snakemake."""


def prepare_jobs() -> None:
    """Environment variables for jobs: where they find sgtune, and the process with which they end.

    An environment of --sdm conda holds what sgtune depends on; it finds sgtune itself where it is found here.
    """
    os.environ[WORKFLOW_PROCESS] = _process(os.getpid()) or ""
    here = str(Path(sgtune.__file__).parents[1])
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [here, os.environ.get("PYTHONPATH")]))


def exit_unless_startable(words: Sequence[str] | None = None) -> None:
    """One line and exit status 1 where Snakemake would print a traceback before it reads the Snakefile: a file of
    ``--configfile`` is missing, or the folder of its cache cannot be written.

    The profile calls this, because Snakemake reads profiles first. ``words``: the command's, those of this process.
    """
    from snakemake.common import get_appdirs

    parser = ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--configfile", "--configfiles", nargs="+", action="extend", default=[])
    for name in parser.parse_known_args(words)[0].configfile:
        if not Path(name).is_file():
            sys.exit(f"Error: --configfile: {name!r} is not a file (targets stand before --configfile)")
    try:
        folder = Path(get_appdirs().user_cache_dir, "snakemake")
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        name = "XDG_CACHE_HOME" if os.environ.get("XDG_CACHE_HOME") else "HOME"
        sys.exit(
            f"Error: {name}: {os.environ.get(name)!r} cannot be written ({error.strerror}), and Snakemake's cache is "
            "below it; XDG_CACHE_HOME may name another folder"
        )


class Job:
    """One run of one script: its log, its provenance, and the files it reads and writes.

    Attributes:
        parts: its finished pieces, in the folder that the rule names, if it names one. `job` deletes them at the end of
            the script.
        startup: seconds from the start of the process until the model was loaded (0 in jobs without one).
    """

    def __init__(self, snakemake):
        self.began = perf_counter()
        self.run = snakemake.config["run"]
        self.seed = snakemake.config["seed"]
        self.rule = snakemake.rule
        self.files, self.params, self.wildcards = snakemake.input, snakemake.params, snakemake.wildcards
        self.settings = self.params.get("settings")
        self.parts = Parts(self.params.get("parts"), self.report)
        self.provenance = Provenance()
        self.startup = 0.0

    def load_model(self, name: str | None = None) -> "Model":
        """The model ``name``, or that of the job's wildcard, with the input files ``data`` and ``ood``. A user's is in
        coordinates of its mode, if the job has that among its inputs."""
        from sgtune.study.posteriors import load_model, own
        from sgtune.support.machine import watch_compilation

        watch_compilation()
        folder = Path(self.file("data")).parent
        model = load_model(name or self.wildcards.model, folder, ood=self.file("ood"))
        if model.name == own.NAME and self.file("map") is not None:
            try:
                model = own.in_coordinates(model)
            except InputError as problem:
                self.report(f"{problem}; without a preconditioner")
        self.startup = self.seconds_since_start()
        return model

    def task(self, model: str | None = None, sampler: str = "", grid: dict | None = None) -> Task:
        """The work on a sampler, by default those of the job's wildcards, and with the arms of its settings.

        Its pieces depend on the settings, and on the contents of those of `JUDGED_BY` that the job has.
        """
        from sgtune.metrics import Reference

        loaded, record = self.load_model(model), self.reference_record()
        paths = [path for name in JUDGED_BY if (path := self.file(name)) is not None]
        return Task(
            model=loaded,
            sampler=sampler or getattr(self.wildcards, "sampler", ""),
            grid=(self.settings or {}).get("grids", {}) if grid is None else grid,
            cost=self.cost_table(loaded),
            reference=None if record is None else Reference.from_record(record),
            seed=self.seed,
            parts=self.parts,
            depends_on={"settings": self.settings, "inputs": {path: _sum_of(path) for path in paths}},
        )

    def file(self, name: str) -> str | None:
        """The input file ``name``; None where the rule has none for this job, such as a model without a reference."""
        found = self.files.get(name, [])
        return found if isinstance(found, str) else next(iter(found), None)

    def cost_table(self, model: "Model") -> "CostTable | None":
        """The costs of ``model`` by the input file ``cost``, None without one: a table that the run was given, or the
        result of a rule, measured with the parameter ``cost_settings``."""
        from sgtune.sampling.budget import CostTable, read_costs

        path = self.file("cost")
        if path is None:
            return None
        if "models" in read_json(path):
            return read_costs(path, model.name, model.n_data, model.dimension)
        return CostTable.from_rows(self.read(path, self.params.cost_settings)["rows"])

    def reference_record(self) -> dict | None:
        """The input file ``reference``, by the rule combine_nuts; None if NUTS did not sample the posterior."""
        path = self.file("reference")
        return None if path is None else self.read(path, self.params.reference_settings)

    def report(self, line: str) -> None:
        """One line of progress, in the job's log."""
        logging.getLogger("sgtune").info(line)

    def warn(self, line: str) -> None:
        """One line for the user: in the job's log and on the terminal."""
        logging.getLogger("sgtune").warning("WARNING: %s", line)
        print(f"Warning in {self.rule}: {line}", file=sys.__stderr__, flush=True)

    def seconds_since_start(self) -> float:
        """Seconds since this process was started: imports included."""
        process = _process(os.getpid())
        if process is None:
            return perf_counter() - self.began
        uptime = float(Path("/proc/uptime").read_text("utf-8").split()[0])
        return uptime - int(process.split()[1]) / os.sysconf("SC_CLK_TCK")

    def read(self, path: str, settings: dict | None = None) -> dict:
        """A result file, made with ``settings`` (not checked if None)."""
        record = read_json(path)
        if settings is not None and record.get("config") != fingerprint(settings):
            raise DataError(
                f"{path}: made with another configuration ({record.get('config')}, this run has "
                f"{fingerprint(settings)}); delete it or rerun its rule with --forcerun"
            )
        return record

    def write(self, path: str, record: dict) -> None:
        """A result file, with the run, the configuration's fingerprint and the provenance."""
        config = fingerprint(self.settings) if self.settings is not None else None
        write_json(path, {**record, "run": self.run, "config": config, "provenance": self.account()})

    def account(self) -> dict:
        """The provenance of a file that is written now, with the rule, the seconds of the whole process, and the
        seconds of start-up (until the model was loaded, or the script began) and of compilation."""
        from sgtune.support.machine import compile_seconds

        now = self.seconds_since_start()
        return {
            "run": self.run,
            "seed": self.seed,
            **self.provenance.finish(),
            "rule": self.rule,
            "process_seconds": round(now, 3),
            "startup_seconds": round(self.startup or now - (perf_counter() - self.began), 3),
            "compile_seconds": round(compile_seconds(self.began, perf_counter()), 3),
        }

    def show(self, line: str) -> None:
        """One line of requested output: in the job's log, and on the terminal, with "?" for letters that it lacks."""
        self.report(line)
        code = sys.__stdout__.encoding
        print(line.encode(code, "replace").decode(code), file=sys.__stdout__, flush=True)


@contextmanager
def job(snakemake) -> Iterator[Job]:
    """Around a script: log opened first, compiled programs shared with other jobs, bad input as one line."""
    try:
        if snakemake.log:
            with full_disk_named(snakemake.log[0]):
                _claim(snakemake.log[0])
                _open_log(snakemake.log[0])
        _end_with_workflow()
        set_up_xla(snakemake.threads, Path("results", ".cache", "jax"))
        this = Job(snakemake)
        check_inputs(this.run, snakemake.input)
        yield this
        this.parts.clear()
        # Without sums nobody would see a change of the results, which exist, and may have taken hours.
        with suppress(OSError):
            keep_sums(this.run, "-".join([this.rule, *snakemake.wildcards]), snakemake.output)
    except Exception as error:
        line = str(error) if isinstance(error, InputError) else _fault_of_platform()
        if line is None:
            raise
        # For the user, on the terminal, and in the log, which a full disk does not take.
        print(f"Error in {snakemake.rule}: {line}", file=sys.__stderr__, flush=True)
        with suppress(OSError):
            print(f"Error: {line}", file=sys.stderr, flush=True)
        os._exit(1)


def _sum_of(path: str) -> str:
    """A checksum of an input file; of a result without its provenance: what is made again is the same input."""
    if not path.endswith(".json"):
        return file_sha256(path)
    return fingerprint({name: value for name, value in read_json(path).items() if name != "provenance"})


def _fault_of_platform() -> str | None:
    """The line for a JAX_PLATFORMS that JAX cannot start, by which any call fails, with many words; None if it can."""
    named = os.environ.get("JAX_PLATFORMS")
    if not named or "jax" not in sys.modules:
        return None
    try:
        sys.modules["jax"].devices()
    except (AssertionError, RuntimeError):
        return f"JAX_PLATFORMS: {named!r} does not start here; it must name what the machine has, such as cpu"
    return None


def _end_with_workflow(every: float = 1.0) -> None:
    """End this process when Snakemake has ended, even by a SIGKILL, after which it would run on as an orphan."""
    workflow = os.environ.get(WORKFLOW_PROCESS)
    if not workflow:
        return

    def watch() -> None:
        while _process(int(workflow.partition(" ")[0])) == workflow:
            sleep(every)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()


def _process(pid: int) -> str | None:
    """A process, identified by its number and its start, in ticks since the machine's, because numbers are reused; None
    if there is none, or only a zombie, or no /proc."""
    try:
        state, *fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return None
    return None if state == "Z" else f"{pid} {fields[18]}"


def _claim(log: str) -> None:
    """Lock the job's results until this process ends: on a cluster a job runs on when Snakemake is killed, and a second
    one would write into the same files.

    The locks are files in `LOCKS`, named after the jobs' logs, and name their owners. They are none of the job's own
    files, because a Snakemake that is started again deletes these.
    """
    path = LOCKS / re.sub(r"[^A-Za-z0-9.=-]+", "_", log)
    path.parent.mkdir(parents=True, exist_ok=True)
    file = open(path, "a", encoding="utf-8")  # noqa: SIM115 - open until the job ends
    until = perf_counter() + (PATIENCE_ON_CLUSTER if SLURM_JOB in os.environ else PATIENCE)
    while not _locked(file):
        if perf_counter() > until:
            owner = path.read_text("utf-8").strip()
            raise InputError(f"another process makes the same results ({owner}); wait for it or cancel it")
        sleep(0.2)
    file.truncate(0)
    print(_name_of_process(), file=file, flush=True)
    os.fsync(file.fileno())  # other machines of a shared file system read it
    _held.append(file)


_held: list[TextIO] = []
"""Locks, which would end with the last reference to their files."""


def _name_of_process() -> str:
    number, cluster = (os.environ.get(name) for name in (SLURM_JOB, "SLURM_CLUSTER_NAME"))
    return f"process {os.getpid()} on {gethostname()}" + (
        f", Slurm job {number} of {cluster}" if number else ""
    )


def _open_log(path: str) -> None:
    """Send standard output, standard error and logging to the job's log file, line by line; the first names the
    process."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    log = open(path, "w", buffering=1, encoding="utf-8")  # noqa: SIM115 - open until the job ends
    print(_name_of_process(), file=log)
    sys.stdout = sys.stderr = log
    logging.basicConfig(
        stream=log, level=logging.WARNING, format="%(asctime)s %(message)s", datefmt="%H:%M:%S"
    )
    logging.getLogger("sgtune").setLevel(logging.INFO)


def _locked(file: TextIO) -> bool:
    """Whether this process has the lock of ``file``, on all machines of a shared file system; also where there are no
    locks."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


def set_up_xla(n_threads: int, cache: Path) -> None:
    """How XLA compiles and runs the job's programs, unless the user's environment says otherwise.

    LLVM's first level of optimisation: programs compile in half the time, and run as fast (measured for all three
    models), because their inner loops are products of matrices, gathers and random bits. A program is compiled in one
    part. Parts would be compiled on several threads, which the other jobs use: together five jobs of the default run
    take 4% less time (measured on two cores; not measured for a job that runs alone). XLA does not start if it does
    not know a flag, and a later XLA may drop this one, so it is set only where it is known.

    As many threads as the job's rule has. With one for every core in each of two jobs that run beside each other,
    steps of cheap arithmetic take up to 1.7 times as long (measured on two cores).

    JAX's persistent ``cache``: the hundredth job does not compile what the first one did. There is one folder for each
    kind of processor: on a shared file system, programs for another processor may not run.
    """
    flags = os.environ.get("XLA_FLAGS", "")
    # The flags are for CPUs.
    wanted = {OPTIMISATION: 1} if only_cpu() else {}
    if wanted and tuple(int(number) for number in version("jaxlib").split(".")[:2]) < (0, 13):
        wanted["xla_cpu_parallel_codegen_split_count"] = 1
    ours = [f"--{name}={number}" for name, number in wanted.items() if name not in flags]
    os.environ["XLA_FLAGS"] = " ".join([flags, *ours]).strip()
    os.environ.setdefault("PJRT_NPROC", str(n_threads))
    folder = cache / f"{crc32(of_processor('flags', 'Features').encode()):08x}"
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(folder.resolve()))
    # Small programs are cached, too: a job has dozens, and each takes a twentieth of a second.
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")
