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

RULES = {
    "logistic": "the rule simulate_logistic",
    "pmf": "the rule prepare_movielens",
    "bnn": "the rule prepare_mnist",
    "bnn.ood": "the rule prepare_ood",
}


@pytest.fixture
def folder(tmp_path):
    """A small set of each kind."""
    images = bnn.simulate(300)
    logistic.DATA.write(tmp_path / "logistic.json", logistic.simulate(n_rows=300, n_train=200, dimension=3))
    pmf.write(tmp_path / "pmf.json", pmf.simulate(300), made_by="a test")
    bnn.DATA.write(tmp_path / "bnn.json", images, n_hidden=None)
    bnn.write_ood(tmp_path / "bnn.ood.json", images["ood"], made_by="a test")
    return tmp_path


def load(path_json):
    """The set of ``path_json``, as a model loads it."""
    if path_json.name == "bnn.ood.json":
        return bnn.load_ood(path_json)
    return {"logistic": logistic, "pmf": pmf, "bnn": bnn}[path_json.stem].DATA.read(path_json)


def test_what_is_written_is_what_is_loaded(tmp_path):
    made = logistic.simulate(n_rows=300, n_train=200, dimension=3)
    logistic.DATA.write(tmp_path / "logistic.json", made, seed=7)
    loaded, facts = load(tmp_path / "logistic.json"), read_json(tmp_path / "logistic.json")
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
        ("train_inputs", lambda array: array[:, :2], r"\(200, 2\); expected float32 \(n_train, 3\)"),
        ("train_inputs", lambda array: array.astype(float), "train_inputs is float64"),
        ("train_targets", lambda array: array[1:], r"\(199,\); expected uint8 \(200,\)"),
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
WANTED = r"expected uint8 \(n_test, 784\)"
ARRAY, FACTS = "bnn/test_images.npy", "bnn.json"

DAMAGED_ARRAYS = {
    "missing": (os.unlink, ARRAY, "the file is missing"),
    "truncated": (
        lambda path: os.truncate(path, 900),
        ARRAY,
        "truncated or changed: 900 bytes, expected 47168",
    ),
    # Dtypes and shapes are those of the set, which the .json names.
    "of another dtype": (
        lambda path: np.save(path, np.load(path).view("i1")),
        FACTS,
        f"is int8 .*; {WANTED}",
    ),
    "of another shape": (lambda path: np.save(path, np.load(path).ravel()), FACTS, rf"\(47040,\); {WANTED}"),
    "an archive": (refilled(b"PK\x03\x04"), ARRAY, "not a readable .npy file"),
    "pickled": (refilled(PICKLED.getvalue()), ARRAY, "not a readable .npy file"),
}


@pytest.mark.parametrize("damage", DAMAGED_ARRAYS)
def test_a_damaged_array_is_one_line(folder, damage):
    change, named, words = DAMAGED_ARRAYS[damage]
    change(folder / ARRAY)
    words += ".*; delete bnn.json, and the rule prepare_mnist makes it again$"
    assert_refuses(words, load, folder / FACTS, name=str(folder / named))


def other_facts(without=None, **changes):
    """The .json with these entries, and without one."""

    def change(path):
        facts = {**read_json(path), **changes}
        facts.pop(without, None)
        write_json(path, facts)

    return change


DAMAGED_FACTS = {
    "truncated": (lambda path: path.write_bytes(path.read_bytes()[:-20]), "not a readable JSON file"),
    "of a former version": (other_facts("arrays"), "no entry 'arrays'"),
    "a list": (lambda path: write_json(path, []), "no entry 'arrays'"),
    "without a checksum": (other_facts("checksum"), "no entry 'checksum'"),
    "without an array": (other_facts(arrays={}), r"arrays: no entry '\w+'"),
    "without bytes": (other_facts(arrays={"x": {"file": "x.npy"}}), "array x: no entry 'bytes'"),
}


@pytest.mark.parametrize("damage", DAMAGED_FACTS)
@pytest.mark.parametrize("name", RULES)
def test_damaged_facts_are_one_line(folder, name, damage):
    path = folder / f"{name}.json"
    change, words = DAMAGED_FACTS[damage]
    change(path)
    assert_refuses(f"{words}.*; delete {name}.json, and {RULES[name]} makes it again$", load, path)
    path.unlink()
    assert_refuses(f"the file is missing; {RULES[name]} makes it$", load, path)


def test_images_that_their_facts_contradict_are_refused(folder):
    path = folder / "bnn.ood.json"
    other_facts(missing="why")(path)
    assert_refuses(r"images is uint8 \(60, 784\); expected uint8 \(0, 784\); delete", load, path)


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


@pytest.mark.parametrize(("n_hidden", "dimension"), [(None, 79_510), (7, 5_575)])
def test_the_network_has_the_hidden_units_that_its_file_names(tmp_path, n_hidden, dimension):
    bnn.DATA.write(tmp_path / "bnn.json", bnn.simulate(60), n_hidden=n_hidden)
    assert bnn.load(tmp_path).dimension == dimension
    assert MODELS["bnn"].dimension({"n_hidden": n_hidden or 100}) == dimension


def test_the_checksum_is_of_the_training_data_alone(tmp_path):
    def checksum(**changes):
        images = bnn.simulate(300)
        for name, value in changes.items():
            images[name][0] = value
        bnn.DATA.write(tmp_path / "bnn.json", images, n_hidden=None)
        return bnn.DATA.read(tmp_path / "bnn.json")["checksum"]

    first = checksum()
    assert checksum(test_images=7, test_labels=7) == first
    assert len({first, checksum(train_images=7), checksum(train_labels=7)}) == 3


def test_all_sums_can_be_verified(folder):
    path, file = folder / "pmf.json", folder / "pmf/test.npy"
    store.verify(path)
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    load(path)
    assert_refuses(r"truncated or changed: SHA-256 \w+\.\.\., expected", store.verify, path, name=str(file))
    content[-1] ^= 1
    file.write_bytes(content)
    other_facts(checksum="0" * 64)(path)
    assert_refuses("the checksum differs from the training arrays", store.verify, path)


def test_an_interrupted_write_leaves_nothing_that_loads(folder, monkeypatch):
    """Arrays of two writes have the same sizes."""
    monkeypatch.setattr(store, "_checksum", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        bnn.DATA.write(folder / "bnn.json", bnn.simulate(300, seed=1), n_hidden=None)
    assert_refuses("the file is missing; the rule prepare_mnist makes it", load, folder / "bnn.json")
