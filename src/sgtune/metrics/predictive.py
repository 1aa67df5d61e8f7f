"""Metrics of predictions, given the true targets."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Array, Float

from sgtune.metrics.calibration import check_classes, check_targets, class_probabilities, ece, mce
from sgtune.support.errors import InputError

__all__ = ["PREDICTIVE", "Predictive", "accuracy", "brier", "log_loss", "rmse"]


def accuracy(probabilities: Float[Array | np.ndarray, "m ..."], targets: np.ndarray) -> float:
    """Share of test data whose most probable class is theirs.

    Args:
        probabilities: of all classes, ``(m, classes)``, or P(y = 1), ``(m,)``.
        targets: the true classes, ``(m,)``, integers from 0.

    Returns:
        A share in [0, 1]; NaN if a probability is NaN, as in all other metrics.

    Raises:
        InputError: there is not one target for each prediction, or one is no class.
    """
    probabilities, targets = np.asarray(probabilities), check_classes(probabilities, targets)
    if np.isnan(probabilities).any():
        return math.nan
    predicted = probabilities > 0.5 if probabilities.ndim == 1 else probabilities.argmax(axis=1)
    return float(np.mean(predicted == targets))


def log_loss(probabilities: Float[Array | np.ndarray, "m ..."], targets: np.ndarray) -> float:
    """Mean of -log of the probability given to the true class, in nats. Arguments and errors as for `accuracy`.

    A probability below the smallest normal float32, 1.2e-38, counts as this number.
    """
    probabilities, targets = np.asarray(probabilities, np.float64), check_classes(probabilities, targets)
    if probabilities.ndim == 1:
        given = np.where(targets == 1, probabilities, 1 - probabilities)
    else:
        given = np.take_along_axis(probabilities, targets[:, None], axis=1)[:, 0]
    return float(-np.mean(np.log(np.maximum(given, np.finfo(np.float32).tiny))))


def brier(probabilities: Float[Array | np.ndarray, "m ..."], targets: np.ndarray) -> float:
    """Brier score: the mean over test data of the squared distance, over all classes, between the probabilities and the
    true class's indicator. From 0 to 2 (Brier 1950). Arguments and errors as for `accuracy`.

    It is proper, and unlike the log-loss it is bounded: no single datum can outweigh the others.
    """
    targets, errors = check_classes(probabilities, targets), class_probabilities(probabilities).copy()
    errors[np.arange(len(errors)), targets] -= 1
    return float(np.mean(np.sum(errors**2, axis=1)))


def rmse(predictions: Float[Array | np.ndarray, "m ..."], targets: np.ndarray) -> float:
    """Root of the mean squared error, in the unit of the targets.

    Args:
        predictions: the predicted means, ``(m,)``.
        targets: the true values, ``(m,)``.

    Raises:
        InputError: the shapes differ.
    """
    targets = check_targets(predictions, targets)
    if np.ndim(predictions) != 1:
        raise InputError(
            f"predictions: shape {np.shape(predictions)} is not allowed; it must be {targets.shape}"
        )
    difference = np.asarray(predictions, np.float64) - targets.astype(np.float64)
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
