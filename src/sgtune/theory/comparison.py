"""Check where the theory's assumption fails: compare its second moments with the moments of draws."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from sgtune.sampling.arm import Arm
from sgtune.support.errors import InputError
from sgtune.theory.laplace import Laplace
from sgtune.theory.linear import expected_run, stationary_variances

__all__ = ["Comparison", "against_draws", "spread_ratios"]


class Comparison(NamedTuple):
    """Sds along the directions of `Laplace`, each in units of the Laplace approximation's sd.

    Attributes:
        predicted: root of the expected variance of the draws about their mean.
        error: standard deviation of the draws' sd over chains, by the delta method.
        measured: sd of the draws.
    """

    predicted: Float[np.ndarray, " d"]
    error: Float[np.ndarray, " d"]
    measured: Float[np.ndarray, " d"]


def against_draws(laplace: Laplace, sampler: str, arm: Arm, draws: Float[np.ndarray, "n D"]) -> Comparison:
    """Compare all n draws of a chain of ``arm`` that started at the mode with the theory's predictions.

    Where ``measured`` differs from ``predicted`` by many times ``error``, the posterior is not Gaussian over the region
    that the arm visits.

    Raises:
        InputError: fewer than two draws, the arm is unstable by the theory, or its sampler unknown to it.
    """
    if len(draws) < 2:
        raise InputError(f"draws: {len(draws)} are too few; two or more are needed")
    directions = laplace.directions
    mean, variance = expected_run(sampler, arm, directions, len(draws))
    if not np.isfinite(mean).all():
        raise InputError(f"arm: {arm!r} is unstable by the theory; there is nothing to compare")
    predicted = np.sqrt(mean)
    measured = laplace.along(draws).std(axis=0) * np.sqrt(directions.curvature)
    return Comparison(predicted, np.sqrt(variance) / (2 * predicted), measured)


def spread_ratios(laplace: Laplace, sampler: str, arm: Arm) -> Float[np.ndarray, " d"]:
    """Stationary sds over the Laplace approximation's; far from 1, the chain leaves the region where the theory
    holds."""
    return np.sqrt(stationary_variances(sampler, arm, laplace.directions) * laplace.directions.curvature)
