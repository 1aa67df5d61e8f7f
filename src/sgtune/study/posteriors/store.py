"""A data set on disk: plain ``.npy`` files, mapped into memory when they are read, so that a job starts at once.

Prepared, the set ``{data_dir}/{model}`` is a folder of one file per array, and beside it ``{model}.json``: of each
array its file, dtype, shape, bytes and SHA-256, a checksum of the training data, and how the set was made. The slow
work is done once, when it is written: rows are shuffled, values are checked, checksums are compared.
"""

import hashlib
import io
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from sgtune.support.errors import DataError
from sgtune.support.files import atomic_write, file_sha256, read_json, write_json

__all__ = [
    "check_files",
    "check_range",
    "random_order",
    "read_arrays",
    "read_facts",
    "verify",
    "write_arrays",
]

Shapes = Mapping[str, tuple[type, tuple[int | str, ...]]]
"""By an array's name, its dtype and shape; a name in a shape is any length but 0, the same wherever it stands."""

ENTRIES = {"file": str, "dtype": str, "shape": list, "bytes": int, "sha256": str}


def random_order(n_rows: int) -> np.ndarray:
    """The order in which training rows are written, always the same: random, for minibatches of neighbours."""
    return np.random.default_rng(0).permutation(n_rows)


def write_arrays(
    path_json: str | Path,
    arrays: Mapping[str, np.ndarray],
    shapes: Shapes,
    facts: Mapping[str, object],
    training: Iterable[str] | None = None,
    shuffle: bool = False,
) -> None:
    """``arrays`` as ``.npy`` files in the folder of the name of ``path_json``, each read back, and ``path_json`` last.

    Args:
        path_json: ``{data_dir}/{model}.json``; the files are ``{data_dir}/{model}/{array}.npy``.
        arrays: those that ``shapes`` names.
        shapes: their required dtypes and shapes.
        facts: on how they were made.
        training: the arrays whose sums make the ``checksum``, all by default.
        shuffle: whether to write the rows of these in `random_order`.

    Raises:
        DataError: an array is of another dtype or shape, or a file is not what was written.
    """
    path = Path(path_json)
    _check_shapes(path, arrays, shapes)
    # A file that an interrupted write leaves beside new arrays would vouch for them by their sizes.
    path.unlink(missing_ok=True)
    folder = path.with_suffix("")
    training, entries = list(shapes if training is None else training), {}
    for name in shapes:
        array = arrays[name]
        if shuffle and name in training:
            array = array[random_order(len(array))]
        entries[name] = _write_array(folder / f"{name}.npy", array)
    write_json(
        path, {**facts, "checksum": _checksum(entries, training), "training": training, "arrays": entries}
    )


def _write_array(path: Path, array: np.ndarray) -> dict:
    buffer = io.BytesIO()
    np.save(buffer, np.ascontiguousarray(array), allow_pickle=False)
    content = buffer.getbuffer()
    expected = hashlib.sha256(content).hexdigest()
    with atomic_write(path) as temporary:
        temporary.write_bytes(content)
        _check_sum(path, file_sha256(temporary), expected, "it was not written whole")
    return {
        "file": f"{path.parent.name}/{path.name}",
        "dtype": str(array.dtype),
        "shape": array.shape,
        "bytes": len(content),
        "sha256": expected,
    }


def _checksum(entries: Mapping[str, dict], training: Iterable[str]) -> str:
    """One sum of the training arrays' sums; those are of whole files, so of dtypes and shapes, too."""
    lines = "".join(f"{name} {entries[name]['sha256']}\n" for name in training)
    return hashlib.sha256(lines.encode()).hexdigest()


def read_facts(path_json: str | Path, made_by: str = "its rule", **types: object) -> dict:
    """The contents of ``path_json`` by `write_arrays`; ``made_by`` names its maker in error messages.

    Args:
        types: of the required facts.

    Raises:
        DataError: the file is missing, is no JSON, or lacks an entry.
    """
    path = Path(path_json)
    if not path.is_file():
        raise DataError(f"{path}: the file is missing; {made_by} makes it")
    remedy = _remedy(path, made_by)
    try:
        facts = read_json(path)
    except DataError as error:
        raise DataError(f"{error}; {remedy}") from None
    types = {"arrays": dict, "checksum": str, "training": list, **types}
    _check_entries(str(path), facts, types, remedy)
    for name, entry in facts["arrays"].items():
        _check_entries(f"{path}, array {name}", entry, ENTRIES, remedy)
    return facts


