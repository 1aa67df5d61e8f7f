"""Blocks of a chain on disk: one file each, with the sampler's whole state after it."""

import logging
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from sgtune.errors import DataError
from sgtune.files import atomic_write, read_npz
from sgtune.study.ground_truth.draws import Moments

__all__ = ["Checkpoints", "is_key", "moments_of", "moments_to_arrays", "state_of", "state_to_arrays"]

logger = logging.getLogger(__name__)


class Checkpoints:
    """A folder that belongs to one chain, and its blocks so far, in memory.

    Args:
        fingerprint: of all that the blocks depend on; those of another one are not taken.

    Attributes:
        blocks: the arrays of each block, from the first to the last whole one that bears the fingerprint.
    """

    def __init__(self, folder: str | Path, fingerprint: str):
        self.folder = Path(folder)
        self.fingerprint = fingerprint
        self.blocks: list[dict[str, np.ndarray]] = []
        while (path := self._path(len(self.blocks))).is_file():
            try:
                arrays = read_npz(path)
            except DataError:
                logger.warning("%s: not readable, sampled anew from here", path)
                break
            if str(arrays.pop("fingerprint", "")) != fingerprint:
                logger.warning("%s: of another run, sampled anew from here", path)
                break
            self.blocks.append(arrays)

    def keep(self, arrays: dict[str, Any], state: PyTree) -> None:
        """Write the next block, and the state after it."""
        with atomic_write(self._path(len(self.blocks))) as temporary:
            np.savez(temporary, fingerprint=self.fingerprint, **arrays, **state_to_arrays(state))
        self.blocks.append(arrays)

    def forget(self) -> None:
        """Start anew: the files are written over as the chain comes to them."""
        self.blocks = []

    def joined(self, name: str) -> np.ndarray:
        """An array of all blocks, one after the other."""
        return np.concatenate([arrays[name] for arrays in self.blocks])

    def _path(self, index: int) -> Path:
        return self.folder / f"block-{index:05d}.npz"


def is_key(leaf) -> bool:
    """Whether a leaf of a state is a random key."""
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def state_to_arrays(state: PyTree) -> dict[str, np.ndarray]:
    """The leaves of a state, keys as their data."""
    leaves = jax.tree.leaves(state)
    return {
        f"state_{i}": np.asarray(jax.random.key_data(leaf) if is_key(leaf) else leaf)
        for i, leaf in enumerate(leaves)
    }


def state_of(arrays: dict[str, np.ndarray], shapes: PyTree) -> PyTree:
    """The state of `state_to_arrays`, in the structure of ``shapes``."""
    leaves, structure = jax.tree.flatten(shapes)
    values = [jnp.asarray(arrays[f"state_{i}"]) for i in range(len(leaves))]
    return structure.unflatten(
        jax.random.wrap_key_data(value) if is_key(leaf) else value
        for leaf, value in zip(leaves, values, strict=True)
    )


def moments_to_arrays(moments: Moments | None) -> dict[str, Any]:
    """Moments as arrays of a block; nothing if there are none."""
    return {} if moments is None else {f"moments_{name}": value for name, value in moments._asdict().items()}


def moments_of(arrays: dict[str, np.ndarray]) -> Moments | None:
    """The moments of all draws up to the block, if there were any and they are thinned."""
    if "moments_n" not in arrays:
        return None
    return Moments(int(arrays["moments_n"]), arrays["moments_mean"], arrays["moments_squares"])
