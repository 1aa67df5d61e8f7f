"""The numbers that `sgtune.theory.linear` needs: the curvature at the MAP, and variances of per-datum gradients there.

A handful of rows of a large leverage may have most of the noise, and a random subset would miss them. Gradients are
therefore of all rows. Hessians, whose cost grows with D, are of the rows whose gradients change most over the
posterior, and of a random subset of the others, which stands for all of them. Where D > 200, T is from changes of
gradients at a few points, of all rows. Rows with more than `MOST_NUMBERS` numbers in their gradients are added up with
random signs r: E (sum of r_j g_j)^2 is the sum of g_j^2, also where one row has nearly all of it. From k vectors of
signs it has a relative standard error of at most sqrt(2 / k), 25% from 32. `CHUNK_FLOATS` numbers are in memory at a
time.

Second moments of draws show where the theory's assumption, a posterior close to Gaussian, fails.
"""

from collections.abc import Callable
from functools import partial, reduce
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PyTree

from sgtune.mode.coordinates import check_curvature
from sgtune.mode.curvature import laplace_scale, least_curvature
from sgtune.mode.find import map_position
from sgtune.model import Model
from sgtune.model.positions import flatten, unflatten
from sgtune.model.posterior import (
    LARGE_DIMENSION,
    Density,
    density_of,
    negative_hessian,
    sum_over_tiles,
)
from sgtune.model.rows import named_faults, number_of_rows, rows_between, take_rows
from sgtune.support.axes import Arm
from sgtune.support.errors import InputError, check_integer
from sgtune.support.machine import full_precision, quick_jit
from sgtune.support.randomness import LARGEST_SEED
from sgtune.theory.linear import Directions, stationary_variances

__all__ = [
    "Laplace",
    "laplace_of",
    "spread_ratios",
    "terms_of",
]

MOST_HESSIANS = 4_000
"""The largest number of rows whose Hessians are computed; half of them are those whose gradients change most."""

MOST_NUMBERS, N_SIGNS = 2 * 10**8, 8
"""Where D > 200 and N D is larger, C and T are from sums over rows with random signs: so many for each of the draws."""

CHUNK_FLOATS = 2**20

N_DRAWS = 4
"""Draws of the Laplace approximation at which gradients are compared with those at the mode."""

LEAST_CURVATURE = -0.05
"""Above D = 200 the Hessian, its diagonal scaled to 1, may have so small an eigenvalue: the diagonal is rounded."""


class Laplace(NamedTuple):
    """A posterior's Laplace approximation and the noise of its gradients, as theory needs them.

    Attributes:
        directions: curvatures and noise along the directions.
        mode: the MAP, flat.
        basis: columns are the eigenvectors of the Hessian at the mode; None where directions are the coordinates.
    """

    directions: Directions
    mode: Float[np.ndarray, " D"]
    basis: Float[np.ndarray, "D D"] | None

    def along(self, draws: Float[np.ndarray, "n D"]) -> Float[np.ndarray, "n D"]:
        """Draws less the mode, along the directions, float64."""
        moved = np.asarray(draws, np.float64) - self.mode
        return moved if self.basis is None else moved @ self.basis


@named_faults()
def laplace_of(model: Model, seed: int = 0) -> Laplace:
    """Curvature and gradient noise of ``model`` at its MAP, which is found first if necessary.

    D <= 200: along the eigenvectors of the exact Hessian H, with T of the data's Hessians. D > 200: along the
    coordinates, with the diagonal of H (`sgtune.mode.curvature.laplace_scale`: sds given all other coordinates) and T
    from gradient differences at four points, each coordinate one such sd from the MAP, with random signs.

    Args:
        seed: of the rows and draws.

    Raises:
        InputError: -log pi is not convex at the MAP, or has kinks there, or a gradient that says that it is no mode
            (`check_curvature`).
    """
    rng = np.random.default_rng(check_integer("seed", seed, at_least=0, at_most=LARGEST_SEED))
    position = map_position(model)
    mode = flatten(position).astype(np.float64)
    density = density_of(model)
    if model.dimension > LARGE_DIMENSION:
        # Coordinates that a user gives may be any multiple of the posterior's sds.
        scale = laplace_scale(model, None if model.preconditioner is None else position)
        check_curvature(model, mode, scale)
        least = least_curvature(model, scale)
        if least < LEAST_CURVATURE:
            raise _not_concave(model, least)
        # Signs, and not normal numbers: the change of a row that depends on one coordinate has then no noise.
        steps = scale * (2 * rng.integers(0, 2, (N_DRAWS, model.dimension)) - 1)
        points = [unflatten(model, np.float32(mode + step)) for step in steps]
        if model.n_data * model.dimension > MOST_NUMBERS:
            noise, slopes = _signed_variances(model, points, rng)
        else:
            noise = _variances(
                partial(_gradient_sums, density, position, None, None), model.data, model.dimension
            )
            at_points = [partial(_gradient_sums, density, point, position, None) for point in points]
            slopes = np.mean([_variances(sums, model.data, model.dimension) for sums in at_points], axis=0)
        return Laplace(Directions(1 / scale**2, noise, model.n_data, slopes), mode, None)
    curvature, basis = np.linalg.eigh(negative_hessian(model, position))
    if not curvature[0] > 0:
        raise _not_concave(model, curvature[0])
    axes = basis.astype(np.float32)
    noise = _variances(partial(_gradient_sums, density, position, None, axes), model.data, model.dimension)
    check_curvature(model, mode, basis / np.sqrt(curvature))
    sums = partial(_hessian_sums, density, position, axes)
    points = mode + (rng.standard_normal((N_DRAWS, len(mode))) / np.sqrt(curvature)) @ basis.T
    slopes = _hessian_variances(model, sums, axes, curvature, points, rng)
    return Laplace(Directions(curvature, noise, model.n_data, slopes.reshape(basis.shape)), mode, basis)


