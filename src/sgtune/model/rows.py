"""Rows of data that stay where they are, such as in a file, and are read when a program needs them.

A compiled program takes `StoredRows` in place of arrays. It asks the host for the rows of a tile, or of a minibatch, by
a callback, and computes with them what it computes with rows in memory, in the same order: results are the same, bit
for bit. Only numbers that say which rows are asked for go to the host.
"""

import logging
import mmap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count, pairwise
from math import prod
from pathlib import Path
from threading import Lock
from typing import Any
from weakref import WeakValueDictionary

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Int, PyTree

from sgtune.model.checks import where_nan
from sgtune.support.errors import InputError, check_integer

__all__ = [
    "RowSource",
    "StoredRows",
    "bytes_of_row",
    "first_rows",
    "named_faults",
    "number_of_rows",
    "rows_between",
    "take_rows",
]

BLOCK, MOST_SINGLY = 4_096, 2**20
"""Rows of a source are shuffled in blocks of so many, but one by one up to so many rows."""

MAPPED_BYTES = 2**30
"""Above so many resident bytes of mapped files, a source hands the pages of its own memory maps back to the system."""

AT_ONCE, AT_LEAST = 1_024, 256
"""Rows that are read before the resident memory is looked at; fewer where these took far too much, because a scattered
row maps 16 pages, or the large folio of the system's cache that it is in, of up to 2 MB."""

LONG_RUN = 64
"""Consecutive rows that are worth a slice of their own."""

MOST_ROWS = 2**30
"""Row numbers and their sums must be int32."""

NARROW = {"f": np.dtype(np.float32), "i": np.dtype(np.int32), "u": np.dtype(np.uint32)}


