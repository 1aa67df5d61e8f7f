"""The sets of CCAdL's experiments: the counts are the paper's, and any other set is refused in one line."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from damaged_data import assert_refuses, packaged, put

from sgtune.study.posteriors import classification_data as classification
from sgtune.study.posteriors import mnist
from sgtune.study.posteriors import published_tables as tables
from sgtune.study.posteriors.classification import load_set_model
from sgtune.study.posteriors.classification_data import SETS
from sgtune.study.posteriors.downloads import CONNECT_4, LETTER, MNIST
from sgtune.study.posteriors.idx import idx_bytes, write_idx
from sgtune.study.posteriors.store import random_order
from sgtune.support.errors import DataError, InputError
from sgtune.support.files import file_sha256, read_json, write_json


def test_sets_and_models_have_the_papers_counts():
    """Counts are from Sect. 4.2 and Table 2; connect-4 and acoustic are split into four fifths and a fifth."""
    found = {
        name: (entry.n_train, entry.n_test, entry.n_classes, entry.n_features, entry.n_hidden)
        for name, entry in SETS.items()
    }
    assert found == {
        "mnist79": (12_214, 2_037, 2, 100, None),
        "connect-4": (54_046, 13_511, 3, 126, 20),
        "letter": (10_500, 5_000, 26, 16, 100),
        "acoustic": (78_823, 19_705, 3, 50, 20),
    }
    assert [entry.n_parameters for entry in SETS.values()] == [100, 2_603, 4_326, 1_083]


@pytest.mark.parametrize("name", SETS)
def test_a_simulated_set_is_prepared_loaded_and_learnt_of(name, tmp_path):
    entry, arrays = SETS[name], classification.simulate(name, 300)
    classification.write(tmp_path / f"{name}.json", arrays, name, made_by="a test")
    loaded = classification.load(tmp_path, name)
    order = random_order(300)
    for array in classification.NAMES:
        expected = arrays[array][order] if array.startswith("train") else arrays[array]
        np.testing.assert_array_equal(loaded[array], expected)
    assert loaded["test_inputs"].shape == (60, entry.n_features)
    model = load_set_model(name, tmp_path)
    assert (model.dimension, model.n_data) == (entry.n_parameters, 300)
    assert model.name == ("mnist79" if name == "mnist79" else f"drbm-{name}")
    assert model.checksum == loaded["checksum"]
    probabilities = model.predict(model.init(jax.random.key(0)), jnp.asarray(model.test_data["inputs"]))
    assert probabilities.shape == ((60,) if name == "mnist79" else (60, entry.n_classes))
    # Classes are distinguishable: the nearest mean of a class is mostly its own.
    means = np.stack(
        [
            arrays["train_inputs"][arrays["train_labels"] == label].mean(axis=0)
            for label in range(entry.n_classes)
        ]
    )
    nearest = np.linalg.norm(arrays["test_inputs"][:, None] - means, axis=-1).argmin(axis=1)
    assert np.mean(nearest == arrays["test_labels"]) > 0.7


def test_unknown_sets_and_too_few_rows_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"data set: 'connect4' is not known \(did you mean 'connect-4'"):
        classification.prepare("connect4", tmp_path / "a.json", tmp_path)
    with pytest.raises(InputError, match=r"letter\.simulated: 9 is not allowed"):
        classification.simulate("letter", 9)
    assert_refuses("the file is missing", classification.load, tmp_path, "letter")


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("test_labels", put(3, 26), "test_labels holds 26; expected 0 to 25"),
        (
            "train_inputs",
            put((2, 0), np.nan),
            "train_inputs holds values that are not finite",
        ),
        ("train_inputs", lambda array: array[:, 1:], r"train_inputs is float32 \(30, 15\)"),
        ("train_labels", lambda array: array[:-1], r"train_labels is uint8 \(29,\)"),
        ("test_inputs", lambda array: array.astype(float), "test_inputs is float64"),
    ],
)
def test_arrays_that_are_no_such_set_are_not_written(tmp_path, name, change, words):
    arrays = classification.simulate("letter", 30)
    arrays[name] = change(arrays[name])
    path = tmp_path / "letter.json"
    assert_refuses(words, classification.write, path, arrays, "letter", made_by="a test")
    assert not path.exists()


# --- downloads, small ones in the canonical form ---


def put_download(folder, files: dict[str, bytes], name: str, **facts) -> dict[str, str]:
    folder.mkdir(parents=True)
    for file, content in files.items():
        (folder / file).write_bytes(content)
    sums = {file: file_sha256(folder / file) for file in files}
    write_json(
        folder / "source.json", {"name": name, "source": "a test", "sha256": sums, "missing": None, **facts}
    )
    return sums


@pytest.fixture
def small(monkeypatch, tmp_path):
    """A download of small files in place of a set's own: ``(name, data set, files, n_train, n_test) -> folder``."""

    def use(name, data_set, files, n_train, n_test):
        folder = tmp_path / "downloads" / data_set.name
        sums = put_download(folder, files, data_set.name)
        entry = SETS[name]._replace(
            download=replace(data_set, sha256=sums, sources=()), n_train=n_train, n_test=n_test
        )
        monkeypatch.setitem(SETS, name, entry)
        return folder

    return use


