"""Data sets on disk: loading reads the first bytes only, and damaged files are refused in one line."""

import io
import os

import jax
import numpy as np
import pytest
from damaged_data import assert_refuses

from sgtune import model as base
from sgtune.study.catalogue import MODELS
from sgtune.study.posteriors import bnn, load_model, logistic, pmf, store
from sgtune.support import files
from sgtune.support.files import file_sha256, read_json, write_json

IMAGES = bnn.simulate(60)


@pytest.fixture
def folder(tmp_path):
    """A small set of each kind."""
    logistic.DATA.write(tmp_path / "logistic.json", logistic.simulate(n_rows=300, n_train=200, dimension=3))
    pmf.write(tmp_path / "pmf.json", pmf.simulate(300))
    bnn.DATA.write(tmp_path / "bnn.json", IMAGES, n_hidden=7)
    bnn.write_ood(tmp_path / "bnn.ood.json", IMAGES["ood"])
    return tmp_path


def test_what_is_written_is_what_is_loaded(tmp_path):
    made = logistic.simulate(n_rows=300, n_train=200, dimension=3)
    logistic.DATA.write(tmp_path / "logistic.json", made, seed=7)
    loaded, facts = (read(tmp_path / "logistic.json") for read in (logistic.DATA.read, read_json))
    assert loaded.pop("checksum") == facts["checksum"]
    assert made.keys() == loaded.keys()
    for name, array in made.items():
        np.testing.assert_array_equal(array, loaded[name])
        assert array.dtype == loaded[name].dtype
        assert facts["arrays"][name]["sha256"] == file_sha256(tmp_path / f"logistic/{name}.npy")
    assert (facts["n_train"], facts["n_test"], facts["dimension"], facts["seed"]) == (200, 100, 3, 7)


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


def test_the_network_has_the_hidden_units_that_its_file_names(folder):
    assert bnn.load(folder).dimension == MODELS["bnn"].dimension({"n_hidden": 7}) == 5_575
    assert MODELS["bnn"].dimension({"n_hidden": 100}) == 79_510


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
    file.write_bytes(whole)
    other_facts(checksum="0" * 64)(path)
    assert_refuses("the checksum differs from the training arrays", store.verify, path)


def test_an_interrupted_write_leaves_nothing_that_loads(folder, monkeypatch):
    """Arrays of two writes have the same sizes."""
    monkeypatch.setattr(store, "_checksum", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        bnn.DATA.write(folder / "bnn.json", bnn.simulate(60, seed=1), n_hidden=7)
    assert_refuses("the file is missing; the rule prepare_mnist makes it$", bnn.load, folder, name="bnn.json")
