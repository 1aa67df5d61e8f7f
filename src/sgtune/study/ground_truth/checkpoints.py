"""Blocks of a chain on disk, each with the sampler's state after it, and a small copy of that state without draws."""

import logging
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from sgtune.study.ground_truth.draws import Moments
from sgtune.support.errors import DataError
from sgtune.support.files import atomic_write, read_npz

__all__ = [
    "RESTORED",
    "Checkpoints",
    "is_key",
    "moments_of",
    "moments_to_arrays",
    "state_of",
    "state_to_arrays",
    "thinning",
]

logger = logging.getLogger(__name__)

RESTORED = "restored.npz"
"""A copy of a saved file, in the folder of a chain that lost its blocks: the chain continues from it."""

# Arrays with one row per draw. The other arrays of a block are statistics per iteration, or describe its end.
DRAWS, FUNCTIONALS = "draws", "functionals"


class Checkpoints:
    """The folder of one chain, and its blocks so far in memory.

    Each block has the ``statistics``, one value per iteration, ``draws`` (m, D), ``functionals`` (n, K) if the model
    has any, ``seconds``, and further arrays that describe its end.

    ``saved``, if given, is a file that after each block holds the input of the next block, without draws: the state,
    the statistics of all iterations, and the functionals of one draw in ``every``. If the folder has no first block
    but a copy of this file, `RESTORED`, the chain continues from the copy. The copy counts as one block of all its
    iterations without draws; functionals that were not saved are nan.

    Args:
        fingerprint: covers all that the blocks depend on except the start. Blocks with another one are not used.
        start: fingerprint of the chain's first position. A restored state may have another start: modes found on two
            machines differ in the last digits, and iterations after the state no longer depend on it.

    Attributes:
        blocks: the arrays of each block, up to the last complete one with this fingerprint.
        restored: whether the first block is a restored file.
    """

    def __init__(
        self,
        folder: str | Path,
        fingerprint: str,
        start: str,
        *,
        statistics: tuple[str, ...],
        saved: str | Path | None = None,
        every: int = 1,
    ):
        self.folder, self.saved = Path(folder), saved
        self.fingerprint, self.start = fingerprint, start
        self.statistics, self.every = statistics, every
        self.forget()
        self._read_blocks()
        if not self.blocks and (held := self._read(self.folder / RESTORED)) is not None:
            self.restored, self._ahead = True, int(held.pop("n_blocks")) - 1
            if FUNCTIONALS in held:
                values = np.full(
                    (int(held.pop("n_functionals")), held[FUNCTIONALS].shape[1]), np.nan, np.float32
                )
                values[every - 1 :: every] = held[FUNCTIONALS]
                held[FUNCTIONALS] = values
            self.blocks.append(held)
            self._read_blocks()

    def keep(self, arrays: dict[str, Any], state: PyTree) -> None:
        """Write the next block with the state after it."""
        whole = arrays | state_to_arrays(state)
        self._write(np.savez, self._path(), whole | {"start": self.start})
        self.blocks.append(arrays)
        if self.saved is not None:
            self._write(np.savez_compressed, Path(self.saved), self._without_draws(whole))

    def forget(self) -> None:
        """Start from scratch: the files are overwritten as the chain reaches them."""
        self.blocks: list[dict[str, np.ndarray]] = []
        self.restored = False
        # Offset of file numbers: a restored state counts as one entry of `blocks`, but replaces several files.
        self._ahead = 0

    def joined(self, name: str) -> np.ndarray:
        """One array, concatenated over all blocks."""
        return np.concatenate([arrays[name] for arrays in self.blocks])

    def _without_draws(self, last: dict[str, Any]) -> dict[str, Any]:
        """All blocks as one without draws; ``last`` is the last block with the state after it."""
        arrays = last | {name: self.joined(name) for name in self.statistics}
        arrays |= {DRAWS: last[DRAWS][:0], "seconds": sum(arrays["seconds"] for arrays in self.blocks)}
        arrays["n_blocks"] = len(self.blocks) + self._ahead
        if FUNCTIONALS in last:
            values = self.joined(FUNCTIONALS)
            arrays |= {"n_functionals": len(values), FUNCTIONALS: values[self.every - 1 :: self.every]}
        return arrays

    def _read_blocks(self) -> None:
        while (arrays := self._read(self._path(), self.start)) is not None:
            self.blocks.append(arrays)

    def _read(self, path: Path, start: str | None = None) -> dict[str, np.ndarray] | None:
        """The arrays of a file; None if it is missing, or has another fingerprint or (if given) another start."""
        if not path.is_file():
            return None
        try:
            arrays = read_npz(path)
        except DataError:
            logger.warning("%s: not readable; sampling again from here", path)
            return None
        marks = [str(arrays.pop(name, "")) for name in ("fingerprint", "start")]
        if marks[0] != self.fingerprint or start not in (None, marks[1]):
            logger.warning("%s: of another run; sampling again from here", path)
            return None
        return arrays

    def _write(self, save: Callable, path: Path, arrays: dict[str, Any]) -> None:
        with atomic_write(path) as temporary:
            save(temporary, fingerprint=self.fingerprint, **arrays)

    def _path(self) -> Path:
        """The file of the next block."""
        return self.folder / f"block-{len(self.blocks) + self._ahead:05d}.npz"


def thinning(dimension: int, n_draws: int, most_bytes: int) -> int:
    """The smallest k such that every k-th of ``n_draws`` float32 draws takes at most ``most_bytes`` in total."""
    return min(n_draws, max(1, math.ceil(np.float32().nbytes * dimension * n_draws / most_bytes)))


def is_key(leaf) -> bool:
    """Whether a leaf of a state is a random key."""
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def state_to_arrays(state: PyTree) -> dict[str, np.ndarray]:
    """The leaves of a state, with random keys as their raw data."""
    leaves = jax.tree.leaves(state)
    return {
        f"state_{i}": np.asarray(jax.random.key_data(leaf) if is_key(leaf) else leaf)
        for i, leaf in enumerate(leaves)
    }


def state_of(arrays: dict[str, np.ndarray], shapes: PyTree) -> PyTree:
    """The inverse of `state_to_arrays`; ``shapes`` gives the structure of the state."""
    leaves, structure = jax.tree.flatten(shapes)
    values = [jnp.asarray(arrays[f"state_{i}"]) for i in range(len(leaves))]
    return structure.unflatten(
        jax.random.wrap_key_data(value) if is_key(leaf) else value
        for leaf, value in zip(leaves, values, strict=True)
    )


def moments_to_arrays(moments: Moments | None, prefix: str) -> dict[str, Any]:
    """Moments as arrays of a block, with names that begin with ``prefix``; empty for None."""
    fields = {} if moments is None else moments._asdict()
    return {f"{prefix}_{name}": value for name, value in fields.items() if value is not None}


def moments_of(arrays: dict[str, np.ndarray], prefix: str) -> Moments | None:
    """The moments of all draws up to the end of the block; None if there are no draws."""
    if f"{prefix}_n" not in arrays:
        return None
    n, *rest = (arrays.get(f"{prefix}_{name}") for name in Moments._fields)
    return Moments(int(n), *rest)
