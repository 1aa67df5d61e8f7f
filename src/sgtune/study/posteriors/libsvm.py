"""LIBSVM's text format: ``label index:value index:value ...``, with increasing indices from 1 and without zeros."""

import re

import numpy as np
from jaxtyping import Float32, UInt8

from sgtune.support.errors import DataError

__all__ = ["parse_libsvm"]

LINE = re.compile(rb"[^\s:]+(?: +[1-9][0-9]*:[^\s:]+)* *\r?")


def parse_libsvm(
    content: bytes, *, n_features: int, n_classes: int, where: str
) -> tuple[Float32[np.ndarray, "n features"], UInt8[np.ndarray, " n"]]:
    """The inputs and the labels of a file; labels are counted from 0, while the file counts from 1.

    Args:
        content: the bytes of the file.
        n_features: the number of columns of the inputs, which is also the largest allowed index.
        n_classes: the number of classes; labels in the file are the integers from 1 to this.
        where: the name of the file in error messages.

    Raises:
        DataError: the file has no rows, or a line has another form, a label or an index out of range, indices that do
            not increase, or a value that is not finite; the message has the line number.
    """
    lines = content.splitlines()
    if not lines:
        raise DataError(f"{where}: holds no rows; expected lines of a label and index:value pairs")
    inputs, labels = np.zeros((len(lines), n_features), np.float32), np.zeros(len(lines), np.uint8)
    for row, line in enumerate(lines):
        try:
            labels[row] = _read_line(line, inputs[row], n_classes)
        except ValueError as error:
            shown = line[:60].decode("ascii", "replace")
            raise DataError(f"{where}, line {row + 1}: {shown!r}; {error}") from None
    return inputs, labels


def _read_line(line: bytes, into: np.ndarray, n_classes: int) -> int:
    """The label of ``line``, counted from 0; the values are written into the row ``into``."""
    if not LINE.fullmatch(line):
        raise ValueError("expected a label and index:value pairs")
    try:
        label, *numbers = map(float, line.replace(b":", b" ").split())
    except ValueError:
        raise ValueError("expected numbers only") from None
    if label not in range(1, n_classes + 1):
        raise ValueError(f"label {label:g}; expected 1 to {n_classes}")
    indices, values = np.array(numbers[::2], np.intp), np.array(numbers[1::2])
    if (np.diff(indices) <= 0).any() or (len(indices) and indices[-1] > len(into)):
        raise ValueError(f"expected indices that grow, from 1 to {len(into)}")
    if not np.isfinite(values).all():
        raise ValueError("expected finite values")
    into[indices - 1] = values
    return int(label) - 1
