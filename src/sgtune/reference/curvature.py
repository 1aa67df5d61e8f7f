"""The Laplace approximation: the scale of the posterior from its curvature at the MAP."""

from typing import Any

import numpy as np
from jaxtyping import Float

from sgtune.errors import InputError, check_integer
from sgtune.models.base import Model
from sgtune.posterior import LARGE_DIMENSION, flatten, hessian_products, negative_hessian
from sgtune.reference.kept import keep, read_kept
from sgtune.reference.map import map_position

__all__ = ["hutchinson_diagonal", "laplace_scale", "laplace_sd"]

PyTree = Any

PROBES = 32


def laplace_scale(
    model: Model, position: PyTree | None = None
) -> Float[np.ndarray, "D D"] | Float[np.ndarray, " D"]:
    """Scale of N(position, H^-1), H the Hessian of -log pi at ``position`` (the MAP unless given).

    D <= 200: the ``(D, D)`` lower-triangular L with L L' = H^-1, H exact. D > 200: ``(D,)`` sds, one over the
    root of the diagonal of H, by `hutchinson_diagonal`: sds given all other coordinates, at most the marginal
    ones. That at the MAP is found once: kept in ``{model.data_dir}/{model.name}.laplace.npz`` and in memory.

    Raises:
        InputError: D <= 200 and -log pi is not convex at the position, so that it is no mode.
    """
    if position is not None:
        return _scale(model, position)
    if "laplace" not in model.cache:
        shape = (model.dimension,) * (1 if model.dimension > LARGE_DIMENSION else 2)
        kept = read_kept(model, "laplace")
        mode = flatten(map_position(model))
        if (
            kept is None
            or kept.get("scale", np.empty(0)).shape != shape
            or not np.array_equal(kept.get("position"), mode)
        ):
            kept = {"scale": _scale(model, map_position(model)), "position": mode}
            keep(model, "laplace", **kept)
        model.cache["laplace"] = kept["scale"]
    return model.cache["laplace"]


def _scale(model: Model, position: PyTree) -> np.ndarray:
    if model.dimension > LARGE_DIMENSION:
        return 1 / np.sqrt(hutchinson_diagonal(model, position))
    try:
        half = np.linalg.inv(np.linalg.cholesky(negative_hessian(model, position)))
        return np.linalg.cholesky(half.T @ half)
    except np.linalg.LinAlgError:
        raise InputError(
            f"position: the log posterior of model {model.name!r} is not concave there; a mode is needed"
        ) from None


def hutchinson_diagonal(
    model: Model, position: PyTree, n_probes: int = PROBES, seed: int = 0
) -> Float[np.ndarray, " D"]:
    """Diagonal of the Hessian of -log pi: the mean of z * (H z) over Rademacher probes z (Hutchinson).

    A prior of independent parameters contributes exactly; the likelihood's part of entry i has the variance
    sum over j != i of H_ij^2 / n_probes. Entries below the prior's curvature, which no concave likelihood
    gives, are raised to it; those then still <= 0 become the smallest positive one.

    Raises:
        InputError: no entry is positive.
    """
    n_probes = check_integer("n_probes", n_probes, at_least=1)
    signs = np.random.default_rng(seed).integers(0, 2, (n_probes, model.dimension))
    probes = (2 * signs - 1).astype(np.float32)
    likelihood, prior = hessian_products(model, position, probes)
    prior_diagonal = -np.mean(probes * prior, axis=0, dtype=np.float64)
    diagonal = prior_diagonal - np.mean(probes * likelihood, axis=0, dtype=np.float64)
    diagonal = np.where((prior_diagonal > 0) & (diagonal < prior_diagonal), prior_diagonal, diagonal)
    positive = diagonal > 0
    if not positive.any():
        raise InputError(
            f"position: -log pi of model {model.name!r} has no direction of positive curvature there"
        )
    return np.where(positive, diagonal, diagonal[positive].min())


def laplace_sd(model: Model) -> Float[np.ndarray, " D"]:
    """Marginal sds of the Laplace approximation at the MAP; for D > 200 those of `laplace_scale`."""
    scale = laplace_scale(model)
    return scale if scale.ndim == 1 else np.linalg.norm(scale, axis=1)
