"""The provenance of a result: versions, machine, load, seed, seconds and commit; and the sums of what jobs wrote."""

import os
import platform
import re
import resource
import subprocess
import time
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from sgtune.support.errors import DataError
from sgtune.support.files import file_sha256, read_json, write_json
from sgtune.support.machine import cores

PACKAGES = ("sgtune", "jax", "jaxlib", "numpy", "numpyro", "optax", "arviz", "pandas", "snakemake")
VECTORS = ("sse4", "avx", "fma", "neon", "asimd", "sve")
"""Beginnings of the flags of a processor by which compiled arithmetic, and with it rounding, differs."""

SOURCE = Path("src", *Path(__file__).parts[-4:])
"""This file in its repository."""


SUMS = "sums"
"""The folder of a run with the sums of what its jobs wrote."""

OF_RUN, OF_CPU = ("run", "seed", "commit"), ("cpu", "cpu_family", "cpu_model", "cpu_vectors")
"""Entries whose distinct values a summary has."""


def _git(directory: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", *arguments], cwd=directory, capture_output=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return os.fsdecode(done.stdout).strip() if done.returncode == 0 else None


def _commit() -> str | None:
    """HEAD of the repository that tracks this package, with "-dirty" if tracked files differ from it.

    The package may be installed outside its clone; then the clone is the working directory of the pipeline. It may also
    be installed into an environment inside another repository, whose commit would be misleading. So a repository counts
    only if it tracks this file.
    """
    for directory in (Path(__file__).parent, Path.cwd()):
        top = _git(directory, "rev-parse", "--show-toplevel")
        if top and _git(Path(top), "ls-files", "--error-unmatch", str(SOURCE)) is not None:
            head = _git(Path(top), "rev-parse", "HEAD")
            changed = _git(Path(top), "status", "--porcelain", "--untracked-files=no")
            return f"{head}-dirty" if head and changed else head
    return None


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def of_processor(*names: str) -> str:
    """What Linux says of the processor under the first of these names; elsewhere what Python knows of it."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith(names):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _load() -> list[float]:
    return [round(load, 2) for load in os.getloadavg()]


class Provenance:
    """The clock and the load at the start of a job: made before the work, and `finish` called after it."""

    def __init__(self):
        self._load_before = _load()
        self._created = _to_ms(datetime.now(UTC))
        self._start = time.perf_counter()
        # Of the code that the job has imported, and not of one that is committed while it runs.
        self._commit = _commit()

    def finish(self) -> dict:
        """The provenance of the results since the start.

        Its keys are commit (None outside git), created (start of the job, UTC), versions (None if a package
        is not installed), cpu with its family, model and vector flags, cores, load averages over 1, 5 and 15 minutes
        before and after, the seconds between, and the process's peak memory in GiB.
        """
        flags = of_processor("flags", "Features").split()
        return {
            "commit": self._commit,
            "created": self._created,
            "versions": {package: _version(package) for package in PACKAGES},
            "cpu": of_processor("model name"),
            "cpu_family": of_processor("cpu family", "CPU implementer"),
            "cpu_model": of_processor("model\t", "CPU part"),
            "cpu_vectors": " ".join(flag for flag in flags if flag.startswith(VECTORS)),
            "cores": cores(),
            "load_before": self._load_before,
            "load_after": _load(),
            "seconds": round(time.perf_counter() - self._start, 3),
            "peak_memory_gb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 3),
        }


def _to_ms(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds")


def summarise(provenances: Iterable[dict]) -> dict:
    """A summary of the provenance of many files.

    It has the distinct values of each entry, the start of the first job and the end of the last (``created``), the
    highest one-minute load before a job, and the sum of the seconds. It depends only on the files, so a figure that
    shows it is reproducible byte for byte.
    """
    found = list(provenances)

    def distinct(key: str, records: Iterable[dict] = found) -> list:
        return sorted({one[key] for one in records if one.get(key) is not None})

    versions = [one.get("versions") or {} for one in found]
    dated = [(datetime.fromisoformat(one["created"]), one) for one in found if one.get("created")]
    ends = [start + timedelta(seconds=one.get("seconds") or 0.0) for start, one in dated]
    first_and_last = {min(start for start, _ in dated), max(ends)} if dated else ()
    loads = [one["load_before"][0] for one in found if one.get("load_before")]
    return {
        "files": len(found),
        **{key: distinct(key) for key in (*OF_RUN, *OF_CPU, "cores")},
        "versions": {package: own for package in PACKAGES if (own := distinct(package, versions))},
        "created": [_to_ms(moment) for moment in sorted(first_and_last)],
        "highest_load_before": max(loads, default=None),
        "seconds": round(sum(one.get("seconds") or 0.0 for one in found), 3),
    }


def describe(summary: dict) -> str:
    """The result of `summarise` in one line, for a footer."""

    def listed(values: Iterable) -> str:
        return ", ".join(str(value) for value in values) or "unknown"

    n_files, load = summary["files"], summary["highest_load_before"]
    versions = "; ".join(f"{package} {listed(values)}" for package, values in summary["versions"].items())
    return " · ".join(
        [
            f"{n_files} result file{'' if n_files == 1 else 's'}",
            f"run {listed(summary['run'])}",
            f"seed {listed(summary['seed'])}",
            f"commit {listed(re.sub('(?<=^[0-9a-f]{10})[0-9a-f]+', '', each) for each in summary['commit'])}",
            f"made {' to '.join(moment[:19] for moment in summary['created']) or 'at an unknown time'} UTC",
            f"{listed(summary['cpu'])} (family {listed(summary.get('cpu_family', []))}, "
            f"model {listed(summary.get('cpu_model', []))}), {listed(summary['cores'])} cores",
            f"highest load before a job {'unknown' if load is None else load}",
            versions or "versions unknown",
        ]
    )


def keep_sums(run: str, job: str, outputs: Iterable[str]) -> None:
    """Keep the SHA-256 of each file of the run that a finished job wrote, for `check_inputs`, in
    ``results/{run}/sums``. Downloads belong to no run."""
    path = Path("results", run, SUMS, f"{job}.json")
    # Until they are written again, nothing vouches for the outputs.
    path.unlink(missing_ok=True)
    own = [name for name in outputs if Path(name).is_relative_to(Path("results", run))]
    if sums := {name: file_sha256(name) for name in own}:
        write_json(path, {"job": job, "sums": sums})


def check_inputs(run: str, inputs: Iterable[str]) -> None:
    """Whether the inputs of a job are what the jobs of this run wrote: here every reader of results asks."""
    wrote = {}
    for path in Path("results", run, SUMS).glob("[!.]*.json"):
        # A job that runs again beside this one may have removed its file.
        with suppress(DataError):
            held = read_json(path)
            wrote |= {name: (held["job"], own) for name, own in held["sums"].items()}
    for name in inputs:
        job, own = wrote.get(name, ("", None))
        if own is not None and file_sha256(name) != own:
            raise DataError(
                f"{name}: of another configuration, or changed since the job {job} wrote it; delete it, and it is made "
                "again"
            )
