"""Files and data sets: the simulated set is the paper's own, and what is broken is refused in one line."""

import json
import os
from pathlib import Path

import jax
import numpy as np
import pytest

from sgtune.data import logistic
from sgtune.errors import DataError, InputError
from sgtune.files import atomic_write, file_sha256, read_json, write_json


@pytest.fixture
def small_dir(tmp_path):
    logistic.write(tmp_path / "logistic.npz", logistic.simulate(n_rows=300, n_train=200, dimension=3))
    return tmp_path


def refused(folder: Path, words: str):
    with pytest.raises(DataError, match=words) as caught:
        logistic.load(folder)
    assert "logistic" in str(caught.value)
    assert "\n" not in str(caught.value)


def rewrite(folder: Path, **changes):
    """Other arrays under a sidecar that agrees with them, as an older version might have left."""
    arrays = {**logistic.load(folder), **changes}
    path = folder / "logistic.npz"
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})
    write_json(path.with_suffix(".json"), {"sha256": file_sha256(path)})


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


def test_what_is_written_is_what_is_loaded(small_dir):
    made, loaded = logistic.simulate(n_rows=300, n_train=200, dimension=3), logistic.load(small_dir)
    assert set(made) == set(loaded)
    for name, array in made.items():
        np.testing.assert_array_equal(array, loaded[name])
        assert array.dtype == loaded[name].dtype
    sidecar = read_json(small_dir / "logistic.json")
    assert sidecar["sha256"] == file_sha256(small_dir / "logistic.npz")
    assert sidecar["n_train"] == 200


def test_sizes_out_of_range_are_refused():
    with pytest.raises(InputError, match="n_train: 300"):
        logistic.simulate(n_rows=300, n_train=300)


def test_missing_truncated_and_changed_files_are_refused(small_dir, tmp_path):
    refused(tmp_path / "nowhere", "the file is missing")
    path = small_dir / "logistic.npz"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    refused(small_dir, "truncated or changed: SHA-256 .* expected")
    write_json(path.with_suffix(".json"), {"sha256": file_sha256(path)})
    refused(small_dir, "not a readable .npz")
    path.write_bytes(whole)
    path.with_suffix(".json").write_text("{")
    refused(small_dir, "not a readable JSON")
    path.with_suffix(".json").unlink()
    refused(small_dir, r"logistic.json: the file is missing")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"train_inputs": np.full((200, 3), np.nan, np.float32)},
            "train_inputs holds values that are not finite",
        ),
        ({"test_targets": np.full(100, 2, np.uint8)}, "test_targets holds 2; expected 0 to 1"),
        ({"train_inputs": np.zeros((200, 4), np.float32)}, r"\(200, 4\); expected float32 \(200, 3\)"),
        ({"train_inputs": np.zeros((200, 3))}, "float64"),
        ({"test_inputs": None}, "expected .*test_inputs"),
        ({"extra": np.zeros(1)}, "holds extra"),
    ],
)
def test_arrays_that_are_not_the_data_set_are_refused(small_dir, change, words):
    rewrite(small_dir, **change)
    refused(small_dir, words)


def test_pickled_arrays_are_not_loaded(small_dir):
    rewrite(small_dir, true_position=np.array([print], dtype=object))
    refused(small_dir, "not a readable .npz")


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
