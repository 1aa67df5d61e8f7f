"""MNIST (LeCun et al. 1998) with images of another set, and a small simulated set in its format."""

from pathlib import Path

import numpy as np

from sgtune.data.idx import idx_bytes, read_idx
from sgtune.data.store import check_array, check_files, check_range, read_arrays, write_arrays
from sgtune.errors import DataError, check_integer
from sgtune.files import read_json

__all__ = ["NO_IMAGES", "load", "read_images", "read_labels", "read_set", "simulate", "write"]

SIDE = 28
N_PIXELS = SIDE**2
N_CLASSES = 10
NAMES = (
    "train_images",
    "train_labels",
    "test_images",
    "test_labels",
    "ood_images",
    "ood_name",
    "ood_missing",
)

NO_IMAGES = idx_bytes(np.zeros((0, SIDE, SIDE), np.uint8))
"""The idx file that stands in for images that no source has."""


def read_images(path: str | Path) -> np.ndarray:
    """The images of an idx file, ``(n, 784)`` uint8, n possibly 0.

    Raises:
        DataError: no whole idx file, or its images are not of 28 x 28 pixels.
    """
    images = read_idx(path)
    if images.shape[1:] != (SIDE, SIDE):
        raise DataError(f"{path}: has items of {_times(images.shape[1:])}; expected images of 28 x 28")
    return images.reshape(-1, N_PIXELS)


def read_labels(path: str | Path) -> np.ndarray:
    """The labels of an idx file, ``(n,)`` uint8 of 0 to 9.

    Raises:
        DataError: no whole idx file of single numbers, one or more, or a label is above 9.
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


def read_set(folder: Path, ood_folder: Path) -> dict:
    """What `load` returns, from downloads.

    Args:
        folder: holds MNIST's four files.
        ood_folder: holds ``t10k-images-idx3-ubyte`` of another set, and ``source.json``.

    Raises:
        DataError: a file is missing or damaged, or has more labels or fewer than there are images beside it.
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
    source = read_json(ood_folder / "source.json")
    if not isinstance(source, dict) or not {"name", "sha256", "missing"} <= set(source):
        raise DataError(f"{ood_folder / 'source.json'}: expected the entries name, sha256 and missing")
    check_files(ood_folder, source["sha256"])
    inputs = None if source["missing"] else read_images(ood_folder / "t10k-images-idx3-ubyte")
    return {**arrays, "ood": {"name": source["name"], "inputs": inputs, "missing": source["missing"]}}


def simulate(n_images: int, seed: int = 0) -> dict:
    """What `load` returns, of ``n_images`` simulated training images, and a fifth as many for testing.

    A digit's place on a circle is where its blob of light lies, give or take a pixel; the other images, as many as
    test images, have bars.

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


def write(path_npz: str | Path, arrays: dict, *, made_by: str) -> None:
    """What `read_set` or `simulate` gives, as ``path_npz`` for `load`."""
    ood = arrays["ood"]
    inputs = np.zeros((0, N_PIXELS), np.uint8) if ood["inputs"] is None else ood["inputs"]
    write_arrays(
        path_npz,
        {
            **{name: array for name, array in arrays.items() if name != "ood"},
            "ood_images": inputs,
            "ood_name": np.array(ood["name"]),
            "ood_missing": np.array(ood["missing"] or ""),
        },
        {
            "made_by": made_by,
            "n_train": len(arrays["train_labels"]),
            "n_test": len(arrays["test_labels"]),
            "ood": {"name": ood["name"], "n": len(inputs), "missing": ood["missing"]},
        },
    )


def load(data_dir: str | Path) -> dict:
    """The images of ``data_dir/bnn.npz``.

    Returns:
        ``train_images`` and ``test_images``, (n, 784) uint8 of 0 to 255; ``train_labels`` and ``test_labels``,
        (n,) uint8 of 0 to 9; ``ood``, a dict of ``name``, ``inputs`` ((m, 784) uint8 or None) and ``missing``
        (None, or why there are none).

    Raises:
        DataError: the file or its ``.json`` is missing, truncated, not what was written, or holds other arrays,
            images of another size, or labels outside 0 to 9.
    """
    path = Path(data_dir) / "bnn.npz"
    arrays = read_arrays(path, NAMES, made_by="the rule prepare_mnist")
    for part in ("train", "test"):
        images, labels = arrays[f"{part}_images"], arrays[f"{part}_labels"]
        check_array(path, f"{part}_images", images, np.uint8, ("n", N_PIXELS))
        check_array(path, f"{part}_labels", labels, np.uint8, (len(images),))
        check_range(path, f"{part}_labels", labels, 0, N_CLASSES - 1)
    missing = str(arrays["ood_missing"]) or None
    inputs = arrays["ood_images"]
    check_array(path, "ood_images", inputs, np.uint8, (0 if missing else "m", N_PIXELS))
    ood = {
        "name": str(arrays["ood_name"]),
        "inputs": None if missing else inputs,
        "missing": missing,
    }
    arrays = {name: array for name, array in arrays.items() if not name.startswith("ood_")}
    return {**arrays, "ood": ood}
