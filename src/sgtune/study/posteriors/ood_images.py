"""Out-of-distribution images for MNIST, without digits: from another set, or none and the reason."""

from pathlib import Path

import numpy as np

from sgtune.study.posteriors.idx import idx_bytes
from sgtune.study.posteriors.mnist import N_PIXELS, SIDE, read_images
from sgtune.study.posteriors.store import check_files, read_arrays, read_facts, write_arrays
from sgtune.support.errors import DataError
from sgtune.support.files import read_json

__all__ = ["NO_IMAGES", "load", "read_set", "write"]

NAMES = ("images",)

NO_IMAGES = idx_bytes(np.zeros((0, SIDE, SIDE), np.uint8))
"""The idx file that is written if no source has the images."""


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


def _arrays(missing: str | None) -> dict:
    return {"images": (np.uint8, (0 if missing else "m", N_PIXELS))}


def write(path_json: str | Path, ood: dict, *, made_by: str) -> None:
    """What `read_set` or `sgtune.study.posteriors.mnist.simulate` gives, as ``path_json`` and the file beside
    it, for `load`.

    Raises:
        DataError: the images have another dtype or shape.
    """
    images = np.zeros((0, N_PIXELS), np.uint8) if ood["inputs"] is None else ood["inputs"]
    facts = {"made_by": made_by, "name": ood["name"], "n": len(images), "missing": ood["missing"]}
    write_arrays(path_json, {"images": images}, _arrays(ood["missing"]), facts)


def load(path_json: str | Path) -> dict:
    """The images of ``path_json``, mapped into memory.

    Returns:
        ``name`` of the set, ``inputs`` ((m, 784) uint8 of 0 to 255, or None) and ``missing`` (None, or why there
        are none).

    Raises:
        DataError: the ``.json`` or the file that it names is missing, truncated, or of another dtype or shape.
    """
    made_by = "the rule prepare_ood"
    facts = read_facts(path_json, made_by, name=str, missing=str | None)
    name, missing = facts["name"], facts["missing"]
    arrays, _ = read_arrays(path_json, _arrays(missing), made_by)
    return {"name": name, "inputs": None if missing else arrays["images"], "missing": missing}
