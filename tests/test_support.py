"""Files are written whole or not at all, and read with errors that name them; keys by name: the same name gives the
same key, alone or among others."""

import errno
import json
import os
import signal
import subprocess
import sys
from zlib import crc32

import jax
import numpy as np
import pytest

from sgtune.support import files
from sgtune.support.errors import DataError, InputError, check_choice, check_integer, check_number
from sgtune.support.files import atomic_write, file_sha256, read_json, remove_unfinished, write_json
from sgtune.support.randomness import LARGEST_SEED, named_key, named_keys


def test_numbers_may_be_arrays_without_axes():
    assert check_number("step_size", jax.numpy.float32(0.5), above=0) == 0.5
    assert check_integer("batch_size", np.array(3), at_least=1) == 3
    with pytest.raises(InputError, match=r"^step_size: .* must be a number > 0"):
        check_number("step_size", np.ones(1), above=0)
    with pytest.raises(InputError, match=r"^scale: .* allowed: identity"):
        check_choice("scale", np.ones(3), ["identity"])


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
    assert path.read_text("utf-8") == "old"
    assert os.listdir(path.parent) == ["file.txt"]


def test_the_file_of_a_killed_process_is_removed_and_that_of_a_running_one_is_not(tmp_path):
    path, own = tmp_path / "folder" / "file.txt", []
    killed = f"""
import os, signal
from sgtune.support.files import atomic_write
with atomic_write({str(path)!r}) as temporary:
    temporary.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", killed]).returncode == -signal.SIGKILL
    (left,) = os.listdir(path.parent)
    # Of another machine that shares the folder, where the same number may be that of a running process.
    foreign, abandoned = (path.with_name(left.replace(files._host(), host)) for host in ("0" * 8, "1" * 8))
    foreign.touch()
    abandoned.touch()
    os.utime(abandoned, (0, 0))
    (path.parent / ".of-a-user.txt").touch()
    with atomic_write(path) as temporary:
        temporary.write_text("new")
        remove_unfinished(tmp_path)
        own += os.listdir(path.parent)
    assert sorted(own) == sorted([temporary.name, ".of-a-user.txt", foreign.name])
    assert path.read_text("utf-8") == "new"


# HDF5's error has the system's words, but not its number.
@pytest.mark.parametrize(
    "words", [(errno.ENOSPC, os.strerror(errno.ENOSPC)), ("write failed: 'No space left on device'",)]
)
def test_a_full_disk_is_one_line_with_the_file(tmp_path, words):
    line = r"file.nc: the disk is full, and the file was not written$"
    with pytest.raises(DataError, match=line), atomic_write(tmp_path / "file.nc"):
        raise OSError(*words)


def test_json_holds_plain_numbers_and_null_for_what_is_not_finite(tmp_path):
    path = tmp_path / "a.json"
    scalars = [np.float32(0.5), np.int64(3), np.bool_(True), float("nan"), np.float64("inf")]
    arrays = {"array": np.array([1.0, -np.inf]), "jax": jax.numpy.arange(2)}
    write_json(path, {"scalars": scalars, **arrays, "path": tmp_path, 3: (None, "text")})
    plain = {"scalars": [0.5, 3, True, None, None], "array": [1.0, None], "jax": [0, 1], "3": [None, "text"]}
    assert json.loads(path.read_text("utf-8")) == read_json(path) == plain | {"path": str(tmp_path)}
    for read, words in ((read_json, "the file is missing"), (file_sha256, "the file cannot be read")):
        with pytest.raises(DataError, match=f"none.json: {words}"):
            read(tmp_path / "none.json")


def numbers_of(keys):
    return np.asarray(jax.random.key_data(keys))


@pytest.mark.parametrize("seed", [0, 7, LARGEST_SEED])
@pytest.mark.parametrize("generator", ["threefry2x32", "rbg"])
def test_keys_are_those_of_jax(seed, generator):
    names = [("noise", "sgld", 10.0**-i, None, i % 3)[: 2 + i % 4] for i in range(70)]
    with jax.default_prng_impl(generator):
        expected = []
        for one in names:
            key = jax.random.key(seed)
            for name in one:
                key = jax.random.fold_in(key, crc32(str(name).encode()))
            expected.append(numbers_of(key))
        keys = named_keys(seed, names)
        assert keys.shape == (70,)
        assert keys.dtype == jax.random.key(seed).dtype
        np.testing.assert_array_equal(numbers_of(keys), expected, strict=True)
        np.testing.assert_array_equal(numbers_of(named_key(seed, *names[3])), expected[3], strict=True)
