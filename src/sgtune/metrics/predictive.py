"""Metrics of predictions, given the true targets."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Array, Float

from sgtune.metrics.calibration import class_probabilities, ece, mce

__all__ = ["PREDICTIVE", "Predictive", "accuracy", "brier", "log_loss", "rmse"]


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


def brier(probabilities: Float[Array | np.ndarray, "m ..."], targets: np.ndarray) -> float:
    """Brier score: the mean over test data of the squared distance, over all classes, between the probabilities and the
    true class's indicator. From 0 to 2 (Brier 1950); ``(m,)`` means P(y = 1), two classes.

    It is proper, and unlike the log-loss it is bounded: no single datum can outweigh the others.
    """
    errors = class_probabilities(probabilities).copy()
    errors[np.arange(len(errors)), np.asarray(targets).astype(int)] -= 1
    return float(np.mean(np.sum(errors**2, axis=1)))


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
    "brier": Predictive("classification", brier),
    "ece": Predictive("classification", ece),
    "mce": Predictive("classification", mce),
    "rmse": Predictive("regression", rmse),
}
"""Metrics by the names that tuners use."""
