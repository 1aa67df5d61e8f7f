"""What every script of the workflow does around its one call into the library."""

import logging
import os
import platform
import shutil
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter, sleep
from typing import TYPE_CHECKING
from zlib import crc32

from sgtune.artifacts.provenance import collect
from sgtune.config import fingerprint
from sgtune.errors import DataError, InputError
from sgtune.files import atomic_write, file_sha256, read_json, write_json

if TYPE_CHECKING:
    from sgtune.budget import CostTable
    from sgtune.models.base import Model

__all__ = [
    "Job",
    "artifact_files",
    "job",
    "open_log",
    "prepare_jobs",
    "publish",
    "show_results",
]

WORKFLOW_PROCESS = "SGTUNE_WORKFLOW_PROCESS"
"""The environment variable that names the process of Snakemake."""

OPTIMISATION = "xla_backend_optimization_level"

RESULTS_BEGIN = "<!-- results: written by the rule `publish`, from the artifacts -->"
RESULTS_END = "<!-- end of results -->"
SHOWN = (
    *("table1", "table2", "table3", "figure3", "figure4", "figure5"),
    *("regret", "widths", "ood", "tuning_time"),
)
"""What README shows; the rest is a link away."""


def prepare_jobs() -> None:
    """What jobs must know of this process: where they find sgtune, and with whom they end.

    An environment of --sdm conda holds what sgtune depends on; it finds sgtune itself where it is found here.
    """
    os.environ[WORKFLOW_PROCESS] = _process(os.getpid()) or ""
    here = str(Path(__file__).parents[1])
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [here, os.environ.get("PYTHONPATH")]))


class Job:
    """One run of one script: its log, its provenance, and the files it reads and writes.

    Attributes:
        startup: seconds from the start of the process until the model was loaded (0 in jobs without one).
    """

    def __init__(self, snakemake):
        self.began = perf_counter()
        self.run = snakemake.config["run"]
        self.seed = snakemake.config["seed"]
        self.rule = snakemake.rule
        self.settings = getattr(snakemake.params, "settings", None)
        self.provenance = collect(run=self.run, seed=self.seed)
        self.startup = 0.0

    def load_model(self, name: str, data: str, ood: str | None = None) -> "Model":
        """The model ``name`` with its data, of which ``data`` is the file that the rules name."""
        from sgtune.compilation import watch_compilation
        from sgtune.models import load_model

        watch_compilation()
        model = load_model(name, Path(data).parent, ood=ood)
        self.startup = self.seconds_since_start()
        return model

    def cost_table(self, path: str, model: "Model", measured_with: dict | None = None) -> "CostTable":
        """The costs of ``model``: of the table that the run was given, or if ``path`` is the result of the rule
        calibrate_cost, as they were ``measured_with`` these settings."""
        from sgtune.budget import CostTable, read_costs

        if measured_with is not None and "models" not in read_json(path):
            return CostTable.from_rows(self.read(path, measured_with)["rows"])
        return read_costs(path, model.name, model.n_data, model.dimension)

    def report(self, line: str) -> None:
        """One line of progress, in the job's log."""
        logging.getLogger("sgtune").info(line)

    def warn(self, line: str) -> None:
        """One line that a person should not miss: in the job's log and on the terminal."""
        logging.getLogger("sgtune").warning("WARNING: %s", line)
        print(f"Warning in {self.rule}: {line}", file=sys.__stderr__, flush=True)

    def seconds_since_start(self) -> float:
        """Seconds since this process was started: imports included."""
        try:
            with open("/proc/self/stat") as stat, open("/proc/uptime") as uptime:
                ticks = int(stat.read().rpartition(")")[2].split()[19])
                return float(uptime.read().split()[0]) - ticks / os.sysconf("SC_CLK_TCK")
        except OSError:
            return perf_counter() - self.began

    def read(self, path: str, settings: dict | None = None) -> dict:
        """A result file, made with ``settings`` (not checked if None).

        Raises:
            DataError: it was made from another configuration.
        """
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

    def sign(self, path: str, model: str) -> None:
        """Add ``model`` and the provenance to a JSON file that the library has written."""
        write_json(path, {**read_json(path), "model": model, "provenance": self.account()})

    def account(self) -> dict:
        """The provenance of what is written now, with the rule, the seconds of the whole process, and those
        of them that went into start-up (until the model was loaded, or the script began) and compilation."""
        from sgtune.compilation import compile_seconds

        now = self.seconds_since_start()
        return {
            **self.provenance.finish(),
            "rule": self.rule,
            "process_seconds": round(now, 3),
            "startup_seconds": round(self.startup or now - (perf_counter() - self.began), 3),
            "compile_seconds": round(compile_seconds(self.began, perf_counter()), 3),
        }


@contextmanager
def job(snakemake) -> Iterator[Job]:
    """Around a script: log opened first, compiled programs shared with other jobs, bad input as one line."""
    open_log(snakemake)
    _end_with_workflow()
    _compile_quickly()
    _share_compiled_programs(Path("results", ".cache", "jax"))
    try:
        yield Job(snakemake)
    except InputError as error:
        print(f"Error: {error}", file=sys.stderr, flush=True)
        # The log holds it; so does the terminal, where a person is looking.
        print(f"Error in {snakemake.rule}: {error}", file=sys.__stderr__, flush=True)
        os._exit(1)


