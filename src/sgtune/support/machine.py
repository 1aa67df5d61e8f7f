"""What this process may use of its machine, and how fast the machine is."""

import os
from time import perf_counter

__all__ = ["cores", "product_seconds"]

SIZE, REPEATS = 1_000, 5
"""Rows and columns of the matrices of `product_seconds`, and how often they are multiplied."""


def cores() -> int | None:
    """The number of cores that this process may use, which may be less than the machine has; None if unknown."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def product_seconds() -> float:
    """A fixed benchmark, by which machines are compared: the least time in which NumPy multiplies two 1,000 x 1,000
    float64 matrices, of five times."""
    import numpy as np  # the workflow itself asks for `cores`, and needs no NumPy

    matrix = np.random.default_rng(0).standard_normal((SIZE, SIZE))
    times = []
    for _ in range(REPEATS):
        began = perf_counter()
        matrix @ matrix
        times.append(perf_counter() - began)
    return min(times)
