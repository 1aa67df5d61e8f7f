"""Images of no digit, out of the distribution of MNIST: another set's, or none and the reason."""

from pathlib import Path

import numpy as np

from sgtune.data.idx import idx_bytes
from sgtune.data.mnist import N_PIXELS, SIDE, read_images
from sgtune.data.store import check_array, check_files, read_arrays, write_arrays
from sgtune.errors import DataError
from sgtune.files import read_json

__all__ = ["NO_IMAGES", "load", "read_set", "write"]

NAMES = ("images", "name", "missing")

NO_IMAGES = idx_bytes(np.zeros((0, SIDE, SIDE), np.uint8))
"""The idx file that stands in for images that no source has."""


def read_set(folder: Path) -> dict:
    """What `load` returns, from the download in ``folder``: ``t10k-images-idx3-ubyte`` and ``source.json``.

    Raises:
        DataError: a file is missing or damaged.
    """
    source = read_json(folder / "source.json")
    if not isinstance(source, dict) or not {"name", "sha256", "missing"} <= set(source):
        raise DataError(f"{folder / 'source.json'}: expected the entries name, sha256 and missing")
    check_files(folder, source["sha256"])
    inputs = None if source["missing"] else read_images(folder / "t10k-images-idx3-ubyte")
    return {"name": source["name"], "inputs": inputs, "missing": source["missing"]}


def write(path_npz: str | Path, ood: dict, *, made_by: str) -> None:
    """What `read_set` or `sgtune.data.mnist.simulate` gives, as ``path_npz`` for `load`."""
    images = np.zeros((0, N_PIXELS), np.uint8) if ood["inputs"] is None else ood["inputs"]
    write_arrays(
        path_npz,
        {"images": images, "name": np.array(ood["name"]), "missing": np.array(ood["missing"] or "")},
        {"made_by": made_by, "name": ood["name"], "n": len(images), "missing": ood["missing"]},
    )


def load(path_npz: str | Path) -> dict:
    """The images of ``path_npz``.

    Returns:
        ``name`` of the set, ``inputs`` ((m, 784) uint8 of 0 to 255, or None) and ``missing`` (None, or why there
        are none).

    Raises:
        DataError: the file or its ``.json`` is missing, truncated, not what was written, or holds other arrays or
            images of another size.
    """
    path = Path(path_npz)
    arrays = read_arrays(path, NAMES, made_by="the rule prepare_ood")
    missing = str(arrays["missing"]) or None
    check_array(path, "images", arrays["images"], np.uint8, (0 if missing else "m", N_PIXELS))
    inputs = None if missing else arrays["images"]
    return {"name": str(arrays["name"]), "inputs": inputs, "missing": missing}
