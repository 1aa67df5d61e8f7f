"""How good a chain is: against a reference, and in its predictions."""

from sgtune.metrics.averages import (
    at_position,
    average_predictions,
    can_predict,
    mean_prediction,
    ood_metrics,
    predictive_metrics,
    predictive_names,
)
from sgtune.metrics.calibration import class_probabilities, ece, ece_published, mce, mce_published
from sgtune.metrics.ood import auroc, compare_entropies, predictive_entropy
from sgtune.metrics.predictive import PREDICTIVE, Predictive, accuracy, brier, log_loss, rmse
from sgtune.metrics.reference import Moments, Reference, frozen_errors, moments_of, reference_errors
from sgtune.metrics.spread import (
    functional_error,
    position_blocks,
    relative_sd_error,
    relative_sd_error_by_block,
    xi_rel,
    xi_white,
)

__all__ = [
    "PREDICTIVE",
    "Moments",
    "Predictive",
    "Reference",
    "accuracy",
    "at_position",
    "auroc",
    "average_predictions",
    "brier",
    "can_predict",
    "class_probabilities",
    "compare_entropies",
    "ece",
    "ece_published",
    "frozen_errors",
    "functional_error",
    "log_loss",
    "mce",
    "mce_published",
    "mean_prediction",
    "moments_of",
    "ood_metrics",
    "position_blocks",
    "predictive_entropy",
    "predictive_metrics",
    "predictive_names",
    "reference_errors",
    "relative_sd_error",
    "relative_sd_error_by_block",
    "rmse",
    "xi_rel",
    "xi_white",
]
