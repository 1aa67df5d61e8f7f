"""Blocks of a chain on disk, one file each, with the sampler's whole state after it; and that state without draws."""

import logging
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from sgtune.errors import DataError
from sgtune.files import atomic_write, read_npz
from sgtune.study.ground_truth.draws import Moments

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

# What a block has of each of its draws; the other arrays are statistics of iterations, or say how it stands at its end.
DRAWS, FUNCTIONALS = "draws", "functionals"


class Checkpoints:
    """A folder that belongs to one chain, and its blocks so far, in memory.

    Each block has the ``statistics``, one value per iteration, ``draws`` (m, D) and perhaps ``functionals`` (n, K),
    ``seconds``, and further arrays that describe its end.

    ``saved``, if given, is a file that holds after each block what the next one needs, and no draws: the state, the
    statistics of all iterations and the functionals of one draw in ``every``. A chain without a first block goes on
    from a copy of it, `RESTORED`, if there is one: a block of all iterations up to there that has no draws, and nan
    for the functionals of those that were not saved.

    Args:
        fingerprint: of all that the blocks depend on, but for the start; those of another one are not taken.
        start: of the position that the chain started from. A restored state may have another: modes that are
            found on two machines differ in the last digits, and what comes after the state no longer depends on it.

    Attributes:
        blocks: the arrays of each block, from the first to the last whole one that bears the fingerprint.
        restored: whether the first of them is what was restored.
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
        """Write the next block, and the state after it."""
        whole = arrays | state_to_arrays(state)
        self._write(np.savez, self._path(), whole | {"start": self.start})
        self.blocks.append(arrays)
        if self.saved is not None:
            self._write(np.savez_compressed, Path(self.saved), self._without_draws(whole))

    def forget(self) -> None:
        """Start from scratch: the files are overwritten as the chain reaches them."""
        self.blocks: list[dict[str, np.ndarray]] = []
        self.restored = False
        # Files of blocks that a restored state stands for, less one for itself.
        self._ahead = 0

    def joined(self, name: str) -> np.ndarray:
        """An array of all blocks, one after the other."""
        return np.concatenate([arrays[name] for arrays in self.blocks])

    def _without_draws(self, last: dict[str, Any]) -> dict[str, Any]:
        """All blocks as one, of which ``last`` is the last with the state after it."""
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
        """The arrays of a file of this run (and this start, if one is given)."""
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
        """Where the next block is, or will be."""
        return self.folder / f"block-{len(self.blocks) + self._ahead:05d}.npz"


def thinning(dimension: int, n_draws: int, most_bytes: int) -> int:
    """Draws of which one is kept, so that all take at most ``most_bytes``, in float32."""
    return min(n_draws, max(1, math.ceil(np.float32().nbytes * dimension * n_draws / most_bytes)))


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


def moments_to_arrays(moments: Moments | None, prefix: str) -> dict[str, Any]:
    """Moments as arrays of a block, of names that begin with ``prefix``; nothing if there are none."""
    fields = {} if moments is None else moments._asdict()
    return {f"{prefix}_{name}": value for name, value in fields.items() if value is not None}


def moments_of(arrays: dict[str, np.ndarray], prefix: str) -> Moments | None:
    """The moments of all draws up to the block, if there were any."""
    if f"{prefix}_n" not in arrays:
        return None
    n, *rest = (arrays.get(f"{prefix}_{name}") for name in Moments._fields)
    return Moments(int(n), *rest)
