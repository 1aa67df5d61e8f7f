"""The data sets of the CCAdL paper's experiments (Shang et al. 2015, Sects. 4.2 and 4.3, Table 2), by name.

`prepare` makes each of them, and raises one `DataError` if no source has it: the study then continues without that set.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from sgtune.study.posteriors import mnist
from sgtune.study.posteriors import published_tables as tables
from sgtune.study.posteriors.downloads import ACOUSTIC, CONNECT_4, LETTER, MNIST, DataSet, download
from sgtune.study.posteriors.idx import read_idx
from sgtune.study.posteriors.libsvm import parse_libsvm
from sgtune.study.posteriors.store import check_files, check_range, read_arrays, write_arrays
from sgtune.support.errors import DataError, check_choice, check_integer
from sgtune.support.files import read_json

__all__ = ["SETS", "ClassificationSet", "NAMES", "load", "prepare", "read_set", "simulate", "write"]

SEVEN, NINE = 7, 9
N_PROJECTED, PROJECTION_SEED, PROJECTION_BITS = 100, 0, 20
"""Columns of the random projection of MNIST, its seed, and binary places of its entries."""

SPLIT_SEED = 0
"""Which rows of connect-4, in sorted order, are for training."""


class ClassificationSet(NamedTuple):
    """A data set of the paper, and the model that the paper fits to it.

    Attributes:
        label: its name in print.
        download: the files that it is made of.
        read: folder of these files -> the arrays of `ARRAYS`, in the files' order.
        n_train: number of training rows.
        n_test: number of test rows.
        n_features: columns of the inputs.
        n_classes: K.
        n_hidden: hidden units of the discriminative RBM (Table 2); None: logistic regression.
    """

    label: str
    download: DataSet
    read: Callable[[Path], dict[str, np.ndarray]]
    n_train: int
    n_test: int
    n_features: int
    n_classes: int
    n_hidden: int | None = None

    @property
    def n_parameters(self) -> int:
        """D of the model: weights U, W and biases c, d of a discriminative RBM; one weight per feature else."""
        if self.n_hidden is None:
            return self.n_features
        return self.n_hidden * (self.n_features + self.n_classes + 1) + self.n_classes


def _read_mnist79(folder: Path) -> dict[str, np.ndarray]:
    """Sevens (class 0) and nines (class 1) of MNIST, x = R' (pixels / 255), the entries of R from N(0, 1 / 100).

    So |x| has the length of the image's pixels in expectation. The paper gives no scale, no seed and no intercept.
    R is rounded to multiples of 2^-20, by which sums of pixels are exact: x is the same bit for bit on any machine.
    """
    images = mnist.read_set(folder)
    rng = np.random.default_rng(PROJECTION_SEED)
    projection = np.ldexp(
        np.rint(np.ldexp(rng.standard_normal((mnist.N_PIXELS, N_PROJECTED)), PROJECTION_BITS)),
        -PROJECTION_BITS,
    )
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
    rows = read_idx(folder / tables.ROWS)
    rows = rows[np.random.default_rng(SPLIT_SEED).permutation(len(rows))]
    one_hot = np.eye(len(tables.CELLS), dtype=np.float32)[rows[:, :-1]].reshape(len(rows), -1)
    n_train = SETS["connect-4"].n_train
    return _parts((one_hot[:n_train], rows[:n_train, -1]), (one_hot[n_train:], rows[n_train:, -1]))


def _read_letter(folder: Path) -> dict[str, np.ndarray]:
    """Values v from 0 to 15 as -1 + 2 v / 15, as LIBSVM scales them; classes A to Z."""
    parts = []
    for name in (tables.TRAIN, tables.TEST):
        rows = read_idx(folder / name)
        scaled = -1 + 2 * rows[:, :-1].astype(float) / tables.LETTER_HIGHEST
        parts.append((scaled.astype(np.float32), rows[:, -1]))
    return _parts(*parts)


def _read_acoustic(folder: Path) -> dict[str, np.ndarray]:
    """LIBSVM's scaled files; classes 1, 2 and 3 as 0, 1 and 2."""
    entry = SETS["acoustic"]
    sizes = {"n_features": entry.n_features, "n_classes": entry.n_classes}
    paths = [folder / name for name in entry.download.sha256]
    return _parts(*(parse_libsvm(path.read_bytes(), where=str(path), **sizes) for path in paths))


def _parts(train: tuple, test: tuple) -> dict[str, np.ndarray]:
    return {
        f"{part}_{what}": array
        for part, arrays in (("train", train), ("test", test))
        for what, array in zip(("inputs", "labels"), arrays, strict=True)
    }


SETS: dict[str, ClassificationSet] = {
    "mnist79": ClassificationSet("MNIST 7 against 9", MNIST, _read_mnist79, 12_214, 2_037, N_PROJECTED, 2),
    "connect-4": ClassificationSet("Connect-4", CONNECT_4, _read_connect_4, 54_046, 13_511, 126, 3, 20),
    "letter": ClassificationSet("Letter", LETTER, _read_letter, 10_500, 5_000, 16, 26, 100),
    "acoustic": ClassificationSet("SensIT acoustic", ACOUSTIC, _read_acoustic, 78_823, 19_705, 50, 3, 20),
}
"""By name, in the order of the paper."""


