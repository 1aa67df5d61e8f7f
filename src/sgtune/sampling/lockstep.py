"""Chains of one shape (sampler and static axes) advanced together by one compiled program.

All chains of an ensemble use the same i-th minibatch, so its rows are gathered once; the chains' own noise is
independent. Numbers that differ between chains (the traced axes of their arms: step sizes, ...) are arrays with an
entry for each chain, so one program serves every grid. A single chain is an ensemble of width 1; the pipeline has no
other way to run a sampler.
"""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from copy import copy
from threading import Event
from time import perf_counter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Int, Key, PyTree

from sgtune.mode.find import map_position
from sgtune.model import Model
from sgtune.model.posterior import density_of
from sgtune.samplers import resolve_sampler
from sgtune.sampling.arm import Arm, chain_numbers, check_arm, check_position, shape_of, static_numbers
from sgtune.sampling.compilation import compiler_options
from sgtune.sampling.preparation import check_states, shared_constants
from sgtune.sampling.program import Program, advance, initial_states
from sgtune.support.machine import cores
from sgtune.support.randomness import named_key, named_keys

__all__ = ["Lockstep", "chunk_length", "compile_together", "compiled_programs", "data_terms"]


CHUNK_DRAWS = 1_024
CHUNK_BYTES = 32 * 2**20
"""A program hands back at most this many draws, and this many bytes of them, at a time."""


