"""The log posterior of ALL data, its gradient and curvature, in row tiles that bound the memory.

Data are arguments of every compiled program here, never its constants: with 32 MB of constants XLA's compilation does
not end in a reasonable time.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float, PyTree

from sgtune.model import Model
from sgtune.model.checks import in_single_precision
from sgtune.model.positions import flatten, from_matrix, to_matrix
from sgtune.model.rows import bytes_of_row, named_faults, number_of_rows, rows_between
from sgtune.support.errors import InputError
from sgtune.support.machine import full_precision, quick_jit

__all__ = [
    "Density",
    "chunked",
    "density_of",
    "hessian_products",
    "log_posterior",
    "negative_hessian",
    "score",
    "score_chunk",
    "scores",
    "sum_of_gradients",
    "sum_over_tiles",
    "value_and_score",
    "values_and_scores",
]


# Measured on 2 cores: logistic regression on 800,000 x 10 takes 0.3 ms a score, with tiles of 4,096 to 32,768
# rows and 128 or 256 points at a time alike; a network of 79,510 parameters, rows of 785 bytes, is 1.5 times as slow
# with 16,384, and a factorisation of 52,580, rows of 12, twice as fast: adding D numbers for each tile is most of its
# work.
TILE, TILE_OF_SMALL_ROWS, SMALL_ROW_BYTES = 4_096, 16_384, 256
# An accelerator starts kernels for each tile, which take longer than the work on so few rows.
TILES_OF_ACCELERATOR = 8
CHUNK = 128
# As a program takes them where they are few: searches for a mode, and checks near it.
FEW, MOST_FEW = 4, 32
# A tile's intermediate arrays grow with the number of points: a network's would take gigabytes.
CHUNK_LARGE, LARGE_DIMENSION = 4, 200


@partial(
    jax.tree_util.register_dataclass,
    data_fields=["centre", "factor"],
    meta_fields=["functions", "position_shape"],
)
@dataclass(frozen=True)
class Density:
    """The part of a model that a compiled program depends on, besides the data, which are traced.

    A pytree: its functions are static, and its coordinates are traced, so that programs serve all coordinates. Without
    coordinates it has no leaf, and is hashable.

    Attributes:
        functions: the model's log prior and log-likelihood.
        position_shape: the structure of a position, and shapes of its leaves, with coordinates.
        centre, factor: c ``(D,)`` and L ``(D,)`` or ``(D, D)`` of the coordinates z, theta = c + L z; None without.
    """

    functions: tuple[Callable, Callable]
    position_shape: tuple | None = None
    centre: Any = None
    factor: Any = None

    def position(self, z: PyTree) -> PyTree:
        """The position of the model at the coordinates ``z``; ``z`` itself without coordinates."""
        if self.factor is None:
            return z
        moved = self.factor * z if self.factor.ndim == 1 else self.factor @ z
        structure, shapes = self.position_shape
        ends = np.cumsum([math.prod(shape) for shape in shapes])[:-1]
        leaves = jnp.split(self.centre + moved, ends)
        return structure.unflatten(leaf.reshape(shape) for leaf, shape in zip(leaves, shapes, strict=True))

    @full_precision
    def log_prior(self, position: PyTree) -> Float[Array, ""]:
        """Up to a constant; in 32 bits, as samplers and searches carry it, also if arrays of its own have 64."""
        value = in_single_precision(jnp.asarray(self.functions[0](self.position(position))))
        # A flat prior may be the integer 0.
        return value if jnp.issubdtype(value.dtype, jnp.floating) else value.astype(jnp.float32)

    @full_precision
    def log_likelihood(self, position: PyTree, rows: PyTree) -> Float[Array, " n"]:
        """One value per row."""
        return in_single_precision(jnp.asarray(self.functions[1](self.position(position), rows)))


def density_of(model: Model) -> Density:
    """The model's `Density`; models with the same functions and coordinates have equal densities."""
    functions = (model.log_prior, model.log_likelihood)
    if model.preconditioner is None:
        return Density(functions)
    leaves, structure = jax.tree.flatten(model.original.position_shape)
    return model.found.once_at_mode(
        "density",
        lambda: Density(
            functions,
            (structure, tuple(leaf.shape for leaf in leaves)),
            jnp.asarray(model.preconditioner.centre.astype(np.float32)),
            jnp.asarray(model.preconditioner.factor.astype(np.float32)),
        ),
    )