def _shapes(entry: ClassificationSet) -> dict:
    return {
        "train_inputs": (np.float32, ("n_train", entry.n_features)),
        "train_labels": (np.uint8, ("n_train",)),
        "test_inputs": (np.float32, ("n_test", entry.n_features)),
        "test_labels": (np.uint8, ("n_test",)),
    }


NAMES = tuple(_shapes(SETS["mnist79"]))
"""Of the arrays, each ``{name}.npy`` in the folder of its set."""


def prepare(
    name: str, path_json: str | Path, downloads: str | Path, *, mirror: str | Path | None = None
) -> dict:
    """Download the set where ``downloads`` has it not yet, and `write` it as ``path_json``.

    Args:
        name: one of `SETS`.
        path_json: ``{data_dir}/{name}.json``.
        downloads: folder of all downloads; the files go to its folder of the name of ``SETS[name].download``.
        mirror: as of `sgtune.study.posteriors.downloads.download`.

    Returns:
        What ``source.json`` of the download holds.

    Raises:
        InputError: no such set, or the mirror is no folder.
        DataError: no source has the set, or files that exist are not the set; in one line. Nothing is written.
    """
    entry = SETS[check_choice("data set", name, SETS)]
    folder = Path(downloads) / entry.download.name
    try:
        check_files(folder, _sums(entry.download, folder))
    except DataError:
        download(entry.download, folder, mirror=mirror)
    record = read_json(folder / "source.json")
    write(path_json, read_set(name, folder), name, made_by=f"{entry.download.name} from {record['source']}")
    return record


def _sums(data_set: DataSet, folder: Path) -> dict[str, str]:
    """Of the files of a download; those that nobody has published are the ones that it had when it ended."""
    path = folder / "source.json"
    record = read_json(path)
    if not isinstance(record, dict) or not isinstance(record.get("sha256"), dict):
        raise DataError(f"{path}: expected an entry sha256")
    if record.get("missing"):
        raise DataError(record["missing"])
    sums = {name: known or record["sha256"].get(name) for name, known in data_set.sha256.items()}
    if None in sums.values():
        raise DataError(f"{path}: expected the sums of {', '.join(sums)}")
    return sums


def read_set(name: str, folder: str | Path) -> dict[str, np.ndarray]:
    """The arrays of ``name`` from its download in ``folder``: as `load` returns them, but in the files' order.

    Raises:
        InputError: no such set.
        DataError: a file is missing or damaged, or the set has other counts than the paper's.
    """
    entry, folder = SETS[check_choice("data set", name, SETS)], Path(folder)
    check_files(folder, _sums(entry.download, folder))
    arrays = entry.read(folder)
    for part, expected in (("train", entry.n_train), ("test", entry.n_test)):
        if (found := len(arrays[f"{part}_labels"])) != expected:
            raise DataError(f"{folder}: {name} has {found} {part} rows; expected {expected}")
    return arrays


def simulate(name: str, n_train: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Arrays as of `read_set`, of ``n_train`` simulated training rows and a fifth as many for testing.

    Labels are uniform; inputs are N(m_y / 2, I / 4) about a centre m_y ~ N(0, I) of the class, in as many features as
    the set has.

    Raises:
        InputError: no such set, or ``n_train`` is not an integer >= 10.
    """
    entry = SETS[check_choice("data set", name, SETS)]
    n_train = check_integer(f"{name}.simulated", n_train, at_least=10)
    n_rows = n_train + n_train // 5
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((entry.n_classes, entry.n_features))
    labels = rng.integers(entry.n_classes, size=n_rows).astype(np.uint8)
    inputs = ((centres[labels] + rng.standard_normal((n_rows, entry.n_features))) / 2).astype(np.float32)
    return _parts((inputs[:n_train], labels[:n_train]), (inputs[n_train:], labels[n_train:]))


def write(path_json: str | Path, arrays: dict[str, np.ndarray], name: str, *, made_by: str) -> None:
    """Write the result of `read_set` or `simulate` as ``path_json`` and the files beside it, for `load`.

    Raises:
        DataError: an array has another dtype or shape, or holds values that are not finite or labels of no class.
    """
    path, entry = Path(path_json), SETS[name]
    for part in ("train", "test"):
        check_range(path, f"{part}_labels", arrays[f"{part}_labels"], 0, entry.n_classes - 1)
        if not np.isfinite(arrays[f"{part}_inputs"]).all():
            raise DataError(
                f"{path}: {part}_inputs holds values that are not finite; expected finite numbers only"
            )
    write_arrays(
        path,
        arrays,
        _shapes(entry),
        {
            "made_by": made_by,
            "n_train": len(arrays["train_labels"]),
            "n_test": len(arrays["test_labels"]),
        },
        training=("train_inputs", "train_labels"),
        shuffle=True,
    )


def load(data_dir: str | Path, name: str) -> dict:
    """The arrays of ``data_dir/{name}``, mapped into memory.

    Returns:
        ``train_inputs`` and ``test_inputs``, (n, n_features) float32; ``train_labels`` and ``test_labels``, (n,) uint8
        from 0; those for training in random order. ``checksum``: of these.

    Raises:
        InputError: no such set.
        DataError: the ``.json`` or a file that it names is missing, truncated, or of another dtype or shape.
    """
    entry = SETS[check_choice("data set", name, SETS)]
    made_by = "the rule that prepares it"
    arrays, facts = read_arrays(Path(data_dir) / f"{name}.json", _shapes(entry), made_by)
    return {**arrays, "checksum": facts["checksum"]}
