"""How good predictions are, given the true targets."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Array, Float

from sgtune.metrics.calibration import ece, mce

__all__ = ["PREDICTIVE", "Predictive", "accuracy", "log_loss", "rmse"]


def accuracy(probabilities: Float[Array | np.ndarray, "m ..."], targets: np.ndarray) -> float:
    """Share of test data whose most probable class is theirs; ``(m,)`` means P(y = 1)."""
    probabilities, targets = np.asarray(probabilities), np.asarray(targets)
    predicted = probabilities > 0.5 if probabilities.ndim == 1 else probabilities.argmax(axis=1)
    return float(np.mean(predicted == targets))


def log_loss(probabilities: Float[Array | np.ndarray, "m ..."], targets: np.ndarray) -> float:
    """Mean of -log of the probability given to the true class; ``(m,)`` means P(y = 1)."""
    probabilities, targets = np.asarray(probabilities, np.float64), np.asarray(targets).astype(int)
    if probabilities.ndim == 1:
        given = np.where(targets == 1, probabilities, 1 - probabilities)
    else:
        given = np.take_along_axis(probabilities, targets[:, None], axis=1)[:, 0]
    return float(-np.mean(np.log(np.maximum(given, np.finfo(np.float32).tiny))))


def rmse(predictions: Float[Array | np.ndarray, " m"], targets: np.ndarray) -> float:
    """Root of the mean squared error."""
    difference = np.asarray(predictions, np.float64) - np.asarray(targets, np.float64)
    return float(np.sqrt(np.mean(difference**2)))


class Predictive(NamedTuple):
    """A metric of the mean prediction that tuners can judge by: ``loss(predictions, targets)``, lower is better."""

    task: str
    loss: Callable


PREDICTIVE = {
    "log-loss": Predictive("classification", log_loss),
    "accuracy": Predictive(
        "classification", lambda probabilities, targets: 1 - accuracy(probabilities, targets)
    ),
    "ece": Predictive("classification", ece),
    "mce": Predictive("classification", mce),
    "rmse": Predictive("regression", rmse),
}
"""By the name that tuners use."""
