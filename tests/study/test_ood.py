"""Out-of-distribution images: a file separate from MNIST, which only evaluations use."""

import shutil

import numpy as np
import pytest
from damaged_data import assert_refuses, packaged

from sgtune.study.posteriors import load_model, mnist
from sgtune.study.posteriors import ood_images as ood
from sgtune.study.posteriors.downloads import FASHION_MNIST
from sgtune.study.posteriors.idx import write_idx
from sgtune.support.errors import InputError
from sgtune.support.files import file_sha256, read_json, write_json

IMAGES = "t10k-images-idx3-ubyte"


@pytest.fixture
def images():
    return mnist.simulate(300)["ood"]["inputs"]


@pytest.fixture
def download(images, tmp_path):
    """The files of another set."""
    folder = tmp_path / "other"
    write_idx(folder / IMAGES, images.reshape(-1, 28, 28))
    sums = {IMAGES: file_sha256(folder / IMAGES)}
    write_json(folder / "source.json", {"name": "other", "source": "a test", "sha256": sums, "missing": None})
    return folder


@pytest.fixture
def no_download(tmp_path):
    """The folder of a set that no source has: a file without images, and the reason."""
    folder = tmp_path / "nowhere"
    folder.mkdir()
    (folder / IMAGES).write_bytes(ood.NO_IMAGES)
    sums = {IMAGES: file_sha256(folder / IMAGES)}
    write_json(
        folder / "source.json", {"name": "other", "source": None, "sha256": sums, "missing": "no source"}
    )
    return folder


def test_downloaded_images_are_prepared_and_loaded(images, download, tmp_path):
    path = tmp_path / "bnn.ood.json"
    ood.write(path, ood.read_set(download), made_by="a test")
    loaded = ood.load(path)
    np.testing.assert_array_equal(loaded["inputs"], images)
    assert loaded["inputs"].dtype == np.uint8
    assert (loaded["name"], loaded["missing"]) == ("other", None)


def test_of_images_that_are_missing_the_reason_is_kept(no_download, tmp_path):
    path = tmp_path / "bnn.ood.json"
    ood.write(path, ood.read_set(no_download), made_by="a test")
    assert ood.load(path) == {"name": "other", "inputs": None, "missing": "no source"}


def test_downloads_that_changed_are_refused(download):
    path = download / IMAGES
    path.write_bytes(path.read_bytes()[:-1] + b"\x07")
    words = "truncated or changed: SHA-256 .* expected .* downloads it again"
    assert_refuses(words, ood.read_set, download, name=str(path))
    write_json(download / "source.json", [])
    assert_refuses(
        "expected the entries name, sha256 and missing", ood.read_set, download, name="source.json"
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda array: array[:0], r"images is uint8 \(0, 784\); expected uint8 \(m, 784\)"),
        (lambda array: array[:, :400], r"images is uint8 \(60, 400\); expected uint8 \(m, 784\)"),
        (lambda array: array / 255, "images is float64"),
    ],
)
def test_arrays_that_are_no_such_images_are_not_written(download, tmp_path, change, words):
    images = ood.read_set(download)
    images["inputs"] = change(images["inputs"])
    assert_refuses(words, ood.write, tmp_path / "bnn.ood.json", images, made_by="a test")


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        (
            {"missing": "why"},
            r"images is uint8 \(60, 784\); expected uint8 \(0, 784\); delete bnn.ood.json, and the",
        ),
        ({"name": None}, "no entry 'name' as this version of sgtune writes it"),
    ],
)
def test_images_that_their_facts_contradict_are_refused(download, tmp_path, facts, words):
    path = tmp_path / "bnn.ood.json"
    ood.write(path, ood.read_set(download), made_by="a test")
    write_json(path, {**read_json(path), **facts})
    assert_refuses(words, ood.load, path)


def test_a_model_has_the_images_it_is_given_and_is_the_same_model(images, download, no_download, tmp_path):
    mnist.write(tmp_path / "bnn.json", mnist.simulate(300), made_by="a test")
    paths = []
    for folder in (download, no_download):
        paths.append(tmp_path / f"{folder.name}.json")
        ood.write(paths[-1], ood.read_set(folder), made_by="a test")
    bare = load_model("bnn", tmp_path)
    given, without = (load_model("bnn", tmp_path, ood=path) for path in paths)
    assert bare.test_data.keys() == {"inputs", "targets"}
    np.testing.assert_array_equal(given.test_data["ood"]["inputs"], images)
    assert without.test_data["ood"] == {"name": "other", "inputs": None, "missing": "no source"}
    # The MAP is kept under the checksum.
    assert bare.checksum == given.checksum == without.checksum


def test_a_model_without_such_inputs_refuses_them(tmp_path):
    with pytest.raises(
        InputError, match=r"^ood: .*x\.json' is not allowed; model 'pmf' has no out-of-distri"
    ):
        load_model("pmf", tmp_path, ood=tmp_path / "x.json")


@pytest.mark.network
@pytest.mark.skipif(not shutil.which("apt-get"), reason="needs Debian's apt-get")
def test_fashion_mnist_from_its_package_is_fashion_mnist(tmp_path):
    packaged(FASHION_MNIST, tmp_path)
    assert mnist.read_images(tmp_path / IMAGES).shape == (10_000, 784)