class RowSource:
    """Data for `sgtune.define_model` that need not fit in memory.

    A chain reads the rows of its minibatches, on another thread while the device works on those before. Passes over all
    data, for the mode, the curvature, scores and checks, read it from one end to the other. All draws and scores are
    those of the same rows in memory, bit for bit.

    Rows are shuffled once, as those in memory, but many in blocks of ``block`` consecutive rows: only so are passes
    fast. Up to 4,000 rows, a minibatch is a uniform subset whatever the order of the rows. A larger one consists of
    blocks of up to 16 consecutive rows, and rows that are held out, or stand for all in scores of a
    ``score_fraction``, of blocks of ``block``: both assume that neighbours in the file are no more alike than other
    rows. If the file is sorted, write it in random order, or use ``block=1``.

    Memory: minibatches of up to 64 MB, twice for each ensemble of chains, larger ones tile by tile; one tile of
    `sgtune.model.posterior.sum_over_tiles` in a pass; 8 bytes for each block; and ``mapped_bytes``. `sgtune.theory`
    takes some 40 bytes for each row on top, which races ask only where N D is at most 2e8.

    Args:
        rows: a pytree of arrays in files, with N rows each: of NumPy (``np.load(path, mmap_mode="r")``), HDF5, or
            anything else that has a ``shape`` and a ``dtype`` and takes slices and ascending row numbers. Or one object
            with a length that gives a row, a pytree of numbers and arrays, by its number, as sources of grain do.
        block: rows that stay together when they are shuffled; 1 gives the order of rows in memory, and takes 8 N bytes.
            None: 1 up to 2^20 rows, else 4,096.
        mapped_bytes: resident memory of mapped files, those of programs included, above which the pages of memory maps
            of NumPy are handed back. They count as memory of this process, and reading them again takes time.
            Measured on Linux only.

    Raises:
        InputError: ``rows`` are nothing of the above, have no rows, or more than 2^30, or are not numeric.
    """

    def __init__(self, rows: Any, *, block: int | None = None, mapped_bytes: int = MAPPED_BYTES):
        self.mapped_bytes = check_integer("mapped_bytes", mapped_bytes, at_least=0)
        self._blocks: np.ndarray | None = None
        paths, self.structure = jax.tree_util.tree_flatten_with_path(rows)
        leaves = [leaf for _, leaf in paths]
        if any(hasattr(leaf, "iloc") for leaf in leaves):
            raise InputError(
                "rows: pandas takes rows by their labels; give arrays, such as series.to_numpy()"
            )
        self._by_row = not all(hasattr(leaf, "shape") and hasattr(leaf, "dtype") for leaf in leaves)
        if self._by_row and (
            leaves != [rows] or not hasattr(rows, "__len__") or not hasattr(rows, "__getitem__")
        ):
            raise InputError(
                f"rows: {type(rows).__name__} is not allowed; it must be a pytree of arrays with a shape and a dtype, "
                "or an object with a length that gives a row by its number"
            )
        self._leaves = [rows] if self._by_row else leaves
        n_rows = self._length()
        if not leaves or n_rows is None:
            raise InputError("rows: the arrays must share a leading axis of N rows")
        self.n_rows = check_integer("rows: number of rows", n_rows, at_least=1, at_most=MOST_ROWS)
        by_size = 1 if self.n_rows <= MOST_SINGLY else BLOCK
        self.block = by_size if block is None else check_integer("block", block, at_least=1)
        if self._by_row:
            paths, self.structure = jax.tree_util.tree_flatten_with_path(self._row(0))
            given = [np.asarray(leaf) for _, leaf in paths]
            self._given = [(leaf.shape, leaf.dtype) for leaf in given]
        else:
            self._given = [(tuple(leaf.shape[1:]), np.dtype(leaf.dtype)) for leaf in leaves]
        self.names = [jax.tree_util.keystr(path, simple=True, separator=".") or "data" for path, _ in paths]
        for name, (_, dtype) in zip(self.names, self._given, strict=True):
            if dtype.kind not in "fiub" and dtype.name != "bfloat16":
                raise InputError(
                    f"data: {name!r} has dtype {dtype}, which is not allowed; it must have real numbers"
                )
        self._maps = [] if self._by_row else list(_memory_maps(leaves))
        self._advice: int | None = None
        self._at_once = AT_ONCE

    def __len__(self) -> int:
        return self.n_rows

    def __repr__(self) -> str:
        return f"RowSource(N={self.n_rows:,}, block={self.block})"

    def shuffled(self, seed: int | None) -> "RowSource":
        """The same rows, their blocks in the order of ``seed``; None: as they are. The last block, if it is shorter,
        stays where it is."""
        other = object.__new__(RowSource)
        other.__dict__.update(self.__dict__)
        other._blocks = None
        if seed is not None:
            other._blocks = np.random.default_rng(seed).permutation(self.n_rows // self.block)
        return other

    def numbers_of(self, places: Int[np.ndarray, " k"]) -> Int[np.ndarray, " k"]:
        """The numbers in the source of the rows at ``places`` in the shuffled order."""
        if self._blocks is None or not len(self._blocks):
            return places
        block, within = np.divmod(places, self.block)
        is_whole = block < len(self._blocks)
        moved = self._blocks[np.where(is_whole, block, 0)] * self.block + within
        return np.where(is_whole, moved, places)

    @property
    def row_shapes(self) -> list[tuple[tuple[int, ...], np.dtype]]:
        """The shape of a row of each leaf, and its dtype in 32 bits."""
        return [(shape, _narrow(dtype)) for shape, dtype in self._given]

    def take(self, places: Int[np.ndarray, " k"]) -> list[np.ndarray]:
        """The leaves of the rows at ``places``, in 32 bits: any order, with repeats.

        Raises:
            InputError: they cannot be read, have another shape or dtype than the first row, or NaN, or the source has
                another length than before.
        """
        unique, back = np.unique(self.numbers_of(np.asarray(places, np.int64)), return_inverse=True)
        found = self._read(unique, range(len(self._given)))
        if len(unique) != len(back) or (np.diff(back) != 1).any():
            found = [leaf[back] for leaf in found]
        return [leaf.astype(_narrow(leaf.dtype), copy=False) for leaf in found]

    def columns(self) -> Iterator[tuple[str, np.dtype, tuple[int, ...], Iterator[np.ndarray]]]:
        """Of each leaf the name, the dtype, the shape, and its rows as they are stored, but in the byte order of this
        machine, block by block, in the order of the source."""
        for i, (name, (shape, dtype)) in enumerate(zip(self.names, self._given, strict=True)):
            each = max(1, min(2**16, 2**24 // max(1, prod(shape) * dtype.itemsize)))
            starts = range(0, self.n_rows, each)
            blocks = (
                self._read(np.arange(start, min(start + each, self.n_rows)), [i])[0] for start in starts
            )
            yield name, dtype.newbyteorder("="), (self.n_rows, *shape), blocks

    def _length(self) -> int | None:
        """The number of rows now; None if arrays differ in it."""
        if self._by_row:
            return len(self._leaves[0])
        lengths = {tuple(leaf.shape[:1]) for leaf in self._leaves}
        return lengths.pop()[0] if len(lengths) == 1 and () not in lengths else None

    def _row(self, number: int) -> PyTree:
        try:
            return self._leaves[0][number]
        except Exception as error:
            raise _unreadable(number, number, error) from error

    def _read(self, numbers: Int[np.ndarray, " k"], which: Any) -> list[np.ndarray]:
        """Some leaves of the rows with these ascending numbers."""
        if self._length() != self.n_rows:
            raise InputError(f"data: the source has {self._length()} rows now; it had {self.n_rows}")
        if self._by_row:
            rows = [jax.tree.flatten(self._row(number)) for number in numbers.tolist()]
            if any(structure != self.structure for _, structure in rows):
                raise InputError(
                    f"data: rows {numbers[0]} to {numbers[-1]} have another structure than row 0"
                )
            return [self._checked(i, [leaves[i] for leaves, _ in rows], numbers) for i in which]
        return [self._checked(i, self._of_array(self._leaves[i], numbers), numbers) for i in which]

    def _of_array(self, leaf: Any, numbers: Int[np.ndarray, " k"]) -> list[np.ndarray]:
        """Pieces of the rows of an array in a file: slices where runs of consecutive rows are long."""
        ends = np.flatnonzero(np.diff(numbers) != 1) + 1
        is_scattered = len(ends) * LONG_RUN > len(numbers)
        self._advise(is_scattered)
        if is_scattered:
            pieces = np.split(numbers, range(self._at_once, len(numbers), self._at_once))
        else:
            bounds = [0, *ends.tolist(), len(numbers)]
            pieces = [slice(numbers[start], numbers[end - 1] + 1) for start, end in pairwise(bounds)]
        found, since = [], 0
        for piece in pieces:
            try:
                # A copy, because the pages of a view are handed back.
                found.append(np.array(leaf[piece]))
            except Exception as error:
                raise _unreadable(int(numbers[0]), int(numbers[-1]), error) from error
            since += len(found[-1])
            if since >= self._at_once:
                self._hand_back()
                since = 0
        self._hand_back()
        return found

    def _checked(self, i: int, pieces: list, numbers: Int[np.ndarray, " k"]) -> np.ndarray:
        """The pieces of leaf i in one array, if they are what the first rows promised."""
        shape, dtype = self._given[i]
        name = self.names[i]
        given = {(np.shape(piece)[0 if self._by_row else 1 :], np.asarray(piece).dtype) for piece in pieces}
        if given - {(shape, dtype)}:
            others = " and ".join(f"{dtype}{list(shape)}" for shape, dtype in given)
            raise InputError(
                f"data: rows {numbers[0]} to {numbers[-1]} of {name!r} are {others}; all must be "
                f"{dtype}{list(shape)}, as row 0"
            )
        rows = np.stack(pieces) if self._by_row else pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
        if len(rows) != len(numbers):
            raise InputError(
                f"data: {len(rows)} rows of {name!r} given for the {len(numbers)} from {numbers[0]} to {numbers[-1]}"
            )
        missing = where_nan(rows)
        if missing.any():
            row = numbers[missing.reshape(len(rows), -1).any(axis=1).argmax()]
            raise InputError(
                f"data: {name!r} has missing values (NaN) in row {row}; drop such rows or fill them"
            )
        return rows.astype(dtype.newbyteorder("="), copy=False)

    def _advise(self, is_scattered: bool) -> None:
        """Have the system read no neighbours of scattered rows, and read ahead in passes."""
        if not hasattr(mmap, "MADV_RANDOM"):
            return
        advice = mmap.MADV_RANDOM if is_scattered else mmap.MADV_NORMAL
        if advice != self._advice:
            self._advice = advice
            for each in self._maps:
                each.madvise(advice)

    def _hand_back(self) -> None:
        """Hand the pages of memory maps back, where they are too many. They stay in the system's cache of files."""
        if not self._maps or not hasattr(mmap, "MADV_DONTNEED") or not STATM.exists():
            return
        resident = int(STATM.read_bytes().split()[2]) * mmap.PAGESIZE
        if resident > self.mapped_bytes:
            for each in self._maps:
                each.madvise(mmap.MADV_DONTNEED)
        if resident > 1.1 * self.mapped_bytes:
            self._at_once = max(AT_LEAST, self._at_once // 2)


STATM = Path("/proc/self/statm")


def _memory_maps(leaves: list) -> Iterator[mmap.mmap]:
    """Those behind the leaves, but for private ones: changes in their pages would be lost."""
    for leaf in leaves:
        while leaf is not None and not isinstance(leaf, np.memmap):
            leaf = getattr(leaf, "base", None)
        if leaf is not None and leaf.mode != "c" and leaf._mmap is not None:
            yield leaf._mmap


def _narrow(dtype: np.dtype) -> np.dtype:
    return NARROW[dtype.kind] if dtype.itemsize >= 8 else dtype.newbyteorder("=")


def _unreadable(first: int, last: int, error: Exception) -> InputError:
    line = " ".join(str(error).split())
    return InputError(f"data: rows {first} to {last} cannot be read ({type(error).__name__}: {line})")


_sources: "WeakValueDictionary[int, RowSource]" = WeakValueDictionary()
_tickets = count(1)


@jax.tree_util.register_pytree_node_class
class StoredRows:
    """The data of a model whose rows a `RowSource` has, as compiled programs take them.

    A pytree with one leaf, the number by which the host knows the source, so that programs serve all sources with rows
    of one kind. It is not indexed: `rows_between` and `take_rows` give arrays.

    Attributes:
        minibatch: a key and the rows of its minibatch, if a program has them already.
    """

    minibatch: tuple[Any, PyTree] = (None, None)

    def __init__(self, source: RowSource):
        self.source = source
        ticket = next(_tickets)
        _sources[ticket] = source
        self.ticket = np.asarray(ticket, np.int32)
        self.n_rows = source.n_rows
        self.kind = (source.structure, tuple(source.row_shapes))

    def tree_flatten(self) -> tuple[tuple, tuple]:
        """For JAX."""
        return (self.ticket,), (self.n_rows, self.kind)

    @classmethod
    def tree_unflatten(cls, fixed: tuple, leaves: tuple) -> "StoredRows":
        """For JAX."""
        other = object.__new__(cls)
        (other.ticket,), (other.n_rows, other.kind) = leaves, fixed
        return other

    def __getitem__(self, key: Any) -> Any:
        raise InputError(
            f"data: {key!r} of the rows of a source is not allowed; they are not in memory, so functions of a position "
            "and all data, such as constrain, can use the position only"
        )

    @property
    def row_bytes(self) -> int:
        """Bytes of a row in 32 bits."""
        return sum(prod(shape) * dtype.itemsize for shape, dtype in self.kind[1])

    def shapes(self, n: int) -> PyTree:
        """Shapes and dtypes of n rows."""
        structure, kinds = self.kind
        return structure.unflatten(jax.ShapeDtypeStruct((n, *shape), dtype) for shape, dtype in kinds)

    def window(self, n: int) -> "StoredRows":
        """The first n rows, still not in memory."""
        other = self.tree_unflatten((n, self.kind), (self.ticket,))
        if hasattr(self, "source"):
            other.source = self.source
        return other

    def with_minibatch(self, key: Any, rows: PyTree) -> "StoredRows":
        """These rows for a step that has a ``minibatch``. It is known by its key, the object, so an estimator that
        makes further keys of it has their minibatches read."""
        other = self.window(self.n_rows)
        other.minibatch = (key, rows)
        return other

    def take(self, places: Int[np.ndarray, " k"]) -> PyTree:
        """The rows at ``places`` as NumPy arrays; not within a program."""
        return self.kind[0].unflatten(_sources[int(self.ticket)].take(places))

    def between(self, start: Any, n: int) -> PyTree:
        """n rows from ``start`` on, in a program or out of one."""
        return self.asked(_between, n, start)

    def asked(self, read: Callable, n: int, *numbers: Any) -> PyTree:
        """n rows that ``read(source, n, *numbers)`` gives on the host."""
        callback = partial(_read_rows, read, n)
        leaves = jax.pure_callback(
            callback, jax.tree.leaves(self.shapes(n)), self.ticket, *numbers, vmap_method="sequential"
        )
        return self.kind[0].unflatten(leaves)


def _between(source: RowSource, n: int, start: np.ndarray) -> list[np.ndarray]:
    return source.take(np.arange(int(start), int(start) + n))


class _ReadingFailed(Exception):
    """Ends the program that asked for rows; `named_faults` says why."""


_faults: list[InputError] = []
_faults_lock = Lock()


def _read_rows(read: Callable, n: int, ticket: jax.Array, *numbers: jax.Array) -> list[np.ndarray]:
    try:
        return read(_sources[int(ticket)], n, *(np.asarray(number) for number in numbers))
    except InputError as error:
        with _faults_lock:
            _faults[:] = [error]
        raise _ReadingFailed(str(error)) from None


# JAX logs the traceback of every callback that fails; the error itself reaches the caller.
logging.getLogger("jax._src.callback").addFilter(
    lambda record: not (record.exc_info and isinstance(record.exc_info[1], _ReadingFailed))
)


@contextmanager
def named_faults() -> Iterator[None]:
    """Raise the fault of a source of rows in place of the error of the program that asked for them."""
    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        with _faults_lock:
            fault = next((fault for fault in _faults if str(fault) in str(error)), None)
        if fault is None:
            raise
        raise fault from None


def _is_stored(data: Any) -> bool:
    return isinstance(data, StoredRows)


def number_of_rows(data: PyTree) -> int:
    """N of a pytree of arrays, or of stored rows."""
    leaf = jax.tree.leaves(data, is_leaf=_is_stored)[0]
    return leaf.n_rows if _is_stored(leaf) else leaf.shape[0]


def bytes_of_row(data: PyTree) -> int:
    """Bytes of a row of a pytree of arrays, or of stored rows in 32 bits."""
    leaves = jax.tree.leaves(data, is_leaf=_is_stored)
    return sum(
        leaf.row_bytes if _is_stored(leaf) else leaf.dtype.itemsize * leaf.size // leaf.shape[0]
        for leaf in leaves
    )


def rows_between(data: PyTree, start: Any, n: int) -> PyTree:
    """n rows of ``data`` from the number ``start`` on, which may be traced, as arrays of a program."""

    def of_leaf(leaf):
        if _is_stored(leaf):
            return leaf.between(start, n)
        return leaf if n == leaf.shape[0] else jax.lax.dynamic_slice_in_dim(leaf, start, n)

    return jax.tree.map(of_leaf, data, is_leaf=_is_stored)


def first_rows(data: PyTree, n: int) -> PyTree:
    """The first n rows of ``data``, or all if there are no more; stored rows stay where they are."""
    if _is_stored(data):
        return data.window(min(n, data.n_rows))
    return jax.tree.map(lambda leaf: leaf[:n], data)


def take_rows(data: PyTree, places: Int[np.ndarray, " k"]) -> PyTree:
    """The rows of ``data`` at ``places``. On a CPU NumPy takes them: JAX would compile six programs for each shape."""
    if _is_stored(data):
        return jax.tree.map(jnp.asarray, data.take(places))
    if jax.default_backend() == "cpu":
        data = jax.tree.map(np.asarray, data)
    return jax.tree.map(lambda leaf: leaf[places], data)
