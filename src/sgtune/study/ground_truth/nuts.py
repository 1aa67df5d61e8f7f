"""Ground truth: draws of NumPyro's NUTS, in blocks that survive a kill (paper App. B: NUTS by NumPyro)."""

import hashlib
import json
import logging
import math
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import PyTree

from sgtune.mode.curvature import laplace_scale
from sgtune.mode.find import map_position
from sgtune.model import Model
from sgtune.model.positions import flatten
from sgtune.model.posterior import LARGE_DIMENSION, Density, density_of, log_posterior
from sgtune.study.ground_truth.draws import Moments, add_draws, to_inference_data
from sgtune.support.errors import DataError
from sgtune.support.files import atomic_write, read_npz
from sgtune.support.machine import full_precision
from sgtune.support.randomness import named_key

if TYPE_CHECKING:
    from arviz import InferenceData

logger = logging.getLogger(__name__)

# The largest size of one chain's draws, on disk and in memory: 5,000 of 52,580 parameters would be a gigabyte.
KEPT_BYTES = 512 * 2**20

WARMUP_PER_PARAMETER = 20
"""A dense mass matrix adapts only if the warm-up has this many iterations per parameter: with fewer it is worse than
the Laplace approximation's (tried on the logistic regression with 60 iterations)."""


def sample_nuts(
    model: Model,
    *,
    n_warmup: int,
    n_draws: int,
    seed: int,
    chain: int = 0,
    checkpoint_dir: str | Path,
    block: int = 250,
    max_tree_depth: int = 10,
) -> "InferenceData":
    """One chain of NUTS from the MAP; its mass matrix is dense up to D = 200.

    The mass matrix starts at the Laplace approximation's; it (a dense one if the warm-up has at least
    `WARMUP_PER_PARAMETER` iterations for each parameter) and the step size adapt during the warm-up,
    which is not kept. After every ``block`` iterations the draws and the sampler's whole state go to
    ``checkpoint_dir``, which belongs to this one chain. A call with the same arguments continues after the last
    complete block, and its draws equal those of an uninterrupted run, bit for bit; blocks of other arguments, another
    MAP, another posterior, other functionals or other versions of JAX or NumPyro are discarded.

    A trajectory has at most 2^max_tree_depth - 1 leapfrogs. Draws of more than `KEPT_BYTES` are thinned evenly
    while sampling; `summary` still gives mean and sd of all. The model's functionals are kept for every draw.

    Returns:
        one chain, as `sgtune.study.ground_truth.draws.to_inference_data` makes it; ``sample_stats`` has ``diverging``,
        ``n_steps`` (leapfrogs), ``acceptance_rate``, ``energy`` (less a constant) and ``step_size``.
    """
    total = n_warmup + n_draws
    every = thinning(model.dimension, n_draws, KEPT_BYTES)
    of_position = jax.eval_shape(model.functionals or (lambda position: jnp.empty(0)), model.position_shape)
    (n_functionals,) = of_position.shape
    is_dense = model.dimension <= LARGE_DIMENSION
    adapts = not is_dense or n_warmup >= WARMUP_PER_PARAMETER * model.dimension
    kernel = Kernel(model.functionals, n_warmup, is_dense, adapts, max_tree_depth)
    start = map_position(model)
    # Of all that a chain depends on but the model's functions: `agrees` sees to those.
    of_start = hashlib.sha256(flatten(start).tobytes()).hexdigest()
    of_model = [model.name, model.checksum, model.dimension, n_functionals, of_start]
    of_run = [n_warmup, max_tree_depth, n_draws, seed, chain, block, every]
    fingerprint = json.dumps([*of_model, *of_run, jax.__version__, version("numpyro")])
    kept = Checkpoints(checkpoint_dir, fingerprint)
    scale = laplace_scale(model)
    covariance = jnp.asarray(scale @ scale.T if kernel.dense else scale**2, jnp.float32)
    density = density_of(model)
    offset = jax.jit(log_posterior)(density, start, model.data) / model.n_data
    # Raw, so that all leaves of a state are arrays.
    key = jax.random.key_data(named_key(seed, "nuts", model.name, chain))
    state = initial_state(kernel, start, covariance, key, (density, model.data, offset))
    if kept.blocks:
        last = kept.blocks[-1]
        structure = jax.tree.structure(state)
        leaves = (jnp.asarray(last[f"state_{i}"]) for i in range(structure.num_leaves))
        held = structure.unflatten(leaves), jnp.float32(last["offset"])
        if agrees(kernel, held[0], (density, model.data, held[1]), last["functionals_at_state"]):
            state, offset = held
        else:
            logger.warning("%s: blocks of another log posterior; discarded", kept.folder)
            kept.discard()
    done = sum(len(arrays["n_steps"]) for arrays in kept.blocks)
    where = f"NUTS on {model.name}, chain {chain}"
    if done:
        logger.info("%s: continues after iteration %d of %d", where, done, total)
    while done < total:
        began = perf_counter()
        length = min(block, total - done)
        state, draws, statistics = jax.block_until_ready(
            advance(kernel, length, state, (density, model.data, offset))
        )
        before = kept.blocks[-1] if done else {}
        arrays = {name: np.asarray(values) for name, values in statistics.items()}
        functionals = arrays.pop("functionals", None)
        arrays |= _of_block(np.asarray(draws), functionals, before, done - n_warmup, every)
        arrays |= {"seconds": perf_counter() - began, "offset": np.asarray(offset)}
        kept.keep(arrays, state)
        done += length
        logger.info(
            "%s: iteration %d of %d, %.1f s, %d divergences, %.1f leapfrogs, step %.3g",
            *(where, done, total, arrays["seconds"], arrays["diverging"].sum()),
            *(arrays["n_steps"].mean(), arrays["step_size"][-1]),
        )
    statistics = {name: kept.joined(name) for name in STATISTICS}
    attributes = {
        "n_warmup": n_warmup,
        "max_tree_depth": max_tree_depth,
        "seed": seed,
        "seconds": float(sum(block["seconds"] for block in kept.blocks)),
        "warmup_leapfrogs": int(statistics["n_steps"][:n_warmup].sum()),
        "numpyro_version": version("numpyro"),
    }
    after = {name: values[n_warmup:] for name, values in statistics.items()}
    moments, of_functionals = (moments_of(kept.blocks[-1], of) for of in ("moments", "functional_moments"))
    functionals = None if of_functionals is None else (kept.joined("functionals"), of_functionals)
    options = {"moments": moments, "every": every, "functionals": functionals}
    return to_inference_data(model, kept.joined("draws"), after, attributes, **options)


