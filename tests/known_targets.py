"""The study's densities in the plane, with other moments than the study has, and their expectations."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.stats import norm

from sgtune.model import Model
from sgtune.study.adam_mcmc.planes import N_DATA, PLANES, plane_model

__all__ = ["N_DATA", "TARGETS", "KnownTarget", "moments_and_errors"]


class KnownTarget(NamedTuple):
    """A model, ``draw(generator, n) -> (n, 2)``, ``functions(draws (..., 2)) -> (..., K)``, and their expectations."""

    model: Model
    draw: Callable
    functions: Callable
    expectations: np.ndarray


def second_moments(draws: np.ndarray) -> np.ndarray:
    x, y = draws[..., 0], draws[..., 1]
    return np.stack([x, y, x**2, y**2, x * y], axis=-1)


def of_banana(draws: np.ndarray) -> np.ndarray:
    """Moments of the banana without fourth powers of x, whose means over a run are far from normal."""
    x, y = draws[..., 0], draws[..., 1]
    across = y - (x**2 - 1) / 2
    return np.stack([x, y, x**2, across, across**2, np.abs(x) > 1], axis=-1)


OF_TARGETS = {
    "gaussian": (second_moments, np.array([0, 0, 1.0, 1.333, 0.8])),
    "banana": (of_banana, np.array([0, 0, 1, 0, 0.25, 2 * norm.sf(1)])),
    "mixture": (
        second_moments,
        np.array([0.4 * 0.8, 0.4 * 0.4, 0.8**2 + 0.25, 0.4**2 + 0.25, 0.8 * 0.4]),
    ),
}
TARGETS = {
    name: KnownTarget(plane_model(name), PLANES[name].draw, *of_target)
    for name, of_target in OF_TARGETS.items()
}


def moments_and_errors(target: KnownTarget, draws: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means of the target's functions over draws (n, W, 2) of independent chains, and their standard errors, with a
    chain as a batch."""
    of_chains = target.functions(draws.astype(np.float64)).mean(axis=0)
    return of_chains.mean(axis=0), of_chains.std(axis=0, ddof=1) / np.sqrt(len(of_chains))
