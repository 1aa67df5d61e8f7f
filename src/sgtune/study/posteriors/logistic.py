"""Bayesian logistic regression (paper Sect. 4.1, App. B.1.1), and its simulated data set: the paper's own."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from sgtune.model import Model, define_model, log_sigmoid
from sgtune.study.posteriors.store import StoredSet, load_stored
from sgtune.support.machine import full_precision

PRIOR_VARIANCE = 10.0
CORRELATION = 0.4
DATA = StoredSet(
    "the rule simulate_logistic",
    {
        "true_position": (np.float32, ("dimension",)),
        "train_inputs": (np.float32, ("n_train", "dimension")),
        "train_targets": (np.uint8, ("n_train",)),
        "test_inputs": (np.float32, ("n_test", "dimension")),
        "test_targets": (np.uint8, ("n_test",)),
    },
    # The rows are independent draws, in random order already.
    training=("train_inputs", "train_targets"),
)
"""The files of the simulated set: the arrays of `simulate`."""


@full_precision
def simulate(
    n_rows: int = 1_000_000, n_train: int = 800_000, dimension: int = 10, seed: int = 42
) -> dict[str, np.ndarray]:
    """The simulated set, the arrays of `DATA`; with the defaults it is the published study's, up to the last bits of
    the inputs, which depend on the processor.

    theta_true ~ N(0, 10 I); X = Z C with Z standard normal and C the lower Cholesky factor of the matrix with
    entries (2 rho u - rho)^|i - j|, rho = 0.4, one uniform u for all entries;
    y_i ~ Bernoulli(sigmoid(x_i' theta)).
    (Z C does not have the covariance C C', which Z C' would have; the published data were made this way.)
    """
    # The study ran on a JAX whose random bits are those that this flag gives when off.
    with jax.threefry_partitionable(False):
        key_targets, key_position, key_correlation, key_inputs = jax.random.split(jax.random.PRNGKey(seed), 4)
        position = jnp.sqrt(PRIOR_VARIANCE) * jax.random.normal(key_position, (dimension,))
        base = 2 * CORRELATION * jax.random.uniform(key_correlation) - CORRELATION
        index = jnp.arange(dimension)
        covariance = base ** jnp.abs(index[:, None] - index[None, :])
        inputs = jax.random.normal(key_inputs, (n_rows, dimension)) @ jnp.linalg.cholesky(covariance)
        probability = jax.nn.sigmoid(inputs @ position)
        targets = jax.vmap(jax.random.bernoulli)(jax.random.split(key_targets, n_rows), probability)
    inputs, targets = np.asarray(inputs), np.asarray(targets).astype(np.uint8)
    return {
        "train_inputs": inputs[:n_train],
        "train_targets": targets[:n_train],
        "test_inputs": inputs[n_train:],
        "test_targets": targets[n_train:],
        "true_position": np.asarray(position),
    }


@cache
def log_prior(variance: float) -> Callable[[jax.Array], jax.Array]:
    """Of N(0, variance I), up to a constant; one function for each variance, so that models share programs."""
    return lambda position: -0.5 / variance * position @ position


def log_likelihood(position: jax.Array, batch: dict) -> jax.Array:
    """log p(y_i | x_i, position) = log sigmoid(s_i x_i' position) with s_i = 2 y_i - 1: ``(n,)``.

    The rows come as s_i x_i. The product is written position @ X' because XLA's CPU kernels for that order are
    2 to 4 times as fast when arms run in lockstep.
    """
    return log_sigmoid(position @ batch["signed_inputs"].T)


def predict(position: jax.Array, inputs: jax.Array) -> jax.Array:
    """P(y = 1 | x): ``(n,)``."""
    return jax.nn.sigmoid(position @ inputs.T)


def as_test(rows: dict) -> dict:
    """The probability of 1 given a signed row is the probability of the row's own class, so all targets are 1."""
    return {"inputs": rows["signed_inputs"], "targets": np.ones(len(rows["signed_inputs"]), np.uint8)}


def from_arrays(
    inputs, targets, *, name: str = "logistic", prior_variance: float = PRIOR_VARIANCE, **options
) -> Model:
    """Logistic regression without an intercept on ``inputs`` (N, D), float32, and ``targets`` (N,) of 0 and 1.

    ``options`` are those of `sgtune.define_model`.
    """
    # NumPy's arithmetic: JAX would compile a program for each operation.
    inputs, signs = np.asarray(inputs, np.float32), 2 * np.asarray(targets, np.float32) - 1
    dimension = inputs.shape[1]
    return define_model(
        name,
        log_prior=log_prior(prior_variance),
        log_likelihood=log_likelihood,
        data={"signed_inputs": inputs * signs[:, None]},
        init=lambda key: jnp.sqrt(prior_variance) * jax.random.normal(key, (dimension,)),
        predict=predict,
        as_test=as_test,
        **options,
    )


def load(data_dir: str | Path) -> Model:
    """The paper's simulated set from ``data_dir/logistic``, as of `sgtune.study.posteriors.store.load_stored`."""
    return load_stored(DATA, Path(data_dir) / "logistic.json", from_arrays)
