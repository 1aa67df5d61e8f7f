"""Three densities in the plane with exact draws and known expectations: a correlated Gaussian, a banana and a mixture.

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
PRECISION = np.linalg.inv(COVARIANCE)
MODE = np.array([0.8, 0.4])
SHARE = 0.7
"""Of the mixture's heavier component, N(MODE, I / 4); the other is N(-MODE, I / 4)."""


class KnownTarget(NamedTuple):
    """A model, ``draw(generator, n) -> (n, 2)``, ``functions(draws (..., 2)) -> (..., K)``, and their expectations."""

    model: Model
    draw: Callable
    functions: Callable
    expectations: np.ndarray


def log_gaussian(position):
    return -position @ jnp.asarray(PRECISION, jnp.float32) @ position / 2


def draw_gaussian(generator, n):
    return generator.standard_normal((n, 2)) @ np.linalg.cholesky(COVARIANCE).T


def ridge(x):
    return (x**2 - 1) / 2


def log_banana(position):
    """x ~ N(0, 1), y given x ~ N(ridge(x), 1/4)."""
    x, y = position
    return -(x**2) / 2 - 2 * (y - ridge(x)) ** 2


def draw_banana(generator, n):
    x, z = generator.standard_normal((2, n))
    return np.stack([x, ridge(x) + z / 2], axis=1)


def log_mixture(position):
    """Two modes, close enough for chains to cross."""
    low, high = (-2 * jnp.sum((position - side * MODE) ** 2) for side in (-1, 1))
    return jnp.logaddexp(jnp.log(1 - SHARE) + low, jnp.log(SHARE) + high)


def draw_mixture(generator, n):
    side = np.where(generator.random(n) < SHARE, 1, -1)
    return side[:, None] * MODE + generator.standard_normal((n, 2)) / 2


def second_moments(draws: np.ndarray) -> np.ndarray:
    x, y = draws[..., 0], draws[..., 1]
    return np.stack([x, y, x**2, y**2, x * y], axis=-1)


def of_banana(draws: np.ndarray) -> np.ndarray:
    """Moments of the banana without fourth powers of x, whose means over a run are far from normal."""
    x, y = draws[..., 0], draws[..., 1]
    across = y - ridge(x)
    return np.stack([x, y, x**2, across, across**2, np.abs(x) > 1], axis=-1)


DENSITIES = (log_gaussian, log_banana, log_mixture)


def flat(position):
    return jnp.zeros(())


def log_likelihood(position, batch):
    return batch @ jnp.stack([density(position) for density in DENSITIES])


def plane_model(log_density: Callable) -> Model:
    """The posterior of N_DATA data that have equal shares of its log density, so that gradients of minibatches have no
    noise. It has no mode: give chains a centre."""
    data = np.zeros((N_DATA, len(DENSITIES)), np.float32)
    data[:, DENSITIES.index(log_density)] = 1 / N_DATA
    return define_model(
        log_density.__name__.removeprefix("log_"),
        log_prior=flat,
        log_likelihood=log_likelihood,
        data=data,
        init=lambda key: jax.random.normal(key, (2,)),
    )


MIXED = (2 * SHARE - 1) * MODE
TARGETS = {
    "gaussian": KnownTarget(
        plane_model(log_gaussian), draw_gaussian, second_moments, np.array([0, 0, 1.0, 1.333, 0.8])
    ),
    "banana": KnownTarget(
        plane_model(log_banana), draw_banana, of_banana, np.array([0, 0, 1, 0, 0.25, 2 * norm.sf(1)])
    ),
    "mixture": KnownTarget(
        plane_model(log_mixture),
        draw_mixture,
        second_moments,
        np.array([*MIXED, *(MODE**2 + 0.25), MODE[0] * MODE[1]]),
    ),
}


def moments_and_errors(target: KnownTarget, draws: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means of the target's functions over draws (n, W, 2) of independent chains, and their standard errors, with a
    chain as a batch."""
    of_chains = target.functions(draws.astype(np.float64)).mean(axis=0)
    return of_chains.mean(axis=0), of_chains.std(axis=0, ddof=1) / np.sqrt(len(of_chains))
