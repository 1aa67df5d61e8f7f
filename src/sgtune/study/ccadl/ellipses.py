"""Two-dimensional marginals of long chains: chains pooled, and the outline that holds 95% of a Gaussian."""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float

__all__ = ["ellipse_of", "pooled"]

COVERED = -2 * np.log(0.05)
"""Squared Mahalanobis distance within which a two-dimensional Gaussian has 95% of its mass."""


def ellipse_of(
    mean: Float[np.ndarray, " 2"], covariance: Float[np.ndarray, "2 2"], n_points: int = 200
) -> Float[np.ndarray, "n 2"]:
    """The points where a Gaussian's density has the value that bounds 95% of its mass."""
    angles = np.linspace(0, 2 * np.pi, n_points)
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    return mean + np.sqrt(COVERED) * circle @ np.linalg.cholesky(covariance).T


def pooled(runs: Sequence[Mapping]) -> tuple[np.ndarray, np.ndarray] | None:
    """Mean and covariance of equally long chains together, of those that have not diverged; None if all have."""
    runs = [run for run in runs if not run["diverged"]]
    if not runs:
        return None
    means = np.array([run["mean"] for run in runs])
    within = np.mean([run["covariance"] for run in runs], axis=0)
    apart = means - means.mean(axis=0)
    return means.mean(axis=0), within + apart.T @ apart / len(runs)
