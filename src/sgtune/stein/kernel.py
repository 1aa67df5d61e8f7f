"""The kernel of the Stein discrepancies, and the coordinates in which it is evaluated.

The kernel is the inverse multiquadric k(x, y) = (1 + |x - y|^2)^(-1/2) that the paper (Sect. 2.2.1) takes
from Gorham and Mackey (2017), with c = 1 and beta = -1/2. Its width is 1 in the given coordinates: on a posterior
much narrower than 1 it is nearly constant, and the discrepancy cannot see the variance. `rescale` transforms the
draws to coordinates in which the posterior has sd 1.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import jax
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Float, PyTree, Shaped

from sgtune.model.preconditioner import check_factor
from sgtune.support.errors import InputError

__all__ = ["Draws", "Scale", "check_scale", "draw_matrices", "imq", "rescale", "squared_distances"]

Scale = str | ArrayLike
SCALES = (
    "'identity', a (D,) array of posterior sds, or a (D, D) lower-triangular L, the covariance being L L'"
)


def squared_distances(
    norms_a: Float[np.ndarray, " a"], norms_b: Float[np.ndarray, " b"], products: Float[np.ndarray, "a b"]
) -> Float[np.ndarray, "a b"]:
    """|a_i - b_j|^2 from |a_i|^2, |b_j|^2 and a_i'b_j."""
    # Rounding can make the squared distance of near-equal points negative.
    return np.maximum(norms_a[:, None] + norms_b - 2.0 * products, 0.0)


def imq(
    squares: Float[np.ndarray, "a b"],
) -> tuple[Float[np.ndarray, "a b"], Float[np.ndarray, "a b"], Float[np.ndarray, "a b"]]:
    """q^(-1/2), q^(-3/2), q^(-5/2) with q = 1 + ``squares``, the squared distances |x - y|^2.

    With r = x - y: k = q^(-1/2), grad_x k = -r q^(-3/2) = -grad_y k, and
    trace(grad_x grad_y' k) = D q^(-3/2) - 3 |r|^2 q^(-5/2).
    """
    inverse = 1.0 / (1.0 + squares)
    kernel = np.sqrt(inverse)
    return kernel, kernel * inverse, kernel * inverse * inverse


def draw_matrices(
    positions: PyTree, scores: PyTree
) -> tuple[Shaped[np.ndarray, "n d"], Shaped[np.ndarray, "n d"]]:
    """Positions and scores as matrices, one row per draw, in the dtype they came in.

    Both are (n, D) arrays, or pytrees of one structure whose leaves share a leading axis n (a leaf of shape
    (n,) is a scalar parameter); the columns are then in the order of `jax.flatten_util.ravel_pytree`.

    Raises:
        InputError: they are empty, not real numbers, one-dimensional, or differ in structure or shape.
    """
    structures = jax.tree.structure(positions), jax.tree.structure(scores)
    if structures[0] != structures[1]:
        raise InputError(f"scores: structure {structures[1]} differs from positions, {structures[0]}")
    matrices = _matrix("positions", positions), _matrix("scores", scores)
    if matrices[0].shape != matrices[1].shape:
        raise InputError(f"scores: shape {matrices[1].shape} differs from positions, {matrices[0].shape}")
    return matrices


