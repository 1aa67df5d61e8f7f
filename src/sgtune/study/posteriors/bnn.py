"""A Bayesian neural network for images of digits (paper Sect. 4.3, App. B.3.1; Chen et al. 2014)."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from sgtune.model import Model, define_model
from sgtune.study.posteriors import mnist

__all__ = ["N_HIDDEN", "from_arrays", "load"]

N_HIDDEN = 100
N_CLASSES = 10


def log_prior(position: dict) -> jax.Array:
    """N(0, 1) for every weight and bias, up to a constant."""
    return -0.5 * sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(position))


def logits(position: dict, inputs: jax.Array | np.ndarray) -> jax.Array:
    """softmax(x B + b) A + a, of pixels from 0 to 255 scaled to [0, 1]: ``(n, 10)``. The hidden layer is a
    softmax, as the paper prints it (its Eq. B1)."""
    hidden = jax.nn.softmax((jnp.asarray(inputs, jnp.float32) / 255) @ position["B"] + position["b"])
    return hidden @ position["A"] + position["a"]


def log_likelihood(position: dict, batch: dict) -> jax.Array:
    """log p(y | x) of each image: ``(n,)``."""
    log_probabilities = jax.nn.log_softmax(logits(position, batch["image"]))
    return jnp.take_along_axis(log_probabilities, batch["label"][:, None].astype(jnp.int32), axis=1)[:, 0]


def predict(position: dict, inputs: jax.Array | np.ndarray) -> jax.Array:
    """Class probabilities of each image: ``(n, 10)``."""
    return jax.nn.softmax(logits(position, inputs))


def as_test(rows: dict) -> dict:
    """Training rows in the form of test data."""
    return {"inputs": rows["image"], "targets": rows["label"]}


def from_arrays(
    images: np.ndarray,
    labels: np.ndarray,
    *,
    test_data: dict | None = None,
    n_hidden: int = N_HIDDEN,
    data_dir: str | Path | None = None,
    shuffle_seed: int | None = 0,
    checksum: str | None = None,
) -> Model:
    """The network for ``images`` (N, pixels) uint8 and ``labels`` (N,) from 0 to 9."""
    images = np.asarray(images, np.uint8)
    n_pixels = images.shape[1]
    shapes = {"A": (n_hidden, N_CLASSES), "B": (n_pixels, n_hidden), "a": (N_CLASSES,), "b": (n_hidden,)}

    def init(key: jax.Array) -> dict:
        keys = dict(zip(shapes, jax.random.split(key, len(shapes)), strict=True))
        return {name: jax.random.normal(keys[name], shape) for name, shape in shapes.items()}

    return define_model(
        "bnn",
        log_prior=log_prior,
        log_likelihood=log_likelihood,
        data={"image": images, "label": np.asarray(labels, np.uint8)},
        init=init,
        predict=predict,
        test_data=test_data,
        as_test=as_test,
        data_dir=data_dir,
        shuffle_seed=shuffle_seed,
        checksum=checksum,
    )


def load(data_dir: str | Path) -> Model:
    """MNIST from ``data_dir/bnn``; test images stay on the disk until they are used.

    Raises:
        DataError: a file is missing, truncated, or of another dtype or shape.
    """
    arrays = mnist.load(data_dir)
    test_data = {"inputs": arrays["test_images"], "targets": arrays["test_labels"]}
    return from_arrays(
        arrays["train_images"],
        arrays["train_labels"],
        test_data=test_data,
        n_hidden=arrays["n_hidden"] or N_HIDDEN,
        data_dir=data_dir,
        shuffle_seed=None,
        checksum=arrays["checksum"],
    )
