"""The draws of a chain, by the stretch that each is from: the input of the moments of this package."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Bool, Float, Int, PyTree, Shaped

from sgtune.stein.kernel import Scale, check_scale, draw_matrices
from sgtune.stein.quadratic import N_STRETCHES, check_stretches
from sgtune.support.errors import InputError, check_choice

__all__ = ["TARGETS", "ChainDraws"]

TARGETS = ("all directions", "marginals")


class ChainDraws(NamedTuple):
    """Draws and scores, their stretches, scale and centre, all checked.

    Attributes:
        positions, scores: a row for each draw, as given by the caller.
        in_stretch: whether a draw is from a stretch.
        scale: "identity", D sds, or a (D, D) factor.
        centre: zeros if none was given.
    """

    positions: Shaped[np.ndarray, "n d"]
    scores: Shaped[np.ndarray, "n d"]
    in_stretch: Bool[np.ndarray, "s n"]
    scale: str | Float[np.ndarray, "..."]
    centre: Float[np.ndarray, " d"]

    @classmethod
    def read(
        cls,
        positions: PyTree,
        scores: PyTree,
        stretch: Int[np.ndarray, " n"],
        scale: Scale = "identity",
        *,
        centre: ArrayLike | PyTree | None = None,
        target: str = "all directions",
    ) -> "ChainDraws":
        """Arguments as in `sgtune.stein.psd`, and the stretch of each draw (`sgtune.stein.quadratic.stretch_of`).

        Raises:
            InputError: shapes that differ, no draws, one-dimensional input; another argument is not allowed.
        """
        check_choice("target", target, TARGETS)
        positions, scores = draw_matrices(positions, scores)
        n, dimension = positions.shape
        in_stretch = np.arange(N_STRETCHES)[:, None] == check_stretches(stretch, n)
        scale = check_scale(scale, dimension)
        return cls(positions, scores, in_stretch, scale, _check_centre(centre, dimension))

    @property
    def counts(self) -> Int[np.ndarray, " s"]:
        """The draws of each stretch."""
        return self.in_stretch.sum(axis=1)

    @property
    def are_finite(self) -> bool:
        return bool(np.isfinite(self.positions).all() and np.isfinite(self.scores).all())

    @property
    def has_factor(self) -> bool:
        """Whether the scale is a (D, D) factor, which mixes the coordinates."""
        return not isinstance(self.scale, str) and self.scale.ndim == 2

    def to_marginals(self) -> Callable:
        """``(x, score) -> (x / sd, P score / sd)`` for rows of draws: P = L L' of the factor L, sd^2 its diagonal."""
        sds = np.linalg.norm(self.scale, axis=1)
        to_scores = self.scale.T / sds
        return lambda x, score: (x / sds, score @ self.scale @ to_scores)


def _check_centre(centre: ArrayLike | PyTree | None, dimension: int) -> Float[np.ndarray, " d"]:
    if centre is None:
        return np.zeros(dimension)
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(centre)]
    flat = np.concatenate([np.ravel(leaf).astype(np.float64) for leaf in leaves]) if leaves else np.empty(0)
    if len(flat) != dimension or not np.isfinite(flat).all():
        shapes = ", ".join(str(leaf.shape) for leaf in leaves)
        raise InputError(
            f"centre: leaves of shapes {shapes or 'none'} are not allowed; it must have D = {dimension} finite entries"
            if len(flat) != dimension
            else f"centre: {flat[~np.isfinite(flat)][0]} is not allowed; entries must be finite"
        )
    return flat
