"""The posteriors' data: simulated sets, real ones as they are read and prepared, and sets on disk."""

import io
import os
import shutil

import jax
import numpy as np
import pytest
from job_pieces import assert_refuses

from sgtune import model as base
from sgtune.study.catalogue import MODELS
from sgtune.study.posteriors import bnn, classification, data_sets, load_model, logistic, pmf, store
from sgtune.study.posteriors.classification import SETS
from sgtune.study.posteriors.data_sets import DATA_SETS, DataSet, Source, download, idx_bytes
from sgtune.study.posteriors.store import random_order
from sgtune.support import files
from sgtune.support.errors import InputError
from sgtune.support.files import read_json, write_json


def test_the_logistic_data_set_is_the_papers_own(tmp_path):
    logistic.DATA.write(tmp_path / "logistic.json", logistic.simulate(), seed=42)
    arrays, facts = (read(tmp_path / "logistic.json") for read in (logistic.DATA.read, read_json))
    assert facts.items() >= {"n_train": 800_000, "n_test": 200_000, "dimension": 10, "seed": 42}.items()
    position = arrays["true_position"].astype(np.float64)
    margin = (2.0 * arrays["train_targets"] - 1) * (arrays["train_inputs"].astype(np.float64) @ position)
    negative_log_posterior = np.logaddexp(0, -margin).sum() + position @ position / 20
    assert negative_log_posterior == pytest.approx(115_910.1, abs=0.5)
    accuracy = np.mean((arrays["test_inputs"] @ position > 0) == arrays["test_targets"])
    assert accuracy == pytest.approx(0.9391, abs=5e-5)


SIMULATED = {
    "pmf": ("pmf", "f5159afaf109a350", 1_720, 320),
    "bnn": ("bnn", "bea18df282254e23", 3_985, 300),
    "mnist79": ("mnist79", "b24757c7cdc602d8", 100, 200),
    "connect-4": ("drbm-connect-4", "d412e5362dc84afa", 2_603, 200),
    "letter": ("drbm-letter", "f9b17f4c6977e019", 4_326, 200),
    "acoustic": ("drbm-acoustic", "879fa2bd56f14fc4", 1_083, 200),
}
"""The model of each set, the checksum of its training arrays, D and N."""


@pytest.mark.parametrize("name", SIMULATED)
def test_simulated_sets_have_the_sums_that_they_always_had_and_are_loaded(name, tmp_path):
    """Results that were made with them stay comparable."""
    path = tmp_path / f"{name}.json"
    if name == "pmf":
        pmf.write(path, pmf.simulate(400))
    elif name == "bnn":
        bnn.DATA.write(path, bnn.simulate(300), n_hidden=5)
    else:
        SETS[name].data.write(path, classification.simulate(name, 200))
    model = load_model(name, tmp_path)
    assert (model.name, model.checksum[:16], model.dimension, model.n_data) == SIMULATED[name]
    found = model.predict(model.init(jax.random.key(0)), model.test_data["inputs"])
    assert len(found) == len(model.test_data["targets"])
    if name == "bnn":
        assert MODELS["bnn"].dimension({"n_hidden": 5}) == model.dimension


def test_the_first_fifth_is_test_both_parts_are_sorted_and_prepared_counting_from_zero(tmp_path):
    ratings = pmf.simulate(300)
    train, test = pmf.split_u1(ratings)
    assert (len(train), len(test)) == (240, 60)
    for part, rows in ((test, ratings[:60]), (train, ratings[60:])):
        assert part.tolist() == sorted(rows.tolist())
    pmf.write(tmp_path / "pmf.json", ratings)
    loaded = pmf.DATA.read(tmp_path / "pmf.json")
    assert (loaded["n_users"], loaded["n_items"]) == tuple(ratings.max(axis=0)[:2])
    for part, name in ((train[random_order(240)], "train"), (test, "test")):
        assert loaded[name].dtype == np.int32
        np.testing.assert_array_equal(loaded[name], part[:, :3] - [1, 1, 0])
    assert_refuses(r"test is int32 \(0, 3\)", pmf.write, tmp_path / "p.json", ratings[:4])


