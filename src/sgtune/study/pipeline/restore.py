"""Rebuild a run's folder from the saved files of its finished jobs (`sgtune.study.pipeline.saved`)."""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from pathlib import Path

from sgtune.study.config.sections import canonical, leaves
from sgtune.study.pipeline.saved import SAVED, Note, copy_whole, identity, read_notes, saved_as
from sgtune.support.errors import DataError

__all__ = ["Restored", "check_settings", "exit_unless_restorable", "in_kilobytes", "restore"]


@dataclass
class Restored:
    """The result of `restore`.

    Attributes:
        files: for each rule the restored files, with their bytes, job by job.
        absent: files of finished jobs that are too large to be saved, with their bytes.
        left_out: jobs that will run again, and why.
        chains: files from which unfinished chains of NUTS continue, with their bytes.
    """

    files: dict[str, list[dict[str, int]]] = field(default_factory=dict)
    absent: dict[str, int] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    chains: dict[str, int] = field(default_factory=dict)

    def lines(self, run: str) -> Iterator[str]:
        """In words, for the terminal."""
        yield f"{'Rule':24}{'Jobs':>6}{'Files':>7}{'kB':>10}"
        rows = [
            (rule, len(jobs), [size for job in jobs for size in job.values()])
            for rule, jobs in self.files.items()
        ]
        rows.append(("in all", sum(row[1] for row in rows), [size for row in rows for size in row[2]]))
        for rule, n_jobs, sizes in rows:
            yield f"{rule:24}{n_jobs:>6}{len(sizes):>7}{sum(sizes) / 1e3:>10,.1f}"
        yield f"From {SAVED / run} to {Path('results', run)}."
        for path, size in self.chains.items():
            yield f"NUTS continues from {path} ({in_kilobytes(size)})."
        if self.absent:
            each = ", ".join(f"{path} ({in_kilobytes(size)})" for path, size in self.absent.items())
            yield f"Too large to be saved, and made again only for a job that needs it: {each}."
        for name, why in self.left_out.items():
            yield f"Will run again: {name}: {why}."


def in_kilobytes(size: int) -> str:
    """A number of bytes in words."""
    return f"{size / 1e3:,.1f} kB"


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
    notes = {note.name: note for note in read_notes(run)}
    wanted = check_settings(run, settings)
    done = Restored()
    done.left_out = {name: "this configuration has no such job" for name in notes if name not in settings}
    ready = _in_order(run, wanted, done)
    for note in ready:
        _check_there(run, note)
    for note in ready:
        _put_back(run, note, done)
    _put_chains_back(run, done)
    return done


def check_settings(run: str, settings: Mapping[str, dict | None]) -> list[Note]:
    """The notes of the jobs that this configuration has, if all were done with its settings.

    Raises:
        DataError: nothing is saved, or a job was done with other settings.
    """
    notes = {note.name: note for note in read_notes(run)}
    if not notes:
        raise DataError(f"{SAVED / run}: no finished job is saved there")
    wanted = [note for name, note in notes.items() if name in settings]
    others = [note for note in wanted if canonical(note.settings) != canonical(settings[note.name])]
    if others:
        first, number = others[0], len(others) - 1
        raise DataError(
            f"{_file(run, first)}{f' and {number} more' if number else ''}: made with another configuration "
            f"({_difference(first.settings, settings[first.name])}); restore with that configuration, or "
            "delete "
            f"{SAVED / run / 'jobs' / first.name}.json to make it again"
        )
    return wanted


def exit_unless_restorable(run: str, settings: Mapping[str, dict | None]) -> None:
    """`check_settings`; on an error it prints one line and ends the process, before data are made again."""
    try:
        check_settings(run, settings)
    except DataError as problem:
        sys.exit(f"Error in restore: {problem}")


def _file(run: str, note: Note) -> Path:
    """The file that names a job to a user."""
    return saved_as(run, next(iter(note.outputs)))


def _difference(theirs: dict | None, ours: dict | None) -> str:
    """The first key in which two settings differ."""
    there, here = (dict(leaves(canonical(settings or {}))) for settings in (theirs, ours))
    key = next(
        key for key in {**there, **here} if key not in there or key not in here or there[key] != here[key]
    )
    return f"{key}: {there.get(key, 'nothing')!r} then, {here.get(key, 'nothing')!r} now"


def _in_order(run: str, notes: Sequence[Note], done: Restored) -> list[Note]:
    """The notes of the jobs that can be restored, each after those that made its inputs."""
    makers = {path: note for note in notes for path in note.outputs}
    by_name = {note.name: note for note in notes}
    graph = {note.name: {makers[path].name for path in note.inputs if path in makers} for note in notes}
    ready = []
    for name in TopologicalSorter(graph).static_order():
        note = by_name[name]
        why = _reason_against(run, note, makers, done)
        if why:
            done.left_out[name] = why
        else:
            ready.append(note)
    return ready


def _reason_against(run: str, note: Note, makers: Mapping[str, Note], done: Restored) -> str:
    """Why a job cannot be restored; empty if it can."""
    for path, expected in note.inputs.items():
        maker = makers.get(path)
        if maker is None and not Path(path).is_file():
            return f"it was made from {path}, which was not saved"
        if maker is None and identity(path) != expected and _is_given(run, path):
            raise DataError(
                f"{path}: not the file that {_file(run, note)} was made from; restore where that file is, "
                f"or delete {SAVED / run} to start from scratch"
            )
        if maker is None and identity(path) != expected:
            return f"{path} was made again after it"
        if maker is not None and maker.name in done.left_out:
            return f"it was made from {path}, which will be made again"
        if maker is not None and maker.outputs[path]["identity"] != expected:
            return f"{path} was made again after it"
    for path, facts in note.outputs.items():
        twin = saved_as(run, path)
        if not facts["saved"] or Path(path).is_file():
            continue
        if not twin.is_file() or identity(twin) != facts["identity"]:
            return f"{twin} is missing or was not saved completely"
    return ""


def _is_given(run: str, path: str) -> bool:
    """Whether a file is a data set or beside one, or outside the run: such files are not saved."""
    folder = Path("results", run)
    return Path(path).parent == folder / "data" or folder not in Path(path).parents


def _check_there(run: str, note: Note) -> None:
    for path, facts in note.outputs.items():
        if Path(path).is_file() and identity(path) != facts["identity"]:
            raise DataError(
                f"{path}: another file than the saved one ({saved_as(run, path)}); delete one of them"
            )


def _put_back(run: str, note: Note, done: Restored) -> None:
    there = {}
    for path, facts in note.outputs.items():
        if Path(path).is_file():
            # Not older than its inputs, which may have been copied just now.
            os.utime(path)
        elif facts["saved"]:
            copy_whole(saved_as(run, path), path)
        else:
            done.absent[path] = facts["bytes"]
            continue
        there[path] = facts["bytes"]
    done.files.setdefault(note.rule, []).append(there)


def _put_chains_back(run: str, done: Restored) -> None:
    """The states of NUTS chains (`sgtune.study.ground_truth.nuts`), where there are neither draws nor a summary yet."""
    for state in sorted(SAVED.glob(f"{run}/reference/*/nuts-*.npz")):
        model, chain = state.parent.name, state.stem.removeprefix("nuts-")
        folder = Path("results", run, "reference", model)
        if not (folder / f"nuts-{chain}.nc").exists() and not (folder / "nuts.json").exists():
            target = folder / "checkpoints" / chain / "restored.npz"
            copy_whole(state, target)
            done.chains[str(target)] = state.stat().st_size
