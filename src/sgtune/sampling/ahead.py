"""Minibatches of rows that are not in memory, read on another thread while the device works on those before.

The key of a minibatch depends on the step alone, so the host knows the rows of steps to come. They are the rows that
the program would gather from memory.
"""

from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from threading import Lock
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key, PyTree, UInt32

from sgtune.model.rows import StoredRows
from sgtune.samplers.minibatch import MOST_BYTES, minibatch_places, round_keys

__all__ = ["Ahead", "Reader"]

BYTES, MOST = 2**22, 256
"""So many bytes of minibatches are read at a time, and at most so many minibatches."""


class Ahead(NamedTuple):
    """The minibatches of consecutive steps, as a program takes them; each chain has its own with a leading axis W.

    Attributes:
        rows: leaves ``(k, n, ...)``.
        first: the step of the first minibatch, int32.
        each: minibatches of a step, int32.
    """

    rows: PyTree
    first: Any
    each: Any

    def minibatch(self, step: Any, i: Any) -> PyTree:
        """The rows of the i-th of a step."""
        place = (step - self.first) * self.each + i
        return jax.tree.map(lambda leaf: jax.lax.dynamic_index_in_dim(leaf, place, keepdims=False), self.rows)


class Reader:
    """Reads the minibatches of an ensemble of chains, those of the next steps while the last ones are in use.

    Args:
        key: of the ensemble's minibatches, or keys ``(W,)`` of each chain's own.
        each: minibatches of a step; they have keys of their own if ``has_leapfrog``.
    """

    def __init__(
        self, data: StoredRows, batch_size: int, key: Key[Array, "..."], each: int, has_leapfrog: bool
    ):
        self.data, self.batch_size, self.key = data, batch_size, key
        self.each, self.has_leapfrog = each, has_leapfrog
        n_bytes = batch_size * data.row_bytes * key.size
        self.is_possible = each * n_bytes <= MOST_BYTES
        self.n_minibatches = max(each, min(MOST, BYTES // n_bytes))
        self.n_steps = self.n_minibatches // each
        self._reading: dict[int, Future] = {}
        self._lock = Lock()

    @property
    def shapes(self) -> Ahead:
        """Shapes and dtypes of what `at` gives."""
        lead = (*self.key.shape, self.n_minibatches)
        rows = jax.tree.map(
            lambda leaf: jax.ShapeDtypeStruct((*lead, *leaf.shape), leaf.dtype),
            self.data.shapes(self.batch_size),
        )
        number = jax.ShapeDtypeStruct(self.key.shape, np.dtype(np.int32))
        return Ahead(rows, number, number)

    def at(self, step: int) -> tuple[Ahead, int]:
        """Minibatches from ``step`` or an earlier step on, and the first step that has none among them.

        Raises:
            InputError: rows cannot be read.
        """
        number = step // self.n_steps
        with self._lock:
            kept = {i: self._reading[i] for i in (number, number + 1) if i in self._reading}
            for i in {number, number + 1} - kept.keys():
                keys = np.asarray(
                    _keys(self.key, i * self.n_steps, self.n_minibatches, self.each, self.has_leapfrog)
                )
                kept[i] = _pool.submit(self._read, keys)
            self._reading = kept
        rows, numbers = kept[number].result(), np.broadcast_to(np.int32(0), self.key.shape)
        return Ahead(rows, numbers + np.int32(number * self.n_steps), numbers + np.int32(self.each)), (
            number + 1
        ) * self.n_steps

    def _read(self, keys: UInt32[np.ndarray, "*lead rounds 2"]) -> PyTree:
        places = minibatch_places(keys, self.batch_size, self.data.n_rows)
        rows = self.data.take(places.ravel())
        return jax.tree.map(lambda leaf: jnp.asarray(leaf.reshape(*places.shape, *leaf.shape[1:])), rows)


_pool = ThreadPoolExecutor(4, "rows")


@partial(jax.jit, static_argnums=(2, 4))
def _keys(key, start, n, each, has_leapfrog):
    """`round_keys` of n minibatches from step ``start`` on: ``(..., n, rounds, 2)``."""

    def of_place(place, key):
        own = jax.random.fold_in(key, start + place // each)
        return round_keys(jax.random.fold_in(own, place % each) if has_leapfrog else own)

    def of_chain(key):
        return jax.vmap(of_place, in_axes=(0, None))(jnp.arange(n), key)

    return jax.vmap(of_chain)(key) if key.ndim else of_chain(key)
