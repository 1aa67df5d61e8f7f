"""A data set on disk, checked when it is read.

Prepared, it is a ``.npz`` of arrays, and beside it a ``.json`` with its SHA-256 and how it was made.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from sgtune.errors import DataError
from sgtune.files import atomic_write, file_sha256, read_json, write_json

__all__ = ["check_array", "check_files", "check_range", "read_arrays", "write_arrays"]


def write_arrays(path_npz: str | Path, arrays: Mapping[str, np.ndarray], facts: Mapping[str, object]) -> None:
    """``arrays`` as ``path_npz``, and beside it a ``.json``: its SHA-256, and ``facts`` on how it was made."""
    path_npz = Path(path_npz)
    with atomic_write(path_npz) as temporary:
        np.savez(temporary, **arrays)
    write_json(
        path_npz.with_suffix(".json"), {"file": path_npz.name, "sha256": file_sha256(path_npz), **facts}
    )


def read_arrays(path_npz: str | Path, names: Iterable[str], made_by: str) -> dict[str, np.ndarray]:
    """The arrays of `write_arrays`, which are to have ``names``; ``made_by`` tells how to get a missing file.

    Raises:
        DataError: the file or its ``.json`` is missing, truncated, not what was written, or holds other
            arrays.
    """
    path = Path(path_npz)
    if not path.is_file():
        raise DataError(f"{path}: the file is missing; {made_by} makes it")
    sidecar = read_json(path.with_suffix(".json"))
    expected = sidecar.get("sha256") if isinstance(sidecar, dict) else None
    if not expected:
        raise DataError(f"{path.with_suffix('.json')}: no entry 'sha256'; expected that of {path.name}")
    found = file_sha256(path)
    if found != expected:
        raise DataError(f"{path}: truncated or changed: SHA-256 {found[:12]}..., expected {expected[:12]}...")
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (OSError, ValueError, EOFError, BadZipFile) as error:
        raise DataError(f"{path}: not a readable .npz file ({' '.join(str(error).split())})") from None
    if set(arrays) != set(names):
        raise DataError(f"{path}: holds {', '.join(sorted(arrays))}; expected {', '.join(sorted(names))}")
    return arrays


def check_files(folder: Path, sha256: Mapping[str, str]) -> None:
    """Refuse downloaded files that have changed since.

    Args:
        folder: where the files are.
        sha256: file name -> sum, in hexadecimal.

    Raises:
        DataError: a file is missing, or has another sum.
    """
    for name, expected in sha256.items():
        found = file_sha256(folder / name)
        if found != expected:
            raise DataError(
                f"{folder / name}: truncated or changed: SHA-256 {found[:12]}..., expected {expected[:12]}...; "
                "delete it, and its rule downloads it again"
            )


def check_array(path: Path, name: str, array: np.ndarray, dtype: type, shape: tuple[int | str, ...]) -> None:
    """`DataError` unless ``array`` has ``dtype`` and ``shape``, where a string is any length but 0."""
    fits = array.ndim == len(shape) and all(
        length > 0 if isinstance(expected, str) else length == expected
        for length, expected in zip(array.shape, shape, strict=True)
    )
    if not fits or array.dtype != dtype:
        wanted = ", ".join(str(length) for length in shape) + ("," if len(shape) == 1 else "")
        raise DataError(
            f"{path}: {name} is {array.dtype} {array.shape}; expected {np.dtype(dtype)} ({wanted})"
        )


def check_range(path: Path, name: str, array: np.ndarray, lowest: int, highest: int) -> None:
    """`DataError` unless the integers of ``array``, one or more, are from ``lowest`` to ``highest``."""
    for extreme in (array.min(), array.max()):
        if not lowest <= extreme <= highest:
            raise DataError(f"{path}: {name} holds {extreme}; expected {lowest} to {highest}")