def downloaded(folder, files: dict[str, bytes] | None) -> DataSet:
    """A set of ``files`` that lies in ``folder``; None: no source has it."""
    sources = () if files is None else (Source("a test", lambda: files),)
    data_set = DataSet(folder.name, dict.fromkeys(files or [data_sets.TEST_IMAGES]), sources)
    download(data_set, folder, optional=True)
    return data_set


def test_a_model_has_the_out_of_distribution_images_it_is_given_and_is_the_same_model(tmp_path, monkeypatch):
    images, models = bnn.simulate(300), [None]
    bnn.DATA.write(tmp_path / "bnn.json", images, n_hidden=100)
    other = {data_sets.TEST_IMAGES: idx_bytes(images["ood"]["inputs"].reshape(-1, 28, 28))}
    for name, held in (("notmnist", other), ("fashion-mnist", None)):
        monkeypatch.setitem(DATA_SETS, name, downloaded(tmp_path / name, held))
        models.append(tmp_path / f"{name}.json")
        bnn.write_ood(models[-1], bnn.read_ood(tmp_path / name))
    bare, given, without = (load_model("bnn", tmp_path, ood=path) for path in models)
    assert bare.test_data.keys() == {"inputs", "targets"}
    assert given.test_data["ood"]["name"] == "notmnist"
    np.testing.assert_array_equal(given.test_data["ood"]["inputs"], images["ood"]["inputs"])
    lost = read_json(tmp_path / "fashion-mnist/source.json")["missing"]
    assert without.test_data["ood"] == {"name": "fashion-mnist", "inputs": None, "missing": lost}
    # The MAP is kept under the checksum.
    assert bare.checksum == given.checksum == without.checksum
    with pytest.raises(InputError, match=r"^ood: 'x.json' is not allowed; model 'pmf' has no out-of-distri"):
        load_model("pmf", tmp_path, ood="x.json")


@pytest.fixture
def small(monkeypatch, tmp_path):
    """A download of small files in place of a set's own: ``(name, files) -> its arrays``."""

    def read(name, files, **changes):
        folder = tmp_path / "downloads"
        monkeypatch.setitem(SETS, name, SETS[name]._replace(download=downloaded(folder, files), **changes))
        return classification.read_set(name, folder)

    return read


def test_sevens_and_nines_are_projected_with_their_lengths_kept(small):
    images, files = bnn.simulate(400), {}
    for part, prefix in (("train", "train"), ("test", "t10k")):
        files[f"{prefix}-images-idx3-ubyte"] = idx_bytes(images[f"{part}_images"].reshape(-1, 28, 28))
        files[f"{prefix}-labels-idx1-ubyte"] = idx_bytes(images[f"{part}_labels"])
    arrays = small("mnist79", files)
    for part in ("train", "test"):
        labels = images[f"{part}_labels"]
        chosen = np.isin(labels, (7, 9))
        pixels = images[f"{part}_images"][chosen] / 255
        np.testing.assert_array_equal(arrays[f"{part}_labels"], labels[chosen] == 9)
        # The ratio of squared lengths is a mean of 100 squares of normals, which are correlated between images.
        ratio = np.sum(arrays[f"{part}_inputs"].astype(float) ** 2, axis=1) / np.sum(pixels**2, axis=1)
        assert abs(ratio.mean() - 1) < 5 * np.sqrt(2 / 100)
        # Both parts have the same linear map without a constant.
        matrix = np.random.default_rng(0).standard_normal((784, 100)) / 10
        np.testing.assert_allclose(arrays[f"{part}_inputs"], pixels @ matrix, atol=1e-4)
    # Sums of 784 pixels of at most 255 times entries of 20 binary places are exact: they stay below 2^53 units.
    assert 784 * 255 * 10 * np.abs(matrix).max() * 2**classification.PROJECTION_BITS < 2**53