def chunk_length(dimension: int, width: int) -> int:
    """The number of draws that a program of this many chains returns at a time."""
    return min(CHUNK_DRAWS, max(1, CHUNK_BYTES // (4 * dimension * width)))


_jitted_advance = jax.jit(advance, static_argnums=0)
_compiled: dict[tuple, Callable] = {}
_seconds_to_compile: dict[tuple, float] = {}


class Lockstep:
    """An ensemble of chains that differ only in their traced hyperparameters and their noise.

    Args:
        arms: settings that share all static numbers.
        seed: root seed; a chain's noise depends only on it, on the arm and on ``replicate``.
        start: where every chain starts; with ``start_noise`` > 0 each arm starts at its own draw from
            N(start, start_noise^2 I).
        constants: of the gradient estimator and the target (`sgtune.sampling.preparation.shared_constants`).
        overrides: values for hyperparameters that the arms do not have (friction, noise_estimate).
        is_started: false for an ensemble whose chains are put elsewhere by `begin`.

    Attributes:
        start: where they start, flat, without the noise: ``(D,)``.
        states: the chains' states, leading axis W = number of arms.
    """

    def __init__(
        self,
        model: Model,
        sampler_name: str,
        arms: list[Arm],
        *,
        seed: int = 0,
        replicate: int | str = 0,
        start: PyTree,
        constants: dict,
        start_noise: float = 0.0,
        overrides: dict[str, float] | None = None,
        is_started: bool = True,
    ):
        self.arms = [check_arm(model, sampler_name, arm, overrides) for arm in arms]
        self.model = model
        self.sampler_name = sampler_name
        self.sampler, self.estimator = resolve_sampler(sampler_name)
        self.hyperparameters = chain_numbers(sampler_name, self.arms, overrides or {})
        names = [(sampler_name, *arm.key, replicate) for arm in self.arms]
        self.keys = named_keys(seed, [("noise", *name) for name in names])
        shape = shape_of(sampler_name, self.arms[0])
        self.minibatch_key = named_key(seed, "minibatch", *shape, replicate)
        self.constants = constants
        flat, unravel = ravel_pytree(start)
        self.start = flat
        starts = jnp.broadcast_to(flat, (len(arms), *flat.shape))
        if start_noise > 0:
            keys = named_keys(seed, [("start", *name) for name in names])
            noise = [jax.random.normal(key, flat.shape, jnp.float32) for key in keys]
            starts = starts + start_noise * jnp.stack(noise)
        self.program = Program(
            density_of(model),
            self.sampler,
            self.estimator,
            self.arms[0].batch_size,
            chunk_length(len(flat), len(arms)),
            static_numbers(sampler_name, self.arms[0], overrides or {}),
        )
        self.steps_done = 0
        self._run: Callable | None = None
        if is_started:
            init_keys = named_keys(seed, [("init", *name) for name in names])
            self.begin(init_keys, jax.vmap(unravel)(starts))

    @classmethod
    def at_mode(
        cls,
        model: Model,
        sampler_name: str,
        arms: list[Arm],
        *,
        position: PyTree | None = None,
        centre: PyTree | None = None,
        **options: Any,
    ) -> "Lockstep":
        """An ensemble that starts at the MAP and has its control variates there. The MAP is found first if necessary.

        Args:
            position: a start other than the MAP.
            centre: a centre other than the MAP, for the control variates and for the offset of the log density of a
                Metropolis test.
            options: the other arguments of `Lockstep`.

        Raises:
            InputError: an argument is not allowed; this is checked before the MAP is searched for.
        """
        checked = [check_arm(model, sampler_name, arm, options.get("overrides")) for arm in arms]
        chain_numbers(sampler_name, checked, options.get("overrides") or {})
        if position is not None:
            position = check_position("position", model, position)
        constants = shared_constants(model, *resolve_sampler(sampler_name), centre)
        start = map_position(model) if position is None else position
        return cls(model, sampler_name, arms, start=start, constants=constants, **options)

    def begin(self, keys: Key[Array, " w"], positions: PyTree) -> None:
        """Put the chains at ``positions`` (leading axis W); what else is random in their states is from ``keys``.

        Raises:
            InputError: as `sgtune.sampling.preparation.check_states`.
        """
        self.states = initial_states(
            self.program, self.constants, keys, positions, self.hyperparameters, self.minibatch_key
        )
        check_states(self.model, self.sampler, self.states)

    @property
    def width(self) -> int:
        """Number of chains."""
        return len(self.arms)

    def narrow(self, kept: list[int]) -> "Lockstep":
        """The ensemble of the chains ``kept``, each with its whole current state.

        A program's width is part of its shape. To share programs between rungs, the new width is the next power of
        two; it is filled up with copies of the last chain, whose draws are ignored.
        """
        width = min(self.width, 1 << (len(kept) - 1).bit_length())
        padded = jnp.array(kept + kept[-1:] * (width - len(kept)))
        other = copy(self)
        other.arms = [self.arms[i] for i in padded]
        other.states = jax.tree.map(lambda leaf: leaf[padded], self.states)
        other.keys = self.keys[padded]
        if self.minibatch_key.ndim:
            other.minibatch_key = self.minibatch_key[padded]
        other.hyperparameters = {
            name: number[padded] if jnp.ndim(number) else number
            for name, number in self.hyperparameters.items()
        }
        other._run = None
        return other

    @property
    def statistics(self) -> dict[str, np.ndarray]:
        """The sampler's diagnostics of the run so far: a ``(W,)`` array of each number; empty for most samplers."""
        return {name: np.asarray(values) for name, values in self.sampler.statistics(self.states).items()}

    @property
    def finite(self) -> Bool[np.ndarray, " w"]:
        """Whether each chain's position is finite."""
        leaves = jax.tree.leaves(self.states.position)
        return np.all([np.isfinite(leaf).reshape(self.width, -1).all(axis=1) for leaf in leaves], axis=0)

    @property
    def shape(self) -> tuple:
        """The key of the compiled program: ensembles with equal keys share it."""
        leaves, structure = jax.tree.flatten(self._arguments([]))
        return (self.program, structure, tuple((leaf.shape, str(leaf.dtype)) for leaf in leaves))

    def compile(self) -> None:
        """Compile the program of this shape if no ensemble has done so yet in this process."""
        shape = self.shape
        if shape not in _compiled:
            start = perf_counter()
            lowered = _jitted_advance.lower(self.program, *self._arguments([]))
            _compiled[shape] = lowered.compile(compiler_options())
            _seconds_to_compile[shape] = perf_counter() - start
        self._run = _compiled[shape]

    def _arguments(self, gaps: Sequence[int] | Int[np.ndarray, " k"]) -> tuple:
        padded = np.zeros(self.program.length, np.int32)
        padded[: len(gaps)] = gaps
        counts = (np.int32(self.steps_done), np.int32(len(gaps)), padded)
        return (self.constants, self.states, self.hyperparameters, self.keys, self.minibatch_key, *counts)

    def _call(self, gaps: Sequence[int] | Int[np.ndarray, " k"]) -> np.ndarray:
        """One call of the program: a draw after each of ``gaps``, in steps. Blocks until done."""
        if self._run is None:
            self.compile()
        self.states, draws = self._run(*self._arguments(gaps))
        self.steps_done += int(np.sum(gaps))
        # Copied: a view of one draw would keep the whole buffer of the program, up to CHUNK_BYTES, alive.
        return np.asarray(draws)[: len(gaps)].copy()

    def advance_chunk(self, n_draws: int, stride: int = 1) -> np.ndarray:
        """At most one program's length of draws: ``(n_draws, W, D)`` float32. Blocks until done."""
        return self._call([stride] * min(n_draws, self.program.length))

    def advance(self, n_steps: int, stride: int = 1) -> np.ndarray:
        """``n_steps`` steps of every chain; every ``stride``-th is kept: ``(n_steps // stride, W, D)``.

        Steps after the last kept one are made too, so that chains stay where their budget ends.
        """
        n_draws, rest = divmod(n_steps, stride)
        chunks = [np.empty((0, self.width, self.model.dimension), np.float32)]
        while n_draws > 0:
            chunks.append(self.advance_chunk(n_draws, stride))
            n_draws -= len(chunks[-1])
        if rest:
            self.advance_chunk(1, rest)
        return np.concatenate(chunks)

    def advance_to(self, n_steps: int, kept: Int[np.ndarray, " k"], stop: Event | None = None) -> np.ndarray:
        """Advance to step number ``n_steps`` of the chains' whole run, and return the draws of the steps ``kept``
        (ascending numbers): ``(k, W, D)``.

        Raises:
            CancelledError: another thread set ``stop``.
        """
        gaps, length = np.diff(kept, prepend=self.steps_done), self.program.length
        chunks = [np.empty((0, self.width, self.model.dimension), np.float32)]
        for start in range(0, len(gaps), length):
            if stop is not None and stop.is_set():
                raise CancelledError
            chunks.append(self._call(gaps[start : start + length]))
        if n_steps > self.steps_done:
            self._call([n_steps - self.steps_done])
        return np.concatenate(chunks)


def compile_together(ensembles: Iterable[Lockstep]) -> dict[tuple, float]:
    """Compile the programs of all ``ensembles``, on all cores, if that has not been done yet in this process.

    Returns:
        the compilation seconds of each of their programs, now or before; programs that were compiled at the same time
        share the wall time.
    """
    programs = {ensemble.shape: ensemble for ensemble in ensembles}
    new = {shape: ensemble for shape, ensemble in programs.items() if shape not in _compiled}
    began = perf_counter()
    with ThreadPoolExecutor(cores()) as pool:
        list(pool.map(Lockstep.compile, new.values()))
    elapsed, in_sum = perf_counter() - began, sum(_seconds_to_compile[shape] for shape in new)
    for shape in new:
        _seconds_to_compile[shape] *= min(1.0, elapsed / in_sum)
    return {shape: _seconds_to_compile[shape] for shape in programs}


def compiled_programs() -> frozenset[tuple]:
    """The shapes whose programs this process has compiled so far."""
    return frozenset(_compiled)


def data_terms(model: Model, sampler_name: str, arm: Arm) -> int:
    """Data terms that one step evaluates: n for a gradient, 2 n with control variates (at the centre, too), and
    twice as many if the covariance of the noise is estimated from per-datum gradients; plus the terms of a Metropolis
    test."""
    sampler, estimator = resolve_sampler(sampler_name)
    each = arm.batch_size
    if each < model.n_data:
        each *= estimator.evaluations * (2 if sampler.covariance else 1)
    of_test = sampler.log_density_terms(arm.batch_size, model.n_data)
    return sampler.gradients_per_step(arm.n_leapfrog) * each + of_test
