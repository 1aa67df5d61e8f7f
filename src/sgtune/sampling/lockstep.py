"""Chains of one shape (sampler and static axes) advanced together by one compiled program.

All chains of an ensemble use the same i-th minibatch, so its rows are gathered once; the chains' own noise is
independent. Numbers that differ between chains (the traced axes of their arms: step sizes, ...) are arrays with an
entry for each chain, so one program serves every grid. A single chain is an ensemble of width 1; the pipeline has no
other way to run a sampler.
"""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from copy import copy
from functools import partial
from threading import Event
from time import perf_counter
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, Int, Key, PRNGKeyArray, PyTree

from sgtune.mode.find import map_position
from sgtune.model import Model
from sgtune.model.positions import check_position, flatten, from_matrix, unflatten
from sgtune.model.posterior import density_of
from sgtune.model.rows import StoredRows, named_faults
from sgtune.samplers import Sampler, resolve_sampler
from sgtune.samplers.gradients import GradientEstimator
from sgtune.samplers.target import Target, offset_at, target_of
from sgtune.sampling.ahead import Ahead, Reader
from sgtune.sampling.arm import Arm, chain_numbers, check_arm, shape_of, static_numbers
from sgtune.support.errors import InputError
from sgtune.support.machine import compiler_options, cores
from sgtune.support.progress import progress_bar
from sgtune.support.randomness import named_key, named_keys

__all__ = [
    "Lockstep",
    "Program",
    "advance",
    "are_finite",
    "chunk_length",
    "compile_together",
    "compiled_programs",
    "data_terms",
    "independent_chains",
    "initial_states",
    "mapped_axes",
    "shared_constants",
]


BEFORE_THE_FIRST_STEP = 2**32 - 1
"""The step number of a chain's start. No step has this number, because steps are int32."""


class Program(NamedTuple):
    """The static arguments of a compiled program."""

    sampler: Sampler
    estimator: GradientEstimator
    batch_size: int
    length: int
    static: tuple[tuple[str, float | int], ...] = ()
    """Further static hyperparameters: Python numbers, which a sampler may use as array shapes."""
    own: tuple[str, ...] = ()
    """The constants of which each chain has its own, with a leading axis W: those of a centre of its own."""

    def own_constants(self, constants: dict) -> dict:
        """Those of the chains, to be mapped over."""
        return {name: constants[name] for name in self.own}

    def target(self, constants: dict, minibatch_key: PRNGKeyArray, step: Any) -> Target:
        """The target of one step of the chains that share ``minibatch_key``; each of its leapfrogs has its own
        minibatch."""
        step_key = jax.random.fold_in(minibatch_key, step)

        def key_of(i):
            return jax.random.fold_in(step_key, i) if self.sampler.has_leapfrog else step_key

        def rows_of(i):
            return constants["ahead"].minibatch(step, i if self.sampler.has_leapfrog else 0)

        known = rows_of if "ahead" in constants else None
        return target_of(constants["density"], self.estimator, constants, self.batch_size, key_of, known)


def mapped_axes(hyperparameters: dict) -> dict:
    """The axes for `jax.vmap` over chains: an array has a number for each chain; all chains share other numbers."""
    return {name: 0 if jnp.ndim(number) else None for name, number in hyperparameters.items()}


@partial(jax.jit, static_argnums=0)
def initial_states(program: Program, constants, keys, positions, hyperparameters, minibatch_key) -> PyTree:
    """States of chains at ``positions``, with a leading axis."""
    axes = (0, 0, mapped_axes(hyperparameters), 0 if minibatch_key.ndim else None, 0)

    def one_chain(key, position, hyperparameters, minibatch_key, own):
        of_chain = constants | own
        target = program.target(of_chain, minibatch_key, jnp.uint32(BEFORE_THE_FIRST_STEP))
        estimator_state = program.estimator.init(of_chain, position)
        return program.sampler.init(
            key, position, estimator_state, target, hyperparameters | dict(program.static)
        )

    own = program.own_constants(constants)
    return jax.vmap(one_chain, in_axes=axes)(keys, positions, hyperparameters, minibatch_key, own)


