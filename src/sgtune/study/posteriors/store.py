"""A data set on disk: plain ``.npy`` files, mapped into memory when they are read, so that a job starts at once.

Prepared, the set ``{data_dir}/{model}`` is a folder of one file per array, and beside it ``{model}.json``: of each
array its file, dtype, shape, bytes and SHA-256, a checksum of the training data, and how the set was made. The slow
work is done once, when it is written: rows are shuffled, values are checked, sums are computed.
"""

import hashlib
import io
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sgtune.support.errors import DataError
from sgtune.support.files import atomic_write, file_sha256, read_json, write_json

if TYPE_CHECKING:
    from sgtune.model import Model


def random_order(n_rows: int) -> np.ndarray:
    """The order in which training rows are written, always the same: random, for minibatches of neighbours."""
    return np.random.default_rng(0).permutation(n_rows)


@dataclass(frozen=True)
class StoredSet:
    """What the files of one kind of set hold.

    Attributes:
        made_by: what makes them, for error messages.
        shapes: by an array's name, its dtype and shape; a name in a shape is any length but 0, the same wherever it
            stands.
        training: the arrays whose sums make the ``checksum``; all by default.
        shuffle: whether the rows of these are written in `random_order`.
        facts: the entries of the ``.json`` that a reader needs.
    """

    made_by: str
    shapes: Mapping[str, tuple[type, tuple[int | str, ...]]]
    training: tuple[str, ...] = ()
    shuffle: bool = False
    facts: tuple[str, ...] = ()

    def write(self, path_json: str | Path, arrays: Mapping[str, np.ndarray], **facts: object) -> None:
        """``arrays`` as ``{array}.npy`` in the folder of the name of ``path_json``, and ``path_json`` last.

        ``facts`` say how they were made; the lengths that shapes name are added to them.
        """
        path = Path(path_json)
        lengths = self._lengths(path, arrays)
        for name in self.shapes:
            if not np.isfinite(arrays[name]).all():
                raise DataError(f"{path}: {name} holds values that are not finite")
        # A file that an interrupted write leaves beside new arrays would vouch for them by their sizes.
        path.unlink(missing_ok=True)
        training, entries = list(self.training or self.shapes), {}
        for name in self.shapes:
            array = arrays[name]
            if self.shuffle and name in training:
                array = array[random_order(len(array))]
            entries[name] = _write_array(path.with_suffix("") / f"{name}.npy", array)
        sums = {"checksum": _checksum(entries, training), "training": training, "arrays": entries}
        write_json(path, {**lengths, **facts, **sums})

    def read(self, path_json: str | Path) -> dict:
        """The arrays, mapped into memory and read-only, the facts, and the ``checksum`` of the training arrays.

        Only the ``.json`` and the first bytes of each file are read; `verify` reads them all.
        """
        path = Path(path_json)
        with reading(path, self.made_by) as facts:
            found = {name: facts[name] for name in ("checksum", *self.facts)}
            arrays = {name: _map_array(path.parent, facts["arrays"][name]) for name in self.shapes}
            self._lengths(path, arrays)
        return found | arrays

    def _lengths(self, path: Path, arrays: Mapping[str, np.ndarray]) -> dict[str, int]:
        """The lengths that shapes name, if all arrays have their dtypes and shapes."""
        lengths: dict[str, int] = {}
        for name, (dtype, shape) in self.shapes.items():
            array = arrays[name]
            own = {size: n for size, n in zip(shape, array.shape, strict=False) if isinstance(size, str)}
            lengths = own | lengths
            wanted = tuple(lengths.get(size, size) for size in shape)
            if array.dtype != dtype or array.shape != wanted or not array.size:
                expected = f"{np.dtype(dtype)} ({', '.join(map(str, shape))})"
                raise DataError(f"{path}: {name} is {array.dtype} {array.shape}; expected {expected}")
        return lengths


