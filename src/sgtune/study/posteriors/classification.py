"""The data sets of the CCAdL paper's experiments (Shang et al. 2015, Sects. 4.2 and 4.3, Table 2), and their models."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from sgtune.model import Model
from sgtune.study.posteriors import bnn, data_sets, drbm, logistic
from sgtune.study.posteriors.data_sets import DataSet, check_download, read_idx
from sgtune.study.posteriors.store import StoredSet, load_stored
from sgtune.support.errors import DataError

SEVEN, NINE = 7, 9
N_PROJECTED, PROJECTION_SEED, PROJECTION_BITS = 100, 0, 20
"""Columns of the random projection of MNIST, its seed, and binary places of its entries."""

SPLIT_SEED = 0
"""Which rows of connect-4, in sorted order, are for training."""


class ClassificationSet(NamedTuple):
    """A data set of the paper, and the model that the paper fits to it.

    Attributes:
        download: the files that it is made of.
        read: folder of these files -> the arrays of ``data``, in the files' order.
        n_train, n_test: numbers of rows.
        n_features: columns of the inputs.
        n_classes: K.
        n_hidden: hidden units of the discriminative RBM (Table 2); None: logistic regression.
    """

    download: DataSet
    read: Callable[[Path], dict[str, np.ndarray]]
    n_train: int
    n_test: int
    n_features: int
    n_classes: int
    n_hidden: int | None = None

    @property
    def data(self) -> StoredSet:
        """Its files when it is prepared; labels are from 0."""
        shapes = {
            "train_inputs": (np.float32, ("n_train", self.n_features)),
            "train_labels": (np.uint8, ("n_train",)),
            "test_inputs": (np.float32, ("n_test", self.n_features)),
            "test_labels": (np.uint8, ("n_test",)),
        }
        return StoredSet("the rule prepare_set", shapes, ("train_inputs", "train_labels"), shuffle=True)


def _read_mnist79(folder: Path) -> dict[str, np.ndarray]:
    """Sevens (class 0) and nines (class 1) of MNIST, x = R' (pixels / 255), the entries of R from N(0, 1 / 100).

    So |x| has the length of the image's pixels in expectation. The paper gives no scale, no seed and no intercept.
    R is rounded to multiples of 2^-20, by which sums of pixels are exact: x is the same bit for bit on any machine.
    """
    images = bnn.read_set(folder)
    rng = np.random.default_rng(PROJECTION_SEED)
    projection = rng.standard_normal((bnn.N_PIXELS, N_PROJECTED))
    projection = np.ldexp(np.rint(np.ldexp(projection, PROJECTION_BITS)), -PROJECTION_BITS)
    arrays = {}
    for part in ("train", "test"):
        labels = images[f"{part}_labels"]
        chosen = (labels == SEVEN) | (labels == NINE)
        sums = images[f"{part}_images"][chosen].astype(float) @ projection
        arrays[f"{part}_inputs"] = (sums / (255 * np.sqrt(N_PROJECTED))).astype(np.float32)
        arrays[f"{part}_labels"] = (labels[chosen] == NINE).astype(np.uint8)
    return arrays


def _read_connect_4(folder: Path) -> dict[str, np.ndarray]:
    """Cells one-hot (blank, o, x), classes draw, loss, win; 54,046 rows by `SPLIT_SEED` for training."""
    rows = read_idx(folder / data_sets.ROWS)
    rows = rows[np.random.default_rng(SPLIT_SEED).permutation(len(rows))]
    one_hot = np.eye(3, dtype=np.float32)[rows[:, :-1]].reshape(len(rows), -1)
    n_train = SETS["connect-4"].n_train
    return _parts((one_hot[:n_train], rows[:n_train, -1]), (one_hot[n_train:], rows[n_train:, -1]))


def _read_letter(folder: Path) -> dict[str, np.ndarray]:
    """Values v from 0 to 15 as -1 + 2 v / 15, as LIBSVM scales them; classes A to Z."""
    parts = []
    for name in (data_sets.TRAIN_ROWS, data_sets.TEST_ROWS):
        rows = read_idx(folder / name)
        scaled = -1 + 2 * rows[:, :-1].astype(float) / data_sets.LETTER_HIGHEST
        parts.append((scaled.astype(np.float32), rows[:, -1]))
    return _parts(*parts)


def _read_acoustic(folder: Path) -> dict[str, np.ndarray]:
    """LIBSVM's scaled files; classes 1, 2 and 3 as 0, 1 and 2."""
    entry, parts = SETS["acoustic"], []
    sizes = {"n_features": entry.n_features, "n_classes": entry.n_classes}
    for name, n_rows in zip(entry.download.sha256, (entry.n_train, entry.n_test), strict=True):
        path = folder / name
        parts.append(data_sets.parse_libsvm(path.read_bytes(), **sizes, where=str(path)))
        if (found := len(parts[-1][1])) != n_rows:
            raise DataError(f"{path}: {found} rows; expected {n_rows}")
    return _parts(*parts)


