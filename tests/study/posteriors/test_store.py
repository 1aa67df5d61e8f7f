"""Data sets on disk: loading reads the first bytes only, and damaged files are refused in one line."""

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


def put(index, value):
    def change(array):
        array = np.array(array)
        array[index] = value
        return array

    return change


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("train_inputs", put((3, 1), np.nan), "train_inputs holds values that are not finite"),
        ("true_position", put(0, np.inf), "true_position holds values that are not finite"),
        ("train_inputs", lambda array: array[:, :2], r"\(200, 2\); expected float32 \(n_train, 3\)"),
        ("train_inputs", lambda array: array.astype(float), "train_inputs is float64"),
        ("train_targets", lambda array: array[1:], r"\(199,\); expected uint8 \(200,\)"),
        ("test_targets", lambda array: array[:, None], r"\(100, 1\); expected uint8 \(100,\)"),
    ],
)
def test_arrays_that_are_not_the_data_set_are_not_written(tmp_path, name, change, words):
    arrays = logistic.simulate(n_rows=300, n_train=200, dimension=3)
    arrays[name] = change(arrays[name])
    assert_refuses(words, logistic.DATA.write, tmp_path / "logistic.json", arrays)
    assert not os.listdir(tmp_path)


def refilled(path, content: bytes):
    """Other content of the same length."""
    size = path.stat().st_size
    path.write_bytes(content[:size].ljust(size, b"\0"))


def pickled(path):
    np.save(path.with_suffix(".pickled.npy"), np.array([print], dtype=object), allow_pickle=True)
    refilled(path, path.with_suffix(".pickled.npy").read_bytes())


def saved(change):
    return lambda path: np.save(path, change(np.load(path)))


OTHER_TYPES = {"u": "i1", "i": "f4", "f": "i4"}

DAMAGED_ARRAYS = {
    "missing": (os.unlink, "the file is missing"),
    "truncated": (
        lambda path: path.write_bytes(path.read_bytes()[:-1]),
        r"truncated or changed: \d+ bytes, expected \d+",
    ),
    "longer": (lambda path: path.write_bytes(path.read_bytes() + b"\0"), "truncated or changed"),
    "of another dtype": (
        saved(lambda array: array.view(OTHER_TYPES[array.dtype.kind])),
        r"is \w+ \(.*\); expected \w+ \(",
    ),
    "of another shape": (saved(np.ravel), r"is \w+ \(\d+,\); expected \w+ \("),
    "an archive": (lambda path: refilled(path, b"PK\x03\x04"), "not a readable .npy file"),
    "pickled": (pickled, "not a readable .npy file"),
}


@pytest.mark.parametrize("damage", DAMAGED_ARRAYS)
@pytest.mark.parametrize("name", RULES)
def test_a_damaged_array_is_one_line(folder, name, damage):
    path_json = folder / f"{name}.json"
    array = {"logistic": "test_inputs", "pmf": "train", "bnn": "test_images", "bnn.ood": "images"}[name]
    path = folder / name / f"{array}.npy"
    change, words = DAMAGED_ARRAYS[damage]
    change(path)
    how = f"; delete {name}.json, and {RULES[name]} makes it again$"
    # Dtypes and shapes are those of the set, which the .json names.
    assert_refuses(f"({words}).*{how}", load, path_json, name=str(path_json if "another" in damage else path))


def other_facts(**changes):
    def change(path):
        facts = {**read_json(path), **changes}
        write_json(path, {name: value for name, value in facts.items() if value is not None})

    return change


def other_arrays(change):
    def of_facts(path):
        facts = read_json(path)
        change(facts["arrays"])
        write_json(path, facts)

    return of_facts


DAMAGED_FACTS = {
    "truncated": (lambda path: path.write_bytes(path.read_bytes()[:-20]), "not a readable JSON file"),
    "of a former version": (
        lambda path: write_json(path, {"file": "x.npz", "sha256": "0" * 64}),
        "no entry 'arrays'",
    ),
    "a list": (lambda path: write_json(path, []), "no entry 'arrays'"),
    "without a checksum": (other_facts(checksum=None), "no entry 'checksum'"),
    "without an array": (other_arrays(lambda arrays: arrays.popitem()), r"arrays: no entry '\w+'"),
    "without bytes": (
        other_arrays(lambda arrays: arrays[max(arrays)].pop("bytes")),
        r"array \w+: no entry 'bytes'",
    ),
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


def test_shapes_that_files_and_facts_agree_on_are_the_sets_own(folder):
    """Files as another version might have written them."""
    path = folder / "logistic.json"
    arrays = logistic.DATA.read(path)
    arrays["test_inputs"] = arrays["test_inputs"][:, :2]
    shapes = {name: (arrays[name].dtype.type, arrays[name].shape) for name in logistic.DATA.shapes}
    store.StoredSet("a test", shapes).write(path, arrays)
    assert_refuses(r"test_inputs is float32 \(100, 2\); expected float32 \(n_test, 3\); delete", load, path)


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


def test_models_have_the_rows_in_the_order_of_define_model(folder):
    train, _ = pmf.split_u1(pmf.simulate(300))
    factorisation = pmf.load(folder)
    sizes = {"n_users": len(factorisation.position_shape["users"]), "n_items": 1}
    images = bnn.simulate(300)
    for loaded, shuffled in (
        (factorisation, pmf.from_arrays(train[:, :3] - [1, 1, 0], **sizes)),
        (bnn.load(folder), bnn.from_arrays(images["train_images"], images["train_labels"])),
    ):
        jax.tree.map(np.testing.assert_array_equal, loaded.data, shuffled.data)


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
    assert checksum() == checksum(test_images=7, test_labels=7) == first
    assert len({first, checksum(train_images=7), checksum(train_labels=7)}) == 3


@pytest.mark.parametrize("name", RULES)
def test_all_sums_can_be_verified(folder, name):
    path = folder / f"{name}.json"
    store.verify(path)
    file = sorted((folder / name).iterdir())[0]
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    load(path)
    words = r"truncated or changed: SHA-256 \w+\.\.\., expected \w+\.\.\.; delete"
    assert_refuses(words, store.verify, path, name=str(file))
    content[-1] ^= 1
    file.write_bytes(content)
    other_facts(checksum="0" * 64)(path)
    assert_refuses("the checksum differs from the training arrays", store.verify, path)


def test_an_interrupted_write_leaves_nothing_that_loads(folder, monkeypatch):
    """Arrays of two writes have the same sizes."""
    whole, written = store._write_array, []

    def interrupted(path, array):
        if written:
            raise KeyboardInterrupt
        written.append(path)
        return whole(path, array)

    monkeypatch.setattr(store, "_write_array", interrupted)
    with pytest.raises(KeyboardInterrupt):
        bnn.DATA.write(folder / "bnn.json", bnn.simulate(300, seed=1), n_hidden=None)
    assert written == [folder / "bnn/train_images.npy"]
    assert_refuses("the file is missing; the rule prepare_mnist makes it", load, folder / "bnn.json")