def _matrix(name: str, draws: PyTree) -> np.ndarray:
    is_array = jax.tree.structure(draws) == jax.tree.structure(0)
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(draws)]
    shapes = [leaf.shape for leaf in leaves]
    if is_array and len(shapes[0]) != 2:
        raise InputError(f"{name}: an array of shape {shapes[0]} is not allowed; it must be (n, D)")
    if not shapes or any(len(shape) == 0 or shape[0] != shapes[0][0] for shape in shapes):
        raise InputError(
            f"{name}: leaves of shapes {shapes} are not allowed; they must share a leading axis n"
        )
    if not all(_is_real(leaf) for leaf in leaves):
        raise InputError(
            f"{name}: dtype {leaves[0].dtype} is not allowed; it must be a dtype of real numbers"
        )
    if all(leaf.size == 0 for leaf in leaves):
        raise InputError(
            f"{name}: shape {shapes[0]} has no entries; at least one draw in one dimension is needed"
        )
    n = shapes[0][0]
    return (
        leaves[0]
        if is_array
        else np.concatenate([leaf.reshape(n, leaf.size // n) for leaf in leaves], axis=1)
    )


def _is_real(array: np.ndarray) -> bool:
    # jax.numpy, unlike NumPy, also knows bfloat16 and its kin as floating.
    return any(jax.numpy.issubdtype(array.dtype, kind) for kind in (np.floating, np.integer))


def check_scale(scale: Scale, dimension: int) -> str | Float[np.ndarray, "..."]:
    """``"identity"``, or the scale as a float64 array of shape (D,) or (D, D).

    Raises:
        InputError: another string, or as `check_factor`.
    """
    if isinstance(scale, str):
        if scale == "laplace":
            raise InputError(
                "scale: 'laplace' needs the model, which a discrepancy does not see; "
                "pass an array, e.g. `sgtune.mode.curvature.laplace_scale(model)`"
            )
        if scale != "identity":
            raise InputError(f"scale: {scale!r} is not known; allowed: {SCALES}")
        return scale
    return check_factor("scale", scale, dimension)


def rescale(
    positions: Shaped[np.ndarray, "n d"], scores: Shaped[np.ndarray, "n d"], scale: Scale = "identity"
) -> tuple[Float[np.ndarray, "n d"], Float[np.ndarray, "n d"]]:
    """The draws and their scores in the coordinates of ``scale``, in float64.

    A (D,) array s of posterior sds: positions / s, scores * s. A (D, D) lower-triangular factor L of the
    posterior covariance L L': L^-1 position, L' score. ``"identity"``: as they are.

    Raises:
        InputError: as `check_scale`.
    """
    positions, scores = np.asarray(positions, np.float64), np.asarray(scores, np.float64)
    factor = check_scale(scale, positions.shape[1])
    if isinstance(factor, str):
        return positions, scores
    if factor.ndim == 1:
        return positions / factor, scores * factor
    from scipy.linalg import solve_triangular  # slow to import, and most jobs have no factor

    return solve_triangular(factor, positions.T, lower=True, check_finite=False).T, scores @ factor


@dataclass(frozen=True, eq=False)
class Draws:
    """n draws and their scores, read in float64 in centred coordinates of a scale, a tile at a time.

    Centring changes no distance, and without it the Gram matrix of positions far from zero loses their spread.
    """

    positions: Shaped[np.ndarray, "n d"]
    scores: Shaped[np.ndarray, "n d"]
    centre: Float[np.ndarray, " d"]
    scale: str | Float[np.ndarray, "..."]
    is_rescaled: bool

    @classmethod
    def read(cls, positions: PyTree, scores: PyTree, scale: Scale) -> "Draws | None":
        """The draws, checked, or None if a position or score is not finite.

        Raises:
            InputError: as `draw_matrices` and `check_scale`.
        """
        positions, scores = draw_matrices(positions, scores)
        scale = check_scale(scale, positions.shape[1])
        if not (np.isfinite(positions).all() and np.isfinite(scores).all()):
            return None
        # If a sum overflows, the centre and the discrepancy are infinite.
        with np.errstate(over="ignore"):
            centre = positions.mean(axis=0, dtype=np.float64)
        # A factor mixes the columns, so it is applied before tiling; where it fits in memory, n x D does too.
        is_rescaled = not isinstance(scale, str) and scale.ndim == 2
        if is_rescaled:
            positions, scores = rescale(positions - centre, scores, scale)
        return cls(positions, scores, centre, scale, is_rescaled)

    def tiles(
        self, rows: slice, columns: int
    ) -> Iterator[tuple[slice, Float[np.ndarray, "b c"], Float[np.ndarray, "b c"]]]:
        """Each range of ``columns`` dimensions, with the positions and scores of ``rows`` in it."""
        dimension = self.positions.shape[1]
        for start in range(0, dimension, columns):
            tile = slice(start, min(start + columns, dimension))
            positions, scores = self.positions[rows, tile], self.scores[rows, tile]
            if not self.is_rescaled:
                tile_scale = self.scale if isinstance(self.scale, str) else self.scale[tile]
                positions, scores = rescale(positions - self.centre[tile], scores, tile_scale)
            yield tile, positions.astype(np.float64, copy=False), scores.astype(np.float64, copy=False)

    def to_coordinates(self, points: Float[np.ndarray, "j d"]) -> Float[np.ndarray, "j d"]:
        """Transform points from the model's coordinates to the coordinates of the tiles."""
        return rescale(points - self.centre, points, self.scale)[0]

    def from_coordinates(self, points: Float[np.ndarray, "j d"]) -> Float[np.ndarray, "j d"]:
        """The inverse of `to_coordinates`."""
        if isinstance(self.scale, str):
            return points + self.centre
        return self.centre + (points * self.scale if self.scale.ndim == 1 else points @ self.scale.T)
