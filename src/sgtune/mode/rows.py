"""Sums over the data of functions of single rows: the noise of minibatches, and the information in the likelihood."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PyTree

from sgtune.model import Model
from sgtune.model.posterior import Density, scores
from sgtune.support.errors import InputError
from sgtune.support.machine import full_precision

__all__ = [
    "check_curvature",
    "gradient_of_row",
    "gradient_sums",
    "some_rows",
    "sums_over",
    "variances_over",
]

CHUNK_FLOATS = 2**20
"""Numbers in memory at a time."""

NEARNESS, N_NEAR, LARGEST_CHANGE = 0.3, 16, 30.0
"""See `check_curvature`."""


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


def check_curvature(
    model: Model, mode: Float[np.ndarray, " D"], root: Float[np.ndarray, "D D"] | Float[np.ndarray, " D"]
) -> None:
    """Check that scores near the mode change as the curvature there says.

    A log-likelihood that is linear but for kinks, such as Laplace's, has gradients that change and no curvature: the
    Hessian at the mode has the prior's alone, and its sds may be thousands of times too large. With z a normal vector
    of sd 0.3 in the sds of the curvature, and s the score there, -E[z_i s_i] / 0.3^2 is about 1 in each direction.

    Args:
        mode: flat.
        root: with root root' the inverse of the Hessian of -log pi at the mode; or sds.

    Raises:
        InputError: it is more than `LARGEST_CHANGE` in some direction.
    """
    z = NEARNESS * np.random.default_rng(0).standard_normal((N_NEAR, model.dimension))
    found = scores(model, (mode + (z * root if root.ndim == 1 else z @ root.T)).astype(np.float32)).astype(
        np.float64
    )
    changes = -np.mean(z * (found * root if root.ndim == 1 else found @ root), axis=0) / NEARNESS**2
    largest = np.abs(changes).max()
    if not largest <= LARGEST_CHANGE:
        raise InputError(
            f"log_likelihood: of model {model.name!r}, scores near the MAP change {largest:.2g} times as much as the "
            "curvature there says; it must have second derivatives"
        )
