"""Errors of draws against a trusted reference: errors of moments, in units of the reference's sds."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import jax
import numpy as np
from jaxtyping import Array, Float, PyTree

from sgtune.metrics.spread import functional_error, relative_sd_error, xi_rel, xi_white
from sgtune.model import Model
from sgtune.model.positions import check_position, flatten, from_matrix
from sgtune.support.errors import InputError
from sgtune.support.machine import full_precision

__all__ = ["Moments", "Reference", "frozen_errors", "moments_of", "reference_errors"]

BLOCK = 2**20
"""Draws are converted to float64 in tiles of at most this many numbers, or of one draw of each chain."""

DRAWS = 64
"""Functionals are computed for this many draws at a time, or for one draw of each chain."""


@dataclass(frozen=True, eq=False)
class Reference:
    """Moments of a posterior from long, trusted runs; in float64.

    Attributes:
        sd: sds of the parameters, in the order of flat positions.
        covariance: covariance of the parameters, or None where D is too large.
        functionals_mean, functionals_sd: mean and sd of ``model.functionals``, or None. For a model without functionals
            they are the moments of the position, if they are given.

    Raises:
        InputError: shapes that do not agree, numbers that are not finite, sds that are not > 0, or a covariance that is
            not positive definite.
    """

    sd: Float[np.ndarray, " d"]
    covariance: Float[np.ndarray, "_ _"] | None = None
    functionals_mean: Float[np.ndarray, " k"] | None = None
    functionals_sd: Float[np.ndarray, " k"] | None = None

    def __post_init__(self):
        for name in ("sd", "covariance", "functionals_mean", "functionals_sd"):
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, np.asarray(value, np.float64))
                if not np.isfinite(getattr(self, name)).all():
                    raise InputError(f"{name}: holds numbers that are not finite; all must be")
        for name in ("sd", "functionals_sd"):
            if (value := getattr(self, name)) is not None and value.ndim != 1:
                raise InputError(f"{name}: shape {value.shape} is not allowed; it must have one axis")
        size = len(self.sd)
        if self.covariance is not None and self.covariance.shape != (size, size):
            raise InputError(
                f"covariance: shape {self.covariance.shape} is not allowed; it must be {(size, size)}"
            )
        if self.covariance is not None and not (np.linalg.eigvalsh(self.covariance) > 0).all():
            raise InputError("covariance: not positive definite; all its eigenvalues must be > 0")
        if np.shape(self.functionals_mean) != np.shape(self.functionals_sd):
            raise InputError("functionals_sd: must be of the shape of functionals_mean, or both None")
        for name in ("sd", "functionals_sd"):
            if (value := getattr(self, name)) is not None and not (value > 0).all():
                raise InputError(f"{name}: {value.min():g} is not allowed; every sd must be > 0")

    @classmethod
    def from_record(cls, record: Mapping) -> "Reference":
        """The reference from the record of a ground truth: ``sd``, and if present ``covariance`` and the ``mean`` and
        ``sd`` of ``functionals``."""
        functionals = record.get("functionals") or {}
        parts = (record["sd"], record.get("covariance"), functionals.get("mean"), functionals.get("sd"))
        return cls(*(None if part is None else np.asarray(part, np.float64) for part in parts))


class _Sums:
    """Sums of W chains' vectors less ``origin``, in float64, and of their squares; ``crossed``: of all products."""

    def __init__(self, origin: Float[Array | np.ndarray, " d"], n_chains: int, crossed: bool):
        self.n, self.origin, self.crossed = 0, np.asarray(origin, np.float64), crossed
        self.total = np.zeros((n_chains, len(origin)))
        self.products = np.zeros((n_chains, *[len(origin)] * (2 if crossed else 1)))

    def add(self, vectors: Float[np.ndarray, "n w d"]) -> None:
        rows = max(1, BLOCK // self.total.size)
        with np.errstate(invalid="ignore", over="ignore"):
            for start in range(0, len(vectors), rows):
                block = vectors[start : start + rows] - self.origin
                self.total += block.sum(axis=0)
                if self.crossed:
                    self.products += block.transpose(1, 2, 0) @ block.transpose(1, 0, 2)
                else:
                    self.products += np.einsum("nwd,nwd->wd", block, block)
        self.n += len(vectors)

    def moments(
        self, place: int
    ) -> tuple[Float[np.ndarray, " d"], Float[np.ndarray, " d"], Float[np.ndarray, "d d"] | None]:
        """Mean, sd and, if ``crossed``, covariance of one chain, with divisor n; NaN if no draws have been added."""
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            shift = self.total[place] / np.float64(self.n)
            products = self.products[place] / np.float64(self.n)
            covariance = products - np.outer(shift, shift) if self.crossed else None
            variance = np.diagonal(covariance) if self.crossed else products - shift**2
            return self.origin + shift, np.sqrt(np.maximum(variance, 0.0)), covariance


@partial(jax.jit, static_argnums=0)
@full_precision
def _of_each(functionals: Callable, positions: PyTree) -> Array:
    return jax.vmap(functionals)(positions)


class Moments:
    """Running moments of chains of ``model`` in lockstep, and their errors against ``reference``.

    The moments are over all draws added so far; sds have divisor n. Memory besides the draws: 16 D bytes per chain,
    with a covariance 8 D^2 more, with K functionals 16 K more; while draws are added, about 16 MB and the functionals
    of 64 draws.

    Args:
        origin: a flat position near the draws, which is subtracted before summing: rounding grows with the distance.
        n_chains: W.

    Raises:
        InputError: the reference or the origin does not have the model's D, or the reference has another number of
            functionals.
    """

    def __init__(
        self, model: Model, reference: Reference, origin: Float[Array | np.ndarray, " d"], n_chains: int
    ):
        for name, size in (("reference", len(reference.sd)), ("origin", len(origin))):
            if size != model.dimension:
                raise InputError(
                    f"{name}: of {size} parameters; model {model.name!r} needs {model.dimension}"
                )
        self.model, self.reference = model, reference
        self._positions = _Sums(origin, n_chains, crossed=reference.covariance is not None)
        self._functionals = None
        if reference.functionals_mean is not None:
            n_functionals, held = _n_functionals(model), len(reference.functionals_mean)
            if n_functionals != held:
                raise InputError(
                    f"reference: has {held} functionals; model {model.name!r} has {n_functionals}"
                )
            if model.functionals is not None:
                self._functionals = _Sums(reference.functionals_mean, n_chains, crossed=False)

    def add(self, draws: Float[np.ndarray, "n w d"]) -> None:
        """Add ``n`` draws of each chain.

        Raises:
            InputError: they have another number of chains or parameters.
        """
        n_chains, dimension = self._positions.total.shape
        if draws.shape[1:] != (n_chains, dimension):
            raise InputError(
                f"draws: shape {draws.shape} is not allowed; it must be (n, {n_chains}, {dimension})"
            )
        self._positions.add(draws)
        if self._functionals is None:
            return
        rows = max(1, DRAWS // n_chains)
        for start in range(0, len(draws), rows):
            some = draws[start : start + rows]
            # Padded, so that one program serves every number of draws.
            filled = np.pad(some, ((0, rows - len(some)), (0, 0), (0, 0)), mode="edge")
            values = _of_each(self.model.functionals, from_matrix(self.model, filled.reshape(-1, dimension)))
            self._functionals.add(np.asarray(values).reshape(rows, n_chains, -1)[: len(some)])

    def sd(self, place: int) -> Float[np.ndarray, " d"]:
        """The sds of the chain at ``place``, (D,); NaN if no draws were added."""
        return self._positions.moments(place)[1]

    def errors(self, place: int) -> dict[str, float | None]:
        """Errors of the chain at ``place``: relative_sd_error, xi_rel, xi_white, functional_error.

        None where the reference lacks the moments; infinite where moments are not finite, or no draws were added.
        """
        reference = self.reference
        mean, sd, covariance = self._positions.moments(place)
        errors = {
            "relative_sd_error": relative_sd_error(sd, reference.sd),
            "xi_rel": xi_rel(sd, reference.sd),
            "xi_white": None if covariance is None else xi_white(covariance, reference.covariance),
            "functional_error": None,
        }
        if reference.functionals_mean is not None:
            if self._functionals is not None:
                mean, sd, _ = self._functionals.moments(place)
            errors["functional_error"] = functional_error(
                mean, sd, reference.functionals_mean, reference.functionals_sd
            )
        return errors


def _n_functionals(model: Model) -> int:
    if model.functionals is None:
        return model.dimension
    return jax.eval_shape(model.functionals, model.position_shape).shape[0]


def reference_errors(
    model: Model, draws: Float[np.ndarray, "n d"], reference: Reference
) -> dict[str, float | None]:
    """The errors of one chain's draws against a reference: relative_sd_error, xi_rel, xi_white, functional_error.

    Args:
        draws: flat positions, (n, D).
        reference: moments of the posterior.

    Returns:
        By name; fractions, in no unit. None where the reference lacks the moments; infinite if there are no draws, or
        not all are finite.
    """
    return moments_of(model, draws, reference).errors(0)


def moments_of(model: Model, draws: Float[np.ndarray, "n d"], reference: Reference) -> Moments:
    """The moments of one chain's draws, flat positions (n, D); of none if not all are finite."""
    is_finite = len(draws) > 0 and bool(np.isfinite(draws).all())
    origin = draws.mean(axis=0, dtype=np.float64) if is_finite else np.zeros(model.dimension)
    moments = Moments(model, reference, origin, 1)
    if is_finite:
        moments.add(draws[:, None])
    return moments


def frozen_errors(model: Model, position: PyTree, reference: Reference) -> dict[str, float | None]:
    """Errors of a chain that stays at ``position``, such as the mode: the means are there, and the sds are 0.

    A chain has learnt something about the posterior only if its errors are smaller than these. The names are those
    of `reference_errors`.

    Raises:
        InputError: the position is of another shape.
    """
    return reference_errors(model, flatten(check_position("position", model, position))[None], reference)
