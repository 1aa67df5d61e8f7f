"""Files are written whole or not at all, and read with errors that name them."""

import hashlib
import json
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4
from zipfile import BadZipFile

import numpy as np

from sgtune.support.errors import DataError

__all__ = ["atomic_write", "file_sha256", "read_json", "read_npz", "write_json"]


@contextmanager
def atomic_write(path: str | Path) -> Iterator[Path]:
    """A temporary path beside ``path``, of the same suffix, that is renamed to ``path`` if the block does not raise.

    When the block raises, the temporary file is removed and ``path`` stays as it was. The folder is made if
    it is missing.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.stem}-{uuid4().hex[:8]}{path.suffix}")
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


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
    except (OSError, ValueError, EOFError, BadZipFile) as error:
        raise DataError(f"{path}: not a readable .npz file ({' '.join(str(error).split())})") from None