def advance(program: Program, constants, states, hyperparameters, keys, minibatch_key, start, n_draws, gaps):
    """Steps of every chain from step ``start`` on: ``gaps[i]`` steps before the i-th of ``n_draws`` kept positions,
    which are flat. The length of ``gaps`` is the program's number of draws. Chains share the minibatches of one key, or
    each has those of its own."""
    axes = (0, 0, mapped_axes(hyperparameters), 0 if minibatch_key.ndim else None, 0)
    own = program.own_constants(constants)

    def one_step(t, states):
        def one_chain(key, state, hyperparameters, minibatch_key, own):
            # What is the same for all chains, such as the rows of a shared minibatch, is computed once.
            target = program.target(constants | own, minibatch_key, t)
            return program.sampler.step(
                jax.random.fold_in(key, t), state, target, hyperparameters | dict(program.static)
            )

        return jax.vmap(one_chain, in_axes=axes)(keys, states, hyperparameters, minibatch_key, own)

    def one_draw(i, carry):
        states, draws, done = carry
        states = jax.lax.fori_loop(done, done + gaps[i], one_step, states)
        flat = jax.vmap(lambda position: ravel_pytree(position)[0])(states.position)
        return states, jax.lax.dynamic_update_index_in_dim(draws, flat, i, 0), done + gaps[i]

    flat_shape = jax.eval_shape(jax.vmap(lambda position: ravel_pytree(position)[0]), states.position)
    draws = jnp.zeros((program.length, *flat_shape.shape), jnp.float32)
    return jax.lax.fori_loop(0, n_draws, one_draw, (states, draws, start))[:2]


def shared_constants(
    model: Model, sampler: Sampler, estimator: GradientEstimator, centre: PyTree | None
) -> dict:
    """The density, the estimator's arrays, and the offset of the log density if the sampler uses it.

    Arrays that need a centre use ``centre``, or the MAP, for which they are computed once per model.

    Raises:
        InputError: ``centre`` has another shape than a position, or the log density is not finite there.
    """
    if estimator.needs_centre:
        constants = _at_centre(estimator.name, estimator.prepare, model, centre)
    else:
        constants = estimator.prepare(model, None)
    if sampler.uses_log_density:
        constants = {**constants, "offset": _at_centre("offset", offset_at, model, centre)}
    return {**constants, "density": density_of(model)}


def _at_centre(name: str, make: Callable, model: Model, centre: PyTree | None) -> PyTree:
    if centre is not None:
        return make(model, check_position("centre", model, centre))
    return model.found.once_at_mode(name, lambda: make(model, map_position(model)))


def are_finite(states: PyTree) -> Bool[np.ndarray, " w"]:
    """For each chain whether all numbers of ``states``, with a leading axis W, are finite."""
    return np.all(
        [np.isfinite(leaf).reshape(len(leaf), -1).all(axis=1) for leaf in jax.tree.leaves(states)], axis=0
    )


CHUNK_DRAWS = 1_024
CHUNK_BYTES = 32 * 2**20
"""A program hands back at most this many draws, and this many bytes of them, at a time."""

MOST_CALLS, SHORT = 64, 0.2
"""A run is made in at most so many pieces, so that its bar moves; where they take fewer seconds, the next ones are
larger. Draws do not depend on them, because steps are numbered."""