def test_connect_4_is_one_hot_and_split_in_random_order(small):
    rows = np.unique(np.random.default_rng(0).integers(3, size=(50, 43)).astype(np.uint8), axis=0)
    arrays = small("connect-4", {data_sets.ROWS: idx_bytes(rows)}, n_train=40)
    assert len(arrays["train_labels"]) == 40
    blocks = np.vstack([arrays["train_inputs"], arrays["test_inputs"]]).reshape(50, 42, 3)
    assert set(np.unique(blocks)) == {0, 1}
    assert (blocks.sum(axis=2) == 1).all()
    labels = np.concatenate([arrays["train_labels"], arrays["test_labels"]])
    found = np.column_stack([blocks.argmax(axis=2), labels]).tolist()
    # Each row is in exactly one part, and training rows are not just the first 40.
    assert sorted(found) == rows.tolist()
    assert sorted(found[:40]) != rows[:40].tolist()


def test_letter_is_scaled_as_libsvm_does(small):
    rows = np.array([[0, 15, *[7] * 14, 25], [3, 12, *[8] * 14, 0]], np.uint8)
    files = {data_sets.TRAIN_ROWS: idx_bytes(rows), data_sets.TEST_ROWS: idx_bytes(rows[:1])}
    arrays = small("letter", files)
    np.testing.assert_allclose(
        arrays["train_inputs"], [[-1, 1, *[-1 / 15] * 14], [-0.6, 0.6, *[1 / 15] * 14]], rtol=1e-6
    )
    assert arrays["train_labels"].tolist() == [25, 0]
    np.testing.assert_array_equal(arrays["test_inputs"], arrays["train_inputs"][:1])


IMAGES = bnn.simulate(60)


@pytest.fixture
def folder(tmp_path):
    """A small set of each kind."""
    logistic.DATA.write(tmp_path / "logistic.json", logistic.simulate(n_rows=300, n_train=200, dimension=3))
    pmf.write(tmp_path / "pmf.json", pmf.simulate(300))
    bnn.DATA.write(tmp_path / "bnn.json", IMAGES, n_hidden=7)
    bnn.write_ood(tmp_path / "bnn.ood.json", IMAGES["ood"])
    return tmp_path


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("train_inputs", lambda array: array * np.nan, "train_inputs holds values that are not finite"),
        ("train_inputs", lambda array: array[:, :2], r"\(200, 2\); expected float32 \(n_train, dimension\)"),
        ("train_inputs", lambda array: array.astype(float), "train_inputs is float64"),
        ("train_targets", lambda array: array[1:], r"\(199,\); expected uint8 \(n_train\)"),
    ],
)
def test_arrays_that_are_not_the_data_set_are_not_written(tmp_path, name, change, words):
    arrays = logistic.simulate(n_rows=300, n_train=200, dimension=3)
    arrays[name] = change(arrays[name])
    assert_refuses(words, logistic.DATA.write, tmp_path / "logistic.json", arrays)
    assert not os.listdir(tmp_path)


def refilled(content: bytes):
    """Other content of the same length."""
    return lambda path: path.write_bytes(content[: path.stat().st_size].ljust(path.stat().st_size, b"\0"))


PICKLED = io.BytesIO()
np.save(PICKLED, np.array([print], dtype=object), allow_pickle=True)
ARRAY, FACTS = "bnn/test_images.npy", "bnn.json"


def other_facts(without=None, **changes):
    """The .json with these entries, and without one."""

    def change(path):
        facts = {**read_json(path), **changes}
        facts.pop(without, None)
        write_json(path, facts)

    return change


