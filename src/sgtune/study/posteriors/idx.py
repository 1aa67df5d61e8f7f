"""MNIST's idx format: unsigned bytes in an array of any number of axes, under a header of big-endian integers."""

import math
import struct
from pathlib import Path

import numpy as np

from sgtune.support.errors import DataError
from sgtune.support.files import atomic_write

__all__ = ["idx_bytes", "read_idx", "write_idx"]

MAGIC = b"\x00\x00\x08"
"""The third byte says that the items are unsigned bytes; a fourth, the number of axes, follows."""


def idx_bytes(array: np.ndarray) -> bytes:
    """A uint8 array as the content of an idx file."""
    return MAGIC + struct.pack(f">B{array.ndim}I", array.ndim, *array.shape) + array.tobytes()


def write_idx(path: str | Path, array: np.ndarray) -> None:
    """A uint8 array as an idx file, atomically."""
    with atomic_write(path) as temporary:
        temporary.write_bytes(idx_bytes(array))


def read_idx(path: str | Path) -> np.ndarray:
    """The uint8 array of an idx file.

    Raises:
        DataError: the file is missing, is no idx file of unsigned bytes, or is longer or shorter than its header
            says.
    """
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise DataError(f"{path}: the file cannot be read ({error.strerror})") from None
    n_axes = content[3] if len(content) > 3 else 0
    start = 4 + 4 * n_axes
    if content[:3] != MAGIC or n_axes == 0 or len(content) < start:
        raise DataError(
            f"{path}: not an idx file of unsigned bytes; expected it to begin with 00 00 08, "
            f"found {content[:3].hex(' ') or 'nothing'}"
        )
    shape = struct.unpack(f">{n_axes}I", content[4:start])
    expected = start + math.prod(shape)
    if len(content) != expected:
        raise DataError(
            f"{path}: has {len(content)} bytes; expected {expected} for its {' x '.join(map(str, shape))} items"
        )
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)