def read_arrays(
    path_json: str | Path, shapes: Shapes, made_by: str = "its rule", **types: object
) -> tuple[dict[str, np.ndarray], dict]:
    """The arrays of `write_arrays`, mapped into memory and read-only, and what `read_facts` gives.

    Only the ``.json`` and the first bytes of each file are read; `verify` reads them all.

    Raises:
        DataError: as `read_facts`, or the arrays do not match ``shapes``, or a file is missing, or has another
            size, dtype or shape than the ``.json`` or ``shapes`` says. The line says how to make it again.
    """
    path = Path(path_json)
    facts = read_facts(path, made_by, **types)
    remedy, entries = _remedy(path, made_by), facts["arrays"]
    if set(entries) != set(shapes):
        found, expected = (", ".join(sorted(names)) or "none" for names in (entries, shapes))
        raise DataError(f"{path}: names the arrays {found}; expected {expected}; {remedy}")
    arrays = {name: _map_array(path.parent / entries[name]["file"], entries[name], remedy) for name in shapes}
    _check_shapes(path, arrays, shapes, f"; {remedy}")
    return arrays, facts


def _map_array(path: Path, entry: dict, remedy: str) -> np.ndarray:
    if not path.is_file():
        raise DataError(f"{path}: the file is missing; {remedy}")
    if (found := path.stat().st_size) != entry["bytes"]:
        raise DataError(f"{path}: truncated or changed: {found} bytes, expected {entry['bytes']}; {remedy}")
    try:
        # What np.load(mmap_mode="r") calls for .npy files; that would open a .zip file as well.
        array = np.lib.format.open_memmap(path, mode="r")
    except (OSError, ValueError, EOFError) as error:
        raise DataError(
            f"{path}: not a readable .npy file ({' '.join(str(error).split())}); {remedy}"
        ) from None
    found, expected = f"{array.dtype} {array.shape}", f"{entry['dtype']} {tuple(entry['shape'])}"
    if found != expected:
        raise DataError(f"{path}: holds {found}; expected {expected}; {remedy}")
    return array


def verify(path_json: str | Path) -> None:
    """Read all that `write_arrays` wrote as ``path_json`` and beside it, and compare its SHA-256.

    Raises:
        DataError: a file is missing, truncated or changed.
    """
    path = Path(path_json)
    facts = read_facts(path)
    remedy, entries = _remedy(path, "its rule"), facts["arrays"]
    for entry in entries.values():
        file = path.parent / entry["file"]
        _map_array(file, entry, remedy)
        _check_sum(file, file_sha256(file), entry["sha256"], remedy)
    unknown = set(facts["training"]) - set(entries)
    if unknown or _checksum(entries, facts["training"]) != facts["checksum"]:
        raise DataError(f"{path}: the checksum differs from the training arrays' checksum; {remedy}")


def _remedy(path: Path, made_by: str) -> str:
    # Snakemake knows a set by its .json, and would not look for one array of it.
    return f"delete {path.name}, and {made_by} makes it again"


def _check_entries(where: str, found: object, types: Mapping[str, object], remedy: str) -> None:
    for name, kind in types.items():
        if not isinstance(found, dict) or name not in found or not isinstance(found[name], kind):
            raise DataError(
                f"{where}: no entry {name!r} as this version of sgtune writes it; "
                f"expected {', '.join(types)}; {remedy}"
            )


def _check_sum(path: Path, found: str, expected: str, what_now: str) -> None:
    if found != expected:
        raise DataError(
            f"{path}: truncated or changed: SHA-256 {found[:12]}..., expected {expected[:12]}...; {what_now}"
        )


def check_files(folder: Path, sha256: Mapping[str, str]) -> None:
    """Refuse downloaded files that have changed since.

    Args:
        folder: where the files are.
        sha256: file name -> sum, in hexadecimal.

    Raises:
        DataError: a file is missing, or has another sum.
    """
    for name, expected in sha256.items():
        path = folder / name
        _check_sum(path, file_sha256(path), expected, "delete it, and its rule downloads it again")


def _check_shapes(path: Path, arrays: Mapping[str, np.ndarray], shapes: Shapes, what_now: str = "") -> None:
    lengths = {}
    for name, (dtype, shape) in shapes.items():
        array = arrays[name]
        shape = [lengths.get(length, length) for length in shape]
        fits = array.ndim == len(shape) and all(
            found > 0 if isinstance(expected, str) else found == expected
            for found, expected in zip(array.shape, shape, strict=True)
        )
        if not fits or array.dtype != dtype:
            wanted = ", ".join(str(length) for length in shape) + ("," if len(shape) == 1 else "")
            raise DataError(
                f"{path}: {name} is {array.dtype} {array.shape}; expected {np.dtype(dtype)} ({wanted}){what_now}"
            )
        named = zip(shape, array.shape, strict=True)
        lengths |= {expected: found for expected, found in named if isinstance(expected, str)}


def check_range(path: Path, name: str, array: np.ndarray, lowest: int, highest: int) -> None:
    """`DataError` unless the integers of ``array``, one or more, are from ``lowest`` to ``highest``."""
    for extreme in (array.min(), array.max()):
        if not lowest <= extreme <= highest:
            raise DataError(f"{path}: {name} holds {extreme}; expected {lowest} to {highest}")
