"""The Laplace approximation: the scale of the posterior from its curvature at the MAP."""

import logging
from collections.abc import Mapping
from functools import partial

import numpy as np
from jaxtyping import Float, PyTree

from sgtune.mode.find import (
    FIRST_ROWS,
    hutchinson_diagonal,
    is_value_of_first_rows,
    keep,
    map_position,
    read_kept,
    value_of_first_rows,
)
from sgtune.model import Model
from sgtune.model.positions import check_position, flatten, unflatten
from sgtune.model.posterior import LARGE_DIMENSION, hessian_products, negative_hessian
from sgtune.support.errors import InputError

logger = logging.getLogger(__name__)

__all__ = [
    "hessian_trace",
    "laplace_factor",
    "laplace_scale",
    "laplace_sd",
    "largest_curvature",
    "least_curvature",
]

LARGEST_FACTOR = 2_000
"""Above this dimension `laplace_factor` has no factor: its Hessian takes D products with a vector over all data."""

N_LANCZOS = 20


def laplace_scale(
    model: Model, position: PyTree | None = None
) -> Float[np.ndarray, "D D"] | Float[np.ndarray, " D"]:
    """Scale of N(position, H^-1), H the Hessian of -log pi at ``position`` (the MAP unless given).

    D <= 200: the ``(D, D)`` lower-triangular L with L L' = H^-1, H exact. D > 200: ``(D,)`` sds, one over the
    root of the diagonal of H, by `hutchinson_diagonal`: conditional sds given all other coordinates, which are at most
    the marginal sds. The scale at the MAP is computed once, and saved in
    ``{model.data_dir}/{model.name}.laplace.npz`` and in memory. It is computed again if the mode has changed, or
    the log posterior of the first 256 rows one of their sds away from it: posteriors of one mode may differ in their
    curvature. It cannot be written to.

    Raises:
        InputError: D <= 200 and -log pi is not convex at the position, so that it is not a mode; or the position is of
            another shape.
    """
    if position is not None:
        return _scale(model, check_position("position", model, position))
    if model.found.laplace is None:
        kept, mode = read_kept(model, "laplace"), flatten(map_position(model))
        if kept is None or not _is_of(model, mode, kept):
            scale = _scale(model, map_position(model))
            kept = {"scale": scale, "position": mode}
            if model.data_dir is not None:
                value = value_of_first_rows(model, _one_sd_away(model, mode, scale))
                keep(model, "laplace", **kept, one_sd_away=value)
        kept["scale"].setflags(write=False)
        model.found.laplace = kept["scale"]
    return model.found.laplace


def _is_of(model: Model, mode: Float[np.ndarray, " D"], kept: Mapping[str, np.ndarray]) -> bool:
    """Whether the saved scale is of this model's log posterior at this mode."""
    shape = (model.dimension,) * (1 if model.dimension > LARGE_DIMENSION else 2)
    if not kept.keys() >= {"scale", "position"} or kept["scale"].shape != shape:
        return False
    if not np.array_equal(kept["position"], mode):
        return False
    if (
        "one_sd_away" not in kept
    ):  # a file of an older version: it may be an input of other jobs, and stays as it is
        return True
    away = _one_sd_away(model, mode, kept["scale"])
    if is_value_of_first_rows(model, away, kept["one_sd_away"].item()):
        return True
    logger.warning(
        "Laplace scale of %s: the saved one is of another log posterior; computed again", model.name
    )
    return False


def _one_sd_away(model: Model, mode: Float[np.ndarray, " D"], scale: np.ndarray) -> PyTree:
    # The first rows know the position by this factor worse than all rows do.
    factor = np.sqrt(model.n_data / min(model.n_data, FIRST_ROWS))
    return unflatten(model, mode + factor * _marginal_sds(scale))


def _scale(model: Model, position: PyTree) -> np.ndarray:
    if model.dimension > LARGE_DIMENSION:
        scale = 1 / np.sqrt(hutchinson_diagonal(model, position))
        scale.setflags(write=False)
        return scale
    try:
        return _factor(model, position)
    except np.linalg.LinAlgError:
        raise InputError(
            f"position: the log posterior of model {model.name!r} is not concave there; a mode is needed"
        ) from None


def _factor(model: Model, position: PyTree) -> Float[np.ndarray, "D D"]:
    """Raises a `numpy.linalg.LinAlgError` if the Hessian is not positive definite, or not finite."""
    hessian = negative_hessian(model, position)
    if not np.isfinite(hessian).all():
        # NumPy's factor of such a matrix may be NaN, without an error.
        raise np.linalg.LinAlgError("the Hessian is not finite")
    half = np.linalg.inv(np.linalg.cholesky(hessian))
    factor = np.linalg.cholesky(half.T @ half)
    factor.setflags(write=False)
    return factor


