"""Files and data sets: the simulated set is the paper's own, and broken files are refused in one line."""

import json
import os

import jax
import numpy as np
import pytest
from damaged_data import assert_refuses, put

from sgtune.study.posteriors import logistic_data as logistic
from sgtune.support.errors import DataError, InputError
from sgtune.support.files import atomic_write, file_sha256, read_json, write_json


def small():
    return logistic.simulate(n_rows=300, n_train=200, dimension=3)


def test_the_data_set_is_the_papers_own(logistic_data_dir):
    arrays = logistic.load(logistic_data_dir)
    assert arrays["train_inputs"].shape == (800_000, 10)
    assert arrays["test_inputs"].shape == (200_000, 10)
    position = arrays["true_position"].astype(np.float64)
    margin = (2.0 * arrays["train_targets"] - 1) * (arrays["train_inputs"].astype(np.float64) @ position)
    negative_log_posterior = np.logaddexp(0, -margin).sum() + position @ position / 20
    assert negative_log_posterior == pytest.approx(115_910.1, abs=0.5)
    accuracy = np.mean((arrays["test_inputs"] @ position > 0) == arrays["test_targets"])
    assert accuracy == pytest.approx(0.9391, abs=5e-5)


def test_simulating_leaves_the_random_generator_as_it_was():
    before = jax.config.jax_threefry_partitionable
    draw = jax.random.normal(jax.random.key(0), (5,))
    logistic.simulate(n_rows=20, n_train=10)
    assert jax.config.jax_threefry_partitionable == before
    np.testing.assert_array_equal(draw, jax.random.normal(jax.random.key(0), (5,)))


def test_what_is_written_is_what_is_loaded(tmp_path):
    logistic.write(tmp_path / "logistic.json", small())
    made, loaded = small(), logistic.load(tmp_path)
    facts = read_json(tmp_path / "logistic.json")
    assert loaded.pop("checksum") == facts["checksum"]
    assert set(made) == set(loaded)
    for name, array in made.items():
        np.testing.assert_array_equal(array, loaded[name])
        assert array.dtype == loaded[name].dtype
        assert facts["arrays"][name]["sha256"] == file_sha256(tmp_path / f"logistic/{name}.npy")
    assert facts["n_train"] == 200


def test_sizes_out_of_range_are_refused():
    with pytest.raises(InputError, match="n_train: 300"):
        logistic.simulate(n_rows=300, n_train=300)


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("train_inputs", put((3, 1), np.nan), "train_inputs holds values that are not finite"),
        ("true_position", put(0, np.inf), "true_position holds values that are not finite"),
        ("test_targets", put(5, 2), "test_targets holds 2; expected 0 to 1"),
        ("train_inputs", lambda array: array[:, :2], r"\(200, 2\); expected float32 \(n_train, 3\)"),
        ("train_inputs", lambda array: array.astype(float), "train_inputs is float64"),
        ("train_targets", lambda array: array[1:], r"\(199,\); expected uint8 \(200,\)"),
    ],
)
def test_arrays_that_are_not_the_data_set_are_not_written(tmp_path, name, change, words):
    arrays = small()
    arrays[name] = change(arrays[name])
    assert_refuses(words, logistic.write, tmp_path / "logistic.json", arrays)
    assert not os.listdir(tmp_path)


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "new folder" / "file.txt"
    with atomic_write(path) as temporary:
        assert temporary.suffix == ".txt"
        assert temporary.parent == path.parent
        temporary.write_text("old")

    def fail():
        with atomic_write(path) as temporary:
            temporary.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert path.read_text() == "old"
    assert os.listdir(path.parent) == ["file.txt"]


def test_json_holds_plain_numbers_and_null_for_what_is_not_finite(tmp_path):
    path = tmp_path / "a.json"
    write_json(
        path,
        {
            "scalars": [np.float32(0.5), np.int64(3), np.bool_(True), float("nan"), np.float64("inf")],
            "array": np.array([1.0, -np.inf]),
            "jax": jax.numpy.arange(2),
            "path": tmp_path,
            3: (None, "text"),
        },
    )
    assert json.loads(path.read_text()) == read_json(path)
    assert read_json(path) == {
        "scalars": [0.5, 3, True, None, None],
        "array": [1.0, None],
        "jax": [0, 1],
        "path": str(tmp_path),
        "3": [None, "text"],
    }


def test_json_that_is_missing_is_named(tmp_path):
    with pytest.raises(DataError, match=r"none.json: the file is missing"):
        read_json(tmp_path / "none.json")
    with pytest.raises(DataError, match=r"none.json: the file cannot be read"):
        file_sha256(tmp_path / "none.json")
