"""A Bayesian neural network for images of digits (paper Sect. 4.3, App. B.3.1; Chen et al. 2014).

The digits are MNIST (LeCun et al. 1998), or a small simulated set in its format. Out-of-distribution images, without
digits, are a set of their own: only evaluations depend on it.
"""

from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from sgtune.model import Model, define_model
from sgtune.study.posteriors.data_sets import DATA_SETS, TEST_IMAGES, check_download, read_idx
from sgtune.study.posteriors.store import StoredSet, load_stored, reading
from sgtune.support.files import write_json

N_HIDDEN = 100
N_CLASSES = 10
SIDE = 28
N_PIXELS = SIDE**2
DATA = StoredSet(
    "the rule prepare_mnist",
    {
        "train_images": (np.uint8, ("n_train", N_PIXELS)),
        "train_labels": (np.uint8, ("n_train",)),
        "test_images": (np.uint8, ("n_test", N_PIXELS)),
        "test_labels": (np.uint8, ("n_test",)),
    },
    training=("train_images", "train_labels"),
    shuffle=True,
    facts=("n_hidden",),
)
"""The files of the digits: pixels from 0 to 255, labels from 0 to 9; and the hidden units of the network for them."""

OOD = StoredSet("the rule prepare_ood", {"images": (np.uint8, ("n", N_PIXELS))}, facts=("name",))
"""The file of the out-of-distribution images, if a source has them."""


def read_set(folder: Path) -> dict[str, np.ndarray]:
    """The arrays of MNIST's four files in ``folder``, those of `DATA`, but in the files' order."""
    arrays = {}
    for part, prefix in (("train", "train"), ("test", "t10k")):
        arrays[f"{part}_images"] = read_idx(folder / f"{prefix}-images-idx3-ubyte").reshape(-1, N_PIXELS)
        arrays[f"{part}_labels"] = read_idx(folder / f"{prefix}-labels-idx1-ubyte")
    return arrays


def simulate(n_images: int, seed: int = 0) -> dict:
    """A simulated set of ``n_images`` training images and a fifth as many test images, in the form of `read_set`.

    An image shows a blob of light, whose place on a circle depends on the digit, up to noise of a pixel. The entry
    ``ood`` has as many images of bars as there are test images, in the form of `load_ood`.
    """
    n_test = n_images // 5
    rng = np.random.default_rng(seed)
    labels = rng.integers(N_CLASSES, size=n_images + n_test).astype(np.uint8)
    angle = 2 * np.pi * labels / N_CLASSES
    centre = (SIDE - 1) / 2 + 8 * np.stack((np.cos(angle), np.sin(angle)), axis=1)
    row, column = (centre + rng.normal(size=(len(labels), 2))).T[:, :, None, None]
    grid = np.arange(SIDE)
    blobs = np.exp(-((grid[:, None] - row) ** 2 + (grid - column) ** 2) / 12)
    bars = np.cos(grid[:, None] * rng.uniform(0.5, 1.5, (n_test, 1, 1))) * np.ones(SIDE) > 0
    images, other = _pixels(blobs, rng), _pixels(bars, rng)
    return {
        "train_images": images[n_test:],
        "train_labels": labels[n_test:],
        "test_images": images[:n_test],
        "test_labels": labels[:n_test],
        "ood": {"name": "simulated", "inputs": other, "missing": None},
    }


def _pixels(light: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return (230 * light + rng.uniform(0, 25, light.shape)).astype(np.uint8).reshape(-1, N_PIXELS)


def read_ood(folder: Path) -> dict:
    """What `load_ood` returns, from the download in ``folder``; a DataError if a file is missing or damaged."""
    record = check_download(DATA_SETS[folder.name], folder)
    inputs = None if record["missing"] else read_idx(folder / TEST_IMAGES).reshape(-1, N_PIXELS)
    return {"name": record["name"], "inputs": inputs, "missing": record["missing"]}


def write_ood(path_json: str | Path, ood: dict, **facts: object) -> None:
    """What `read_ood` or `simulate` gives, as ``path_json`` and the file beside it, for `load_ood`."""
    facts |= {"name": ood["name"], "missing": ood["missing"]}
    if ood["missing"]:
        write_json(path_json, facts)
    else:
        OOD.write(path_json, {"images": ood["inputs"]}, **facts)


def load_ood(path_json: str | Path) -> dict:
    """The images of ``path_json``, mapped into memory.

    Returns:
        ``name`` of the set, ``inputs`` ((n, 784) uint8 of 0 to 255, or None) and ``missing`` (None, or why there
        are none).
    """
    with reading(Path(path_json), OOD.made_by) as facts:
        found = {"name": facts["name"], "inputs": None, "missing": facts["missing"]}
    return found if found["missing"] else found | {"inputs": OOD.read(path_json)["images"]}


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


def normal_start(key: jax.Array, *, shapes: dict[str, tuple[int, ...]], sd: float = 1.0) -> dict:
    """N(0, sd^2) for every entry of the arrays of these ``shapes``."""
    keys = dict(zip(shapes, jax.random.split(key, len(shapes)), strict=True))
    return {name: sd * jax.random.normal(keys[name], shape) for name, shape in shapes.items()}


def from_arrays(images: np.ndarray, labels: np.ndarray, *, n_hidden: int = N_HIDDEN, **options) -> Model:
    """The network for ``images`` (N, pixels) uint8 and ``labels`` (N,) from 0 to 9.

    ``options`` are those of `sgtune.define_model`.
    """
    images = np.asarray(images, np.uint8)
    shapes = {
        "A": (n_hidden, N_CLASSES),
        "B": (images.shape[1], n_hidden),
        "a": (N_CLASSES,),
        "b": (n_hidden,),
    }
    return define_model(
        "bnn",
        log_prior=log_prior,
        log_likelihood=log_likelihood,
        data={"image": images, "label": np.asarray(labels, np.uint8)},
        init=partial(normal_start, shapes=shapes),
        predict=predict,
        as_test=lambda rows: {"inputs": rows["image"], "targets": rows["label"]},
        **options,
    )


def load(data_dir: str | Path) -> Model:
    """MNIST from ``data_dir/bnn``, as of `sgtune.study.posteriors.store.load_stored`."""
    return load_stored(DATA, Path(data_dir) / "bnn.json", from_arrays)