def laplace_factor(model: Model) -> Float[np.ndarray, "D D"] | Float[np.ndarray, " D"]:
    """`laplace_scale` at the MAP, but with the factor up to D = 2,000.

    Marginal sds are known from the factor alone. It takes D products of the Hessian with a vector, over all data, and
    is kept in memory: D^2 numbers of float64. Where -log pi is not convex at the MAP, or D > 2,000: the sds.

    Raises:
        InputError: as `laplace_scale`.
    """
    if not LARGE_DIMENSION < model.dimension <= LARGEST_FACTOR:
        return laplace_scale(model)
    return model.found.once_at_mode("laplace_factor", lambda: _factor_at_mode(model))


def _factor_at_mode(model: Model) -> Float[np.ndarray, "D D"] | Float[np.ndarray, " D"]:
    try:
        return _factor(model, map_position(model))
    except np.linalg.LinAlgError:
        logger.warning(
            "Laplace factor of %s: the log posterior is not concave at the MAP; conditional sds are used",
            model.name,
        )
        return laplace_scale(model)


def laplace_sd(model: Model) -> Float[np.ndarray, " D"]:
    """Marginal sds of the Laplace approximation at the MAP; for D > 200 the conditional sds of `laplace_scale`.

    Raises:
        InputError: as `laplace_scale`.
    """
    return _marginal_sds(laplace_scale(model))


def _marginal_sds(scale: np.ndarray) -> Float[np.ndarray, " D"]:
    return scale if scale.ndim == 1 else np.linalg.norm(scale, axis=1)


def largest_curvature(model: Model, position: PyTree | None = None) -> float:
    """The largest eigenvalue of the Hessian of -log pi at ``position``, the MAP unless given, to about 1%.

    D <= 200: from the exact Hessian. Above by Lanczos iterations (SciPy), each of which takes a product of the Hessian
    with a vector over all data.

    Raises:
        InputError: it is not positive, or the Hessian is not finite.
    """
    # Takes a fifth of a second to import.
    from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

    position = map_position(model) if position is None else position
    d = model.dimension
    try:
        if d <= LARGE_DIMENSION:
            largest = np.linalg.eigvalsh(negative_hessian(model, position))[-1]
        else:
            operator = LinearOperator((d, d), matvec=partial(_product, model, position), dtype=np.float64)
            start = np.random.default_rng(0).standard_normal(d)
            largest = eigsh(operator, k=1, which="LA", tol=0.01, v0=start, return_eigenvectors=False)[0]
    except (np.linalg.LinAlgError, ArpackError):
        largest = np.nan
    if not largest > 0:
        raise InputError(
            f"position: the largest curvature of {model.name!r} there is {largest:.3g}; it must be > 0"
        )
    return float(largest)


def _product(model: Model, position: PyTree, vector: Float[np.ndarray, " D"]) -> Float[np.ndarray, " D"]:
    """The Hessian of -log pi at ``position`` times ``vector``, over all data."""
    likelihood, prior = hessian_products(model, position, np.asarray(vector, np.float32).reshape(1, -1))
    return -(likelihood[0].astype(np.float64) + prior[0])


def least_curvature(model: Model, sds: Float[np.ndarray, " D"]) -> float:
    """A bound from above of the least eigenvalue of the Hessian of -log pi at the MAP, in units of ``sds``.

    By Lanczos iterations, each of which takes a product of the Hessian with a vector over all data: if it is negative,
    -log pi is not convex.
    """
    mode, new = map_position(model), np.random.default_rng(0).standard_normal(model.dimension)
    basis, products = np.zeros((2, N_LANCZOS, model.dimension))
    for i in range(N_LANCZOS):
        for _ in range(2):  # once more for what rounding leaves
            new = new - (basis @ new) @ basis
        length = np.linalg.norm(new)
        if i and not length > 1e-6 * np.linalg.norm(products[i - 1]):
            break  # all eigenvalues that the start has are known
        basis[i] = new / length
        products[i] = new = sds * _product(model, mode, sds * basis[i])
    return float(np.linalg.eigvalsh(basis @ products.T)[0])


def hessian_trace(model: Model) -> float:
    """Trace of the Hessian of -log pi at the MAP: Laplace's approximation of E|score|^2 (`sgtune.stein.ksd_floor`).

    From `laplace_scale`: exact for D <= 200, otherwise by `hutchinson_diagonal`, with its bounds on entries.

    Raises:
        InputError: as `laplace_scale`.
    """
    scale = laplace_scale(model)
    return float(np.sum(1 / scale**2) if scale.ndim == 1 else np.sum(np.linalg.inv(scale) ** 2))
