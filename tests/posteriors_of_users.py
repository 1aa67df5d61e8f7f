"""The exact moments of the study's posteriors of users, and of linear regressions.

Each model is made once, so that its programs are compiled and its mode is found once.
"""

from functools import cache

import jax.numpy as jnp
import numpy as np

from sgtune.model import Model, define_model
from sgtune.study.user_posteriors.cases import case_model

case = cache(case_model)


def arrays_of(model: Model, *names: str) -> list[np.ndarray]:
    return [np.asarray(model.data[name], np.float64) for name in names]


def regression(name: str, x, y, **options) -> Model:
    """Linear regression with noise N(0, 1) and coefficients N(0, 1)."""
    return define_model(
        name,
        log_prior=lambda p: -0.5 * p @ p,
        log_likelihood=lambda p, b: -0.5 * (b["y"] - b["x"] @ p) ** 2,
        data={"x": x, "y": y},
        init=lambda key: jnp.zeros(x.shape[1]),
        **options,
    )


def moments_of(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Exact mean and covariance of ``raw_columns`` or ``leverage``, which are Gaussian."""
    x, y = arrays_of(case(name), "x", "y")
    precision = x.T @ x + np.eye(4) / {"raw_columns": 100.0, "leverage": 1.0}[name] ** 2
    return np.linalg.solve(precision, x.T @ y), np.linalg.inv(precision)


def moments_of_groups():
    """Exact mean and covariance of ``groups``, flat (b, log_sigma, log_tau, u): given both scales the rest is Gaussian,
    and the scales' marginal density is summed over a grid."""
    x, y, g = arrays_of(case("groups"), "x", "y", "g")
    n_groups = int(g.max()) + 1
    z = np.eye(n_groups)[g.astype(int)]
    columns = np.c_[np.ones(len(x)), x, z]
    gram, cross, square = columns.T @ columns, columns.T @ y, y @ y
    prior = np.r_[np.full(2, 1 / 25), np.ones(n_groups)]
    points, weights = [], []
    for log_tau in np.linspace(-2.0, -0.4, 41):
        for log_sigma in np.linspace(-0.3, -0.14, 21):
            scale = np.r_[np.ones(2), np.full(n_groups, np.exp(log_tau))]
            precision = np.diag(prior) + scale[:, None] * gram * scale * np.exp(-2 * log_sigma)
            linear = scale * cross * np.exp(-2 * log_sigma)
            mean = np.linalg.solve(precision, linear)
            density = (
                0.5 * linear @ mean
                - 0.5 * np.linalg.slogdet(precision)[1]
                - 0.5 * square * np.exp(-2 * log_sigma)
                - len(y) * log_sigma
                - 0.5 * np.exp(2 * log_tau)
                + log_tau
                - 0.5 * np.exp(2 * log_sigma)
                + log_sigma
            )
            points.append((np.r_[mean[:2], log_sigma, log_tau, mean[2:]], np.linalg.inv(precision)))
            weights.append(density)
    weights = np.exp(np.array(weights) - max(weights))
    weights /= weights.sum()
    means = np.array([mean for mean, _ in points])
    centre = weights @ means
    covariance = (means - centre).T @ (weights[:, None] * (means - centre))
    others = np.r_[0, 1, 4 : 4 + n_groups]
    covariance[np.ix_(others, others)] += np.tensordot(weights, np.array([each for _, each in points]), 1)
    return centre, covariance