def terms_of(model: Model) -> int:
    """Data terms of gradients that `laplace_of` takes, two for each row in a Hessian's product; not those of the mode,
    the Laplace scale and checks of them."""
    gradients = model.n_data * (1 + 2 * N_DRAWS)
    if model.dimension > LARGE_DIMENSION:
        return gradients
    of_hessians = 2 * model.dimension * min(model.n_data, MOST_HESSIANS)
    return of_hessians + (gradients if model.n_data > MOST_HESSIANS else model.n_data)


def _not_concave(model: Model, least: float) -> InputError:
    return InputError(
        f"position: the log posterior of model {model.name!r} is not concave at its mode: the least curvature is "
        f"{least:.3g}; the theory needs a proper mode"
    )


def _signed_variances(
    model: Model, points: list[PyTree], rng: np.random.Generator
) -> tuple[Float[np.ndarray, " D"], Float[np.ndarray, " D"]]:
    """C and T of `sgtune.theory.linear`, over all rows: of gradients at the mode, and of changes to ``points``."""
    totals, n_data = np.zeros((2, model.dimension)), model.n_data
    for point in points:
        signs = 2 * rng.integers(0, 2, (n_data, 1 + N_SIGNS)).astype(np.float32) - 1
        signs[:, 0] = 1
        at_mode, there = (
            np.asarray(_signed_sums(density_of(model), at, signs, model.data), np.float64)
            for at in (map_position(model), point)
        )
        # Of gradients less their mean, which is the first sum over N.
        excess = signs[:, 1:].sum(axis=0, dtype=np.float64)[:, None] / n_data
        for total, sums in zip(totals, (at_mode, there - at_mode), strict=True):
            total += np.mean((sums[1:] - excess * sums[0]) ** 2, axis=0)
    return tuple(totals / (len(points) * (n_data - 1)))


@quick_jit
def _signed_sums(density, position, signs, data):
    """Sums of the rows' gradients times each column of ``signs``, tile by tile: ``(k, D)``."""

    def of_rows(tile):
        rows, signs = tile
        pull = jax.vjp(lambda p: density.log_likelihood(p, rows), position)[1]
        return jax.vmap(lambda column: ravel_pytree(pull(column))[0], in_axes=1)(signs)

    return sum_over_tiles(of_rows, (data, signs))


