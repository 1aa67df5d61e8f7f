"""The small files of finished jobs, kept a second time outside the run's folder: what `restore` rebuilds a run from.

``results/saved/{run}`` has them under the names that they have in ``results/{run}``, and under ``jobs/`` a note of each
job: its settings, and what its inputs and outputs were. Data sets are not among them, nor tables and figures: the first
are downloaded or simulated again, the others drawn again in seconds.
"""

import hashlib
import json
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from sgtune.errors import DataError
from sgtune.files import atomic_write, file_sha256, read_json, write_json

__all__ = ["LARGEST", "SAVED", "Note", "identity", "job_name", "read_notes", "save_job"]

SAVED = Path("results", "saved")
"""Apart from the runs, so that a run's folder can be lost or deleted without it."""

LARGEST = 8_000_000
"""Bytes of a file that is saved: draws of a small model are, those of the matrix factorisation are not."""


@dataclass(frozen=True)
class Note:
    """What a finished job was.

    Attributes:
        settings: the parts of the configuration that its results depend on; None if there are none.
        inputs: the `identity` of each, by path.
        outputs: of each, by path, its ``identity``, its ``bytes`` and whether it is ``saved``.
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
    """SHA-256 of what a file says: of JSON all but its provenance, for data made again are the same data.

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
    """Keep what a finished job has written under ``results/{run}``, up to `LARGEST` bytes a file, and a note of it.

    The note is written last: a file that is not what its note says is one that was not saved whole.
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
    """Where the file ``path`` of the run is saved."""
    return SAVED / run / Path(path).relative_to(Path("results", run))


def copy_whole(source: str | Path, target: str | Path) -> None:
    """Copy a file whole or not at all; the copy is as old as the copying."""
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