def _of_block(
    draws: np.ndarray, functionals: np.ndarray | None, before: dict, drawn: int, every: int
) -> dict[str, np.ndarray]:
    """What a block keeps of its iterations, the first of which is draw ``drawn``, of the warm-up if that is negative:
    draws, all functionals, the moments of both so far (``before`` is the block before), the last functionals."""
    first, after_warmup = (every - 1 - max(0, drawn)) % every, slice(max(0, -drawn), None)
    moments = {"moments": draws[after_warmup]}
    # A copy, for a slice would hold on to the draws that are not kept.
    arrays = {"draws": moments["moments"][first::every].copy()}
    arrays["functionals_at_state"] = np.empty(0, np.float32) if functionals is None else functionals[-1]
    if functionals is not None:
        moments["functional_moments"] = arrays["functionals"] = functionals[after_warmup]
    for prefix, values in moments.items():
        if len(values):
            found = add_draws(moments_of(before, prefix), values)._asdict()
            arrays |= {f"{prefix}_{name}": value for name, value in found.items() if value is not None}
    return arrays


class Checkpoints:
    """The folder of one chain, and its blocks so far in memory.

    Each block has the ``statistics``, one value per iteration, ``draws`` (m, D), ``functionals`` (n, K) if the model
    has any, ``seconds``, and further arrays that describe its end. ``blocks`` are those up to the last complete one
    with this ``fingerprint``, which covers all that they depend on.
    """

    def __init__(self, folder: str | Path, fingerprint: str):
        self.folder, self.fingerprint = Path(folder), fingerprint
        self.blocks: list[dict[str, np.ndarray]] = []
        while (path := self._path()).is_file():
            try:
                arrays = read_npz(path)
            except DataError:
                logger.warning("%s: not readable; sampling again from here", path)
                break
            if str(arrays.pop("fingerprint", "")) != fingerprint:
                logger.warning("%s: of another run; sampling again from here", path)
                break
            self.blocks.append(arrays)

    def keep(self, arrays: dict[str, Any], state: PyTree) -> None:
        """Write the next block with the state after it."""
        leaves = {f"state_{i}": np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(state))}
        with atomic_write(self._path()) as temporary:
            np.savez(temporary, fingerprint=self.fingerprint, **arrays, **leaves)
        self.blocks.append(arrays)

    def discard(self) -> None:
        """Delete all blocks. Those of another function have this fingerprint, and would follow new ones."""
        for path in self.folder.glob("block-*.npz"):
            path.unlink()
        self.blocks.clear()

    def joined(self, name: str) -> np.ndarray:
        """One array, concatenated over all blocks."""
        return np.concatenate([arrays[name] for arrays in self.blocks])

    def _path(self) -> Path:
        """The file of the next block."""
        return self.folder / f"block-{len(self.blocks):05d}.npz"


