"""Where a number comes from: versions, machine, load, seed, seconds and commit."""

import os
import platform
import resource
import subprocess
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

__all__ = ["Provenance", "collect", "cores", "describe", "summarise"]

PACKAGES = ("sgtune", "jax", "jaxlib", "numpy", "numpyro", "optax", "arviz", "pandas", "snakemake")
SOURCE = Path("src", "sgtune", "study", "provenance.py")


def _git(directory: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", *arguments], cwd=directory, capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _commit() -> str | None:
    """HEAD of the repository that tracks this package, with "-dirty" when tracked files differ from it.

    The package may be installed outside its clone (then the clone is where the pipeline runs) or into an
    environment that lies in somebody else's repository, whose commit would say nothing.
    """
    for directory in (Path(__file__).parent, Path.cwd()):
        top = _git(directory, "rev-parse", "--show-toplevel")
        if top and _git(Path(top), "ls-files", "--error-unmatch", str(SOURCE)) is not None:
            head = _git(Path(top), "rev-parse", "HEAD")
            # What a run saves of itself may be tracked, and changes while it runs.
            others = (".", ":(exclude,top)results/saved")
            changed = _git(Path(top), "status", "--porcelain", "--untracked-files=no", "--", *others)
            return f"{head}-dirty" if head and changed else head
    return None


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _cpu() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def cores() -> int | None:
    """Cores this process may use, which on a shared machine are fewer than it has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def _load() -> list[float] | None:
    try:
        return [round(load, 2) for load in os.getloadavg()]
    except (OSError, AttributeError):
        return None


class Provenance:
    """A job that has started; `finish` says what it was."""

    def __init__(self, run: str | None, seed: int | None):
        self._run, self._seed = run, seed
        self._load_before = _load()
        self._created = datetime.now(UTC).isoformat(timespec="milliseconds")
        self._start = time.perf_counter()

    def finish(self) -> dict:
        """The provenance of what was made since: run, seed, commit (None outside git), created (UTC, when the
        job started), versions (None: not installed), cpu, cores, load averages over 1, 5 and 15 minutes
        before and after, the seconds in between, and the most memory that the process held so far, in GiB."""
        return {
            "run": self._run,
            "seed": self._seed,
            "commit": _commit(),
            "created": self._created,
            "versions": {package: _version(package) for package in PACKAGES},
            "cpu": _cpu(),
            "cores": cores(),
            "load_before": self._load_before,
            "load_after": _load(),
            "seconds": round(time.perf_counter() - self._start, 3),
            "peak_memory_gb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 3),
        }


def collect(run: str | None, seed: int | None) -> Provenance:
    """Start the clock of a job. Call it before the work, and ``.finish()`` after it."""
    return Provenance(run, seed)


def _distinct(values: Iterable) -> list:
    return sorted({value for value in values if value is not None})


def summarise(provenances: Iterable[dict]) -> dict:
    """One account of many files' provenance: the distinct values of each entry, the span of their dates, the
    highest one-minute load before any of them, and their seconds in sum. It depends on nothing else, so a
    figure that carries it is the same bytes each time it is drawn from the same files."""
    found = list(provenances)
    versions = {
        package: _distinct((one.get("versions") or {}).get(package) for one in found) for package in PACKAGES
    }
    created = _distinct(one.get("created") for one in found)
    loads = [one["load_before"][0] for one in found if one.get("load_before")]
    return {
        "files": len(found),
        **{
            key: _distinct(one.get(key) for one in found) for key in ("run", "seed", "commit", "cpu", "cores")
        },
        "versions": {package: values for package, values in versions.items() if values},
        "created": created[:1] + created[-1:] if len(created) > 1 else created,
        "highest_load_before": max(loads, default=None),
        "seconds": round(sum(one.get("seconds") or 0.0 for one in found), 3),
    }


def describe(summary: dict) -> str:
    """A `summarise`d provenance in one line, for a footer."""

    def listed(values: Iterable) -> str:
        return ", ".join(str(value) for value in values) or "unknown"

    load = summary["highest_load_before"]
    versions = "; ".join(f"{package} {listed(values)}" for package, values in summary["versions"].items())
    return " · ".join(
        [
            f"{summary['files']} result files",
            f"run {listed(summary['run'])}",
            f"seed {listed(summary['seed'])}",
            f"commit {listed(commit[:10] + commit[40:] for commit in summary['commit'])}",
            f"made {' to '.join(moment[:19] for moment in summary['created']) or 'at an unknown time'} UTC",
            f"{listed(summary['cpu'])}, {listed(summary['cores'])} cores",
            f"highest load before a job {'unknown' if load is None else load}",
            versions or "versions unknown",
        ]
    )
