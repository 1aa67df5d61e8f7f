"""The Laplace approximation: the scale of the posterior from its curvature at the MAP."""

import numpy as np
from jaxtyping import Float, PyTree

from sgtune.errors import InputError
from sgtune.mode.cache import keep, read_kept
from sgtune.mode.find import map_position
from sgtune.mode.hutchinson import hutchinson_diagonal
from sgtune.model import Model
from sgtune.positions import flatten
from sgtune.posterior import LARGE_DIMENSION, negative_hessian

__all__ = ["hessian_trace", "laplace_scale", "laplace_sd"]


def laplace_scale(
    model: Model, position: PyTree | None = None
) -> Float[np.ndarray, "D D"] | Float[np.ndarray, " D"]:
    """Scale of N(position, H^-1), H the Hessian of -log pi at ``position`` (the MAP unless given).

    D <= 200: the ``(D, D)`` lower-triangular L with L L' = H^-1, H exact. D > 200: ``(D,)`` sds, one over the
    root of the diagonal of H, by `hutchinson_diagonal`: conditional sds given all other coordinates, which are at most
    the marginal sds. The scale at the MAP is computed once, and saved in
    ``{model.data_dir}/{model.name}.laplace.npz`` and in memory.

    Raises:
        InputError: D <= 200 and -log pi is not convex at the position, so that it is not a mode.
    """
    if position is not None:
        return _scale(model, position)
    if model.found.laplace is None:
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
        model.found.laplace = kept["scale"]
    return model.found.laplace


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


def laplace_sd(model: Model) -> Float[np.ndarray, " D"]:
    """Marginal sds of the Laplace approximation at the MAP; for D > 200 the conditional sds of `laplace_scale`."""
    scale = laplace_scale(model)
    return scale if scale.ndim == 1 else np.linalg.norm(scale, axis=1)


def hessian_trace(model: Model) -> float:
    """Trace of the Hessian of -log pi at the MAP: Laplace's approximation of E|score|^2 (`sgtune.stein.ksd_floor`).

    From `laplace_scale`: exact for D <= 200, otherwise by `hutchinson_diagonal`, with its bounds on entries.
    """
    scale = laplace_scale(model)
    return float(np.sum(1 / scale**2) if scale.ndim == 1 else np.sum(np.linalg.inv(scale) ** 2))