# The damaged file, the damage, the file that the line names, and what it says of it.
DAMAGES = [
    (ARRAY, os.unlink, ARRAY, "the file is missing"),
    (ARRAY, lambda path: os.truncate(path, 900), ARRAY, "truncated or changed: 900 bytes, expected 9536"),
    # Dtypes and shapes are those of the set, which the .json names.
    (ARRAY, lambda path: np.save(path, np.load(path).view("i1")), FACTS, "is int8 .*; expected uint8"),
    (ARRAY, refilled(PICKLED.getvalue()), ARRAY, "not a readable .npy file"),
    (FACTS, lambda path: path.write_bytes(path.read_bytes()[:-20]), FACTS, "not a readable JSON file"),
    (FACTS, other_facts("checksum"), FACTS, "not as this version of sgtune writes it: 'checksum'"),
    (FACTS, other_facts(arrays={}), FACTS, "not as this version of sgtune writes it: 'train_images'"),
]


@pytest.mark.parametrize(("damaged", "change", "named", "words"), DAMAGES)
def test_a_damaged_file_is_one_line_that_says_how_it_is_made_again(folder, damaged, change, named, words):
    change(folder / damaged)
    words += ".*; delete bnn.json, and the rule prepare_mnist makes it again$"
    assert_refuses(words, bnn.DATA.read, folder / FACTS, name=str(folder / named))


def test_loading_hashes_nothing_and_leaves_test_arrays_on_the_disk(folder, monkeypatch):
    # Only in modules that use it, since JAX also hashes.
    for module in (store, files, base):
        monkeypatch.setattr(module, "hashlib", None)
    for name in ("logistic", "pmf", "bnn"):
        model = load_model(name, folder)
        assert model.checksum == read_json(folder / f"{name}.json")["checksum"]
        assert all(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(model.data))
        if name != "pmf":
            assert all(isinstance(array, np.memmap) for array in model.test_data.values())
    ood = load_model("bnn", folder, ood=folder / "bnn.ood.json").test_data["ood"]
    assert isinstance(ood["inputs"], np.memmap)


def test_the_checksum_is_of_the_training_data_alone(tmp_path):
    def checksum(**changes):
        images = {name: array.copy() for name, array in IMAGES.items() if name != "ood"}
        for name, value in changes.items():
            images[name][0] = value
        bnn.DATA.write(tmp_path / "bnn.json", images, n_hidden=7)
        return bnn.DATA.read(tmp_path / "bnn.json")["checksum"]

    first = checksum()
    assert checksum(test_images=7, test_labels=7) == first
    assert len({first, checksum(train_images=7), checksum(train_labels=7)}) == 3


def test_all_sums_can_be_verified(folder):
    path, file = folder / "pmf.json", folder / "pmf/test.npy"
    store.verify(path)
    whole = file.read_bytes()
    file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    pmf.DATA.read(path)
    assert_refuses(r"truncated or changed: SHA-256 \w+\.\.\., expected", store.verify, path, name=str(file))
    # A run does not start with them; its data are in folders of this name, with sets that are missing.
    own = folder / "results/data"
    shutil.copytree(folder / "pmf", own / "pmf")
    shutil.copy(path, own)
    write_json(own / "letter.json", {"missing": "no images"})
    with pytest.raises(SystemExit, match=r"^Error: .*test\.npy: truncated or changed.*delete pmf\.json"):
        store.exit_if_data_changed(folder / "results")
    (own / "pmf/test.npy").write_bytes(whole)
    store.exit_if_data_changed(folder / "results")
    file.write_bytes(whole)
    other_facts(checksum="0" * 64)(path)
    assert_refuses("the checksum differs from the training arrays", store.verify, path)


def test_an_interrupted_write_leaves_nothing_that_loads(folder, monkeypatch):
    """Arrays of two writes have the same sizes."""
    monkeypatch.setattr(store, "_checksum", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        bnn.DATA.write(folder / "bnn.json", bnn.simulate(60, seed=1), n_hidden=7)
    assert_refuses("the file is missing; the rule prepare_mnist makes it$", bnn.load, folder, name="bnn.json")
