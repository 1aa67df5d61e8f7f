"""N(0, I) as a posterior of N data, in any dimension, and a density on the line with bounded gradients."""

import jax
import jax.numpy as jnp
import numpy as np

from sgtune.mode.find import MapResult
from sgtune.model import Model, define_model
from sgtune.support.errors import check_integer
from sgtune.support.randomness import named_seed

__all__ = ["logistic_density_model", "standard_normal"]


def standard_normal(dimension: int, n_data: int = 1, seed: int = 0) -> Model:
    """N data y_j with the log-likelihood -|theta - y_j|^2 / (2 N), a flat prior, and the posterior N(0, I).

    The y_j have mean 0 and sd sqrt(N) in every coordinate: the gradient of a minibatch of n has noise of sd
    sqrt((N / n) (N - n) / (N - 1)). One datum is 0, and has no noise. Data: 4 N D bytes. The mode is given.

    Raises:
        InputError: a size is less than 1.
    """
    check_integer("dimension", dimension, at_least=1)
    check_integer("n_data", n_data, at_least=1)
    rows = np.zeros((n_data, dimension))
    if n_data > 1:
        rows = np.random.default_rng(named_seed(seed, "adam_mcmc", dimension, n_data)).standard_normal(
            (n_data, dimension)
        )
        rows -= rows.mean(axis=0)
        rows *= np.sqrt(n_data) / rows.std(axis=0)
    model = define_model(
        f"standard-normal-{dimension}",
        log_prior=_flat,
        log_likelihood=_log_likelihood,
        data={"y": (rows / n_data).astype(np.float32), "share": np.full(n_data, 1 / n_data, np.float32)},
        init=lambda key: jax.random.normal(key, (dimension,)),
        shuffle_seed=None,
    )
    return _with_mode_at_zero(model)


def logistic_density_model() -> Model:
    """pi(x) = exp(-x) / (1 + exp(-x))^2 on the line: |grad log pi| < 1, as Theorem 2 asks, and P(X <= x) is known."""
    model = define_model(
        "logistic-density",
        log_prior=_flat,
        log_likelihood=_log_logistic,
        data=np.zeros(1, np.float32),
        init=lambda key: jax.random.normal(key, (1,)),
        shuffle_seed=None,
    )
    return _with_mode_at_zero(model)


def _log_likelihood(position, batch):
    return batch["y"] @ position - 0.5 * batch["share"] * jnp.sum(position**2)


def _log_logistic(position, batch):
    return batch - 2 * jnp.logaddexp(position[0] / 2, -position[0] / 2)


def _flat(position):
    return jnp.zeros(())


def _with_mode_at_zero(model: Model) -> Model:
    model.found.mode = MapResult(
        position=jnp.zeros(model.dimension, jnp.float32),
        gradient_norm=0.0,
        distance=0.0,
        converged=True,
        steps=0,
        negative_log_posterior=0.0,
    )
    return model
