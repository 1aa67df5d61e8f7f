"""How good a chain is: against a reference, and in its predictions."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sgtune.errors import InputError
from sgtune.models.base import Model

__all__ = ["PREDICTIVE", "accuracy", "log_loss", "mean_prediction", "relative_sd_error"]


def relative_sd_error(sd: Float[np.ndarray, " d"], reference_sd: Float[np.ndarray, " d"]) -> float:
    """xi = |sd - reference_sd|_2 / |reference_sd|_2 (paper Sect. 4.1); infinite if ``sd`` is not finite.

    Raises:
        InputError: the shapes differ, or the reference is not finite and positive.
    """
    sd, reference_sd = np.asarray(sd, np.float64), np.asarray(reference_sd, np.float64)
    if sd.shape != reference_sd.shape:
        raise InputError(
            f"sd: shape {sd.shape} against {reference_sd.shape} of reference_sd; they must agree"
        )
    if not (np.isfinite(reference_sd).all() and (reference_sd > 0).all()):
        raise InputError("reference_sd: every entry must be finite and > 0")
    error = np.linalg.norm(sd - reference_sd) / np.linalg.norm(reference_sd)
    return float(error) if np.isfinite(error) else float("inf")


@partial(jax.jit, static_argnums=(0, 1))
def _mean_prediction(predict, unravel, draws, weights, inputs):
    def add(total, row):
        draw, weight = row
        return total + weight * predict(unravel(draw), inputs), None

    zeros = jax.tree.map(
        lambda leaf: jnp.zeros(leaf.shape, leaf.dtype),
        jax.eval_shape(lambda d: predict(unravel(d), inputs), draws[0]),
    )
    return jax.lax.scan(add, zeros, (draws, weights))[0]


def mean_prediction(model: Model, draws: Float[np.ndarray, "n d"], chunk: int = 64) -> Float[Array, "m ..."]:
    """The posterior predictive mean at the test inputs, averaged over ``draws`` one by one.

    Memory is that of one prediction; the number of draws is filled up to a multiple of ``chunk``, so one compiled
    program serves all.
    """
    unravel = model.cache.setdefault("unravel", model.unravel)
    total = None
    inputs = jax.tree.map(jnp.asarray, model.test_data["inputs"])
    for start in range(0, len(draws), chunk):
        rows = draws[start : start + chunk]
        weights = np.zeros(chunk, np.float32)
        weights[: len(rows)] = 1.0 / len(draws)
        filled = np.concatenate([rows, np.repeat(rows[-1:], chunk - len(rows), axis=0)])
        part = _mean_prediction(model.predict, unravel, filled, weights, inputs)
        total = part if total is None else total + part
    return total


def accuracy(probabilities: Float[Array, "m ..."], targets: np.ndarray) -> float:
    """Share of test data whose most probable class is theirs; ``(m,)`` means P(y = 1)."""
    probabilities, targets = np.asarray(probabilities), np.asarray(targets)
    predicted = probabilities > 0.5 if probabilities.ndim == 1 else probabilities.argmax(axis=1)
    return float(np.mean(predicted == targets))


def log_loss(probabilities: Float[Array, "m ..."], targets: np.ndarray) -> float:
    """Mean of -log of the probability given to the true class."""
    probabilities, targets = np.asarray(probabilities, np.float64), np.asarray(targets).astype(int)
    if probabilities.ndim == 1:
        given = np.where(targets == 1, probabilities, 1 - probabilities)
    else:
        given = np.take_along_axis(probabilities, targets[:, None], axis=1)[:, 0]
    return float(-np.mean(np.log(np.maximum(given, np.finfo(np.float32).tiny))))


PREDICTIVE = {"log-loss": log_loss}
"""Lower is better, for tuning."""
