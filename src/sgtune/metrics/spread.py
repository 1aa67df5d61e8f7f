"""Errors of a chain's standard deviations against a reference's."""

import jax
import numpy as np
from jaxtyping import Float

from sgtune.errors import InputError
from sgtune.model import Model

__all__ = ["position_blocks", "relative_sd_error", "relative_sd_error_by_block", "sd_of_draws"]

COLUMNS = 4_096


def relative_sd_error(sd: Float[np.ndarray, " d"], reference_sd: Float[np.ndarray, " d"]) -> float:
    """xi = |sd - reference_sd|_2 / |reference_sd|_2 (Coullon et al. 2023, Sect. 4.1); infinite if ``sd`` is not finite.

    Raises:
        InputError: the shapes differ, or the reference is not finite and positive.
    """
    sd, reference_sd = checked_sds(sd, reference_sd)
    error = np.linalg.norm(sd - reference_sd) / np.linalg.norm(reference_sd)
    return float(error) if np.isfinite(error) else float("inf")


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


def position_blocks(model: Model) -> dict[str, slice]:
    """The entries of a flat position for each top-level key of the position; empty if it has no keys."""
    shape = model.position_shape
    if not isinstance(shape, dict):
        return {}
    blocks, start = {}, 0
    for name in sorted(shape):
        size = sum(leaf.size for leaf in jax.tree.leaves(shape[name]))
        blocks[name] = slice(start, start + size)
        start += size
    return blocks


def relative_sd_error_by_block(
    model: Model, sd: Float[np.ndarray, " d"], reference_sd: Float[np.ndarray, " d"]
) -> dict[str, float]:
    """`relative_sd_error` of each block of `position_blocks`."""
    return {
        name: relative_sd_error(sd[block], reference_sd[block])
        for name, block in position_blocks(model).items()
    }


def sd_of_draws(draws: Float[np.ndarray, "n d"]) -> Float[np.ndarray, " d"]:
    """Standard deviation of each column, in float64, a few thousand columns at a time to save memory."""
    starts = range(0, draws.shape[1], COLUMNS)
    with np.errstate(invalid="ignore", over="ignore"):
        return np.concatenate([np.std(draws[:, i : i + COLUMNS], axis=0, dtype=np.float64) for i in starts])
