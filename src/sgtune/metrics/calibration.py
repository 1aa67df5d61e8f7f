"""Calibration errors: the difference of confidence and accuracy (Guo et al. 2017; paper Sects. 3.3.3, 4.3)."""

import numpy as np
from jaxtyping import Array, Float, Shaped

from sgtune.support.errors import InputError

__all__ = [
    "check_classes",
    "check_targets",
    "class_probabilities",
    "ece",
    "ece_published",
    "mce",
    "mce_published",
]

BINS, BINS_PUBLISHED = 15, 10


def check_targets(
    predictions: Shaped[Array | np.ndarray, "m ..."], targets: np.ndarray
) -> Shaped[np.ndarray, " m"]:
    """``targets`` if there is one for each prediction.

    Raises:
        InputError: another shape, or predictions of shape ``(m, 1)`` in place of ``(m,)``: NumPy would broadcast
            them, or take the single column for the only class, and the metric would be wrong.
    """
    shape = np.shape(predictions)
    if len(shape) > 1 and shape[1] < 2:
        raise InputError(
            f"predictions: shape {shape} is not allowed; it must be {shape[:1]}, or have a column for each class"
        )
    wanted, targets = shape[:1], np.asarray(targets)
    if targets.shape != wanted or wanted == (0,):
        raise InputError(
            f"targets: shape {targets.shape} is not allowed; it must be {wanted}, one for each prediction, at least one"
        )
    return targets


def check_classes(probabilities: Float[Array | np.ndarray, "m ..."], targets: np.ndarray) -> np.ndarray:
    """The targets of a classification as integers.

    Raises:
        InputError: as `check_targets`; or a target is not the number of a class, from 0.
    """
    targets, shape = check_targets(probabilities, targets), np.shape(probabilities)
    n_classes = shape[1] if len(shape) > 1 else 2
    known = np.isin(targets, np.arange(n_classes))
    if not known.all():
        raise InputError(
            f"targets: {targets[~known][0]} is not allowed; it must be an integer from 0 to {n_classes - 1}"
        )
    return targets.astype(int)


def class_probabilities(probabilities: Float[Array | np.ndarray, "m ..."]) -> Float[np.ndarray, "m c"]:
    """Probabilities of all classes, in float64.

    Args:
        probabilities: of all classes, ``(m, classes)``, which is returned as it is, or P(y = 1), ``(m,)``.

    Returns:
        (m, classes); for P(y = 1) the columns are P(y = 0) and P(y = 1).
    """
    probabilities = np.asarray(probabilities, np.float64)
    return np.stack([1 - probabilities, probabilities], axis=1) if probabilities.ndim == 1 else probabilities


def ece(probabilities: Float[Array | np.ndarray, "m ..."], targets: np.ndarray) -> float:
    """Expected calibration error: the mean of |accuracy - confidence| over the bins, weighted by their data.

    The confidence of a datum is the probability of its most probable class. There are 15 equal bins on [0, 1]; each
    includes its upper and excludes its lower edge (Guo et al. 2017).

    Args:
        probabilities: of all classes, ``(m, classes)``, or P(y = 1), ``(m,)``.
        targets: the true classes, integers from 0.

    Returns:
        A number in [0, 1].

    Raises:
        InputError: there is not one target for each prediction.
    """
    gaps, shares = _gaps(probabilities, targets)
    return float(gaps @ shares)


def mce(probabilities: Float[Array | np.ndarray, "m ..."], targets: np.ndarray) -> float:
    """Maximum calibration error: the largest |accuracy - confidence| of a bin that has data (Guo et al. 2017).

    Bins, arguments and errors as for `ece`.
    """
    return float(_gaps(probabilities, targets)[0].max())


def ece_published(log_probabilities: Float[Array | np.ndarray, "m c"], targets: np.ndarray) -> float:
    """The ECE of the paper's code, from log-probabilities averaged over the draws.

    Confidence is the exponential of the largest averaged log-probability: a geometric mean, whose sum over the classes
    is below 1. There are 10 equal bins between the smallest and the largest confidence; each includes its lower and
    excludes its upper edge. The largest confidence is in no bin, although its datum counts in the weights. NaN if no
    datum is in a bin.

    Raises:
        InputError: there is not one target for each prediction.
    """
    gaps, shares = _gaps_published(log_probabilities, targets)
    return float(gaps @ shares) if len(gaps) else float("nan")


def mce_published(log_probabilities: Float[Array | np.ndarray, "m c"], targets: np.ndarray) -> float:
    """The MCE of the paper's code: the largest |accuracy - confidence| of a bin that has data; NaN if none has.

    Bins, arguments and errors as for `ece_published`.
    """
    gaps, _ = _gaps_published(log_probabilities, targets)
    return float(gaps.max()) if len(gaps) else float("nan")


def _gaps(probabilities: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    targets, probabilities = check_classes(probabilities, targets), class_probabilities(probabilities)
    confidence, is_right = probabilities.max(axis=1), probabilities.argmax(axis=1) == targets
    inner_edges = np.linspace(0, 1, BINS + 1)[1:-1]
    return _per_bin(confidence, is_right, np.searchsorted(inner_edges, confidence, side="left"))


def _gaps_published(log_probabilities: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    targets = check_classes(log_probabilities, targets)
    log_probabilities = np.asarray(log_probabilities, np.float64)
    confidence = np.exp(log_probabilities.max(axis=1))
    is_right = log_probabilities.argmax(axis=1) == targets
    edges = np.linspace(confidence.min(), confidence.max(), BINS_PUBLISHED + 1)
    is_in = confidence < edges[-1]
    bins = np.searchsorted(edges, confidence[is_in], side="right") - 1
    gaps, shares = _per_bin(confidence[is_in], is_right[is_in], bins)
    return gaps, shares * np.mean(is_in)


def _per_bin(confidence: np.ndarray, is_right: np.ndarray, bins: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """|accuracy - confidence| of each bin that has data, and its share of them."""
    counts = np.bincount(bins)
    gaps = np.abs(np.bincount(bins, is_right) - np.bincount(bins, confidence))
    has_data = counts > 0
    return gaps[has_data] / counts[has_data], counts[has_data] / max(1, len(bins))
