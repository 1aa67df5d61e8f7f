"""Positions as trees, as the model's functions take them, and as flat float32 rows, as draws are kept."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from sgtune.model import Model
from sgtune.support.errors import InputError

__all__ = ["blocks_of", "check_position", "flatten", "from_matrix", "to_matrix", "unflatten"]


def flatten(position: PyTree) -> Float[np.ndarray, " D"]:
    """A position as a flat float32 vector in the order of `ravel_pytree`."""
    # By NumPy, because JAX would compile a program for each structure.
    return np.concatenate([np.ravel(np.asarray(leaf, np.float32)) for leaf in jax.tree.leaves(position)])


def unflatten(model: Model, row: Float[np.ndarray, " D"]) -> PyTree:
    """A flat vector as a position: the inverse of `flatten`."""
    # Split by NumPy, because JAX would compile a program for each leaf.
    return jax.tree.map(lambda leaf: jnp.asarray(leaf[0]), from_matrix(model, row[None]))


def to_matrix(positions: PyTree) -> Float[np.ndarray, "n D"]:
    """Positions with a leading axis of n as flat float32 rows, each in the order of `ravel_pytree`."""
    leaves = [np.asarray(leaf, np.float32) for leaf in jax.tree.leaves(positions)]
    return np.concatenate([leaf.reshape(len(leaf), math.prod(leaf.shape[1:])) for leaf in leaves], axis=1)


def from_matrix(model: Model, matrix: Float[Array | np.ndarray, "n D"]) -> PyTree:
    """Flat rows as one position with a leading axis of n: the inverse of `to_matrix`."""
    leaves, structure = jax.tree.flatten(model.position_shape)
    ends = np.cumsum([leaf.size for leaf in leaves])
    columns = [matrix[:, end - leaf.size : end] for leaf, end in zip(leaves, ends, strict=True)]
    return structure.unflatten(
        column.reshape(-1, *leaf.shape).astype(leaf.dtype)
        for column, leaf in zip(columns, leaves, strict=True)
    )


def check_position(name: str, model: Model, position: PyTree) -> PyTree:
    """``position`` as arrays of the model's own shapes.

    Raises:
        InputError: it has another structure or shape.
    """
    shapes = jax.tree.map(lambda leaf: leaf.shape, model.position_shape)
    given = jax.tree.map(jnp.shape, position)
    # An ordered dict equals a dict of the same entries, whose leaves are in another order.
    if given != shapes or jax.tree.structure(position) != jax.tree.structure(model.position_shape):
        raise InputError(f"{name}: shape {given} is not allowed; {model.name!r} needs {shapes}")
    return jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf, np.float32)), position)


def blocks_of(model: Model, depth: int | None = None) -> dict[str, slice]:
    """The entries of a flat position that belong to each of its leaves, by the leaf's path, such as ``layer.bias``; of
    a path only the first ``depth`` keys count."""
    blocks, start = {}, 0
    for path, leaf in jax.tree_util.tree_leaves_with_path(model.position_shape):
        name = jax.tree_util.keystr(path[:depth], simple=True, separator=".")
        first = blocks[name].start if name in blocks else start
        start += leaf.size
        blocks[name] = slice(first, start)
    return blocks
