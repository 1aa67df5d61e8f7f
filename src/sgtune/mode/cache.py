"""Arrays computed once per model and saved beside its data, with the checksum of the data."""

import logging
from pathlib import Path

import numpy as np

from sgtune.model import Model
from sgtune.support.errors import DataError
from sgtune.support.files import atomic_write, read_npz

__all__ = ["keep", "read_kept"]

logger = logging.getLogger(__name__)


def _path(model: Model, kind: str) -> Path | None:
    return None if model.data_dir is None else model.data_dir / f"{model.name}.{kind}.npz"


def keep(model: Model, kind: str, **arrays: object) -> None:
    """Write ``arrays`` as ``{model.data_dir}/{model.name}.{kind}.npz``; nothing without a folder."""
    path = _path(model, kind)
    if path is not None:
        with atomic_write(path) as temporary:
            np.savez(temporary, checksum=model.checksum, **arrays)


def read_kept(model: Model, kind: str) -> dict[str, np.ndarray] | None:
    """The arrays that `keep` wrote; None if there are none, they are for other data, or the file is not readable."""
    path = _path(model, kind)
    if path is None or not path.is_file():
        return None
    try:
        arrays = read_npz(path)
    except DataError:
        logger.warning("%s: not readable; computed again", path)
        return None
    if str(arrays.pop("checksum", "")) != model.checksum:
        logger.warning("%s: computed from other data; computed again", path)
        return None
    return arrays
