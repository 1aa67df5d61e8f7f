"""Three densities in the plane with exact draws and known moments: a correlated Gaussian, a banana and a mixture; and a
check of moments."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.stats import norm

from sgtune.model import Model, define_model
from sgtune.samplers.target import Target

N_DATA = 4
SIGMAS = 4.5


def check_moments(sample, mean, covariance):
    """Mean and covariance of ``sample`` against the exact ones, element by element, within Monte Carlo error, or within
    float32 rounding if there is no variance.

    Returns the covariance found and its standard errors.
    """
    n = len(sample)
    assert (np.abs(sample.mean(0) - mean) < SIGMAS * np.sqrt(np.diag(covariance) / n) + 1e-6).all()
    deviations = sample - mean
    products = deviations[:, :, None] * deviations[:, None, :]
    found, error = products.mean(0), products.std(0) / np.sqrt(n)
    assert (np.abs(found - covariance) < SIGMAS * error + 1e-10).all()
    return found, error


def curved(x, module=jnp):
    """A log density in three dimensions that is neither Gaussian nor symmetric."""
    return -module.sum(x**4) / 4 - (x[0] - x[1] * x[2]) ** 2 / 2 + x[2]


def gradient_of_curved(x):
    """Its gradient, by hand in float64."""
    return -(x**3) - (x[0] - x[1] * x[2]) * np.array([1, -x[2], -x[1]]) + np.array([0, 0, 1])


def target_with_noise(gradient, covariance, **options):
    """A target with these estimates of the gradient and of the covariance (D, D) of their noise."""

    def with_covariance(position, i, state, form):
        matrix = covariance(position)
        return gradient(position), matrix if form == "full" else jnp.diag(matrix), state

    return Target(
        lambda position, i, state: (gradient(position), state),
        gradient_with_covariance=with_covariance,
        **options,
    )


COVARIANCE = np.array([[1.0, 0.8], [0.8, 1.333]])
MODE, SHARE = np.array([0.8, 0.4]), 0.7
"""Of the mixture's heavier component, N(MODE, I / 4); the other is N(-MODE, I / 4)."""


class KnownTarget(NamedTuple):
    """A model, ``draw(generator, n) -> (n, 2)``, ``functions(draws (..., 2)) -> (..., K)``, and their expectations."""

    model: Model
    draw: Callable
    functions: Callable
    expectations: np.ndarray


def log_densities(position):
    x, y = position
    low, high = (-2 * jnp.sum((position - side * MODE) ** 2) for side in (-1, 1))
    return jnp.stack(
        [
            -position @ jnp.asarray(np.linalg.inv(COVARIANCE), jnp.float32) @ position / 2,
            -(x**2) / 2 - 2 * (y - (x**2 - 1) / 2) ** 2,
            jnp.logaddexp(jnp.log(1 - SHARE) + low, jnp.log(SHARE) + high),
        ]
    )


def flat(position):
    return jnp.zeros(())


def log_likelihood(position, batch):
    return batch @ log_densities(position)


def model_of(place: int) -> Model:
    """The data select the density, so that one program serves all three, and minibatches have no noise."""
    data = np.zeros((N_DATA, 3), np.float32)
    data[:, place] = 1 / N_DATA
    return define_model(
        f"plane {place}",
        log_prior=flat,
        log_likelihood=log_likelihood,
        data=data,
        init=lambda key: jax.random.normal(key, (2,)),
    )


def draw_gaussian(generator, n):
    return generator.standard_normal((n, 2)) @ np.linalg.cholesky(COVARIANCE).T


def draw_banana(generator, n):
    x, z = generator.standard_normal((2, n))
    return np.stack([x, (x**2 - 1) / 2 + z / 2], axis=1)


def draw_mixture(generator, n):
    side = np.where(generator.random(n) < SHARE, 1, -1)
    return side[:, None] * MODE + generator.standard_normal((n, 2)) / 2


def second_moments(draws: np.ndarray) -> np.ndarray:
    x, y = draws[..., 0], draws[..., 1]
    return np.stack([x, y, x**2, y**2, x * y], axis=-1)


def of_banana(draws: np.ndarray) -> np.ndarray:
    """Moments of the banana without fourth powers of x, whose means over a run are far from normal."""
    x, y = draws[..., 0], draws[..., 1]
    across = y - (x**2 - 1) / 2
    return np.stack([x, y, x**2, across, across**2, np.abs(x) > 1], axis=-1)


OF_MIXTURE = np.array([*(2 * SHARE - 1) * MODE, *MODE**2 + 0.25, MODE[0] * MODE[1]])
TARGETS = {
    "gaussian": KnownTarget(model_of(0), draw_gaussian, second_moments, np.array([0, 0, 1.0, 1.333, 0.8])),
    "banana": KnownTarget(model_of(1), draw_banana, of_banana, np.array([0, 0, 1, 0, 0.25, 2 * norm.sf(1)])),
    "mixture": KnownTarget(model_of(2), draw_mixture, second_moments, OF_MIXTURE),
}


def moments_and_errors(target: KnownTarget, draws: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means of the target's functions over draws (n, W, 2) of independent chains, and their standard errors, with a
    chain as a batch."""
    of_chains = target.functions(draws.astype(np.float64)).mean(axis=0)
    return of_chains.mean(axis=0), of_chains.std(axis=0, ddof=1) / np.sqrt(len(of_chains))
