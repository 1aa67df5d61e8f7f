"""What every script of the workflow does around its one call into the library."""

import logging
import os
import platform
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from zlib import crc32

from sgtune.artifacts.provenance import collect
from sgtune.config import fingerprint
from sgtune.errors import DataError, InputError
from sgtune.files import atomic_write, file_sha256, read_json, write_json
from sgtune.settings import METHODS, TUNER_SECTIONS

__all__ = [
    "Job",
    "artifact_files",
    "job",
    "offer_package_to_jobs",
    "open_log",
    "publish",
    "show_results",
    "tuning_arguments",
]

RESULTS_BEGIN = "<!-- results: written by the rule `publish`, from the artifacts -->"
RESULTS_END = "<!-- end of results -->"
SHOWN = (
    *("table1", "table2", "table3", "figure3", "figure4", "figure5"),
    *("regret", "widths", "ood", "tuning_time"),
)
"""What README shows; the rest is a link away."""


def offer_package_to_jobs() -> None:
    """An environment of --sdm conda holds what sgtune depends on; it finds sgtune itself where it is found here."""
    here = str(Path(__file__).parents[1])
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [here, os.environ.get("PYTHONPATH")]))


def tuning_arguments(settings: dict, tuner: str) -> dict:
    """``tuner``, ``budget`` and ``settings`` of `sgtune.tune` from the configuration's sections (`settings_of`)."""
    from sgtune.budget import Budget
    from sgtune.tuning import Settings

    method = METHODS.get(tuner, tuner)
    own = dict(settings[TUNER_SECTIONS[method]])
    amounts = {"seconds": own.pop("seconds", None), "steps": own.pop("n_steps", None)}
    budget = Budget(**amounts) if any(amounts.values()) else None
    grid = {name: tuple(values) for name, values in settings["grids"].items()}
    return {"tuner": method, "budget": budget, "settings": Settings(**grid, **own)}


class Job:
    """One run of one script: its log, its provenance, and the files it reads and writes."""

    def __init__(self, snakemake):
        self.began = perf_counter()
        self.run = snakemake.config["run"]
        self.seed = snakemake.config["seed"]
        self.rule = snakemake.rule
        self.settings = getattr(snakemake.params, "settings", None)
        self.provenance = collect(run=self.run, seed=self.seed)

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
        write_json(
            path, {**record, "run": self.run, "config": config, "provenance": self.provenance.finish()}
        )


@contextmanager
def job(snakemake) -> Iterator[Job]:
    """Around a script: log opened first, compiled programs shared with other jobs, bad input as one line."""
    open_log(snakemake)
    _share_compiled_programs(Path("results", ".cache", "jax"))
    try:
        yield Job(snakemake)
    except InputError as error:
        print(f"Error: {error}", file=sys.stderr, flush=True)
        # The log holds it; so does the terminal, where a person is looking.
        print(f"Error in {snakemake.rule}: {error}", file=sys.__stderr__, flush=True)
        os._exit(1)


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


def _share_compiled_programs(folder: Path) -> None:
    """JAX's persistent cache: the hundredth job does not compile what the first one did.

    One folder for each kind of processor: on a shared file system another one's programs may not run here.
    """
    folder = folder / _processor()
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(folder.resolve()))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")


def artifact_files(artifacts: list[str]) -> tuple[Path, list[Path]]:
    """The run's folder, and every file that stands beside one of ``artifacts`` under its name (csv, md, pdf, ...)."""
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