def _shared(model: Model, rows: Float[np.ndarray, "n D"]) -> tuple[Density, PyTree]:
    """The density that `scores` and `hessian_products` evaluate, and flat positions as it takes them.

    A small model without coordinates is seen in the coordinates z = theta. They change no number, and one program then
    serves it and the model in the coordinates of a full factor.
    """
    leaves, structure = jax.tree.flatten(model.position_shape)
    is_single = all(leaf.dtype == np.float32 for leaf in leaves)
    if model.preconditioner is not None or model.dimension > LARGE_DIMENSION or not is_single:
        return density_of(model), from_matrix(model, rows)
    d, shapes = model.dimension, (structure, tuple(leaf.shape for leaf in leaves))
    unit = (np.zeros(d, np.float32), np.eye(d, dtype=np.float32))
    return Density((model.log_prior, model.log_likelihood), shapes, *unit), rows


def sum_over_tiles(function: Callable[[PyTree], PyTree], data: PyTree, tile: int | None = None) -> PyTree:
    """Sum of ``function(rows)`` over blocks of ``tile`` consecutive rows of ``data``, the last one shorter.

    ``tile`` is 4,096 unless given, or 16,384 where a row has no more than 256 bytes; eight times as many on an
    accelerator. The intermediate results of one tile of rows are in memory at once.

    Kahan's compensation keeps the float32 error of the sum as small as the error of one tile.
    """
    n_rows = number_of_rows(data)
    if tile is None:
        tile = TILE_OF_SMALL_ROWS if bytes_of_row(data) <= SMALL_ROW_BYTES else TILE
        tile *= 1 if jax.default_backend() == "cpu" else TILES_OF_ACCELERATOR
    n_tiles, remainder = divmod(n_rows, tile)
    if n_tiles == 0:
        return function(rows_between(data, 0, n_rows))

    def add(total, lost, term):
        term = jax.tree.map(jnp.subtract, term, lost)
        new = jax.tree.map(jnp.add, total, term)
        return new, jax.tree.map(lambda new, total, term: (new - total) - term, new, total, term)

    def body(carry, i):
        return add(*carry, function(rows_between(data, i * tile, tile))), None

    shapes = jax.eval_shape(lambda: function(rows_between(data, 0, tile)))
    zeros = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
    (total, lost), _ = jax.lax.scan(body, (zeros, zeros), jnp.arange(n_tiles))
    if remainder:
        total, _ = add(total, lost, function(rows_between(data, n_tiles * tile, remainder)))
    return total


def value_and_score(
    density: Density, position: PyTree, data: PyTree, offset: ArrayLike = 0.0
) -> tuple[Float[Array, ""], PyTree]:
    """log pi(position) - N * offset, and its gradient.

    A float32 of 100,000 has a step of 1/128, too coarse for NUTS; an ``offset`` near the mean log-likelihood
    of a datum keeps the sum small.
    """

    def of_rows(rows):
        return jax.value_and_grad(lambda p: jnp.sum(density.log_likelihood(p, rows) - offset))(position)

    prior = jax.value_and_grad(density.log_prior)(position)
    return jax.tree.map(jnp.add, sum_over_tiles(of_rows, data), prior)


def sum_of_gradients(density: Density, position: PyTree, rows: PyTree) -> PyTree:
    """Gradient of the sum of the rows' log-likelihoods, without the prior, tile by tile."""
    gradient = jax.grad(lambda p, tile: jnp.sum(density.log_likelihood(p, tile)))
    return sum_over_tiles(lambda tile: gradient(position, tile), rows)


def score(density: Density, position: PyTree, data: PyTree) -> PyTree:
    """Gradient of log pi at ``position``, in its structure; under `jax.vmap` a tile is read once for all positions."""
    likelihood = sum_of_gradients(density, position, data)
    return jax.tree.map(jnp.add, likelihood, jax.grad(density.log_prior)(position))


@jax.custom_vjp
def log_posterior(
    density: Density, position: PyTree, data: PyTree, offset: ArrayLike = 0.0
) -> Float[Array, ""]:
    """log pi(position) - N * offset on ``data``, which are the model's data as an argument of the caller's program.

    Differentiable once, in reverse mode, in one pass over the data that keeps no intermediate results of a tile.
    """
    likelihood = sum_over_tiles(lambda rows: jnp.sum(density.log_likelihood(position, rows) - offset), data)
    return density.log_prior(position) + likelihood


def _log_posterior_forward(density, position, data, offset):
    return value_and_score(density, position, data, offset)


def _log_posterior_backward(gradient, cotangent):
    return None, jax.tree.map(lambda leaf: cotangent * leaf, gradient), None, None


log_posterior.defvjp(_log_posterior_forward, _log_posterior_backward)


@jax.jit
def _scores(density, positions, data):
    return jax.vmap(lambda position: score(density, position, data))(positions)


@quick_jit
def _values_and_scores(density, positions, data):
    return jax.vmap(lambda position: value_and_score(density, position, data))(positions)


