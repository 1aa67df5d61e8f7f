"""Densities in the plane with exact draws and known moments, for the tests of samplers with a Metropolis test.

The data select the density, so that one compiled program serves all three.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.stats import norm

from sgtune.model import Model, define_model

__all__ = ["N_DATA", "TARGETS", "KnownTarget", "moments_and_errors"]

N_DATA = 4
COVARIANCE = np.array([[1.0, 0.8], [0.8, 1.333]])
PRECISION = jnp.asarray(np.linalg.inv(COVARIANCE), jnp.float32)
MODE = np.array([0.8, 0.4])


class KnownTarget(NamedTuple):
    """A model, ``draw(generator, n) -> (n, 2)``, ``functions(draws (..., 2)) -> (..., K)``, and their expectations."""

    model: Model
    draw: Callable
    functions: Callable
    expectations: np.ndarray


def log_gaussian(position):
    """Correlation 0.69, sds 1 and 1.15."""
    return -position @ PRECISION @ position / 2


def log_banana(position):
    """x ~ N(0, 1), y | x ~ N((x^2 - 1) / 2, 1/4)."""
    x, y = position
    return -(x**2) / 2 - 2 * (y - (x**2 - 1) / 2) ** 2


def log_mixture(position):
    """0.3 N(-a, I/4) + 0.7 N(a, I/4): two modes, close enough for chains to cross."""
    low, high = (-2 * jnp.sum((position - side * MODE) ** 2) for side in (-1, 1))
    return jnp.logaddexp(jnp.log(0.3) + low, jnp.log(0.7) + high)


LOG_DENSITIES = (log_gaussian, log_banana, log_mixture)


def log_prior(position):
    return jnp.zeros(())


def log_likelihood(position, batch):
    return batch @ jnp.stack([log_density(position) for log_density in LOG_DENSITIES])


def model_of(number: int) -> Model:
    """A model whose data have equal shares of the log density."""
    data = np.zeros((N_DATA, len(LOG_DENSITIES)), np.float32)
    data[:, number] = 1 / N_DATA
    return define_model(
        LOG_DENSITIES[number].__name__,
        log_prior=log_prior,
        log_likelihood=log_likelihood,
        data=data,
        init=lambda key: jax.random.normal(key, (2,)),
    )


def second_moments(draws: np.ndarray) -> np.ndarray:
    x, y = draws[..., 0], draws[..., 1]
    return np.stack([x, y, x**2, y**2, x * y], axis=-1)


def of_banana(draws: np.ndarray) -> np.ndarray:
    """Moments of the banana without fourth powers of x, whose means over a run are far from normal."""
    x, y = draws[..., 0], draws[..., 1]
    across = y - (x**2 - 1) / 2
    return np.stack([x, y, x**2, across, across**2, np.abs(x) > 1], axis=-1)


def draw_gaussian(generator, n):
    return generator.standard_normal((n, 2)) @ np.linalg.cholesky(COVARIANCE).T


def draw_banana(generator, n):
    x, z = generator.standard_normal((2, n))
    return np.stack([x, (x**2 - 1) / 2 + z / 2], axis=1)


def draw_mixture(generator, n):
    side = np.where(generator.random(n) < 0.7, 1, -1)
    return side[:, None] * MODE + generator.standard_normal((n, 2)) / 2


TARGETS = {
    "gaussian": KnownTarget(model_of(0), draw_gaussian, second_moments, np.array([0, 0, 1.0, 1.333, 0.8])),
    "banana": KnownTarget(model_of(1), draw_banana, of_banana, np.array([0, 0, 1, 0, 0.25, 2 * norm.sf(1)])),
    "mixture": KnownTarget(
        model_of(2),
        draw_mixture,
        second_moments,
        np.array([0.4 * 0.8, 0.4 * 0.4, 0.8**2 + 0.25, 0.4**2 + 0.25, 0.8 * 0.4]),
    ),
}


def moments_and_errors(target: KnownTarget, draws: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means of the target's functions over draws (n, W, 2) of independent chains, and their standard errors, with a
    chain as a batch."""
    of_chains = target.functions(draws.astype(np.float64)).mean(axis=0)
    return of_chains.mean(axis=0), of_chains.std(axis=0, ddof=1) / np.sqrt(len(of_chains))
