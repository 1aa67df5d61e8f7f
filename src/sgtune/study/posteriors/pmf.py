"""Probabilistic matrix factorisation of ratings (paper Sect. 4.2, App. B.2.1; Salakhutdinov and Mnih 2008).

The ratings are MovieLens 100K (Harper and Konstan 2015, doi 10.1145/2827872), or a small simulated set in its format.
"""

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from sgtune.model import Model, define_model
from sgtune.study.posteriors.store import StoredSet

N_FACTORS = 20
"""d, the length of a user's and of an item's feature vector."""

RATING_PRECISION = 3.0
"""alpha."""

SHAPE, RATE = 4.0, 5.0
"""a_0 and b_0 of the Gamma prior of each feature precision."""

LOWEST, HIGHEST = 1, 5

N_PAIRS, PAIRS_SEED = 2_000, 0
"""So many pairs of a user and an item of the test set are the functionals of a position, and which."""

DATA = StoredSet(
    "the rule prepare_movielens",
    {"train": (np.int32, ("n_train", 3)), "test": (np.int32, ("n_test", 3))},
    training=("train",),
    shuffle=True,
    facts=("n_users", "n_items"),
)
"""The files of the ratings: rows of user and item, counted from 0, and rating; and the numbers of users and items."""


def read_ratings(path: str | Path) -> np.ndarray:
    """The rows of ``u.data``: (n, 4) int64 of user and item (both from 1), rating (1 to 5), Unix time."""
    return np.loadtxt(path, np.int64, delimiter="\t")


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
    """
    n_users = math.ceil(math.sqrt(3 * n_ratings))
    n_items = math.ceil(4 / 3 * n_users)
    rng = np.random.default_rng(seed)
    users, items = rng.normal(size=(n_users, 2)), rng.normal(size=(n_items, 2))
    user, item = np.divmod(rng.choice(n_users * n_items, n_ratings, replace=False), n_items)
    rating = 3 + np.sum(users[user] * items[item], axis=1) + rng.normal(scale=3**-0.5, size=n_ratings)
    rating = np.clip(np.rint(rating), LOWEST, HIGHEST).astype(np.int64)
    first_second = 874_724_710
    return np.column_stack((user + 1, item + 1, rating, first_second + np.arange(n_ratings)))


def write(path_json: str | Path, ratings: np.ndarray, **facts: object) -> None:
    """Write split u1 of ``ratings`` (from `read_ratings` or `simulate`) as `DATA`."""
    n_users, n_items = (int(ratings[:, column].max()) for column in (0, 1))
    train, test = ((part[:, :3] - [1, 1, 0]).astype(np.int32) for part in split_u1(ratings))
    DATA.write(path_json, {"train": train, "test": test}, n_users=n_users, n_items=n_items, **facts)


def log_prior(position: dict) -> jax.Array:
    """Of users and items alike (W = U, V), up to a constant, with Lambda_W = diag(exp(log_precision)):

    W_i ~ N(mean, Lambda_W^-1), mean ~ N(0, Lambda_W^-1), each precision ~ Gamma(4, rate 5), whose log is the
    parameter: its density has the Jacobian exp(log_precision). (The paper prints Lambda_W where its inverse
    is meant, and does not say that it is diagonal.)
    """
    total = 0.0
    for side in ("users", "items"):
        factors, mean, log_precision = (position[f"{part}{side}"] for part in ("", "mean_", "log_precision_"))
        precision = jnp.exp(log_precision)
        n_normals = factors.shape[0] + 1
        squares = jnp.sum((factors - mean) ** 2, axis=0) + mean**2
        normals = 0.5 * n_normals * log_precision - 0.5 * precision * squares
        gammas = SHAPE * log_precision - RATE * precision
        total += jnp.sum(normals + gammas)
    return total


def log_likelihood(position: dict, batch: dict) -> jax.Array:
    """log N(r | U_user' V_item, 1 / alpha) of each centred rating, up to a constant: ``(n,)``."""
    return -0.5 * RATING_PRECISION * (batch["rating"] - _products(position, batch)) ** 2


def _products(position: dict, rows: dict) -> jax.Array:
    """U_user' V_item of each row: ``(n,)``.

    The sum over features is a product with ones: XLA fuses a plain sum into the scatters of the gradient, where
    every entry of a feature vector recomputes it, which takes 2 to 4 times as long.
    """
    products = position["users"][rows["user"]] * position["items"][rows["item"]]
    return jnp.dot(products, np.ones(products.shape[-1], np.float32), precision="highest")


def predict(position: dict, inputs: dict) -> jax.Array:
    """Expected ratings, the mean rating added back, clipped to [1, 5]: ``(n,)``."""
    return jnp.clip(_products(position, inputs) + inputs["mean_rating"], LOWEST, HIGHEST)


def functionals_of(test: np.ndarray) -> Callable:
    """``position -> (K,)``: U_user' V_item of at most 2,000 test rows, the same ones for the same test set.

    The posterior does not change if features are rotated, permuted or change their signs; it does identify every
    product.
    """
    chosen = np.random.default_rng(PAIRS_SEED).permutation(len(test))[:N_PAIRS]
    pairs = np.asarray(test[chosen, :2], np.int32)
    return partial(_products, rows={"user": pairs[:, 0], "item": pairs[:, 1]})


def from_arrays(
    train: np.ndarray,
    test: np.ndarray | None = None,
    *,
    n_users: int,
    n_items: int,
    n_factors: int = N_FACTORS,
    **options,
) -> Model:
    """PMF of ratings ``(N, 3)``: rows (user, item, rating), users and items counted from 0.

    Training ratings are centred by their mean. ``options`` are those of `sgtune.define_model`.
    """
    train = np.asarray(train)
    mean_rating = float(train[:, 2].mean())
    sizes = {"users": n_users, "items": n_items}

    def as_test(user: np.ndarray, item: np.ndarray, targets: np.ndarray) -> dict:
        inputs = {"user": user, "item": item, "mean_rating": np.float32(mean_rating)}
        return {"inputs": inputs, "targets": targets}

    def init(key: jax.Array) -> dict:
        position = {}
        for side, side_key in zip(sizes, jax.random.split(key), strict=True):
            # Small and random: zero is a saddle, and prior draws are far from every mode.
            position[side] = 0.1 * jax.random.normal(side_key, (sizes[side], n_factors))
            position |= {f"{part}_{side}": jnp.zeros(n_factors) for part in ("mean", "log_precision")}
        return position

    return define_model(
        "pmf",
        log_prior=log_prior,
        log_likelihood=log_likelihood,
        data={
            "user": train[:, 0].astype(np.int32),
            "item": train[:, 1].astype(np.int32),
            "rating": (train[:, 2] - mean_rating).astype(np.float32),
        },
        init=init,
        predict=predict,
        test_data=None if test is None else as_test(*test.T[:2], np.asarray(test[:, 2], np.float32)),
        functionals=None if test is None else functionals_of(test),
        as_test=lambda rows: as_test(rows["user"], rows["item"], rows["rating"] + np.float32(mean_rating)),
        task="regression",
        # Gathers and scatters of several chains at once take twice as long as one after the other, on a CPU.
        max_lockstep=1,
        **options,
    )


def load(data_dir: str | Path) -> Model:
    """The split u1 of MovieLens 100K from ``data_dir/pmf``; a DataError as of `StoredSet.read`."""
    arrays = DATA.read(Path(data_dir) / "pmf.json")
    sizes, test = {name: arrays[name] for name in DATA.facts}, arrays["test"]
    options = {"data_dir": data_dir, "shuffle_seed": None, "checksum": arrays["checksum"]}
    return from_arrays(arrays["train"], test, **sizes, **options)