@named_faults()
def values_and_scores(
    model: Model, positions: Float[np.ndarray, "n D"]
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, "n D"]]:
    """log pi at flat positions, and `scores` there: by the program of a few scores."""

    def run(rows):
        values, gradients = _values_and_scores(*_shared(model, rows), model.data)
        return np.column_stack([values, to_matrix(gradients)])

    found = chunked(run, positions, score_chunk(model, 1), 1 + model.dimension)
    return found[:, 0], found[:, 1:]


@named_faults()
def scores(model: Model, positions: PyTree) -> Float[np.ndarray, "n D"]:
    """Gradients of the full-data log posterior at n positions: flat rows, or a position with a leading axis.

    Positions are taken 128 at a time, or 4 when D > 200 or n <= 32, at most ``model.max_lockstep``. The last chunk is
    padded, so two compiled programs serve every n and all models with the same functions, up to D = 200 in all
    coordinates of a full factor.

    Raises:
        InputError: the positions have another D than the model.
    """
    leaves = jax.tree.leaves(positions)
    flat = np.asarray(leaves[0], np.float32) if len(leaves) == 1 else None
    matrix = flat if flat is not None and flat.ndim == 2 else to_matrix(positions)
    if matrix.shape[1] != model.dimension:
        raise InputError(
            f"positions: shape {matrix.shape} is not allowed; {model.name!r} needs (n, {model.dimension})"
        )
    if len(matrix) <= MOST_FEW and model.dimension <= LARGE_DIMENSION:
        return values_and_scores(model, matrix)[1]

    def run(rows):
        return to_matrix(_scores(*_shared(model, rows), model.data))

    return chunked(run, matrix, score_chunk(model, len(matrix)))


def score_chunk(model: Model, n_points: int | None = None) -> int:
    """How many positions `scores` takes at a time where they are many, or ``n_points``."""
    most = CHUNK if model.dimension <= LARGE_DIMENSION else CHUNK_LARGE
    if n_points == 1 and model.dimension > LARGE_DIMENSION:
        return 1
    if n_points is not None and n_points <= MOST_FEW:
        most = FEW
    return min(most, model.max_lockstep or most)


def chunked(
    run: Callable, matrix: Float[np.ndarray, "n D"], chunk: int, width: int | None = None
) -> Float[np.ndarray, "n d"]:
    """``run(rows)``, of as many columns as ``matrix`` unless ``width`` says otherwise, over all rows of ``matrix``,
    ``chunk`` at a time; the last chunk is padded."""
    result = np.empty((len(matrix), matrix.shape[1] if width is None else width), np.float32)
    for start in range(0, len(matrix), chunk):
        rows = matrix[start : start + chunk]
        padded = np.pad(rows, ((0, chunk - len(rows)), (0, 0)), mode="edge")
        result[start : start + chunk] = run(padded)[: len(rows)]
    return result


@quick_jit
def _hessian_products(density, position, directions, data):
    def product(function, direction):
        return jax.jvp(jax.grad(function), (position,), (direction,))[1]

    def of_rows(rows):
        return jax.vmap(partial(product, lambda p: jnp.sum(density.log_likelihood(p, rows))))(directions)

    return sum_over_tiles(of_rows, data), jax.vmap(partial(product, density.log_prior))(directions)


@named_faults()
def hessian_products(
    model: Model, position: PyTree, directions: Float[np.ndarray, "k D"], data: PyTree | None = None
) -> tuple[Float[np.ndarray, "k D"], Float[np.ndarray, "k D"]]:
    """H v for each row v of ``directions``, with H of the log-likelihood and with H of the log-prior.

    Args:
        data: rows in place of all data.
    """
    data = model.data if data is None else data
    density, at = _shared(model, flatten(position)[None])
    at = jax.tree.map(lambda leaf: leaf[0], at)
    width = min(CHUNK if model.dimension <= LARGE_DIMENSION else CHUNK_LARGE, len(directions))

    def run(rows):
        products = _hessian_products(density, at, _shared(model, rows)[1], data)
        return np.hstack([to_matrix(each) for each in products])

    return tuple(np.hsplit(chunked(run, directions, width, 2 * model.dimension), 2))


def negative_hessian(model: Model, position: PyTree) -> Float[np.ndarray, "D D"]:
    """The Hessian of -log pi at ``position``, symmetric, float64: for small D."""
    directions = np.eye(model.dimension, dtype=np.float32)
    likelihood, prior = hessian_products(model, position, directions)
    hessian = -(likelihood.astype(np.float64) + prior.astype(np.float64))
    return (hessian + hessian.T) / 2
