"""What silently ruins a run, found before it: columns that are no float32 numbers, rows that see other rows, and files
of another model."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from sgtune.support.errors import InputError
from sgtune.support.machine import full_precision

__all__ = [
    "as_columns",
    "check_leaves",
    "check_rows",
    "check_saved",
    "check_test_data",
    "checked_blocks",
    "in_single_precision",
    "saved_facts",
    "start_and_near",
]

LARGEST_LOSS = 1e-3
"""In sds of its column: a column whose values move further in float32 is refused."""

SAME = 1e-3
"""Values of a row in two batches are the same if they differ by less than this share of the largest value."""

BATCHES = ((0,), (1, 0), (2, 0, 1))
"""Row 0 is alone, the last, and between two others: it must see neither the rows before it nor those behind it."""

MOST_SEEN = 10_000
"""Rows among which three are sought that differ."""


def as_columns(data: PyTree) -> PyTree:
    """``data`` with NumPy arrays as leaves, all of them numbers that float32 and int32 can hold.

    A pandas frame becomes a dict of its columns, by their names. A categorical column becomes the codes of its
    categories, and a nullable one without missing values its numbers.

    Raises:
        InputError: a column is not numeric, has missing values, or has values that 32 bits cannot tell apart.
    """
    pandas = sys.modules.get("pandas")

    def without_pandas(leaf):
        if pandas is not None and isinstance(leaf, pandas.DataFrame):
            return columns_of(leaf)
        return leaf

    def as_array(path, leaf):
        name = jax.tree_util.keystr(path, simple=True, separator=".") or "data"
        if pandas is not None and isinstance(leaf, pandas.api.extensions.ExtensionArray | pandas.Index):
            leaf = pandas.Series(leaf)
        if pandas is not None and isinstance(leaf, pandas.Series):
            _check_missing(name, np.asarray(leaf.isna()))
            if isinstance(leaf.dtype, pandas.CategoricalDtype):
                return leaf.cat.codes.to_numpy(np.int32)
            leaf = leaf.to_numpy(getattr(leaf.dtype, "numpy_dtype", None))
        if np.ma.isMaskedArray(leaf):
            _check_missing(name, np.ma.getmaskarray(leaf))
        array = np.asarray(leaf)
        if not array.dtype.isnative:
            # As files of FITS have them, and JAX has not.
            array = array.astype(array.dtype.newbyteorder("="))
        _check_numbers(name, array)
        return array

    return jax.tree_util.tree_map_with_path(as_array, jax.tree.map(without_pandas, data))


def columns_of(frame: Any) -> dict[str, Any]:
    """The columns of a pandas frame by their names, as text; an `InputError` if two names are the same."""
    columns = {str(name): frame[name] for name in frame.columns}
    if len(columns) < len(frame.columns):
        raise InputError(f"data: columns {list(frame.columns)} are not allowed; names must differ")
    return columns


def where_nan(array: np.ndarray) -> np.ndarray:
    """Where an array has NaN; one False for an array of integers."""
    if array.dtype.kind == "f":
        return np.isnan(array)
    # bfloat16 and its kin are no floats to NumPy.
    return (
        np.isnan(array.astype(np.float32)) if jnp.issubdtype(array.dtype, jnp.floating) else np.array(False)
    )


def _check_missing(name: str, missing: np.ndarray) -> None:
    if missing.any():
        rows = int(missing.reshape(len(missing), -1).any(axis=1).sum())
        raise InputError(
            f"data: {name!r} has missing values (NaN) in {rows} of {len(missing)} rows; drop these rows or fill them"
        )


def _check_numbers(name: str, array: np.ndarray) -> None:
    if array.dtype.kind in "OUSMmcT" or array.dtype.names:
        raise InputError(
            f"data: {name!r} has dtype {array.dtype}, which is not allowed; it must have real numbers"
        )
    if array.ndim == 0:
        return  # refused by its shape
    for _ in checked_blocks(name, [array]):
        pass


def checked_blocks(name: str, blocks: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
    """The blocks of rows of one array, which are checked while they pass.

    Raises:
        InputError: as `as_columns`.
    """
    n_rows, mean, squares, lost, largest = 0, 0.0, 0.0, 0.0, 0.0
    for block in blocks:
        _check_integers(name, block)
        _check_missing(name, where_nan(block))
        least = {"f": 8, "i": 4, "u": 4}.get(block.dtype.kind)
        is_wide = least is not None and block.dtype.itemsize >= least
        if is_wide and block.size:
            columns = block.reshape(len(block), -1)
            with np.errstate(over="ignore", invalid="ignore"):
                lost = np.maximum(lost, np.abs(columns - columns.astype(np.float32)).max(axis=0))
                largest = np.maximum(largest, np.abs(columns).max(axis=0))
                # The sum of squares about the mean of all rows so far (Chan, Golub and LeVeque 1983).
                n, own, n_rows = n_rows, columns.mean(axis=0), n_rows + len(columns)
                squares = (
                    squares
                    + columns.var(axis=0) * len(columns)
                    + (own - mean) ** 2 * n * len(columns) / n_rows
                )
                mean = mean + (own - mean) * len(columns) / n_rows
        yield block
    if n_rows:
        with np.errstate(invalid="ignore"):
            sd = np.sqrt(squares / n_rows)
        # inf is a number of both kinds, and a constant column has nothing to tell apart.
        too_much = np.isfinite(largest) & (lost > LARGEST_LOSS * sd) & (sd > 1e-12 * largest)
        is_beyond = np.isfinite(largest) & np.isinf(lost)
        if (too_much | is_beyond).any():
            worst = int(np.argmax(is_beyond if is_beyond.any() else too_much))
            which = repr(name) if block.ndim == 1 else f"column {worst} of {name!r}"
            if is_beyond.any():
                raise InputError(
                    f"data: {which} has the value {largest[worst]:.3g}, or minus that, which float32 does not hold; "
                    "drop such rows or fill them"
                )
            raise InputError(
                f"data: {which} loses its values in float32: they move by up to {lost[worst]:.2g}, and their sd is "
                f"{sd[worst]:.2g}; subtract its mean and divide by its sd"
            )


def _check_integers(name: str, array: np.ndarray) -> None:
    if array.dtype.kind in "iu" and array.dtype.itemsize == 8 and array.size:
        bounds = np.iinfo(np.int32 if array.dtype.kind == "i" else np.uint32)
        for worst in (array.min(), array.max()):
            if not bounds.min <= worst <= bounds.max:
                raise InputError(
                    f"data: {name!r} has the integer {worst}, which 32 bits do not hold; number the values from 0, "
                    "or pass centred and scaled floats"
                )


def in_single_precision(array: np.ndarray | jax.Array) -> np.ndarray | jax.Array:
    """``array`` in 32 bits, also where JAX would keep 64 (``jax_enable_x64``): chains run in float32."""
    narrow = {"f": np.float32, "i": np.int32, "u": np.uint32}.get(array.dtype.kind)
    return array.astype(narrow) if narrow is not None and array.dtype.itemsize >= 8 else array


def check_test_data(
    model: str, task: str, test_data: Any, predict: Callable | None, position_shape: PyTree
) -> None:
    """Check that ``test_data`` has inputs and targets by which predictions can be judged.

    Raises:
        InputError: an entry is missing, or targets are not finite numbers, one for each input; or of a classification
            no integers from 0, or beyond the classes of ``predict``; or a regression predicts more than one number.
    """
    if not isinstance(test_data, Mapping) or not {"inputs", "targets"} <= set(test_data):
        raise InputError(f"test_data: model {model!r} needs a dict with inputs and targets")
    targets, shape = np.asarray(test_data["targets"]), None
    if targets.dtype.kind not in "biuf" or targets.ndim != 1:
        raise InputError(
            f"test_data: model {model!r} has targets of shape {targets.shape} and dtype {targets.dtype}; they must be "
            "numbers (m,)"
        )
    if not np.isfinite(targets).all():
        raise InputError(f"test_data: model {model!r} has targets that are not finite")
    if predict is not None:
        shape = jax.eval_shape(predict, position_shape, test_data["inputs"]).shape
        if shape[:1] != targets.shape:
            raise InputError(
                f"test_data: model {model!r} has {len(targets)} targets for predictions of shape {shape}; it must "
                "have one for each"
            )
    if task == "regression":
        if shape is not None and len(shape) > 1:
            raise InputError(
                f"predict: model {model!r} gives shape {shape}; of a regression it must be {shape[:1]}"
            )
        return
    targets = targets.astype(np.float64)
    n_classes = np.inf if shape is None else shape[1] if len(shape) > 1 else 2
    wrong = (targets < 0) | (targets != np.round(targets)) | (targets >= n_classes)
    if wrong.any():
        raise InputError(
            f"test_data: model {model!r} has the target {targets[wrong][0]:g}; those of a classification must be "
            f"integers from 0{f' to {n_classes - 1}' if shape is not None else ''}: number the classes, or give "
            "task='regression'"
        )


def check_leaves(name: str, position_shape: PyTree) -> None:
    """Raises:
    InputError: a leaf of a position is not of floats, and so cannot move, or has fewer than 32 bits."""
    for path, leaf in jax.tree_util.tree_flatten_with_path(position_shape)[0]:
        if leaf.dtype not in (jnp.float32, jnp.float64):
            where = jax.tree_util.keystr(path, simple=True, separator=".") or "the position"
            raise InputError(
                f"init: {where!r} of model {name!r} has dtype {leaf.dtype}, which is not allowed; positions must "
                "have leaves of float32, such as 0.0 for 0"
            )


def start_and_near(init: Callable) -> tuple[PyTree, PyTree]:
    """A start, and a position near it: where all is zero, much of what is wrong in a density goes unseen."""
    key, shaking, _ = jax.random.split(jax.random.key(0), 3)
    start = jax.tree.map(jnp.asarray, init(key))
    return start, jax.tree.map(
        lambda leaf: leaf + 0.1 * jax.random.normal(shaking, leaf.shape, leaf.dtype), start
    )


def check_rows(name: str, log_likelihood: Callable, init: Callable, data: PyTree) -> None:
    """Check that three rows have the same values in batches of one, two and three, in another order.

    Raises:
        InputError: a row's value changes when other rows join its batch.
    """
    some = _unlike(data)
    first = jax.tree.map(lambda leaf: leaf[some], data)
    start, shaken = start_and_near(init)

    @jax.jit
    @full_precision
    def values(position, rows):
        batches = (jax.tree.map(lambda leaf: leaf[np.array(batch)], rows) for batch in BATCHES)  # noqa: B023
        return [log_likelihood(position, batch) for batch in batches]

    found = [np.asarray(each, np.float64) for each in values(shaken, first)]
    if not np.isfinite(found[2]).all():
        found = [np.asarray(each, np.float64) for each in values(start, first)]
    if not np.isfinite(found[2]).all():
        return
    tolerance = SAME * np.abs(found[2]).max()
    by_row = found[2][np.argsort(BATCHES[2])]
    for batch, each in zip(BATCHES[:2], found[:2], strict=True):
        wanted = by_row[list(batch)]
        wrong = ~(np.abs(each - wanted) <= tolerance)
        if wrong.any():
            place = int(np.argmax(wrong))
            raise InputError(
                f"log_likelihood: model {name!r} gives row {batch[place]} the value {each[place]:.6g} in a batch of "
                f"{len(batch)} and {wanted[place]:.6g} in a batch of 3; a row's value must not depend on the other "
                "rows (as through targets of shape (N, 1) beside means of shape (N,), values of the row before it, or "
                "a factor N / n)"
            )


def _unlike(data: PyTree) -> list[int]:
    """The first row, and two others such that as many leaves as can be have two values: where all targets are 0, one
    that broadcasts goes unseen."""
    leaves = [np.asarray(leaf[:MOST_SEEN]) for leaf in jax.tree.leaves(data)]
    differs = np.stack([(leaf != leaf[:1]).any(axis=tuple(range(1, leaf.ndim))) for leaf in leaves])
    second = int(differs.sum(axis=0).argmax())
    score = differs.sum(axis=0) + len(leaves) * (differs & ~differs[:, [second]]).sum(axis=0)
    score[[0, second]] = -1
    return [0, second, int(score.argmax())]


def saved_facts(model: Any) -> dict[str, str | int]:
    """What a file that belongs to ``model`` says of it."""
    return {
        "model": model.name,
        "checksum": model.checksum,
        "n_data": model.n_data,
        "dimension": model.dimension,
    }


def check_saved(path: str | Path, record: dict, model: Any) -> None:
    """Check that a file with these `saved_facts` is of ``model``.

    Raises:
        InputError: it is of other data, or of positions of another D.
    """
    own = saved_facts(model)
    for name in ("dimension", "n_data", "checksum"):
        if record.get(name) != own[name]:
            raise InputError(
                f"model: {own['model']!r} has {name} {own[name]}; {path} is of a model {record.get('model')!r} with "
                f"{record.get(name)}"
            )
