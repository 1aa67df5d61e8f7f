"""Independent versions of the paper's factorisation and network (App. B.2.1, B.3.1) in float64, with small data."""

import jax
import jax.numpy as jnp
import numpy as np
from scipy import special, stats

from sgtune.study.posteriors import bnn, pmf

__all__ = [
    "N_HIDDEN",
    "network_log_prior",
    "network_position",
    "network_probabilities",
    "pmf_log_likelihood",
    "pmf_log_prior",
    "pmf_position",
    "simulated_images",
    "simulated_ratings",
    "single",
    "small_network",
    "small_pmf",
]

N_USERS, N_ITEMS, N_FACTORS = 7, 9, 3
N_PIXELS, N_HIDDEN = 12, 5


def pmf_log_prior(position):
    """U_i ~ N(mu_U, Lambda_U^-1), mu_U ~ N(0, Lambda_U^-1), entries of Lambda_U ~ Gamma(4, rate 5); the same for V.

    The density is over log precisions, with the Jacobian exp(log precision).
    """
    total = 0.0
    for side in ("users", "items"):
        log_precision = position[f"log_precision_{side}"]
        precision = np.exp(log_precision)
        sd = precision**-0.5
        total += stats.gamma.logpdf(precision, a=4, scale=1 / 5).sum() + log_precision.sum()
        total += stats.norm.logpdf(position[f"mean_{side}"], 0, sd).sum()
        total += stats.norm.logpdf(position[side], position[f"mean_{side}"], sd).sum()
    return total


def pmf_log_likelihood(position, ratings):
    """One value per rating: ratings minus their overall mean ~ N(U_i' V_j, 1 / 3)."""
    users, items, values = ratings.T
    products = np.array(
        [position["users"][u] @ position["items"][v] for u, v in zip(users, items, strict=True)]
    )
    return stats.norm.logpdf(values - values.mean(), products, 3**-0.5)


def network_probabilities(position, images):
    """softmax(softmax(x B + b) A + a) of pixels scaled to [0, 1]."""
    hidden = special.softmax(images / 255 @ position["B"] + position["b"], axis=1)
    return special.softmax(hidden @ position["A"] + position["a"], axis=1)


def network_log_prior(position):
    return sum(stats.norm.logpdf(leaf).sum() for leaf in position.values())


def simulated_ratings(n, seed=0, n_users=N_USERS, n_items=N_ITEMS):
    """Rows (user, item, rating), no pair twice."""
    rng = np.random.default_rng(seed)
    pairs = rng.choice(n_users * n_items, n, replace=False)
    return np.column_stack([pairs // n_items, pairs % n_items, rng.integers(1, 6, n)])


def pmf_position(seed, n_users=N_USERS, n_items=N_ITEMS, n_factors=N_FACTORS):
    rng = np.random.default_rng(seed)
    position = {}
    for side, size in (("users", n_users), ("items", n_items)):
        precision = rng.gamma(4, 1 / 5, n_factors)
        mean = rng.normal(size=n_factors) / np.sqrt(precision)
        position[f"log_precision_{side}"] = np.log(precision)
        position[f"mean_{side}"] = mean
        position[side] = mean + rng.normal(size=(size, n_factors)) / np.sqrt(precision)
    return position


def simulated_images(n, seed=0, n_pixels=N_PIXELS):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, (n, n_pixels), dtype=np.uint8), rng.integers(0, 10, n, dtype=np.uint8)


def network_position(seed, n_pixels=N_PIXELS, n_hidden=N_HIDDEN):
    rng = np.random.default_rng(seed)
    shapes = {"A": (n_hidden, 10), "B": (n_pixels, n_hidden), "a": (10,), "b": (n_hidden,)}
    return {name: rng.normal(size=shape) for name, shape in shapes.items()}


def single(position):
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), position)


def small_pmf(n=40, test=None):
    ratings = simulated_ratings(n)
    sizes = {"n_users": N_USERS, "n_items": N_ITEMS, "n_factors": N_FACTORS}
    return pmf.from_arrays(ratings, test, **sizes, shuffle_seed=None), ratings


def small_network(n=40):
    images, labels = simulated_images(n)
    return bnn.from_arrays(images, labels, n_hidden=N_HIDDEN, shuffle_seed=None), images, labels