def _hessian_variances(
    model: Model,
    sums: Callable,
    axes: Float[np.ndarray, "D D"],
    curvature: Float[np.ndarray, " D"],
    points: Float[np.ndarray, "k D"],
    rng: np.random.Generator,
) -> Float[np.ndarray, " D2"]:
    """T of `sgtune.theory.linear`, over all rows: exact for those whose gradients change most between the mode and
    ``points``, from a random subset for the others."""
    n_data, size = model.n_data, model.dimension**2
    if n_data <= MOST_HESSIANS:
        return _variances(sums, model.data, size)
    weights = (1 / curvature).astype(np.float32)
    # Added up one by one: each has N numbers.
    each = (_changes(model, unflatten(model, np.float32(point)), axes, weights) for point in points)
    changes = reduce(np.add, each)
    order = np.argsort(-changes, kind="stable")
    largest, others = order[: MOST_HESSIANS // 2], order[MOST_HESSIANS // 2 :]
    chosen = rng.choice(others, MOST_HESSIANS // 2, replace=False)
    total = np.zeros((2, size))
    for rows, weight in ((np.sort(largest), 1.0), (np.sort(chosen), len(others) / len(chosen))):
        some = take_rows(model.data, rows)
        total += weight * _totals(sums, some, size)
    mean, square = total / n_data
    return np.maximum(square - mean**2, 0.0) * (n_data / (n_data - 1))


def _changes(
    model: Model, point: PyTree, axes: Float[np.ndarray, "D D"], weights: Float[np.ndarray, " D"]
) -> Float[np.ndarray, " N"]:
    """For each row the sum over directions of the squared change of its gradient from the mode to ``point``, over the
    curvatures."""
    chunk = min(model.n_data, max(1, CHUNK_FLOATS // model.dimension))
    found = np.empty(model.n_data)
    for start in range(0, model.n_data, chunk):
        places = np.minimum(np.arange(start, start + chunk), model.n_data - 1)
        is_all = chunk == model.n_data
        some = rows_between(model.data, 0, chunk) if is_all else take_rows(model.data, places)
        sizes = _row_changes(density_of(model), point, map_position(model), axes, weights, some)
        found[start : start + chunk] = np.asarray(sizes)[: model.n_data - start]
    return found


@quick_jit
def _row_changes(density, position, centre, axes, weights, rows):
    def of_row(row):
        change = (
            ravel_pytree(_gradient(density, position, row))[0]
            - ravel_pytree(_gradient(density, centre, row))[0]
        )
        return jnp.sum(weights * jnp.dot(change, axes, precision="highest") ** 2)

    return jax.vmap(of_row)(rows)


def _variances(
    sums: Callable[[PyTree, Array], tuple[Array, Array]], rows: PyTree, size: int
) -> Float[np.ndarray, " k"]:
    """Variances (divisor m - 1) over m rows of k = ``size`` numbers. ``sums(rows, weights)`` gives their sums and the
    sums of squares; weights are 1, and 0 for rows that pad a chunk. For gradients at the mode, or differences from
    them, the mean is not larger than the sd, so float32 loses nothing."""
    n_rows = number_of_rows(rows)
    totals = _totals(sums, rows, size)
    mean = totals[0] / n_rows
    return np.maximum(totals[1] / n_rows - mean**2, 0.0) * (n_rows / max(n_rows - 1, 1))


def _totals(sums: Callable, rows: PyTree, size: int) -> Float[np.ndarray, "2 k"]:
    """Sums over all rows, in float64."""
    n_rows = number_of_rows(rows)
    chunk = min(n_rows, max(1, CHUNK_FLOATS // size))
    totals = np.zeros((2, size))
    for start in range(0, n_rows, chunk):
        places = np.arange(start, start + chunk)
        is_all = chunk == n_rows
        some = rows_between(rows, 0, chunk) if is_all else take_rows(rows, np.minimum(places, n_rows - 1))
        found = sums(some, (places < n_rows).astype(np.float32))
        totals += np.stack([np.asarray(part, np.float64).ravel() for part in found])
    return totals


def _gradient(density: Density, position: PyTree, row: PyTree) -> PyTree:
    return jax.grad(lambda p: density.log_likelihood(p, jax.tree.map(lambda leaf: leaf[None], row))[0])(
        position
    )


@quick_jit
@full_precision
def _gradient_sums(density, position, centre, axes, rows, weights):
    """Sums of per-datum gradients at ``position``, less those at ``centre`` if given, along the columns ``axes``."""

    def of_row(row):
        gradient = ravel_pytree(_gradient(density, position, row))[0]
        if centre is not None:
            gradient = gradient - ravel_pytree(_gradient(density, centre, row))[0]
        return gradient

    gradients = jax.vmap(of_row)(rows)
    if axes is not None:
        gradients = gradients @ axes
    return weights @ gradients, weights @ gradients**2


@quick_jit
@full_precision
def _hessian_sums(density, position, axes, rows, weights):
    """Of u_i' H_j u_k, over the rows j."""
    unravel = ravel_pytree(position)[1]

    def of_row(row):
        def product(direction):
            gradient = partial(_gradient, density, row=row)
            return ravel_pytree(jax.jvp(gradient, (position,), (unravel(direction),))[1])[0]

        return axes.T @ jax.vmap(product)(axes.T).T

    hessians = jax.vmap(of_row)(rows)
    return jnp.tensordot(weights, hessians, 1), jnp.tensordot(weights, hessians**2, 1)


def spread_ratios(laplace: Laplace, sampler: str, arm: Arm) -> Float[np.ndarray, " d"]:
    """Stationary sds over the Laplace approximation's; far from 1, the chain leaves the region where the theory
    holds."""
    return np.sqrt(stationary_variances(sampler, arm, laplace.directions) * laplace.directions.curvature)
