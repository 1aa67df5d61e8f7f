"""Predictions averaged over draws, and the metrics computed from them.

One pass over the draws computes all averages; it needs memory for a few predictions, for any number of draws.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from sgtune.metrics.calibration import ece, ece_published, mce, mce_published
from sgtune.metrics.ood import ENTROPY_FACTS, compare_entropies
from sgtune.metrics.predictive import accuracy, brier, log_loss, rmse
from sgtune.model import Model
from sgtune.model.positions import check_position, flatten, from_matrix
from sgtune.support.errors import InputError, check_choice
from sgtune.support.machine import full_precision

__all__ = [
    "at_position",
    "average_predictions",
    "can_predict",
    "mean_prediction",
    "ood_metrics",
    "predictive_metrics",
    "predictive_names",
]


CHUNK = 64
"""Draws that a compiled program takes at a time; it stops at the last one, so padding costs nothing."""


def _mean(prediction: Array, targets: PyTree) -> dict:
    return {"mean": prediction}


def _mean_and_log(prediction: Array, targets: Array) -> dict:
    classes = jnp.stack([1 - prediction, prediction], axis=1) if prediction.ndim == 1 else prediction
    return {"mean": prediction, "mean_log": jnp.log(jnp.maximum(classes, jnp.finfo(jnp.float32).tiny))}


def _mean_and_squared_error(prediction: Array, targets: Array) -> dict:
    return {"mean": prediction, "mean_squared_error": jnp.mean((prediction - targets) ** 2)}


class _Task(NamedTuple):
    """What is averaged over the draws, and the metrics of these averages."""

    summarise: Callable
    metrics: dict[str, Callable]


TASKS = {
    "classification": _Task(
        _mean_and_log,
        {
            "accuracy": lambda averages, targets: accuracy(averages["mean"], targets),
            "log_loss": lambda averages, targets: log_loss(averages["mean"], targets),
            "brier": lambda averages, targets: brier(averages["mean"], targets),
            "ece": lambda averages, targets: ece(averages["mean"], targets),
            "mce": lambda averages, targets: mce(averages["mean"], targets),
            "ece_published": lambda averages, targets: ece_published(averages["mean_log"], targets),
            "mce_published": lambda averages, targets: mce_published(averages["mean_log"], targets),
        },
    ),
    "regression": _Task(
        _mean_and_squared_error,
        {
            "rmse": lambda averages, targets: rmse(averages["mean"], targets),
            # Table 8's "RMSE": single draws' mean squared errors, averaged, without a root.
            "rmse_published": lambda averages, targets: float(averages["mean_squared_error"]),
        },
    ),
}


@partial(jax.jit, static_argnums=(0, 1))
@full_precision
def _sum_over_draws(predict, summarise, positions, n, inputs, targets):
    """Sums over the first ``n`` of ``positions``."""

    def of(i):
        position = jax.tree.map(lambda leaf: leaf[i], positions)
        return summarise(predict(position, inputs), targets)

    zeros = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), jax.eval_shape(of, 0))
    return jax.lax.fori_loop(0, n, lambda i, total: jax.tree.map(jnp.add, total, of(i)), zeros)


def _average(
    model: Model, draws: np.ndarray, inputs: PyTree, targets: PyTree, summarise: Callable
) -> dict[str, np.ndarray]:
    """Averages over ``draws``: float32 within a chunk, float64 over the chunks."""
    draws = np.asarray(draws)
    if draws.ndim != 2 or len(draws) == 0:
        raise InputError(f"draws: shape {draws.shape} is not allowed; it must be (n >= 1, {model.dimension})")
    inputs = jax.tree.map(jnp.asarray, inputs)
    total = None
    for start in range(0, len(draws), CHUNK):
        rows = draws[start : start + CHUNK]
        filled = np.pad(rows, ((0, CHUNK - len(rows)), (0, 0)))
        sums = _sum_over_draws(
            model.predict, summarise, from_matrix(model, filled), len(rows), inputs, targets
        )
        sums = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), sums)
        total = sums if total is None else jax.tree.map(np.add, total, sums)
    return jax.tree.map(lambda leaf: leaf / len(draws), total)


def _task(model: Model) -> _Task:
    return TASKS[check_choice("task", model.task, TASKS)]


def can_predict(model: Model) -> bool:
    """Whether the model has ``test_data`` and a function ``predict``, which `predictive_metrics` needs."""
    return model.predict is not None and model.test_data is not None


def _check_can_predict(model: Model) -> None:
    if not can_predict(model):
        raise InputError(f"model: {model.name!r} makes no predictions; it needs predict and test_data")


def average_predictions(model: Model, draws: Float[np.ndarray, "n d"]) -> dict[str, np.ndarray]:
    """Averages over ``draws`` at the test inputs, in float64.

    ``mean``: the posterior predictive mean, or probability, in the shape of ``model.predict``. Classification:
    ``mean_log``, the mean of the log-probabilities, ``(m, classes)``. Regression: ``mean_squared_error``, the mean over
    draws of each draw's mean squared error.

    Raises:
        InputError: the model has no test data, or does not predict; or there are no draws (n, D).
    """
    _check_can_predict(model)
    inputs, targets = model.test_data["inputs"], jnp.asarray(model.test_data["targets"])
    return _average(model, draws, inputs, targets, _task(model).summarise)


def mean_prediction(model: Model, draws: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "m ..."]:
    """The posterior predictive mean at the test inputs, ``(m, ...)`` as ``model.predict`` has it.

    Raises:
        InputError: the model has no test data, or does not predict; or there are no draws (n, D).
    """
    _check_can_predict(model)
    return _average(model, draws, model.test_data["inputs"], (), _mean)["mean"]


def predictive_names(model: Model) -> tuple[str, ...]:
    """The metrics that `predictive_metrics` gives for this model, by its task; none if it does not predict."""
    return tuple(_task(model).metrics) if can_predict(model) else ()


def predictive_metrics(
    model: Model, draws: Float[np.ndarray, "n d"], averages: dict | None = None
) -> dict[str, float]:
    """Metrics of the predictions averaged over ``draws``, by the model's task; {} if it does not predict.

    Classification: accuracy, log_loss, brier, ece, mce, ece_published, mce_published. Regression: rmse, rmse_published.
    NaN if there are no draws, or not all are finite.

    Args:
        averages: `average_predictions` of these draws, if the caller has them.
    """
    if not can_predict(model):
        return {}
    if not _usable(draws):
        return dict.fromkeys(predictive_names(model), float("nan"))
    averages = average_predictions(model, draws) if averages is None else averages
    return {
        name: measure(averages, model.test_data["targets"]) for name, measure in _task(model).metrics.items()
    }


def ood_metrics(model: Model, draws: Float[np.ndarray, "n d"], averages: dict | None = None) -> dict | None:
    """Entropies at the test inputs against those out of distribution: `compare_entropies`, ``name``, ``missing``.

    They are ``model.test_data["ood"]``: a dict with ``name``, ``inputs`` as `predict` takes them, or None, and
    ``missing``, the reason for None. None if the model, a classification, has no such entry; ``name`` and ``missing``
    if inputs are missing. All else is None if there are no draws, or not all are finite.

    Args:
        averages: `average_predictions` of these draws, where they are at hand.

    Raises:
        InputError: the entry lacks one of the three.
    """
    ood = model.test_data.get("ood") if can_predict(model) else None
    if ood is None:
        return None
    if not isinstance(ood, Mapping) or not {"name", "inputs", "missing"} <= set(ood):
        raise InputError(f"test_data: ood of model {model.name!r} needs a dict with name, inputs and missing")
    if ood["inputs"] is None:
        return {"name": ood["name"], "missing": ood["missing"]}
    if not _usable(draws):
        return {"name": ood["name"], "missing": None, **dict.fromkeys(ENTROPY_FACTS)}
    at_test = mean_prediction(model, draws) if averages is None else averages["mean"]
    elsewhere = _average(model, draws, ood["inputs"], (), _mean)["mean"]
    return {"name": ood["name"], "missing": None, **compare_entropies(at_test, elsewhere)}


def at_position(model: Model, position: PyTree) -> dict[str, float]:
    """`predictive_metrics` of the predictions at one position, for example at the MAP.

    Args:
        position: a pytree as ``model.init`` gives.

    Returns:
        The same metrics; {} if the model does not predict.

    Raises:
        InputError: the position is of another shape.
    """
    return predictive_metrics(model, flatten(check_position("position", model, position))[None])


def _usable(draws: np.ndarray) -> bool:
    return len(draws) > 0 and bool(np.isfinite(draws).all())
