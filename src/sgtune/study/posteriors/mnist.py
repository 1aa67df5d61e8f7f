"""MNIST (LeCun et al. 1998), and a small simulated set in its format."""

from pathlib import Path

import numpy as np

from sgtune.study.posteriors.idx import read_idx
from sgtune.study.posteriors.store import check_range, read_arrays, write_arrays
from sgtune.support.errors import DataError, check_integer

__all__ = ["N_PIXELS", "SIDE", "load", "read_images", "read_labels", "read_set", "simulate", "write"]

SIDE = 28
N_PIXELS = SIDE**2
N_CLASSES = 10
ARRAYS = {
    "train_images": (np.uint8, ("n_train", N_PIXELS)),
    "train_labels": (np.uint8, ("n_train",)),
    "test_images": (np.uint8, ("n_test", N_PIXELS)),
    "test_labels": (np.uint8, ("n_test",)),
}
NAMES = tuple(ARRAYS)


def read_images(path: str | Path) -> np.ndarray:
    """The images of an idx file, ``(n, 784)`` uint8; n may be 0.

    Raises:
        DataError: the file is not a complete idx file, or its images do not have 28 x 28 pixels.
    """
    images = read_idx(path)
    if images.shape[1:] != (SIDE, SIDE):
        raise DataError(f"{path}: has items of {_times(images.shape[1:])}; expected images of 28 x 28")
    return images.reshape(-1, N_PIXELS)


def read_labels(path: str | Path) -> np.ndarray:
    """The labels of an idx file, ``(n,)`` uint8 from 0 to 9.

    Raises:
        DataError: the file is not a complete idx file of single numbers, has no labels, or has a label above 9.
    """
    labels = read_idx(path)
    if labels.ndim != 1:
        raise DataError(f"{path}: has items of {_times(labels.shape[1:])}; expected labels, single numbers")
    if not labels.size:
        raise DataError(f"{path}: holds no labels")
    check_range(Path(path), "label", labels, 0, N_CLASSES - 1)
    return labels


def _times(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape)) or "single numbers"


def read_set(folder: Path) -> dict[str, np.ndarray]:
    """The arrays of MNIST's four files in ``folder``, like `load`, but in the files' order and without a checksum.

    Raises:
        DataError: a file is missing or damaged, or the numbers of images and labels differ.
    """
    arrays = {}
    for part, prefix in (("train", "train"), ("test", "t10k")):
        path_labels = folder / f"{prefix}-labels-idx1-ubyte"
        images, labels = read_images(folder / f"{prefix}-images-idx3-ubyte"), read_labels(path_labels)
        if len(images) != len(labels):
            raise DataError(
                f"{path_labels}: has {len(labels)} labels; expected {len(images)}, one for each image beside it"
            )
        arrays |= {f"{part}_images": images, f"{part}_labels": labels}
    return arrays


def simulate(n_images: int, seed: int = 0) -> dict:
    """A simulated set of ``n_images`` training images and a fifth as many test images, in the form of `read_set`.

    An image shows a blob of light, whose place on a circle depends on the digit, up to noise of a pixel. The entry
    ``ood`` has as many images of bars as there are test images, in the form of
    `sgtune.study.posteriors.ood_images.load`.

    Raises:
        InputError: ``n_images`` is not an integer >= 10.
    """
    n_images = check_integer("data.bnn.simulated", n_images, at_least=10)
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
    noisy = 230 * light + rng.uniform(0, 25, light.shape)
    return noisy.astype(np.uint8).reshape(-1, N_PIXELS)


def write(path_json: str | Path, arrays: dict, *, made_by: str, n_hidden: int | None = None) -> None:
    """Write the digits of `read_set` or `simulate` to ``path_json`` and the files beside it, for `load`.

    Args:
        n_hidden: hidden units of the network for these digits; None for as many as it has by default.

    Raises:
        DataError: an array has another dtype or shape, or labels are outside 0 to 9.
    """
    path = Path(path_json)
    for name in ("train_labels", "test_labels"):
        check_range(path, name, arrays[name], 0, N_CLASSES - 1)
    write_arrays(
        path,
        arrays,
        ARRAYS,
        {
            "made_by": made_by,
            "n_train": len(arrays["train_labels"]),
            "n_test": len(arrays["test_labels"]),
            "n_hidden": n_hidden,
        },
        training=("train_images", "train_labels"),
        shuffle=True,
    )


def load(data_dir: str | Path) -> dict:
    """The images of ``data_dir/bnn``, mapped into memory.

    Returns:
        ``train_images`` and ``test_images``, (n, 784) uint8 from 0 to 255; ``train_labels`` and ``test_labels``,
        (n,) uint8 from 0 to 9; ``checksum`` of the training arrays; ``n_hidden`` as in `write`. The training rows are
        in random order.

    Raises:
        DataError: ``bnn.json`` or a file that it names is missing or truncated, or has another dtype or shape.
    """
    arrays, facts = read_arrays(Path(data_dir) / "bnn.json", ARRAYS, "the rule prepare_mnist")
    return {**arrays, "checksum": facts["checksum"], "n_hidden": facts.get("n_hidden")}
