"""Errors of a chain's moments against a reference's: sds in several norms, and means and sds of functionals."""

import numpy as np
from jaxtyping import Float

from sgtune.model import Model
from sgtune.model.positions import blocks_of
from sgtune.support.errors import InputError

__all__ = [
    "functional_error",
    "position_blocks",
    "relative_sd_error",
    "relative_sd_error_by_block",
    "xi_rel",
    "xi_white",
]


def relative_sd_error(sd: Float[np.ndarray, " d"], reference_sd: Float[np.ndarray, " d"]) -> float:
    """xi = |sd - reference_sd|_2 / |reference_sd|_2 (Coullon et al. 2023, Sect. 4.1); infinite if ``sd`` is not finite.

    A fraction, in no unit: the same for sds in other units if all parameters have the same one.

    Raises:
        InputError: the shapes differ, or the reference is not finite and positive.
    """
    sd, reference_sd = checked_sds(sd, reference_sd)
    return _finite(np.linalg.norm(sd - reference_sd) / np.linalg.norm(reference_sd))


def checked_sds(
    sd: Float[np.ndarray, " d"], reference_sd: Float[np.ndarray, " d"]
) -> tuple[Float[np.ndarray, " d"], Float[np.ndarray, " d"]]:
    """Both in float64.

    Raises:
        InputError: the shapes differ, or the reference is not finite and positive.
    """
    sd, reference_sd = np.asarray(sd, np.float64), np.asarray(reference_sd, np.float64)
    if sd.shape != reference_sd.shape:
        raise InputError(
            f"sd: shape {sd.shape} against {reference_sd.shape} of reference_sd; they must agree"
        )
    if not (np.isfinite(reference_sd).all() and (reference_sd > 0).all()):
        raise InputError("reference_sd: every entry must be finite and > 0")
    return sd, reference_sd


def xi_rel(sd: Float[np.ndarray, " d"], reference_sd: Float[np.ndarray, " d"]) -> float:
    """sqrt(mean over parameters of (sd / reference_sd - 1)^2); infinite if ``sd`` is not finite.

    Every parameter has the same weight, in any unit; in `relative_sd_error` parameters with a large sd dominate.

    Args:
        sd: sds of the draws, in the units of the parameters.
        reference_sd: trusted sds, in the same units.

    Raises:
        InputError: the shapes differ, or a reference sd is not finite and positive.
    """
    sd, reference_sd = checked_sds(sd, reference_sd)
    with np.errstate(invalid="ignore", over="ignore"):
        return _finite(np.sqrt(np.mean((sd / reference_sd - 1) ** 2)))


def xi_white(covariance: Float[np.ndarray, "d d"], reference_covariance: Float[np.ndarray, "d d"]) -> float:
    """`xi_rel` of the sds of v'x along the eigenvectors v of the reference's covariance, over the roots of the
    eigenvalues. ``covariance`` is the draws' covariance; the result is infinite if it is not finite.

    Correlated parameters have directions in which the posterior is far narrower than along any single parameter; this
    metric sees errors there. It does not depend on the origin, the common unit or a rotation of the coordinates; but
    the eigenvectors depend on the units of single parameters. The basis is arbitrary where eigenvalues are equal.

    Raises:
        InputError: the shapes differ, or the reference's covariance is not positive definite.
    """
    covariance, reference_covariance = (
        np.asarray(matrix, np.float64) for matrix in (covariance, reference_covariance)
    )
    if covariance.shape != reference_covariance.shape:
        raise InputError(
            f"covariance: shape {covariance.shape} against {reference_covariance.shape} of reference_covariance; "
            f"they must agree"
        )
    eigenvalues, directions = np.linalg.eigh(reference_covariance)
    if not (eigenvalues > 0).all():
        raise InputError("reference_covariance: not positive definite; all its eigenvalues must be > 0")
    with np.errstate(invalid="ignore", over="ignore"):
        variances = np.sum(directions * (covariance @ directions), axis=0)
        return xi_rel(np.sqrt(np.maximum(variances, 0.0)), np.sqrt(eigenvalues))


def functional_error(
    mean: Float[np.ndarray, " k"],
    sd: Float[np.ndarray, " k"],
    reference_mean: Float[np.ndarray, " k"],
    reference_sd: Float[np.ndarray, " k"],
) -> float:
    """Errors of means and sds together: the root of the mean over functionals of their squares.

    The squares are ``((mean - reference_mean) / reference_sd)**2 + (sd / reference_sd - 1)**2``. This is
    the root mean square of the 2-Wasserstein distances between Gaussians of these moments, in units of the reference's
    sds; infinite if a moment is not finite. The functionals may have any units.

    Raises:
        InputError: the shapes differ, or a reference sd is not finite and positive.
    """
    sd, reference_sd = checked_sds(sd, reference_sd)
    mean, reference_mean = np.asarray(mean, np.float64), np.asarray(reference_mean, np.float64)
    if not mean.shape == reference_mean.shape == sd.shape:
        raise InputError(
            f"mean: shape {mean.shape} against {reference_mean.shape} of reference_mean and {sd.shape} of sd; "
            f"they must agree"
        )
    with np.errstate(invalid="ignore", over="ignore"):
        bias, spread = (mean - reference_mean) / reference_sd, sd / reference_sd - 1
        return _finite(np.sqrt(np.mean(bias**2 + spread**2)))


def _finite(error: np.floating) -> float:
    return float(error) if np.isfinite(error) else float("inf")


def position_blocks(model: Model) -> dict[str, slice]:
    """The entries of a flat position that belong to each top-level key of the position.

    Returns:
        A slice of the (D,) position for each key, in the order of the flat position; {} if the position is no dict.
    """
    return blocks_of(model, depth=1) if isinstance(model.position_shape, dict) else {}


def relative_sd_error_by_block(
    model: Model, sd: Float[np.ndarray, " d"], reference_sd: Float[np.ndarray, " d"]
) -> dict[str, float]:
    """`relative_sd_error` of each block of `position_blocks`: the paper's xi of, for example, U and V alone.

    Args:
        sd, reference_sd: of all D parameters, in the order of a flat position and in the same unit.

    Returns:
        An error for each top-level key; {} if the position is no dict.

    Raises:
        InputError: as `relative_sd_error`, or there are not D sds.
    """
    sd, reference_sd = checked_sds(sd, reference_sd)
    if sd.shape != (model.dimension,):
        raise InputError(f"sd: shape {sd.shape} is not allowed; it must be ({model.dimension},)")
    return {
        name: relative_sd_error(sd[block], reference_sd[block])
        for name, block in position_blocks(model).items()
    }
