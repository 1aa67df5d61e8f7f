"""Copies of the small files of finished jobs, outside the run's folder, from which `restore` rebuilds a run.

``results/saved/{run}`` has them under the names that they have in ``results/{run}``, and in ``jobs/`` a note of each
job: its settings, inputs and outputs. Data sets, tables and figures are not saved: data sets are downloaded or
simulated again, tables and figures are made again in seconds.
"""

import hashlib
import json
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from graphlib import TopologicalSorter
from pathlib import Path
from typing import NamedTuple

from sgtune.study.config.sections import canonical, leaves
from sgtune.support.errors import DataError
from sgtune.support.files import atomic_write, file_sha256, read_json, write_json

SAVED = Path("results", "saved")
"""Outside the runs' folders, so that it survives if a run's folder is lost or deleted."""

LARGEST = 8_000_000
"""Largest file that is saved, in bytes: draws of a small model are saved, draws of the matrix factorisation are not."""


class Note(NamedTuple):
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
        """``tune_sampler/pmf-sgld``."""
        return "/".join(filter(None, [self.rule, "-".join(self.wildcards.values())]))


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
    facts = {}
    note = Note(rule, dict(wildcards), settings, {path: identity(path) for path in inputs}, facts)
    # Until it is written again, nothing vouches for the outputs.
    (SAVED / run / "jobs" / f"{note.name}.json").unlink(missing_ok=True)
    for path in outputs:
        size, twin = Path(path).stat().st_size, _saved_as(run, path)
        facts[path] = {"identity": identity(path), "bytes": size, "saved": size <= LARGEST}
        if size <= LARGEST:
            _copy_whole(path, twin)
        else:
            twin.unlink(missing_ok=True)
    write_json(SAVED / run / "jobs" / f"{note.name}.json", note._asdict())


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
        except DataError:
            # A job that runs again beside this one has removed it.
            if path.is_file():
                raise
    return notes


def check_inputs(run: str, inputs: Iterable[str]) -> None:
    """Whether the inputs of a job are what the jobs of this run wrote: here every reader of results asks.

    Raises:
        DataError: one is another file than the note of its job says.
    """
    wrote = {path: (note.name, facts) for note in read_notes(run) for path, facts in note.outputs.items()}
    for path in inputs:
        job, facts = wrote.get(path, ("", None))
        if facts is not None and identity(path) != facts["identity"]:
            raise DataError(
                f"{path}: of another configuration, or changed since the job {job} wrote it; "
                "delete it, and it is made again"
            )


def exit_if_data_changed(run: str | Path) -> None:
    """One line and the end of the process if an array of a data set in the run's folder has another sum than its
    ``.json`` says: of other data of the same size no reader could tell."""
    from sgtune.study.posteriors.store import verify

    for path in sorted(Path(run).glob("**/data/*.json")):
        try:
            if "arrays" in read_json(path):
                verify(path)
        except DataError as problem:
            sys.exit(f"Error: {problem}")


def _saved_as(run: str, path: str | Path) -> Path:
    """The place where the file ``path`` of the run is saved."""
    return SAVED / run / Path(path).relative_to(Path("results", run))


def _copy_whole(source: str | Path, target: str | Path) -> None:
    """Copy a file whole or not at all; the copy's date is the time of copying."""
    with atomic_write(target) as temporary:
        shutil.copyfile(source, temporary)


class Restored(NamedTuple):
    """The result of `restore`.

    Attributes:
        files: the bytes of each restored file, by rule.
        absent: files of finished jobs that are too large to be saved, with their bytes.
        left_out: jobs that will run again, and why.
        chains: files from which unfinished chains of NUTS continue.
    """

    files: dict[str, list[int]]
    absent: dict[str, int]
    left_out: dict[str, str]
    chains: list[str]

    def lines(self, run: str) -> Iterator[str]:
        """For the terminal."""
        yield f"From {SAVED / run} to {Path('results', run)}:"
        for rule, sizes in self.files.items():
            yield f"{rule:24}{len(sizes):>5} files{sum(sizes) / 1e3:>10,.1f} kB"
        yield from (f"NUTS continues from {path}." for path in self.chains)
        for path, size in self.absent.items():
            yield f"Too large to be saved, made again only for a job that needs it: {path} ({size / 1e3:,.1f} kB)."
        yield from (f"Will run again: {name}: {why}." for name, why in self.left_out.items())


