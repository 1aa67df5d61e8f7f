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
    own = {
        "log_prior": lambda p: -0.5 * p @ p,
        "log_likelihood": lambda p, b: -0.5 * (b["y"] - b["x"] @ p) ** 2,
    }
    return define_model(name, data={"x": x, "y": y}, init=lambda key: jnp.zeros(x.shape[1]), **own, **options)


def moments_of(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Exact mean and covariance of ``raw_columns`` or ``leverage``, which are Gaussian."""
    x, y = arrays_of(case(name), "x", "y")
    precision = x.T @ x + np.eye(4) / {"raw_columns": 100.0, "leverage": 1.0}[name] ** 2
    return np.linalg.solve(precision, x.T @ y), np.linalg.inv(precision)
