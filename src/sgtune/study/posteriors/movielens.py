"""MovieLens 100K (Harper and Konstan 2015, doi 10.1145/2827872), and a small simulated set in its format."""

import math
from pathlib import Path

import numpy as np

from sgtune.study.posteriors.store import check_range, read_arrays, write_arrays
from sgtune.support.errors import DataError, check_integer

__all__ = ["load", "read_ratings", "simulate", "split_u1", "write"]

N_USERS, N_ITEMS = 943, 1682
LOWEST, HIGHEST = 1, 5
ARRAYS = {"train": (np.int32, ("n_train", 3)), "test": (np.int32, ("n_test", 3))}
NAMES = tuple(ARRAYS)


def read_ratings(path: str | Path) -> np.ndarray:
    """The rows of ``u.data``: (n, 4) int64 of user (1 to 943), item (1 to 1682), rating (1 to 5), Unix time.

    Raises:
        DataError: the file is missing or empty, or a line does not have four integers in these ranges, separated by
            tabs; the message has the line number.
    """
    try:
        lines = Path(path).read_text(encoding="ascii").splitlines()
    except OSError as error:
        raise DataError(f"{path}: the file cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise DataError(f"{path}: not a text file; expected lines of four integers") from None
    ratings = np.array(
        [_row(f"{path}, line {number}", line) for number, line in enumerate(lines, start=1)], np.int64
    )
    if not len(ratings):
        raise DataError(f"{path}: holds no ratings; expected lines of four integers")
    return ratings


def _row(where: str, line: str) -> list[int]:
    fields = line.split("\t")
    if len(fields) != 4 or not all(field.isdigit() for field in fields):
        raise DataError(
            f"{where}: {line[:60]!r}; expected user, item, rating and time, four integers separated by tabs"
        )
    row = [int(field) for field in fields]
    ranges = (("user", 1, N_USERS), ("item", 1, N_ITEMS), ("rating", LOWEST, HIGHEST))
    for (name, lowest, highest), value in zip(ranges, row[:3], strict=True):
        if not lowest <= value <= highest:
            raise DataError(f"{where}: {name} {value}; expected {lowest} to {highest}")
    return row


def split_u1(ratings: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The published split u1 of the rows of `read_ratings`: ``(train, test)``, each sorted by user, then item.

    The test rows are the first fifth of the file: 20,000 of 100,000.
    """
    n_test = len(ratings) // 5
    parts = ratings[n_test:], ratings[:n_test]
    train, test = (part[np.lexsort((part[:, 1], part[:, 0]))] for part in parts)
    return train, test


def simulate(n_ratings: int, seed: int = 0) -> np.ndarray:
    """``n_ratings`` ratings from a low-rank model, in the form of `read_ratings`, in random order.

    Rating = 3 + u_i' v_j + N(0, 1/3), rounded and clipped, with two factors of variance 1 for each user and
    item. About a quarter of all pairs of a user and an item have a rating.

    Raises:
        InputError: ``n_ratings`` is not an integer >= 10.
    """
    n_ratings = check_integer("data.pmf.simulated", n_ratings, at_least=10)
    n_users = math.ceil(math.sqrt(3 * n_ratings))
    n_items = math.ceil(4 / 3 * n_users)
    rng = np.random.default_rng(seed)
    users, items = rng.normal(size=(n_users, 2)), rng.normal(size=(n_items, 2))
    user, item = np.divmod(rng.choice(n_users * n_items, n_ratings, replace=False), n_items)
    rating = 3 + np.sum(users[user] * items[item], axis=1) + rng.normal(scale=3**-0.5, size=n_ratings)
    rating = np.clip(np.rint(rating), LOWEST, HIGHEST).astype(np.int64)
    first_second = 874_724_710
    return np.column_stack((user + 1, item + 1, rating, first_second + np.arange(n_ratings)))


def write(path_json: str | Path, ratings: np.ndarray, *, made_by: str) -> None:
    """Write split u1 of ``ratings`` (from `read_ratings` or `simulate`) to ``path_json`` and the files beside it.

    Raises:
        DataError: a part has no ratings, or a user, item or rating is out of range.
    """
    path = Path(path_json)
    n_users, n_items = (int(ratings[:, column].max()) for column in (0, 1))
    ranges = (("user", 1, n_users), ("item", 1, n_items), ("rating", LOWEST, HIGHEST))
    for column, (what, lowest, highest) in enumerate(ranges):
        check_range(path, what, ratings[:, column], lowest, highest)
    train, test = (
        np.column_stack((part[:, 0] - 1, part[:, 1] - 1, part[:, 2])).astype(np.int32)
        for part in split_u1(ratings)
    )
    write_arrays(
        path,
        {"train": train, "test": test},
        ARRAYS,
        {
            "made_by": made_by,
            "n_train": len(train),
            "n_test": len(test),
            "n_users": n_users,
            "n_items": n_items,
        },
        training=("train",),
        shuffle=True,
    )


def load(data_dir: str | Path) -> dict:
    """The ratings of ``data_dir/pmf``, mapped into memory.

    Returns:
        ``train`` (in random order) and ``test``, (n, 3) int32 rows of user, item and rating, with users and items
        counted from 0; ``n_users`` and ``n_items``, int; ``checksum`` of ``train``.

    Raises:
        DataError: ``pmf.json`` or a file that it names is missing or truncated, or has another dtype or shape.
    """
    path, made_by = Path(data_dir) / "pmf.json", "the rule prepare_movielens"
    arrays, facts = read_arrays(path, ARRAYS, made_by, n_users=int, n_items=int)
    return {**arrays, **{name: facts[name] for name in ("n_users", "n_items", "checksum")}}