def restore(run: str, settings: Mapping[str, dict | None]) -> Restored:
    """Rebuild ``results/{run}`` from its finished jobs; the data sets must exist already.

    Files are copied in the order in which they were made, so that no file is older than its inputs and Snakemake
    reruns nothing. A job whose inputs must be made again, or were made again since, is left out.

    Args:
        settings: the settings of this configuration by the name of a job; jobs that the configuration does not have
            are left out.

    Raises:
        DataError: nothing is saved; or a job was done with other settings or on other data, or one of its files exists
            in ``results/{run}`` and differs. Nothing is copied then.
    """
    notes = {note.name: note for note in _checked(run, settings)}
    others = [note.name for note in read_notes(run) if note.name not in settings]
    done = Restored({}, {}, dict.fromkeys(others, "this configuration has no such job"), [])
    makers = {path: note for note in notes.values() for path in note.outputs}
    made_from = {
        name: {makers[path].name for path in note.inputs if path in makers} for name, note in notes.items()
    }
    ready = []
    for name in TopologicalSorter(made_from).static_order():
        if why := _reason_against(run, notes[name], makers, done.left_out):
            done.left_out[name] = why
        else:
            ready += [(notes[name].rule, path, facts) for path, facts in notes[name].outputs.items()]
    for _, path, facts in ready:
        if Path(path).is_file() and identity(path) != facts["identity"]:
            raise DataError(
                f"{path}: another file than the saved one ({_saved_as(run, path)}); delete one of them"
            )
    for rule, path, facts in ready:
        if not (Path(path).is_file() or facts["saved"]):
            done.absent[path] = facts["bytes"]
            continue
        if Path(path).is_file():
            # Not older than its inputs, which may have been copied just now.
            os.utime(path)
        else:
            _copy_whole(_saved_as(run, path), path)
        done.files.setdefault(rule, []).append(facts["bytes"])
    done.chains.extend(_put_chains_back(run))
    return done


def _checked(run: str, settings: Mapping[str, dict | None]) -> list[Note]:
    """The notes of the jobs that this configuration has; a `DataError` if there is none at all, or one of a job that
    was done with other settings."""
    notes = read_notes(run)
    if not notes:
        raise DataError(f"{SAVED / run}: no finished job is saved there")
    wanted = [note for note in notes if note.name in settings]
    differ = [
        (note, difference)
        for note in wanted
        if (difference := _difference(note.settings, settings[note.name]))
    ]
    if differ:
        (first, difference), more = differ[0], f" and {len(differ) - 1} more" if len(differ) > 1 else ""
        raise DataError(
            f"{_file(run, first)}{more}: made with another configuration ({difference}); restore with that "
            f"configuration, or delete {SAVED / run / 'jobs' / first.name}.json to make it again"
        )
    return wanted


def exit_unless_restorable(run: str, settings: Mapping[str, dict | None]) -> None:
    """One line and the end of the process, before data are made again, if `restore` would refuse the settings."""
    try:
        _checked(run, settings)
    except DataError as problem:
        sys.exit(f"Error in restore: {problem}")


def _file(run: str, note: Note) -> Path:
    """The file that names a job to a user."""
    return _saved_as(run, next(iter(note.outputs)))


def _difference(theirs: object, ours: object) -> str:
    """The first key in which two settings differ; empty if there is none."""
    old, new = (dict(leaves({"": canonical(settings)})) for settings in (theirs, ours))
    for key in old | new:
        then, now = old.get(key, "nothing"), new.get(key, "nothing")
        if then != now:
            return f"{key.lstrip('.')}: {then!r} then, {now!r} now"
    return ""


def _reason_against(run: str, note: Note, makers: Mapping[str, Note], left_out: Mapping[str, str]) -> str:
    """Why a job cannot be restored; empty if it can."""
    for path, expected in note.inputs.items():
        maker = makers.get(path)
        if maker is None and not Path(path).is_file():
            return f"it was made from {path}, which was not saved"
        if maker is not None and maker.name in left_out:
            return f"it was made from {path}, which will be made again"
        if expected != (identity(path) if maker is None else maker.outputs[path]["identity"]):
            # Data sets, the files beside them, and files outside the run are not saved: they are given.
            folder = Path("results", run)
            if maker is None and (Path(path).parent == folder / "data" or folder not in Path(path).parents):
                raise DataError(
                    f"{path}: not the file that {_file(run, note)} was made from; restore where that file is, "
                    f"or delete {SAVED / run} to start from scratch"
                )
            return f"{path} was made again after it"
    for path, facts in note.outputs.items():
        twin = _saved_as(run, path)
        is_needed = facts["saved"] and not Path(path).is_file()
        if is_needed and not (twin.is_file() and identity(twin) == facts["identity"]):
            return f"{twin} is missing or was not saved completely"
    return ""


def _put_chains_back(run: str) -> Iterator[str]:
    """The states of NUTS chains (`sgtune.study.ground_truth.nuts`), where there are neither draws nor a summary yet."""
    for state in sorted(SAVED.glob(f"{run}/reference/*/nuts-*.npz")):
        model, chain = state.parent.name, state.stem.removeprefix("nuts-")
        folder = Path("results", run, "reference", model)
        if not (folder / f"nuts-{chain}.nc").exists() and not (folder / "nuts.json").exists():
            target = folder / "checkpoints" / chain / "restored.npz"
            _copy_whole(state, target)
            yield str(target)
