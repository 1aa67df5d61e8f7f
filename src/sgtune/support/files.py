"""Files are written whole or not at all, and read with errors that name them."""

import errno
import hashlib
import json
import math
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from socket import gethostname
from time import time
from uuid import uuid4
from zipfile import BadZipFile
from zlib import crc32

import numpy as np
from numpy.typing import ArrayLike

from sgtune.support.errors import DataError

__all__ = [
    "atomic_write",
    "file_sha256",
    "full_disk_named",
    "read_json",
    "read_npz",
    "read_record",
    "remove_unfinished",
    "write_json",
    "write_npz",
    "write_record",
]

FORMAT = 1
"""The version of the files of `write_record`."""

FULL = tuple(os.strerror(number) for number in (errno.ENOSPC, errno.EDQUOT))
"""A full disk in the system's words, which errors of HDF5 have as well, without its number."""

ABANDONED = 24 * 3600.0
"""Seconds after which no process of another machine is still at work on a file."""


@contextmanager
def atomic_write(path: str | Path) -> Iterator[Path]:
    """A temporary path beside ``path``, of the same suffix, that is renamed to ``path`` if the block does not raise.

    When the block raises, the temporary file is removed and ``path`` stays as it was. The folder is made if
    it is missing. A process that is killed leaves its temporary file to `remove_unfinished`.

    Raises:
        DataError: the disk is full.
    """
    path = Path(path)
    temporary = path.with_name(f".{path.stem}-{_host()}-{os.getpid()}-{uuid4().hex[:8]}{path.suffix}")
    try:
        with full_disk_named(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            yield temporary
            os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def full_disk_named(path: str | Path) -> Iterator[None]:
    """One line, with ``path``, in place of the error of a disk that is full."""
    try:
        yield
    except Exception as error:
        if any(words in str(error) for words in FULL):
            raise DataError(f"{path}: the disk is full, and the file was not written") from None
        raise


def remove_unfinished(folder: str | Path) -> None:
    """Delete what `atomic_write` left below ``folder`` in processes that were killed. Files of a process that runs on
    this machine stay: it may be writing them. So do those of other machines of a shared file system, for a day."""
    for path in Path(folder).rglob(".*"):
        named = re.fullmatch(r"\..*-([0-9a-f]{8})-(\d{1,9})-[0-9a-f]{8}(\.[^.]*)?", path.name)
        if named is None:
            continue
        with suppress(FileNotFoundError):
            is_at_work = time() - path.stat().st_mtime < ABANDONED
            if named[1] == _host():
                is_at_work = _is_running(int(named[2]))
            if not is_at_work:
                path.unlink()


def _host() -> str:
    return f"{crc32(gethostname().encode()):08x}"


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)  # no signal: only whether it could be sent
    except OSError as error:
        return error.errno == errno.EPERM  # of another user
    return True


def write_json(path: str | Path, obj: object) -> None:
    """Write ``obj`` as JSON, atomically. Non-finite numbers become null, arrays become lists, paths become strings."""
    text = json.dumps(_plain(obj), indent=2, allow_nan=False)
    with atomic_write(path) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8")


def _plain(obj: object) -> object:
    if isinstance(obj, dict):
        return {str(key): _plain(value) for key, value in obj.items()}
    if isinstance(obj, list | tuple):
        return [_plain(value) for value in obj]
    if isinstance(obj, Path):
        return str(obj)
    if hasattr(obj, "tolist"):  # NumPy's scalars, NumPy's and JAX's arrays
        return _plain(np.asarray(obj).tolist())
    if isinstance(obj, float) and not math.isfinite(obj):
        return None
    return obj


def read_json(path: str | Path) -> object:
    """The contents of a JSON file.

    Raises:
        DataError: the file is missing or is not JSON.
    """
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataError(f"{path}: the file is missing") from None
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: not a readable JSON file ({' '.join(str(error).split())})") from None


def file_sha256(path: str | Path) -> str:
    """The SHA-256 of a file's bytes, in hexadecimal.

    Raises:
        DataError: the file is missing or cannot be read.
    """
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DataError(f"{path}: the file cannot be read ({error.strerror})") from None


def read_npz(path: str | Path) -> dict[str, np.ndarray]:
    """All arrays of an .npz file, in memory; nothing in it is unpickled.

    Raises:
        DataError: the file is missing, cut short, damaged, or holds objects.
    """
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (OSError, ValueError, EOFError, BadZipFile, TypeError) as error:
        # A TypeError: a single array, which is no context.
        raise DataError(f"{path}: not a readable .npz file ({' '.join(str(error).split())})") from None


def write_npz(path: str | Path, **arrays: ArrayLike) -> None:
    """Write ``arrays`` as an .npz file, whole or not at all.

    Raises:
        DataError: ``path`` has another suffix than .npz, or the disk is full.
    """
    if Path(path).suffix != ".npz":
        raise DataError(f"path: {str(path)!r} is not allowed; it must end in .npz")
    with atomic_write(path) as temporary:
        np.savez(temporary, **arrays)


def write_record(path: str | Path, kind: str, record: dict, arrays: dict[str, np.ndarray]) -> None:
    """Write ``record`` and ``arrays`` as one .npz file, whole or not at all; the record is JSON in it, with NaN and
    infinities as they are.

    Raises:
        DataError: ``path`` has another suffix than .npz, or the disk is full.
    """
    text = json.dumps({"kind": kind, "format": FORMAT, **record}, default=lambda number: number.tolist())
    write_npz(path, record=text, **arrays)


def read_record(path: str | Path, kind: str, names: set[str]) -> tuple[dict, dict[str, np.ndarray]]:
    """The record and the arrays that `write_record` wrote as ``kind``.

    Args:
        names: of the entries and arrays that the file must have.

    Raises:
        DataError: the file is missing, damaged, or of something else.
    """
    arrays = read_npz(path)
    try:
        record = json.loads(str(arrays.pop("record")))
        given, version = record["kind"], record["format"]
    except (KeyError, TypeError, ValueError):
        raise DataError(f"{path}: not a file that sgtune saved") from None
    if (given, version) != (kind, FORMAT):
        raise DataError(
            f"{path}: has a {given} of format {version}; it must have a {kind} of format {FORMAT}"
        )
    if missing := names - record.keys() - arrays.keys():
        raise DataError(f"{path}: lacks {', '.join(sorted(missing))}")
    return record, arrays
