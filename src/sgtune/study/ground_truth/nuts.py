"""Ground truth: draws of NumPyro's NUTS, in blocks that survive a kill (paper App. B: NUTS by NumPyro)."""

import hashlib
import json
import logging
import math
from functools import partial
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import PyTree

from sgtune.errors import check_integer
from sgtune.mode.curvature import laplace_scale
from sgtune.mode.find import map_position
from sgtune.model import Model
from sgtune.positions import flatten
from sgtune.posterior import LARGE_DIMENSION, Density, density_of, log_posterior
from sgtune.randomness import named_key
from sgtune.study.ground_truth.checkpoints import (
    Checkpoints,
    is_key,
    moments_of,
    moments_to_arrays,
    state_of,
)
from sgtune.study.ground_truth.convergence import R_HAT_TRUSTED, by_block, convergence, diagnostics
from sgtune.study.ground_truth.draws import (
    add_draws,
    combine_chains,
    read_draws,
    summary,
    to_inference_data,
    write_draws,
)

if TYPE_CHECKING:
    from arviz import InferenceData

__all__ = [
    "R_HAT_TRUSTED",
    "by_block",
    "combine_chains",
    "convergence",
    "diagnostics",
    "read_draws",
    "sample_nuts",
    "summary",
    "write_draws",
]

logger = logging.getLogger(__name__)

# Of one chain's draws, on disk and in memory: 5,000 of 52,580 parameters would be a gigabyte.
KEPT_BYTES = 512 * 2**20


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
    position: PyTree | None = None,
) -> "InferenceData":
    """One chain of NUTS from ``position`` (default: MAP); its mass matrix is dense up to D = 200.

    The mass matrix starts as that of the Laplace approximation; it and the step size adapt during the
    warm-up, which is not kept. After every ``block`` iterations the draws and the sampler's whole state go to
    ``checkpoint_dir``, which belongs to this one chain. A call with the same arguments goes on from the last
    whole block, and its draws are those of an uninterrupted run, bit for bit; blocks of other arguments,
    another MAP, another posterior or other versions of JAX or NumPyro are thrown away.

    A trajectory has at most 2^max_tree_depth - 1 leapfrogs. Draws of more than `KEPT_BYTES` are thinned evenly
    as they come; `summary` still gives mean and sd of all.

    Returns:
        one chain, as `sgtune.study.ground_truth.draws.to_inference_data` makes it; ``sample_stats`` has ``diverging``,
        ``n_steps`` (leapfrogs), ``acceptance_rate``, ``energy`` (less a constant) and ``step_size``.

    Raises:
        InputError: an argument is out of range.
    """
    n_warmup = check_integer("n_warmup", n_warmup, at_least=1)
    n_draws = check_integer("n_draws", n_draws, at_least=1)
    block = check_integer("block", block, at_least=1)
    max_tree_depth = check_integer("max_tree_depth", max_tree_depth, at_least=1)
    total = n_warmup + n_draws
    every = _thinning(model.dimension, n_draws)
    kernel = _Kernel(density_of(model), n_warmup, model.dimension <= LARGE_DIMENSION, max_tree_depth)
    start = map_position(model) if position is None else jax.tree.map(jnp.asarray, position)
    made_of = _fingerprint(model, kernel, n_draws, seed, chain, block, start, every)
    kept = Checkpoints(checkpoint_dir, made_of)
    if kept.blocks:
        offset = jnp.float32(kept.blocks[-1]["offset"])
        state = state_of(kept.blocks[-1], _shapes(kernel, model))
        if not _agrees(kernel.density, state, model.data, offset):
            logger.warning("%s: blocks of another log posterior, thrown away", kept.folder)
            kept.forget()
    if not kept.blocks:
        scale = laplace_scale(model)
        covariance = jnp.asarray(scale @ scale.T if kernel.dense else scale**2, jnp.float32)
        offset = jax.jit(log_posterior, static_argnums=0)(kernel.density, start, model.data) / model.n_data
        key = named_key(seed, "nuts", model.name, chain)
        state = _initial_state(kernel, start, covariance, key, model.data, offset)
    done = sum(len(arrays["n_steps"]) for arrays in kept.blocks)
    moments = moments_of(kept.blocks[-1]) if kept.blocks else None
    if done:
        logger.info("NUTS on %s, chain %d: goes on after iteration %d of %d", model.name, chain, done, total)
    while done < total:
        began = perf_counter()
        length = min(block, total - done)
        state, draws, statistics = jax.block_until_ready(_advance(kernel, length, state, model.data, offset))
        arrays = {name: np.asarray(values) for name, values in statistics.items()}
        draws = np.asarray(draws)[max(0, n_warmup - done) :]
        if every > 1 and len(draws):
            moments = add_draws(moments, draws)
            first = (every - 1 - max(0, done - n_warmup)) % every
            # A copy, for a slice would hold on to the draws that are not kept.
            draws = draws[first::every].copy()
        arrays["draws"] = draws
        arrays |= moments_to_arrays(moments)
        arrays |= {"seconds": perf_counter() - began, "offset": np.asarray(offset)}
        kept.keep(arrays, state)
        done += length
        progress = (model.name, chain, done, total, arrays["seconds"], arrays["diverging"].sum())
        logger.info(
            "NUTS on %s, chain %d: iteration %d of %d, %.1f s, %d divergences, %.1f leapfrogs, step %.3g",
            *progress,
            arrays["n_steps"].mean(),
            arrays["step_size"][-1],
        )
    statistics = {name: kept.joined(name) for name in _STATISTICS}
    return to_inference_data(
        model,
        kept.joined("draws"),
        {name: values[n_warmup:] for name, values in statistics.items()},
        {
            "n_warmup": n_warmup,
            "max_tree_depth": max_tree_depth,
            "seed": seed,
            "seconds": float(sum(arrays["seconds"] for arrays in kept.blocks)),
            "warmup_leapfrogs": int(statistics["n_steps"][:n_warmup].sum()),
            "numpyro_version": version("numpyro"),
        },
        every=every,
        moments=moments,
    )


