"""Bayesian logistic regression of nines against sevens (Shang et al. 2015, Sect. 4.2)."""

from pathlib import Path

import jax
import numpy as np

from sgtune.model import Model, define_model
from sgtune.study.data import classification
from sgtune.study.models.logistic import as_test, log_likelihood, predict

__all__ = ["from_arrays", "load"]


def log_prior(position: jax.Array) -> jax.Array:
    """N(0, I), up to a constant."""
    return -0.5 * position @ position


def from_arrays(
    inputs: np.ndarray,
    labels: np.ndarray,
    *,
    test_data: dict | None = None,
    data_dir: str | Path | None = None,
    shuffle_seed: int | None = 0,
    checksum: str | None = None,
) -> Model:
    """Logistic regression without an intercept, as the paper's likelihood 1 / (1 + exp(-y w' x)) has none.

    Args:
        inputs: (N, D) float32.
        labels: (N,) of 0 (y = -1) and 1 (y = 1).
    """
    inputs, signs = np.asarray(inputs, np.float32), 2 * np.asarray(labels, np.float32) - 1
    dimension = inputs.shape[1]
    return define_model(
        "mnist79",
        log_prior=log_prior,
        log_likelihood=log_likelihood,
        data={"signed_inputs": inputs * signs[:, None]},
        init=lambda key: jax.random.normal(key, (dimension,)),
        predict=predict,
        test_data=test_data,
        as_test=as_test,
        data_dir=data_dir,
        shuffle_seed=shuffle_seed,
        checksum=checksum,
    )


def load(data_dir: str | Path) -> Model:
    """Projected digits from ``data_dir/mnist79``.

    Raises:
        DataError: a file is missing, truncated, or of another dtype or shape.
    """
    arrays = classification.load(data_dir, "mnist79")
    return from_arrays(
        arrays["train_inputs"],
        arrays["train_labels"],
        test_data={"inputs": arrays["test_inputs"], "targets": arrays["test_labels"]},
        data_dir=data_dir,
        shuffle_seed=None,
        checksum=arrays["checksum"],
    )
