"""Three densities in the plane with exact draws and known moments: a correlated Gaussian, a banana and a mixture.

The data select the density, so that one compiled program serves all three.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.stats import norm

from sgtune.model import Model, define_model
from sgtune.support.errors import check_choice

__all__ = ["N_DATA", "PLANES", "Plane", "plane_model"]

N_DATA = 4
COVARIANCE = np.array([[1.0, 0.8], [0.8, 1.333]])
PRECISION = np.linalg.inv(COVARIANCE)
MODE = np.array([0.8, 0.4])
SHARE = 0.7
"""Of the mixture's heavier component, N(MODE, I / 4); the other is N(-MODE, I / 4)."""

Moment = Callable[[Float[np.ndarray, "*shape 2"]], Float[np.ndarray, "*shape"]]


class Plane(NamedTuple):
    """A target in the plane.

    Attributes:
        log_density: of a position ``(2,)``, up to a constant.
        draw: (generator, n) -> exact draws ``(n, 2)``.
        moments: name in print -> function of draws ``(..., 2)``, of expectation 1 under the target.
    """

    log_density: Callable
    draw: Callable[[np.random.Generator, int], Float[np.ndarray, "n 2"]]
    moments: Mapping[str, Moment]


def _log_gaussian(position):
    return -position @ jnp.asarray(PRECISION, jnp.float32) @ position / 2


def _draw_gaussian(generator, n):
    return generator.standard_normal((n, 2)) @ np.linalg.cholesky(COVARIANCE).T


def _along(direction: int) -> Moment:
    """The square along an eigen-direction of the Gaussian, the narrow (0) or the wide one (1), over its variance."""
    variances, directions = np.linalg.eigh(COVARIANCE)
    return lambda draws: (draws @ directions[:, direction]) ** 2 / variances[direction]


def _ridge(x):
    return (x**2 - 1) / 2


def _log_banana(position):
    """x ~ N(0, 1), y given x ~ N(ridge(x), 1/4)."""
    x, y = position
    return -(x**2) / 2 - 2 * (y - _ridge(x)) ** 2


def _draw_banana(generator, n):
    x, z = generator.standard_normal((2, n))
    return np.stack([x, _ridge(x) + z / 2], axis=1)


def _log_mixture(position):
    """Two modes, close enough for chains to cross."""
    low, high = (-2 * jnp.sum((position - side * MODE) ** 2) for side in (-1, 1))
    return jnp.logaddexp(jnp.log(1 - SHARE) + low, jnp.log(SHARE) + high)


def _draw_mixture(generator, n):
    side = np.where(generator.random(n) < SHARE, 1, -1)
    return side[:, None] * MODE + generator.standard_normal((n, 2)) / 2


def _on_heavier_side(draws):
    """Whether a draw is on the side of the heavier component, over the probability of this."""
    within = norm.cdf(2 * np.linalg.norm(MODE))
    return (draws @ MODE > 0) / (SHARE * within + (1 - SHARE) * (1 - within))


PLANES: dict[str, Plane] = {
    "gaussian": Plane(
        _log_gaussian,
        _draw_gaussian,
        {"Square, narrow direction": _along(0), "Square, wide direction": _along(1)},
    ),
    "banana": Plane(
        _log_banana,
        _draw_banana,
        {
            "x²": lambda draws: draws[..., 0] ** 2,
            "Square across the ridge": lambda draws: 4 * (draws[..., 1] - _ridge(draws[..., 0])) ** 2,
        },
    ),
    "mixture": Plane(
        _log_mixture,
        _draw_mixture,
        {
            "x²": lambda draws: draws[..., 0] ** 2 / (MODE[0] ** 2 + 0.25),
            "Heavier side": _on_heavier_side,
        },
    ),
}


def plane_model(name: str) -> Model:
    """The target ``name`` of `PLANES` as the posterior of N_DATA data that have equal shares of its log density, so
    that gradients of minibatches have no noise. It has no mode: give chains a centre.

    Raises:
        InputError: no such target.
    """
    check_choice("target", name, PLANES)
    data = np.zeros((N_DATA, len(PLANES)), np.float32)
    data[:, list(PLANES).index(name)] = 1 / N_DATA
    return define_model(
        name,
        log_prior=_flat,
        log_likelihood=_log_likelihood,
        data=data,
        init=lambda key: jax.random.normal(key, (2,)),
    )


def _flat(position):
    return jnp.zeros(())


def _log_likelihood(position, batch):
    return batch @ jnp.stack([plane.log_density(position) for plane in PLANES.values()])
