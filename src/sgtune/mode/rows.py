"""Sums over the data of functions of single rows: the noise of minibatches, and the information in the likelihood."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PyTree

from sgtune.model import Model
from sgtune.model.posterior import Density
from sgtune.support.errors import InputError
from sgtune.support.machine import full_precision

__all__ = [
    "check_information",
    "gradient_of_row",
    "gradient_sums",
    "some_rows",
    "sums_over",
    "variances_over",
]

CHUNK_FLOATS = 2**20
"""Numbers in memory at a time."""

LEAST_INFORMATION = 0.01
"""See `check_information`."""


def some_rows(model: Model, at_most: int, rng: np.random.Generator) -> PyTree:
    """All rows, or ``at_most`` random ones."""
    if model.n_data <= at_most:
        return model.data
    rows = np.sort(rng.choice(model.n_data, at_most, replace=False))
    return jax.tree.map(lambda leaf: leaf[rows], model.data)


def variances_over(
    sums: Callable[[PyTree, Array], tuple[Array, Array]], rows: PyTree, size: int
) -> Float[np.ndarray, " k"]:
    """Variances (divisor m - 1) over m rows of k = ``size`` numbers. ``sums(rows, weights)`` gives their sums and the
    sums of squares; weights are 1, and 0 for rows that pad a chunk. For gradients at the mode, or differences from
    them, the mean is not larger than the sd, so float32 loses nothing."""
    n_rows = jax.tree.leaves(rows)[0].shape[0]
    totals = sums_over(sums, rows, size)
    mean = totals[0] / n_rows
    return np.maximum(totals[1] / n_rows - mean**2, 0.0) * (n_rows / max(n_rows - 1, 1))


def sums_over(sums: Callable, rows: PyTree, size: int) -> Float[np.ndarray, "2 k"]:
    """Sums over all rows, in float64."""
    n_rows = jax.tree.leaves(rows)[0].shape[0]
    chunk = min(n_rows, max(1, CHUNK_FLOATS // size))
    totals = np.zeros((2, size))
    for start in range(0, n_rows, chunk):
        places = np.arange(start, start + chunk)
        some = jax.tree.map(lambda leaf, places=places: leaf[np.minimum(places, n_rows - 1)], rows)
        found = sums(some, jnp.asarray(places < n_rows, jnp.float32))
        totals += np.stack([np.asarray(part, np.float64).ravel() for part in found])
    return totals


def gradient_of_row(density: Density, position: PyTree, row: PyTree) -> PyTree:
    return jax.grad(lambda p: density.log_likelihood(p, jax.tree.map(lambda leaf: leaf[None], row))[0])(
        position
    )


@jax.jit
@full_precision
def gradient_sums(density, position, centre, axes, rows, weights):
    """Sums of per-datum gradients at ``position``, less those at ``centre`` if given, along the columns ``axes``."""

    def of_row(row):
        gradient = ravel_pytree(gradient_of_row(density, position, row))[0]
        if centre is not None:
            gradient = gradient - ravel_pytree(gradient_of_row(density, centre, row))[0]
        return gradient

    gradients = jax.vmap(of_row)(rows)
    if axes is not None:
        gradients = gradients @ axes
    return weights @ gradients, weights @ gradients**2


def check_information(
    model: Model, curvature: Float[np.ndarray, " D"], noise: Float[np.ndarray, " D"]
) -> None:
    """Check that the Hessian at the MAP has the likelihood's curvature along all directions.

    The variance of the data's gradients, times N, estimates the likelihood's information about a direction, as its
    curvature does: they are equal if the model is right, and within a few times of each other if it is not grossly
    wrong. A log-likelihood that is linear but for kinks, such as Laplace's, has gradients that vary, and no curvature.

    Args:
        curvature, noise: along the directions, as in `sgtune.theory.linear.Directions`.

    Raises:
        InputError: along a direction the curvature is less than `LEAST_INFORMATION` of the information.
    """
    shares = np.divide(curvature, model.n_data * noise, out=np.ones_like(noise), where=noise > 0)
    if shares.min() < LEAST_INFORMATION:
        raise InputError(
            f"log_likelihood: of model {model.name!r}, along a direction the curvature at the MAP is "
            f"{shares.min():.2g} of the information in its gradients; it must have second derivatives there"
        )