@contextmanager
def reading(path: Path, made_by: str, *, delete: str = "") -> Iterator[dict]:
    """The contents of the ``.json`` of a set; of a fault in the block a line that says how to make the set again."""
    if not path.is_file():
        raise DataError(f"{path}: the file is missing; {made_by} makes it")
    # Snakemake knows a set by its .json, and would not look for one array of it.
    remedy = f"delete {delete or path.name}, and {made_by} makes it again"
    try:
        yield read_json(path)
    except (KeyError, TypeError) as error:
        raise DataError(f"{path}: not as this version of sgtune writes it: {error}; {remedy}") from None
    except DataError as error:
        raise DataError(f"{error}; {remedy}") from None


def load_stored(data: StoredSet, path_json: Path, from_arrays: "Callable[..., Model]") -> "Model":
    """The model ``from_arrays(inputs, labels, **options)`` of the set ``path_json``; its MAP is kept in its folder.

    Test rows, whose arrays are called as those for training, stay on the disk until they are used.
    """
    arrays = data.read(path_json)
    inputs, targets = (name.replace("train", "test") for name in data.training)
    return from_arrays(
        *(arrays[name] for name in data.training),
        test_data={"inputs": arrays[inputs], "targets": arrays[targets]},
        data_dir=path_json.parent,
        shuffle_seed=None,
        checksum=arrays["checksum"],
        **{name: arrays[name] for name in data.facts},
    )


def _write_array(path: Path, array: np.ndarray) -> dict:
    buffer = io.BytesIO()
    np.save(buffer, np.ascontiguousarray(array), allow_pickle=False)
    content = buffer.getbuffer()
    with atomic_write(path) as temporary:
        temporary.write_bytes(content)
    return {
        "file": f"{path.parent.name}/{path.name}",
        "dtype": str(array.dtype),
        "shape": array.shape,
        "bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
    }


def _checksum(entries: Mapping[str, dict], training: Iterable[str]) -> str:
    """One sum of the training arrays' sums; those are of whole files, so of dtypes and shapes, too."""
    lines = "".join(f"{name} {entries[name]['sha256']}\n" for name in training)
    return hashlib.sha256(lines.encode()).hexdigest()


def _map_array(folder: Path, entry: dict) -> np.ndarray:
    path, expected = folder / entry["file"], entry["bytes"]
    if not path.is_file():
        raise DataError(f"{path}: the file is missing")
    if (found := path.stat().st_size) != expected:
        raise DataError(f"{path}: truncated or changed: {found} bytes, expected {expected}")
    try:
        # What np.load(mmap_mode="r") calls for .npy files; that would open a .zip file as well.
        return np.lib.format.open_memmap(path, mode="r")
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f"{path}: not a readable .npy file ({' '.join(str(error).split())})") from None


def verify(path_json: str | Path) -> None:
    """Read all that `StoredSet.write` wrote; a DataError if a file is missing, truncated or changed."""
    path = Path(path_json)
    with reading(path, "its rule") as facts:
        for entry in facts["arrays"].values():
            check_sum(path.parent / entry["file"], entry["sha256"])
        if _checksum(facts["arrays"], facts["training"]) != facts["checksum"]:
            raise DataError(f"{path}: the checksum differs from the training arrays' checksum")


def check_sum(path: Path, expected: str) -> None:
    """A DataError if the file ``path`` is missing, or has another SHA-256 than ``expected``."""
    if (found := file_sha256(path)) != expected:
        raise DataError(f"{path}: truncated or changed: SHA-256 {found[:12]}..., expected {expected[:12]}...")


def exit_if_data_changed(run: str | Path) -> None:
    """One line and the end of the process if an array of a data set in the run's folder has another sum than its
    ``.json`` says: of other data of the same size no reader could tell."""
    for path in sorted(Path(run).glob("**/data/*.json")):
        try:
            if "arrays" in read_json(path):
                verify(path)
        except DataError as problem:
            sys.exit(f"Error: {problem}")
