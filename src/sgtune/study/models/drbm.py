"""The discriminative restricted Boltzmann machine (Larochelle and Bengio 2008; Shang et al. 2015, Sect. 4.3)."""

from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sgtune.model import Model, define_model
from sgtune.study.data import classification

__all__ = ["from_arrays", "load"]

START_SD = 0.1

MOST_FACTORS = 100
"""Factors from 1 to 2 whose product float32 holds: 2^100."""


def log_prior(position: dict) -> jax.Array:
    """N(0, 1) for every weight and bias, up to a constant; the paper names no prior for this model."""
    return -0.5 * sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(position))


@jax.custom_jvp
def sum_softplus(z: Float[Array, "H *rest"]) -> Float[Array, "*rest"]:
    """sum_j log(1 + exp(z_j)) over the first axis; its derivative is taken as sigmoid(z_j).

    The sum is sum_j max(z_j, 0) + log prod_j (1 + exp(-|z_j|)): one logarithm for 100 hidden units, not one each.
    """
    return _value_and_slopes(z)[0]


def _value_and_slopes(z: jax.Array) -> tuple[jax.Array, jax.Array]:
    small = jnp.exp(-jnp.abs(z))
    factors = 1 + small
    logs = sum(
        jnp.log(jnp.prod(factors[start : start + MOST_FACTORS], axis=0))
        for start in range(0, len(z), MOST_FACTORS)
    )
    return jnp.sum(jnp.maximum(z, 0), axis=0) + logs, jnp.where(z >= 0, 1, small) / factors


@sum_softplus.defjvp
def _sum_softplus_jvp(primals, tangents):
    value, slopes = _value_and_slopes(*primals)
    return value, jnp.sum(slopes * tangents[0], axis=0)


def logits(position: dict, inputs: Float[Array, "n F"]) -> Float[Array, "K n"]:
    """log p(y | x) + const(x) = d_y + sum_j log(1 + exp(c_j + U_jy + W_j x)), the hidden units summed out.

    Memory: H K n numbers, as inputs are the last axis, along which a CPU's vectors run.
    """
    activations = position["W"] @ inputs.T + position["c"][:, None]
    return position["d"][:, None] + sum_softplus(activations[:, None, :] + position["U"][:, :, None])


def log_likelihood(position: dict, batch: dict) -> Float[Array, " n"]:
    """log p(y | x) of each row: ``(n,)``."""
    log_probabilities = jax.nn.log_softmax(logits(position, batch["inputs"]), axis=0)
    return jnp.take_along_axis(log_probabilities, batch["label"][None].astype(jnp.int32), axis=0)[0]


def predict(position: dict, inputs: jax.Array | np.ndarray) -> jax.Array:
    """Class probabilities of each row: ``(n, K)``."""
    return jax.nn.softmax(logits(position, jnp.asarray(inputs)), axis=0).T


def as_test(rows: dict) -> dict:
    """Training rows in the form of test data."""
    return {"inputs": rows["inputs"], "targets": rows["label"]}


def _init(key: jax.Array, *, shapes: dict) -> dict:
    """N(0, 0.01): near 0, where all classes are alike, but no two hidden units are."""
    keys = dict(zip(shapes, jax.random.split(key, len(shapes)), strict=True))
    return {name: START_SD * jax.random.normal(keys[name], shape) for name, shape in shapes.items()}


def from_arrays(
    inputs: np.ndarray,
    labels: np.ndarray,
    *,
    n_hidden: int,
    n_classes: int,
    name: str = "drbm",
    test_data: dict | None = None,
    data_dir: str | Path | None = None,
    shuffle_seed: int | None = 0,
    checksum: str | None = None,
) -> Model:
    """The model of ``inputs`` (N, F) float32 and ``labels`` (N,) from 0 to ``n_classes`` - 1.

    A position is W (H, F), U (H, K), c (H,) and d (K,): H (F + K + 1) + K parameters. p(y | x) stays the same if a
    constant is added to d, or hidden units change places: only the prior tells such positions apart.
    """
    inputs = np.asarray(inputs, np.float32)
    shapes = {
        "W": (n_hidden, inputs.shape[1]),
        "U": (n_hidden, n_classes),
        "c": (n_hidden,),
        "d": (n_classes,),
    }
    return define_model(
        name,
        log_prior=log_prior,
        log_likelihood=log_likelihood,
        data={"inputs": inputs, "label": np.asarray(labels, np.uint8)},
        init=partial(_init, shapes=shapes),
        predict=predict,
        test_data=test_data,
        as_test=as_test,
        data_dir=data_dir,
        shuffle_seed=shuffle_seed,
        checksum=checksum,
    )


def load(data_dir: str | Path, name: str) -> Model:
    """The model ``drbm-{name}`` of the set ``name`` from ``data_dir/{name}``, with the paper's hidden units (Table 2).

    Raises:
        InputError: no such set.
        DataError: a file is missing, truncated, or of another dtype or shape.
    """
    arrays = classification.load(data_dir, name)
    entry = classification.SETS[name]
    return from_arrays(
        arrays["train_inputs"],
        arrays["train_labels"],
        n_hidden=entry.n_hidden,
        n_classes=entry.n_classes,
        name=f"drbm-{name}",
        test_data={"inputs": arrays["test_inputs"], "targets": arrays["test_labels"]},
        data_dir=data_dir,
        shuffle_seed=None,
        checksum=arrays["checksum"],
    )