def thinning(dimension: int, n_draws: int, most_bytes: int) -> int:
    """The smallest k such that every k-th of ``n_draws`` float32 draws takes at most ``most_bytes`` in total."""
    return min(n_draws, max(1, math.ceil(np.float32().nbytes * dimension * n_draws / most_bytes)))


def moments_of(arrays: dict[str, np.ndarray], prefix: str) -> Moments | None:
    """The moments of all draws up to the end of the block; None if there are no draws."""
    if f"{prefix}_n" not in arrays:
        return None
    n, *rest = (arrays.get(f"{prefix}_{name}") for name in Moments._fields)
    return Moments(int(n), *rest)


STATISTICS = {
    "diverging": lambda state: state.diverging,
    "n_steps": lambda state: state.num_steps,
    "acceptance_rate": lambda state: state.accept_prob,
    "energy": lambda state: state.energy,
    "step_size": lambda state: state.adapt_state.step_size,
}
"""The statistics recorded in every iteration, by name."""

# The largest change of a functional, relative to the largest functional, that rounding on another machine explains.
ROUNDING = 1e-4


class Kernel(NamedTuple):
    """The static arguments of the compiled programs."""

    functionals: Callable | None
    n_warmup: int
    dense: bool
    adapt_mass_matrix: bool
    max_tree_depth: int

    def build(self):
        """NumPyro's pair of functions (init, sample); init must be called before sample in every program."""
        from numpyro.infer.hmc import hmc

        def potential(density: Density, data, offset):
            return lambda position: -log_posterior(density, position, data, offset)

        init, sample = hmc(potential_fn_gen=potential, algo="NUTS")
        depth, adapts = self.max_tree_depth, self.adapt_mass_matrix
        settings = {"dense_mass": self.dense, "adapt_mass_matrix": adapts, "max_tree_depth": depth}
        return partial(init, num_warmup=self.n_warmup, **settings), sample


@partial(jax.jit, static_argnums=0)
def initial_state(kernel: Kernel, position, covariance, key, on: tuple):
    """NumPyro's state before the first iteration, with ``covariance`` as the inverse mass matrix. ``on``: density, data
    and offset."""
    init, _ = kernel.build()
    state = init(position, inverse_mass_matrix=covariance, model_args=on, rng_key=key)
    # With a weakly typed leaf the first block would be compiled separately.
    return jax.tree.map(lambda leaf: jax.lax.convert_element_type(leaf, leaf.dtype), state)


@partial(jax.jit, static_argnums=(0, 1))
@full_precision
def advance(kernel: Kernel, length: int, state, on: tuple):
    """Run ``length`` iterations: the state after them, flat draws ``(length, D)``, statistics ``(length,)``.

    The statistics include the ``functionals`` of every draw, ``(length, K)``, if the model has any.
    """
    init, sample = kernel.build()
    init(state.z, model_args=on)

    def body(state, _):
        state = sample(state, model_args=on)
        statistics = {name: statistic(state) for name, statistic in STATISTICS.items()}
        if kernel.functionals is not None:
            statistics["functionals"] = kernel.functionals(state.z)
        return state, (ravel_pytree(state.z)[0], statistics)

    state, (draws, statistics) = jax.lax.scan(body, state, length=length)
    return state, draws, statistics


def agrees(kernel: Kernel, state: PyTree, on: tuple, functionals: np.ndarray) -> bool:
    """Whether the model still gives the state's stored energy and functionals; no checksum covers its functions.

    ``functionals`` are the stored values at the state, as many as the model has.
    """
    density, data, offset = on
    energy = -float(jax.jit(log_posterior)(density, state.z, data, offset))
    stored = float(state.potential_energy)
    if abs(energy - stored) > 0.1 + 1e-4 * abs(stored):
        return False
    if kernel.functionals is None:
        return True
    now = np.asarray(jax.jit(full_precision(kernel.functionals))(state.z))
    return bool(np.abs(now - functionals).max() <= ROUNDING * np.abs(functionals).max())
