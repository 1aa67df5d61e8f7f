"""Copies of the small files of finished jobs, outside the run's folder, from which `restore` rebuilds a run.

``results/saved/{run}`` has them under the names that they have in ``results/{run}``, and in ``jobs/`` a note of each
job: its settings, inputs and outputs. Data sets, tables and figures are not saved: data sets are downloaded or
simulated again, tables and figures are made again in seconds.
"""

import hashlib
import json
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from sgtune.support.errors import DataError
from sgtune.support.files import atomic_write, file_sha256, read_json, write_json

__all__ = ["LARGEST", "SAVED", "Note", "identity", "job_name", "read_notes", "save_job"]

SAVED = Path("results", "saved")
"""Outside the runs' folders, so that it survives if a run's folder is lost or deleted."""

LARGEST = 8_000_000
"""Largest file that is saved, in bytes: draws of a small model are saved, draws of the matrix factorisation are not."""


@dataclass(frozen=True)
class Note:
    """The note of a finished job.

    Attributes:
        settings: the parts of the configuration that its results depend on; None if there are none.
        inputs: the `identity` of each, by path.
        outputs: for each, by path, its ``identity``, its ``bytes`` and whether it is ``saved``.
    """

    rule: str
    wildcards: dict[str, str]
    settings: dict | None
    inputs: dict[str, str]
    outputs: dict[str, dict]

    @property
    def name(self) -> str:
        """As `job_name` has it."""
        return job_name(self.rule, self.wildcards)


def job_name(rule: str, wildcards: Mapping[str, str]) -> str:
    """``tune_sampler/pmf-sgld``: the name of a job, and of its note."""
    return "/".join(filter(None, [rule, "-".join(wildcards.values())]))


def identity(path: str | Path) -> str:
    """SHA-256 of a file's contents; for JSON without its provenance, because data that are made again are the same
    data.

    Raises:
        DataError: the file is missing or cannot be read.
    """
    if Path(path).suffix != ".json":
        return file_sha256(path)
    record = read_json(path)
    if isinstance(record, dict):
        record = {name: value for name, value in record.items() if name != "provenance"}
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()


def save_job(
    run: str,
    rule: str,
    wildcards: Mapping[str, str],
    settings: dict | None,
    inputs: Iterable[str],
    outputs: Iterable[str],
) -> None:
    """Save the files of a finished job under ``results/{run}``, up to `LARGEST` bytes each, and a note of the job.

    The note is written last: a file that differs from its note was not saved completely.
    """
    folder, facts = SAVED / run, {}
    for path in outputs:
        size, twin = Path(path).stat().st_size, saved_as(run, path)
        facts[path] = {"identity": identity(path), "bytes": size, "saved": size <= LARGEST}
        if size <= LARGEST:
            copy_whole(path, twin)
        else:
            twin.unlink(missing_ok=True)
    note = Note(rule, dict(wildcards), settings, {path: identity(path) for path in inputs}, facts)
    write_json(folder / "jobs" / f"{note.name}.json", vars(note))


def saved_as(run: str, path: str | Path) -> Path:
    """The place where the file ``path`` of the run is saved."""
    return SAVED / run / Path(path).relative_to(Path("results", run))


def copy_whole(source: str | Path, target: str | Path) -> None:
    """Copy a file whole or not at all; the copy's date is the time of copying."""
    with atomic_write(target) as temporary:
        shutil.copyfile(source, temporary)


def read_notes(run: str) -> list[Note]:
    """The notes of a run's finished jobs, by name; none if nothing was saved.

    Raises:
        DataError: a note cannot be read.
    """
    notes = []
    for path in sorted((SAVED / run / "jobs").rglob("[!.]*.json")):
        try:
            notes.append(Note(**read_json(path)))
        except TypeError:
            raise DataError(
                f"{path}: not a note of a finished job; delete it to restore the others"
            ) from None
    return notes
