"""Which draws of a chain are kept, or judge it."""

import numpy as np

__all__ = ["evenly_spaced", "thin_draws", "thinning"]


def thin_draws(draws: np.ndarray, thin: int, at_most: int) -> np.ndarray:
    """Every ``thin``-th row, and of those at most ``at_most``, evenly spaced.

    Thinning stops at ten rows: a chain of fewer than ten is taken as it is.
    """
    every = thinning(len(draws), thin)
    return evenly_spaced(draws[every - 1 :: every], at_most)


def thinning(n_draws: int, thin: int) -> int:
    """Every how-many-th of ``n_draws`` is taken: ``thin``, or less where not ten would be left."""
    return min(thin, max(1, n_draws // 10))


def evenly_spaced(draws: np.ndarray, at_most: int) -> np.ndarray:
    """At most ``at_most`` rows, evenly spaced and with the last one among them."""
    if len(draws) <= at_most:
        return draws
    return draws[np.linspace(len(draws) / at_most, len(draws), at_most).astype(int) - 1]