def _thinning(dimension: int, n_draws: int) -> int:
    """Draws of which one is kept, so that a chain's take at most `KEPT_BYTES`."""
    return min(n_draws, max(1, math.ceil(np.float32().nbytes * dimension * n_draws / KEPT_BYTES)))


# --- the kernel: NumPyro's, with the data and the position as arguments ---

_STATISTICS = {
    "diverging": lambda state: state.diverging,
    "n_steps": lambda state: state.num_steps,
    "acceptance_rate": lambda state: state.accept_prob,
    "energy": lambda state: state.energy,
    "step_size": lambda state: state.adapt_state.step_size,
}


class _Kernel(NamedTuple):
    """What is static about the compiled programs."""

    density: Density
    n_warmup: int
    dense: bool
    max_tree_depth: int

    def build(self):
        """NumPyro's pair of functions (init, sample); init must be called before sample in every program."""
        from numpyro.infer.hmc import hmc

        def potential(data, offset):
            return lambda position: -log_posterior(self.density, position, data, offset)

        init, sample = hmc(potential_fn_gen=potential, algo="NUTS")
        settings = {"dense_mass": self.dense, "max_tree_depth": self.max_tree_depth}
        return partial(init, num_warmup=self.n_warmup, **settings), sample


@partial(jax.jit, static_argnums=0)
def _initial_state(kernel: _Kernel, position, covariance, key, data, offset):
    init, _ = kernel.build()
    state = init(position, inverse_mass_matrix=covariance, model_args=(data, offset), rng_key=key)
    # A weakly typed leaf would make the first block another program than the rest.
    return jax.tree.map(
        lambda leaf: leaf if is_key(leaf) else jax.lax.convert_element_type(leaf, leaf.dtype), state
    )


@partial(jax.jit, static_argnums=(0, 1))
def _advance(kernel: _Kernel, length: int, state, data, offset):
    """``length`` iterations: the state after them, flat draws ``(length, D)``, statistics ``(length,)``."""
    init, sample = kernel.build()
    init(state.z, model_args=(data, offset))

    def body(state, _):
        state = sample(state, model_args=(data, offset))
        statistics = {name: statistic(state) for name, statistic in _STATISTICS.items()}
        return state, (ravel_pytree(state.z)[0], statistics)

    state, (draws, statistics) = jax.lax.scan(body, state, length=length)
    return state, draws, statistics


def _shapes(kernel: _Kernel, model: Model) -> PyTree:
    """Those of a state, without computing one."""
    dimension = model.dimension
    covariance = jax.ShapeDtypeStruct((dimension, dimension) if kernel.dense else (dimension,), jnp.float32)
    key, offset = jax.random.key(0), jnp.float32(0)
    return jax.eval_shape(
        partial(_initial_state, kernel), model.position_shape, covariance, key, model.data, offset
    )


def _agrees(density: Density, state: PyTree, data: PyTree, offset: jax.Array) -> bool:
    """Whether the state's potential energy is still that of the model, whose functions no checksum covers."""
    energy = -float(jax.jit(log_posterior, static_argnums=0)(density, state.z, data, offset))
    stored = float(state.potential_energy)
    return abs(energy - stored) <= 0.1 + 1e-4 * abs(stored)


def _fingerprint(model, kernel, n_draws, seed, chain, block, start, every) -> str:
    origin = hashlib.sha256(flatten(start).tobytes()).hexdigest()
    of_model = [model.name, model.checksum, model.dimension, kernel.n_warmup, kernel.max_tree_depth]
    what = [*of_model, n_draws, seed, chain, block, origin, every]
    return json.dumps([*what, jax.__version__, version("numpyro")])