def chunk_length(dimension: int, width: int) -> int:
    """The number of draws that a program of this many chains returns at a time."""
    return min(CHUNK_DRAWS, max(1, CHUNK_BYTES // (4 * dimension * width)))


_jitted_advance = jax.jit(advance, static_argnums=0)
_compiled: dict[tuple, Callable] = {}
_seconds_to_compile: dict[tuple, float] = {}


@jax.jit
def _at_places(tree: PyTree, places: Int[Array, " k"]) -> PyTree:
    return jax.tree.map(lambda leaf: leaf[places], tree)


class Lockstep:
    """An ensemble of chains that differ only in their traced hyperparameters and their noise.

    The MAP is found first if it is needed.

    Args:
        arms: settings that share all static numbers.
        seed: root seed; a chain's noise depends only on it, on the arm and on ``replicate``.
        position: where every chain starts; None: at the MAP. With ``start_noise`` > 0 each arm starts at its own draw
            from N(position, start_noise^2 I), and is not finite where a Metropolis test would never leave that.
        centre: of the control variates, and of the offset of a Metropolis test's log density; None: the MAP.
        overrides: values for hyperparameters that the arms do not have (friction, noise_estimate).
        is_started: false for an ensemble whose chains are put elsewhere by `begin`.

    Attributes:
        start: where they start, flat, without the noise: ``(D,)``.
        states: the chains' states, leading axis W = number of arms.

    Raises:
        InputError: an argument is not allowed; this is checked before the MAP is searched for.
    """

    def __init__(
        self,
        model: Model,
        sampler_name: str,
        arms: list[Arm],
        *,
        seed: int = 0,
        replicate: int | str = 0,
        position: PyTree | None = None,
        centre: PyTree | None = None,
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
        if position is not None:
            position = check_position("position", model, position)
        self.constants = shared_constants(model, self.sampler, self.estimator, centre)
        self.start = flat = flatten(map_position(model) if position is None else position)
        starts = np.broadcast_to(flat, (len(arms), *flat.shape))
        if start_noise > 0:
            keys = named_keys(seed, [("start", *name) for name in names])
            noise = [jax.random.normal(key, flat.shape, jnp.float32) for key in keys]
            starts = starts + np.float32(start_noise) * np.stack(noise)
        self.program = Program(
            self.sampler,
            self.estimator,
            self.arms[0].batch_size,
            chunk_length(len(flat), len(arms)),
            static_numbers(sampler_name, self.arms[0], overrides or {}),
        )
        self.steps_done = 0
        self._run: Callable | None = None
        self._own_reader: Reader | None = None
        if is_started:
            init_keys = named_keys(seed, [("init", *name) for name in names])
            self.begin(init_keys, from_matrix(model, starts), check=not start_noise)
            # With noise a single chain may start where the density is zero, and would stay there.
            lives = are_finite(self.states)
            if start_noise and self.sampler.uses_log_density and not lives.all():
                starts = np.where(lives[:, None], starts, np.nan)
                self.begin(init_keys, from_matrix(model, starts), check=False)

    @named_faults()
    def begin(self, keys: Key[Array, " w"], positions: PyTree, check: bool = True) -> None:
        """Put the chains at ``positions`` (leading axis W); what else is random in their states is from ``keys``.

        Raises:
            InputError: the sampler uses the log density, and a state is not finite, so that a Metropolis test would
                never leave it; if ``check``.
        """
        # Programs that differ in their length share this one.
        program = self.program._replace(length=0)
        self.states = initial_states(
            program, self.constants, keys, positions, self.hyperparameters, self.minibatch_key
        )
        if check and self.sampler.uses_log_density and not are_finite(self.states).all():
            raise InputError(
                f"position: the log density of {self.model.name!r} or its gradient is not finite at a chain's start; "
                "it must be"
            )

    @property
    def width(self) -> int:
        """Number of chains."""
        return len(self.arms)

    def narrow(self, kept: list[int], at_least: int = 1) -> "Lockstep":
        """The ensemble of the chains ``kept``, each with its whole current state.

        A program's width is part of its shape. To share programs between rungs, the new width is the next power of
        two, or ``at_least`` if this is more; it is filled up with copies of the last chain, whose draws are ignored.
        """
        width = min(self.width, max(at_least, 1 << (len(kept) - 1).bit_length()))
        padded = np.array(kept + kept[-1:] * (width - len(kept)))
        other = copy(self)
        other.arms = [self.arms[i] for i in padded]
        numbers = {name: number for name, number in self.hyperparameters.items() if jnp.ndim(number)}
        minibatch_key = self.minibatch_key if self.minibatch_key.ndim else ()
        own = self.program.own_constants(self.constants)
        other.states, other.keys, minibatch_key, own, numbers = _at_places(
            (self.states, self.keys, minibatch_key, own, numbers), padded
        )
        if self.minibatch_key.ndim:
            other.minibatch_key = minibatch_key
            other._own_reader = None
        other.constants = self.constants | own
        other.hyperparameters = self.hyperparameters | numbers
        other._run = None
        return other

    @property
    def statistics(self) -> dict[str, np.ndarray]:
        """The sampler's diagnostics of the run so far: a ``(W,)`` array of each number; empty for most samplers."""
        return {name: np.asarray(values) for name, values in self.sampler.statistics(self.states).items()}

    @property
    def finite(self) -> Bool[np.ndarray, " w"]:
        """Whether each chain's position is finite."""
        return are_finite(self.states.position)

    @property
    def _reader(self) -> Reader | None:
        """Of minibatches whose rows are not in memory, unless a step has all data, or too much of it."""
        data = self.constants.get("data")
        if not isinstance(data, StoredRows) or self.program.batch_size == data.n_rows:
            return None
        if self._own_reader is None:
            has_leapfrog, arm = self.sampler.has_leapfrog, self.arms[0]
            each = self.sampler.gradients_per_step(arm.n_leapfrog) if has_leapfrog else 1
            self._own_reader = Reader(data, arm.batch_size, self.minibatch_key, each, has_leapfrog)
        return self._own_reader if self._own_reader.is_possible else None

    @property
    def _running(self) -> Program:
        """The program of `advance`: chains with their own minibatches have their own rows."""
        if self._reader is None or not self.minibatch_key.ndim:
            return self.program
        return self.program._replace(own=(*self.program.own, "ahead"))

    @property
    def shape(self) -> tuple:
        """The key of the compiled program: ensembles with equal keys share it."""
        leaves, structure = jax.tree.flatten(self._arguments([]))
        return (self._running, structure, tuple((leaf.shape, str(leaf.dtype)) for leaf in leaves))

    def compile(self) -> None:
        """Compile the program of this shape if no ensemble has done so yet in this process."""
        shape = self.shape
        if shape not in _compiled:
            start = perf_counter()
            lowered = _jitted_advance.lower(self._running, *self._arguments([]))
            _compiled[shape] = lowered.compile(compiler_options())
            _seconds_to_compile[shape] = perf_counter() - start
        self._run = _compiled[shape]

    def _arguments(self, gaps: Sequence[int] | Int[np.ndarray, " k"], ahead: Ahead | None = None) -> tuple:
        """Without ``ahead``, shapes stand for rows that a reader would give."""
        constants = self.constants
        if self._reader is not None:
            constants = constants | {"ahead": self._reader.shapes if ahead is None else ahead}
        padded = np.zeros(self.program.length, np.int32)
        padded[: len(gaps)] = gaps
        counts = (np.int32(self.steps_done), np.int32(len(gaps)), padded)
        return (constants, self.states, self.hyperparameters, self.keys, self.minibatch_key, *counts)

    @named_faults()
    def _call(self, gaps: Sequence[int] | Int[np.ndarray, " k"]) -> np.ndarray:
        """A draw after each of ``gaps``, in steps, by one call of the program, or one for all rows that are read ahead
        at a time. Blocks until done."""
        if self._run is None:
            self.compile()
        if self._reader is None:
            return self._call_once(gaps)
        if not len(gaps):
            # Who compiles before a clock starts has the first rows read, too.
            self._reader.at(self.steps_done)
        kept, done, chunks = self.steps_done + np.cumsum(gaps, dtype=np.int64), 0, []
        while done < len(kept):
            ahead, until = self._reader.at(self.steps_done)
            until = min(until, int(kept[-1]))
            ready = int(np.searchsorted(kept, until, side="right"))
            stops = kept[done:ready]
            if ready == done or stops[-1] < until:
                stops = np.append(stops, until)
            chunks.append(self._call_once(np.diff(stops, prepend=self.steps_done), ahead)[: ready - done])
            done = ready
        return np.concatenate([np.empty((0, self.width, self.model.dimension), np.float32), *chunks])

    def _call_once(
        self, gaps: Sequence[int] | Int[np.ndarray, " k"], ahead: Ahead | None = None
    ) -> np.ndarray:
        """`_call` by one call of the program."""
        self.states, draws = self._run(*self._arguments(gaps, ahead))
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
        end, piece = self.steps_done + n_steps, -(-n_steps // MOST_CALLS)
        kept = self.steps_done + stride * np.arange(1, n_steps // stride + 1)
        chunks = [self.advance_to(self.steps_done, kept[:0])]
        with progress_bar(self.sampler_name, n_steps, "steps") as done:
            while self.steps_done < end:
                began, first, until = perf_counter(), self.steps_done, min(end, self.steps_done + piece)
                chunks.append(self.advance_to(until, kept[(kept > first) & (kept <= until)]))
                done(until - first)
                piece *= 2 if perf_counter() - began < SHORT else 1
        return np.concatenate(chunks)

    def advance_to(
        self,
        n_steps: int,
        kept: Int[np.ndarray, " k"],
        stop: Event | None = None,
        done: Callable[[int], None] = lambda steps: None,
    ) -> np.ndarray:
        """Advance to step number ``n_steps`` of the chains' whole run, and return the draws of the steps ``kept``
        (ascending numbers): ``(k, W, D)``. ``done`` is called with the steps of each call of the program.

        Raises:
            CancelledError: another thread set ``stop``.
        """
        gaps, length = np.diff(kept, prepend=self.steps_done), self.program.length
        chunks = [np.empty((0, self.width, self.model.dimension), np.float32)]
        for start in range(0, len(gaps), length):
            if stop is not None and stop.is_set():
                raise CancelledError
            chunks.append(self._call(gaps[start : start + length]))
            done(int(np.sum(gaps[start : start + length])))
        if n_steps > self.steps_done:
            self._call([n_steps - self.steps_done])
        return np.concatenate(chunks)


def compile_together(
    ensembles: Iterable[Lockstep], others: Iterable[Callable[[], object]] = ()
) -> dict[tuple, float]:
    """Compile the programs of all ``ensembles``, on all cores, if that has not been done yet in this process.

    Args:
        others: calls that compile further programs, at the same time.

    Returns:
        the compilation seconds of each of their programs, now or before; programs that were compiled at the same time
        share the wall time.
    """
    programs = {ensemble.shape: ensemble for ensemble in ensembles}
    new = {shape: ensemble for shape, ensemble in programs.items() if shape not in _compiled}
    began = perf_counter()
    with ThreadPoolExecutor(cores()) as pool:
        compiling = pool.map(Lockstep.compile, new.values())
        calls = [pool.submit(call) for call in others]
        list(compiling)
    for call in calls:
        call.result()
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


def independent_chains(
    model: Model,
    sampler: str,
    arm: Arm,
    positions: Float[np.ndarray | Array, "w D"],
    *,
    seed: int = 0,
    replicate: int | str = 0,
    centre: PyTree | None = None,
    centres: Float[np.ndarray, "w D"] | None = None,
    overrides: dict[str, float] | None = None,
    own_minibatches: bool = False,
    check_start: bool = True,
) -> Lockstep:
    """An ensemble of W chains of ``arm`` that start at the rows of ``positions``.

    Their noise is independent, but all use the same i-th minibatch unless they have their own: with a batch size below
    N they are then independent only given the minibatches. Memory: the states of W chains.

    Args:
        own_minibatches: whether each chain has its own minibatches, whose rows are gathered for each.
        centre, overrides: as of `Lockstep`.
        centres: a centre for each chain, flat, in place of ``centre``.
        check_start: whether a start is refused at which a Metropolis test would reject all proposals.

    Raises:
        InputError: an argument is not allowed.
    """
    width = len(positions)
    if np.ndim(positions) != 2 or width == 0 or positions.shape[1] != model.dimension:
        raise InputError(
            f"positions: shape {np.shape(positions)} is not allowed; {model.name!r} needs one or more rows of "
            f"{model.dimension}"
        )
    starts = from_matrix(model, np.asarray(positions, np.float32))
    first = jax.tree.map(lambda leaf: leaf[0], starts)
    options = {"seed": seed, "replicate": replicate, "overrides": overrides, "is_started": False}
    if centres is not None:
        centre = unflatten(model, centres[0])
    ensemble = Lockstep(model, sampler, [arm], position=first, centre=centre, **options)
    names = (ensemble.sampler_name, *ensemble.arms[0].key, replicate)
    ensemble.arms = ensemble.arms * width
    ensemble.program = ensemble.program._replace(length=chunk_length(model.dimension, width))
    if centres is not None:
        ensemble.constants, own = _constants_of_each(ensemble, centres)
        ensemble.program = ensemble.program._replace(own=own)
    ensemble.keys = jax.random.split(named_key(seed, "noise", *names, "independent"), width)
    if own_minibatches and arm["batch_size"] < model.n_data:
        ensemble.minibatch_key = jax.random.split(ensemble.minibatch_key, width)
    ensemble.hyperparameters = {
        name: jnp.repeat(number, width) if jnp.ndim(number) else number
        for name, number in ensemble.hyperparameters.items()
    }
    keys = jax.random.split(named_key(seed, "init", *names, "independent"), width)
    ensemble.begin(keys, jax.tree.map(jnp.asarray, starts), check_start)
    return ensemble


def _constants_of_each(ensemble: Lockstep, centres: Float[np.ndarray, "w D"]) -> tuple[dict, tuple[str, ...]]:
    """The constants of chains with these centres, and the names of those with a leading axis W. Arrays that are the
    same object for all centres, such as the data, have none. Those of the first centre are the ensemble's."""
    model, found = ensemble.model, {centres[0].tobytes(): ensemble.constants}
    for row in centres:
        if row.tobytes() not in found:
            parts = (ensemble.sampler, ensemble.estimator, unflatten(model, row))
            found[row.tobytes()] = shared_constants(model, *parts)
    each = [found[row.tobytes()] for row in centres]
    own = tuple(
        name
        for name, shared in each[0].items()
        if any(
            leaf is not other
            for one in each
            for leaf, other in zip(jax.tree.leaves(one[name]), jax.tree.leaves(shared), strict=True)
        )
    )
    stacked = {
        name: jax.tree.map(lambda *leaves: jnp.stack(leaves), *(one[name] for one in each)) for name in own
    }
    return each[0] | stacked, own
