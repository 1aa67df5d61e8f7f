"""Small models of ratings and of images, with test data, for the tests of predictions and evaluations.

Each is made once, and its mode is found once."""

from functools import cache

import numpy as np

USERS, ITEMS, FACTORS, PIXELS, HIDDEN = 40, 30, 3, 16, 5


@cache
def small_pmf():
    """500 training and 100 test ratings of low rank; D = 222."""
    from sgtune.study.posteriors import pmf

    rng = np.random.default_rng(4)
    users, items = rng.integers(0, USERS, 600), rng.integers(0, ITEMS, 600)
    tastes = np.sum(rng.standard_normal((USERS, 2))[users] * rng.standard_normal((ITEMS, 2))[items], axis=1)
    ratings = np.stack([users, items, np.clip(np.round(3.4 + tastes), 1, 5).astype(int)], axis=1)
    return pmf.from_arrays(ratings[:500], ratings[500:], n_users=USERS, n_items=ITEMS, n_factors=FACTORS)


@cache
def small_network():
    """A network of 5 hidden units (D = 145) for ten classes of 4 x 4 images, each a noisy pattern.

    300 images train it, 90 test it. The out-of-distribution images are pure noise.
    """
    from sgtune.study.posteriors import bnn

    rng = np.random.default_rng(5)
    patterns = rng.integers(0, 256, (10, PIXELS))
    labels = rng.integers(0, 10, 390)
    images = np.clip(patterns[labels] + rng.normal(0, 20, (390, PIXELS)), 0, 255).astype(np.uint8)
    noise = rng.integers(0, 256, (70, PIXELS), dtype=np.uint8)
    test_data = {
        "inputs": images[300:],
        "targets": labels[300:],
        "ood": {"name": "noise", "inputs": noise, "missing": None},
    }
    return bnn.from_arrays(images[:300], labels[:300], test_data=test_data, n_hidden=HIDDEN)


def random_draws(model, n, seed=0, sd=1.0):
    """``(n, D)`` float32 normals."""
    return (sd * np.random.default_rng(seed).standard_normal((n, model.dimension))).astype(np.float32)
