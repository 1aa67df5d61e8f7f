"""Preconditioners: coordinates in which a posterior has about the same scale in all directions."""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from jaxtyping import Float

from sgtune.support.errors import InputError
from sgtune.support.files import read_npz, write_npz

__all__ = ["Preconditioner", "check_factor"]

TILE = 4_096
"""Rows that are in memory in float64 at once."""


def check_factor(name: str, factor: object, dimension: int) -> Float[np.ndarray, "..."]:
    """``factor`` as a float64 array: D sds, or a lower-triangular ``(D, D)`` matrix.

    Raises:
        InputError: another shape, a number that is not finite, one above the diagonal, or one on it that is not > 0.
    """
    try:
        array = np.asarray(factor).astype(np.float64, casting="same_kind", copy=False)
    except (TypeError, ValueError):
        raise InputError(f"{name}: {factor!r} is not allowed; it must be an array of numbers") from None
    allowed = (
        f"it must be ({dimension},), sds, or ({dimension}, {dimension}), lower-triangular, as the Cholesky factor of a "
        "covariance"
    )
    if array.shape not in ((dimension,), (dimension, dimension)):
        raise InputError(f"{name}: shape {array.shape} is not allowed; {allowed}")
    # Chains are float32, in which 1e39 is infinite and 1e-46 is 0.
    with np.errstate(over="ignore", under="ignore"):
        rounded = array.astype(np.float32)
    if not np.isfinite(rounded).all():
        raise InputError(
            f"{name}: {array[~np.isfinite(rounded)][0]} is not allowed; all numbers must be finite in float32"
        )
    if array.ndim == 2 and np.triu(array, 1).any():
        raise InputError(
            f"{name}: {np.abs(np.triu(array, 1)).max():g} above the diagonal is not allowed; {allowed}"
        )
    diagonal = array if array.ndim == 1 else np.diagonal(array)
    if not (diagonal.astype(np.float32) > 0).all():
        raise InputError(f"{name}: {diagonal.min():g} is not allowed; sds, or the diagonal, must be > 0")
    return array


@dataclass(frozen=True, eq=False, repr=False)
class Preconditioner:
    """Coordinates z of a posterior over theta, theta = c + L z, in which any sampler can run.

    A step of a sampler in z is a step of its preconditioned form in theta, with P = L L'. SGLD, for example, is

        theta <- theta + e P grad log pi(theta) + sqrt(2 e) L N(0, I)

    and SGHMC is its usual step with the mass matrix P^-1. As e -> 0, and for a sampler with an exact Metropolis test at
    every e, the invariant density of z is proportional to pi(c + L z), so that of theta is pi, for every c and every L
    that has an inverse. If P is the posterior's
    covariance, all directions have sd 1 in z, and one step size suits them all. Gradients in z are L' times those in
    theta. Hashable, by its numbers.

    Attributes:
        centre: c, flat: ``(D,)``. Control variates are centred here.
        factor: L: lower-triangular ``(D, D)``, or its diagonal ``(D,)``, as `sgtune.mode.curvature.laplace_factor`. Not
            a covariance, nor its diagonal: variances would be taken for sds.
        start: where chains start, flat, in theta: ``(D,)``; c unless given.

    Raises:
        InputError: shapes that do not agree, a number that is not finite, or as `check_factor`.
    """

    centre: Float[np.ndarray, " D"]
    factor: Float[np.ndarray, " D"] | Float[np.ndarray, "D D"]
    start: Float[np.ndarray, " D"] | None = None

    def __post_init__(self):
        start = self.centre if self.start is None else self.start
        for name, values in (("centre", self.centre), ("factor", self.factor), ("start", start)):
            # A copy of its own, which nobody can change: the hash depends on it.
            try:
                array = np.array(values, np.float64)
            except (TypeError, ValueError):
                raise InputError(
                    f"{name}: {values!r} is not allowed; it must be an array of numbers"
                ) from None
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        d = self.centre.size
        check_factor("factor", self.factor, d)
        for name in ("centre", "start"):
            array = getattr(self, name)
            if array.shape != (d,):
                raise InputError(f"{name}: shape {array.shape} is not allowed; it must be ({d},)")
            is_finite = np.abs(array) <= np.finfo(np.float32).max
            if not is_finite.all():
                raise InputError(
                    f"{name}: {array[~is_finite][0]} is not allowed; all must be finite in float32"
                )

    @property
    def dimension(self) -> int:
        """D."""
        return len(self.centre)

    def positions(self, z: Float[np.ndarray, "n D"]) -> Float[np.ndarray, "n D"]:
        """Flat positions theta at the rows of ``z``, float32."""
        positions = np.empty(np.shape(z), np.float32)
        # Of chains that have diverged: inf times 0, and what is beyond float32.
        with np.errstate(invalid="ignore", over="ignore"):
            for start in range(0, len(z), TILE):
                some = np.asarray(z[start : start + TILE], np.float64)
                moved = some * self.factor if self.factor.ndim == 1 else some @ self.factor.T
                positions[start : start + TILE] = self.centre + moved
        return positions

    def coordinates(self, positions: Float[np.ndarray, "n D"]) -> Float[np.ndarray, "n D"]:
        """The coordinates z of flat positions, float64: the inverse of `positions`."""
        moved = np.asarray(positions, np.float64) - self.centre
        return moved / self.factor if self.factor.ndim == 1 else np.linalg.solve(self.factor, moved.T).T

    @cached_property
    def _digest(self) -> str:
        digest = hashlib.sha256()
        for array in (self.centre, self.factor, self.start):
            digest.update(f"{array.shape}".encode() + array.tobytes())
        return digest.hexdigest()

    def __hash__(self) -> int:
        return hash(self._digest)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Preconditioner) and self._digest == other._digest

    def __repr__(self) -> str:
        form = "diagonal" if self.factor.ndim == 1 else "full"
        return f"Preconditioner({form}, D={self.dimension})"

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """What a file has of it: the arguments that make another one like it."""
        return {"centre": self.centre, "factor": self.factor, "start": self.start}

    def save(self, path: str | Path) -> None:
        """Write it as an ``.npz`` file, whole or not at all.

        Raises:
            DataError: ``path`` has another suffix than .npz, or the disk is full.
        """
        write_npz(path, **self.arrays)

    @classmethod
    def load(cls, path: str | Path) -> "Preconditioner":
        """The one that `save` wrote.

        Raises:
            DataError: the file cannot be read.
            InputError: it is of something else.
        """
        arrays = read_npz(Path(path))
        if arrays.keys() != {"centre", "factor", "start"}:
            raise InputError(
                f"path: {str(path)!r} has {', '.join(arrays)}; it must have centre, factor and start"
            )
        return cls(**arrays)
