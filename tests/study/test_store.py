"""Data sets on disk: loading reads the first bytes only, and damaged files are refused in one line."""

import os

import jax
import numpy as np
import pytest
from damaged_data import assert_refuses

from sgtune import model as base
from sgtune.model import define_model
from sgtune.study.catalogue import MODELS
from sgtune.study.posteriors import bnn, load_model, mnist, movielens, pmf, store
from sgtune.study.posteriors import logistic_data as logistic
from sgtune.study.posteriors import ood_images as ood
from sgtune.support import files
from sgtune.support.errors import DataError
from sgtune.support.files import read_json, write_json

RULES = {
    "logistic": "the rule simulate_logistic",
    "pmf": "the rule prepare_movielens",
    "bnn": "the rule prepare_mnist",
    "bnn.ood": "the rule prepare_ood",
}


def write_all(folder):
    """A small set of each kind in ``folder``."""
    images = mnist.simulate(300)
    logistic.write(folder / "logistic.json", logistic.simulate(n_rows=300, n_train=200, dimension=3))
    movielens.write(folder / "pmf.json", movielens.simulate(300), made_by="a test")
    mnist.write(folder / "bnn.json", images, made_by="a test")
    ood.write(folder / "bnn.ood.json", images["ood"], made_by="a test")


def load(path_json):
    """The set of ``path_json``, as a model loads it."""
    if path_json.name == "bnn.ood.json":
        return ood.load(path_json)
    return {"logistic": logistic, "pmf": movielens, "bnn": mnist}[path_json.stem].load(path_json.parent)


@pytest.fixture
def folder(tmp_path):
    write_all(tmp_path)
    return tmp_path


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
    "empty": (lambda path: path.write_bytes(b""), r"truncated or changed: 0 bytes, expected \d+"),
    "longer": (lambda path: path.write_bytes(path.read_bytes() + b"\0"), "truncated or changed"),
    "of another dtype": (
        saved(lambda array: array.view(OTHER_TYPES[array.dtype.kind])),
        r"holds \w+ \(.*\); expected \w+ \(",
    ),
    "of another byte order": (
        lambda path: refilled(path, path.read_bytes().replace(b"'|u1'", b"'>i1'").replace(b"'<", b"'>")),
        r"holds (>|int8).*; expected",
    ),
    "of another shape": (saved(np.ravel), r"holds \w+ \(\d+,\); expected \w+ \(\d+, \d+\)"),
    "not of NumPy": (lambda path: refilled(path, b"\x1f\x8b"), "not a readable .npy file"),
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
    assert_refuses(f"({words}).*{how}", load, path_json, name=str(path))


def other_facts(**changes):
    def change(path):
        facts = {**read_json(path), **changes}
        write_json(path, {name: value for name, value in facts.items() if value is not None})

    return change


def other_arrays(change):
    def rewrite(path):
        facts = read_json(path)
        change(facts["arrays"])
        write_json(path, facts)

    return rewrite


DAMAGED_FACTS = {
    "no JSON": (lambda path: path.write_text("{"), "not a readable JSON file"),
    "of a former version": (
        lambda path: write_json(path, {"file": "x.npz", "sha256": "0" * 64}),
        "no entry '(arrays|name)'",
    ),
    "a list": (lambda path: write_json(path, []), "no entry '(arrays|name)'"),
    "without a checksum": (other_facts(checksum=None), "no entry 'checksum'"),
    "with arrays as a list": (other_facts(arrays=[]), "no entry 'arrays'"),
    "without an array": (other_arrays(lambda arrays: arrays.popitem()), "names the arrays .*; expected .*"),
    "with another array": (
        other_arrays(lambda arrays: arrays.update(extra=dict(arrays[min(arrays)]))),
        "names the arrays .*extra.*; expected .*",
    ),
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


@pytest.mark.parametrize("name", RULES)
def test_missing_facts_are_one_line(folder, name):
    path = folder / f"{name}.json"
    path.unlink()
    assert_refuses(f"the file is missing; {RULES[name]} makes it$", load, path)


def test_shapes_that_files_and_facts_agree_on_are_the_sets_own(folder):
    """Files as another version might have written them."""
    path = folder / "logistic.json"
    arrays, facts = store.read_arrays(path, logistic.ARRAYS)
    arrays["test_inputs"] = arrays["test_inputs"][:, :2]
    shapes = {name: (array.dtype.type, array.shape) for name, array in arrays.items()}
    store.write_arrays(path, arrays, shapes, {"made_by": facts["made_by"]})
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
    assert isinstance(
        load_model("bnn", folder, ood=folder / "bnn.ood.json").test_data["ood"]["inputs"], np.memmap
    )


def test_models_have_the_rows_in_the_order_of_define_model(folder):
    train, _ = movielens.split_u1(movielens.simulate(300))
    ratings = train[:, :3] - [1, 1, 0]
    factorisation = pmf.load(folder)
    sizes = {"n_users": len(factorisation.position_shape["users"]), "n_items": 1}
    images = mnist.simulate(300)
    for loaded, shuffled in (
        (factorisation, pmf.from_arrays(ratings, **sizes)),
        (bnn.load(folder), bnn.from_arrays(images["train_images"], images["train_labels"])),
    ):
        jax.tree.map(np.testing.assert_array_equal, loaded.data, shuffled.data)


@pytest.mark.parametrize(("n_hidden", "dimension"), [(None, 79_510), (7, 5_575)])
def test_the_network_has_the_hidden_units_that_its_file_names(tmp_path, n_hidden, dimension):
    mnist.write(tmp_path / "bnn.json", mnist.simulate(60), made_by="a test", n_hidden=n_hidden)
    assert bnn.load(tmp_path).dimension == dimension
    assert MODELS["bnn"].dimension({"n_hidden": n_hidden or 100}) == dimension


def test_a_model_is_hashed_unless_it_comes_with_a_checksum(monkeypatch):
    functions = {
        "log_prior": lambda position: -0.5 * position @ position,
        "log_likelihood": lambda position, rows: rows @ position,
        "init": lambda key: jax.random.normal(key, (2,)),
    }
    rows = np.ones((5, 2), np.float32)
    sums = {define_model("m", data=factor * rows, **functions).checksum for factor in (1, 1, 2)}
    assert sorted(map(len, sums)) == [64, 64]
    assert define_model("m", data=rows, checksum="given", **functions).checksum == "given"


def test_the_checksum_is_of_the_training_data_alone(tmp_path):
    def checksum(**changes):
        images = mnist.simulate(300)
        for name, value in changes.items():
            images[name][0] = value
        mnist.write(tmp_path / "bnn.json", images, made_by="a test")
        return mnist.load(tmp_path)["checksum"]

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
    assert_refuses(
        r"truncated or changed: SHA-256 \w+\.\.\., expected \w+\.\.\.; delete",
        store.verify,
        path,
        name=str(file),
    )
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
        mnist.write(folder / "bnn.json", mnist.simulate(300, seed=1), made_by="a test")
    assert written == [folder / "bnn/train_images.npy"]
    assert_refuses("the file is missing; the rule prepare_mnist makes it", mnist.load, folder)


def test_a_file_that_was_not_written_whole_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "file_sha256", lambda path: "0" * 64)
    with pytest.raises(DataError, match=r"train_images\.npy: truncated .* it was not written whole$"):
        mnist.write(tmp_path / "bnn.json", mnist.simulate(300), made_by="a test")
    assert os.listdir(tmp_path) == ["bnn"]
    assert not os.listdir(tmp_path / "bnn")