def _end_with_workflow(every: float = 1.0) -> None:
    """End this process when Snakemake is gone, even by a SIGKILL, which would leave it at work as an orphan."""
    workflow = os.environ.get(WORKFLOW_PROCESS)
    if not workflow or not Path("/proc").is_dir():
        return

    def watch() -> None:
        while _process(int(workflow.partition(" ")[0])) == workflow:
            sleep(every)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()


def _process(pid: int) -> str | None:
    """A process by its number and its start, for numbers are given again; None if there is none, or only its
    remains."""
    try:
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if state == "Z" else f"{pid} {fields[18]}"


def open_log(snakemake) -> None:
    """Send standard output, standard error and logging to the job's log file, line by line."""
    if not snakemake.log:
        return
    Path(snakemake.log[0]).parent.mkdir(parents=True, exist_ok=True)
    log = open(snakemake.log[0], "w", buffering=1, encoding="utf-8")  # noqa: SIM115 - open until the job ends
    sys.stdout = sys.stderr = log
    logging.basicConfig(
        stream=log, level=logging.WARNING, format="%(asctime)s %(message)s", datefmt="%H:%M:%S"
    )
    logging.getLogger("sgtune").setLevel(logging.INFO)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        features = next(line for line in lines if line.startswith(("flags", "Features")))
    except (OSError, StopIteration):
        features = platform.processor() or platform.machine()
    return f"{crc32(features.encode()):08x}"


def _compile_quickly() -> None:
    """LLVM's first level of optimisation: programs compile in half the time, and run as fast (measured for all three
    models), for their inner loops are products of matrices, gathers and random bits."""
    flags = os.environ.get("XLA_FLAGS", "")
    if OPTIMISATION not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} --{OPTIMISATION}=1".strip()


def _share_compiled_programs(folder: Path) -> None:
    """JAX's persistent cache: the hundredth job does not compile what the first one did.

    One folder for each kind of processor: on a shared file system another one's programs may not run here.
    """
    folder = folder / _processor()
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(folder.resolve()))
    # Small programs too: a job has dozens, and a twentieth of a second for each.
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")


def artifact_files(artifacts: list[str]) -> tuple[Path, list[Path]]:
    """The run's folder, and every file that stands beside one of ``artifacts`` under its name (csv, md, pdf,
    ...)."""
    paths = [Path(path) for path in artifacts]
    beside = {twin for path in paths for twin in path.parent.glob(f"{path.stem}.*")}
    return paths[0].parent.parent, sorted(beside)


def publish(manifest: Path, destination: Path) -> None:
    """Replace ``destination`` by the files that a run's ``manifest`` names, and the manifest.

    Raises:
        DataError: a file is missing or is not the one that the manifest names.
    """
    files = read_json(manifest)["files"]
    for name, checksum in files.items():
        if file_sha256(manifest.parent / name) != checksum:
            raise DataError(
                f"{manifest.parent / name}: not the file that {manifest} names; make the run's artifacts again"
            )
        if name.startswith("tables/") and name.endswith(".json"):
            commits = read_json(manifest.parent / name)["sources"]["commit"]
            if len(commits) != 1 or commits[0].endswith("-dirty"):
                raise DataError(
                    f"{manifest.parent / name}: made by {', '.join(commits) or 'no commit'}; "
                    "make the run again, all of it from one clean commit"
                )
    staging = destination.with_name(f".{destination.name}")
    shutil.rmtree(staging, ignore_errors=True)
    for name in [*files, manifest.name]:
        target = staging / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(manifest.parent / name, target)
    shutil.rmtree(destination, ignore_errors=True)
    staging.rename(destination)


def show_results(readme: Path, published: Path) -> None:
    """Put the published tables and figures between the two `results` comments of ``readme``."""
    manifest = read_json(published / "manifest.json")
    text = readme.read_text(encoding="utf-8")
    before, begin, rest = text.partition(RESULTS_BEGIN)
    _, end, after = rest.partition(RESULTS_END)
    if not (begin and end):
        raise DataError(f"{readme}: needs the lines {RESULTS_BEGIN!r} and {RESULTS_END!r} around its results")
    where = published.relative_to(readme.parent)
    origin = manifest["provenance"]
    parts = [
        f"The run `{manifest['run']}`, on {origin['cores']} cores of {origin['cpu']}, {origin['created'][:10]}. "
        f"All tables and figures: [{where}/]({where}/)."
    ]
    for name in SHOWN:
        if f"figures/{name}.svg" in manifest["files"]:
            parts.append(f"![{name}]({where}/figures/{name}.svg)")
        if f"tables/{name}.md" in manifest["files"]:
            parts.append((published / "tables" / f"{name}.md").read_text(encoding="utf-8").strip())
    with atomic_write(readme) as temporary:
        temporary.write_text("\n\n".join([before + begin, *parts, end + after]), encoding="utf-8")