def _parts(train: tuple, test: tuple) -> dict[str, np.ndarray]:
    return {
        f"{part}_{what}": array
        for part, arrays in (("train", train), ("test", test))
        for what, array in zip(("inputs", "labels"), arrays, strict=True)
    }


SETS: dict[str, ClassificationSet] = {
    "mnist79": ClassificationSet(data_sets.MNIST, _read_mnist79, 12_214, 2_037, N_PROJECTED, 2),
    "connect-4": ClassificationSet(data_sets.CONNECT_4, _read_connect_4, 54_046, 13_511, 126, 3, 20),
    "letter": ClassificationSet(data_sets.LETTER, _read_letter, 10_500, 5_000, 16, 26, 100),
    "acoustic": ClassificationSet(data_sets.ACOUSTIC, _read_acoustic, 78_823, 19_705, 50, 3, 20),
}
"""By name, in the order of the paper."""


def read_set(name: str, folder: Path) -> dict[str, np.ndarray]:
    """The arrays of ``name`` from its download in ``folder``: as ``SETS[name].data`` has them, in the files' order."""
    check_download(SETS[name].download, folder)
    return SETS[name].read(folder)


def simulate(name: str, n_train: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Arrays as of `read_set`, of ``n_train`` simulated training rows and a fifth as many for testing.

    Labels are uniform; inputs are N(m_y / 2, I / 4) about a centre m_y ~ N(0, I) of the class, in as many features as
    the set has.
    """
    entry = SETS[name]
    n_rows = n_train + n_train // 5
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((entry.n_classes, entry.n_features))
    labels = rng.integers(entry.n_classes, size=n_rows).astype(np.uint8)
    inputs = ((centres[labels] + rng.standard_normal((n_rows, entry.n_features))) / 2).astype(np.float32)
    return _parts((inputs[:n_train], labels[:n_train]), (inputs[n_train:], labels[n_train:]))


mnist79 = partial(logistic.from_arrays, name="mnist79", prior_variance=1.0)
"""Logistic regression of nines against sevens (Sect. 4.2): the paper's likelihood 1 / (1 + exp(-y w' x)), y = -1 or 1,
is `sgtune.study.posteriors.logistic`'s; its prior is N(0, I)."""


def load(name: str, data_dir: str | Path) -> Model:
    """The paper's model of the set ``name`` of `SETS` with its data from ``data_dir``, where its MAP is kept too.

    It is the logistic regression `mnist79`, or a model ``drbm-{name}`` with the paper's hidden units (Table 2).
    """
    entry, from_arrays = SETS[name], mnist79
    if entry.n_hidden is not None:
        sizes = {"n_hidden": entry.n_hidden, "n_classes": entry.n_classes}
        from_arrays = partial(drbm.from_arrays, name=f"drbm-{name}", **sizes)
    return load_stored(entry.data, Path(data_dir) / f"{name}.json", from_arrays)
