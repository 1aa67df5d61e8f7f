"""Files are written whole or not at all, and read with errors that name them."""

import json
import os

import jax
import numpy as np
import pytest

from sgtune.support.errors import DataError
from sgtune.support.files import atomic_write, file_sha256, read_json, write_json


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
