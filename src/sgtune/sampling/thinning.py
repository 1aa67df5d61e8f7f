"""Choosing the draws of a chain that are kept, or that judge it."""

import jax
import numpy as np
from jaxtyping import Int

from sgtune.support.randomness import named_key

__all__ = ["evenly_spaced", "random_subset", "thin_draws", "thinning"]


def thin_draws(draws: np.ndarray, thin: int, at_most: int) -> np.ndarray:
    """Every ``thin``-th row, and of these at most ``at_most``, evenly spaced.

    Thinning leaves at least ten rows; a chain of fewer than ten rows is not thinned.
    """
    every = thinning(len(draws), thin)
    return evenly_spaced(draws[every - 1 :: every], at_most)


def thinning(n_draws: int, thin: int) -> int:
    """The stride through ``n_draws`` draws: ``thin``, or less if fewer than ten draws would be left."""
    return min(thin, max(1, n_draws // 10))


def evenly_spaced(draws: np.ndarray, at_most: int) -> np.ndarray:
    """At most ``at_most`` rows, evenly spaced, including the last one."""
    if len(draws) <= at_most:
        return draws
    return draws[np.linspace(len(draws) / at_most, len(draws), at_most).astype(int) - 1]


def random_subset(n: int, at_most: int, seed: int, *names: object) -> Int[np.ndarray, " k"]:
    """At most ``at_most`` of the places 0, ..., n - 1, uniformly at random without replacement, ascending.

    The same seed, names and numbers give the same places (`sgtune.support.randomness.named_key`).
    """
    if n <= at_most:
        return np.arange(n)
    # NumPy's generator, because JAX would compile a program for each n.
    bits = np.asarray(jax.random.key_data(named_key(seed, "subset", *names)))
    return np.sort(np.random.default_rng(bits).choice(n, at_most, replace=False))