def test_sevens_and_nines_are_projected_with_their_lengths_kept(small, tmp_path):
    images = mnist.simulate(400)
    folder = tmp_path / "downloads/mnist"
    files = {}
    for part, prefix in (("train", "train"), ("test", "t10k")):
        files[f"{prefix}-images-idx3-ubyte"] = idx_bytes(images[f"{part}_images"].reshape(-1, 28, 28))
        files[f"{prefix}-labels-idx1-ubyte"] = idx_bytes(images[f"{part}_labels"])
    chosen = {part: np.isin(images[f"{part}_labels"], (7, 9)) for part in ("train", "test")}
    assert small("mnist79", MNIST, files, *(int(rows.sum()) for rows in chosen.values())) == folder
    arrays = classification.read_set("mnist79", folder)
    for part, rows in chosen.items():
        pixels = images[f"{part}_images"][rows] / 255
        np.testing.assert_array_equal(
            arrays[f"{part}_labels"], images[f"{part}_labels"][rows] == 9, strict=False
        )
        # The ratio of squared lengths is a mean of 100 squares of normals, which are correlated between images.
        ratio = np.sum(arrays[f"{part}_inputs"].astype(float) ** 2, axis=1) / np.sum(pixels**2, axis=1)
        assert abs(ratio.mean() - 1) < 5 * np.sqrt(2 / 100)
        # Both parts have the same linear map without a constant.
        matrix = np.random.default_rng(0).standard_normal((784, 100)) / 10
        np.testing.assert_allclose(arrays[f"{part}_inputs"], pixels @ matrix, atol=1e-4)


def test_sums_of_pixels_are_exact_so_that_the_order_of_summation_does_not_matter():
    """784 pixels of at most 255 times entries of 20 binary places, none above 8, stay below 2^53 units."""
    projection = np.random.default_rng(classification.PROJECTION_SEED).standard_normal((784, 100))
    assert np.abs(projection).max() < 8
    assert 784 * 255 * 8 * 2**classification.PROJECTION_BITS < 2**53


def test_connect_4_is_one_hot_and_split_once_for_all(small, tmp_path):
    rows = np.unique(np.random.default_rng(0).integers(3, size=(50, 43)).astype(np.uint8), axis=0)
    folder = small("connect-4", CONNECT_4, {tables.ROWS: idx_bytes(rows)}, 40, 10)
    arrays, other = (classification.read_set("connect-4", folder) for _ in range(2))
    for name in arrays:
        np.testing.assert_array_equal(arrays[name], other[name])
    found = [
        [*np.flatnonzero(inputs) % 3, label]
        for part in ("train", "test")
        for inputs, label in zip(arrays[f"{part}_inputs"], arrays[f"{part}_labels"], strict=True)
    ]
    # Each row is in exactly one part, and training rows are not just the first 40.
    assert sorted(found) == rows.tolist()
    assert sorted(found[:40]) != rows[:40].tolist()
    blocks = np.vstack([arrays["train_inputs"], arrays["test_inputs"]]).reshape(50, 42, 3)
    assert set(np.unique(blocks)) == {0, 1}
    assert (blocks.sum(axis=2) == 1).all()


def test_letter_is_scaled_as_libsvm_does(small, tmp_path):
    rows = np.array([[0, 15, *[7] * 14, 25], [3, 12, *[8] * 14, 0]], np.uint8)
    files = {tables.TRAIN: idx_bytes(rows), tables.TEST: idx_bytes(rows[:1])}
    arrays = classification.read_set("letter", small("letter", LETTER, files, 2, 1))
    np.testing.assert_allclose(
        arrays["train_inputs"], [[-1, 1, *[-1 / 15] * 14], [-0.6, 0.6, *[1 / 15] * 14]], rtol=1e-6
    )
    assert arrays["train_labels"].tolist() == [25, 0]
    np.testing.assert_array_equal(arrays["test_inputs"], arrays["train_inputs"][:1])


def test_a_set_of_other_counts_or_changed_files_is_refused(small, tmp_path):
    rows = np.zeros((3, 17), np.uint8)
    folder = small("letter", LETTER, {tables.TRAIN: idx_bytes(rows), tables.TEST: idx_bytes(rows)}, 3, 4)
    words = "letter has 3 test rows; expected 4"
    assert_refuses(words, classification.read_set, "letter", folder, name=str(folder))
    write_idx(folder / tables.TEST, rows[:2])
    words = "truncated or changed: SHA-256"
    assert_refuses(words, classification.read_set, "letter", folder, name=tables.TEST)
    (folder / tables.TEST).unlink()
    assert_refuses("cannot be read", classification.read_set, "letter", folder, name=tables.TEST)
    # An unavailable set is not taken for one that was prepared before.
    with pytest.raises(DataError, match="letter: no source has it"):
        classification.prepare("letter", tmp_path / "letter.json", tmp_path / "downloads")
    assert not (tmp_path / "letter.json").exists()
    for name, record, words in (
        ("letter", {}, "expected an entry sha256"),
        ("letter", [], "expected an entry sha256"),
        # Sets with published checksums do not need the checksums of the record.
        ("acoustic", {"sha256": {}}, "expected the sums of acoustic_scale, acoustic_scale.t"),
    ):
        write_json(folder / "source.json", record)
        assert_refuses(words, classification.read_set, name, folder, name="source.json")


def test_a_set_that_is_missing_says_why(tmp_path):
    folder = tmp_path / "acoustic"
    put_download(folder, {}, "acoustic", missing="acoustic: no source has it: HTTP 404")
    words = "acoustic: no source has it: HTTP 404"
    assert_refuses(words, classification.read_set, "acoustic", folder, name="acoustic")


@pytest.mark.network
def test_mnist_from_its_package_has_the_papers_sevens_and_nines(tmp_path):
    packaged(MNIST, tmp_path / "mnist")
    record = classification.prepare("mnist79", tmp_path / "mnist79.json", tmp_path)
    assert record == read_json(tmp_path / "mnist/source.json")
    arrays = classification.load(tmp_path, "mnist79")
    assert np.bincount(arrays["train_labels"]).tolist() == [6_265, 5_949]
    assert np.bincount(arrays["test_labels"]).tolist() == [1_028, 1_009]
