"""Ground truth: draws of NumPyro's NUTS, in blocks that survive a kill (paper App. B: NUTS by NumPyro)."""

import hashlib
import json
import logging
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from sgtune.mode.curvature import laplace_scale
from sgtune.mode.find import map_position
from sgtune.model import Model
from sgtune.model.positions import flatten
from sgtune.model.posterior import LARGE_DIMENSION, density_of, log_posterior
from sgtune.study.ground_truth.checkpoints import (
    Checkpoints,
    moments_of,
    moments_to_arrays,
    state_of,
    thinning,
)
from sgtune.study.ground_truth.convergence import by_block, convergence, diagnostics
from sgtune.study.ground_truth.draws import (
    add_draws,
    combine_chains,
    read_draws,
    summary,
    to_inference_data,
    write_draws,
)
from sgtune.study.ground_truth.kernel import STATISTICS, Kernel, advance, agrees, initial_state, shapes
from sgtune.support.errors import check_integer
from sgtune.support.randomness import named_key

if TYPE_CHECKING:
    from arviz import InferenceData

__all__ = [
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

# The largest size of one chain's draws, on disk and in memory: 5,000 of 52,580 parameters would be a gigabyte.
KEPT_BYTES = 512 * 2**20
# Of the functionals in a saved file, which is to be committed.
SAVED_BYTES = 4 * 2**20

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
    saved: str | Path | None = None,
    block: int = 250,
    max_tree_depth: int = 10,
    position: PyTree | None = None,
) -> "InferenceData":
    """One chain of NUTS from ``position`` (default: MAP); its mass matrix is dense up to D = 200.

    The mass matrix starts at the Laplace approximation's; it (a dense one if the warm-up has at least
    `WARMUP_PER_PARAMETER` iterations for each parameter) and the step size adapt during the
    warm-up, which is not kept. After every ``block`` iterations the draws and the sampler's whole state go to
    ``checkpoint_dir``, which belongs to this one chain. A call with the same arguments continues after the last
    complete block, and its draws equal those of an uninterrupted run, bit for bit; blocks of other arguments,
    another MAP, another posterior, other functionals or other versions of JAX or NumPyro are discarded.

    A trajectory has at most 2^max_tree_depth - 1 leapfrogs. Draws of more than `KEPT_BYTES` are thinned evenly
    while sampling; `summary` still gives mean and sd of all. The model's functionals are kept for every draw.

    ``saved`` is written after every block: the state from which the chain can continue, without draws, so that it may
    be
    committed (D = 52,580 with 2,000 functionals of 5,000 draws, of which 500 are saved: 5.5 MB). Where
    ``checkpoint_dir`` has no first block, but a copy of that file named `RESTORED`, the chain goes on from there,
    bit for bit; the draws before it are missing from the result, which counts them as ``draws_lost``, and the
    functionals of draws that were not saved are nan. Mean and sd are still for all draws.

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
    every = thinning(model.dimension, n_draws, KEPT_BYTES)
    # Of functionals, in a saved file.
    every_saved = thinning(_n_functionals(model), n_draws, SAVED_BYTES)
    is_dense = model.dimension <= LARGE_DIMENSION
    adapts = not is_dense or n_warmup >= WARMUP_PER_PARAMETER * model.dimension
    kernel = Kernel(density_of(model), model.functionals, n_warmup, is_dense, adapts, max_tree_depth)
    start = map_position(model) if position is None else jax.tree.map(jnp.asarray, position)
    kept = Checkpoints(
        checkpoint_dir,
        _fingerprint(model, kernel, n_draws, seed, chain, block, every, every_saved),
        hashlib.sha256(flatten(start).tobytes()).hexdigest(),
        statistics=tuple(STATISTICS),
        saved=saved,
        every=every_saved,
    )
    if kept.blocks:
        last = kept.blocks[-1]
        offset = jnp.float32(last["offset"])
        state = state_of(last, shapes(kernel, model))
        if not agrees(kernel, state, model.data, offset, last["functionals_at_state"]):
            logger.warning("%s: blocks of another log posterior; discarded", kept.folder)
            kept.forget()
    if not kept.blocks:
        scale = laplace_scale(model)
        covariance = jnp.asarray(scale @ scale.T if kernel.dense else scale**2, jnp.float32)
        offset = jax.jit(log_posterior, static_argnums=0)(kernel.density, start, model.data) / model.n_data
        key = named_key(seed, "nuts", model.name, chain)
        state = initial_state(kernel, start, covariance, key, model.data, offset)
    done = sum(len(arrays["n_steps"]) for arrays in kept.blocks)
    lost = max(0, len(kept.blocks[0]["n_steps"]) - n_warmup) if kept.restored else 0
    if done:
        logger.info(
            "NUTS on %s, chain %d: continues after iteration %d of %d", model.name, chain, done, total
        )
    while done < total:
        began = perf_counter()
        length = min(block, total - done)
        state, draws, statistics = jax.block_until_ready(advance(kernel, length, state, model.data, offset))
        before = kept.blocks[-1] if done else {}
        arrays = {name: np.asarray(values) for name, values in statistics.items()}
        arrays |= _of_block(
            np.asarray(draws), arrays.pop("functionals", None), before, done - n_warmup, every
        )
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
    statistics = {name: kept.joined(name) for name in STATISTICS}
    of_functionals = moments_of(kept.blocks[-1], "functional_moments")
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
            "draws_lost": lost,
            "functionals_every": every_saved,
            "numpyro_version": version("numpyro"),
        },
        moments=moments_of(kept.blocks[-1], "moments"),
        every=every,
        functionals=None if of_functionals is None else (kept.joined("functionals"), of_functionals),
    )


def _of_block(
    draws: np.ndarray, functionals: np.ndarray | None, before: dict, drawn: int, every: int
) -> dict[str, np.ndarray]:
    """What a block keeps of its iterations, the first of which is draw ``drawn``, of the warm-up if that is negative.

    The draws that are kept, the functionals (None: the model has none) of all draws, of both the moments of all
    draws so far, ``before`` being the block before; and the functionals at the last iteration.
    """
    at_state = np.empty(0, np.float32) if functionals is None else functionals[-1]
    first = (every - 1 - max(0, drawn)) % every
    after_warmup = slice(max(0, -drawn), None)
    draws = draws[after_warmup]
    # A copy, for a slice would hold on to the draws that are not kept.
    arrays = {"functionals_at_state": at_state, "draws": draws[first::every].copy() if every > 1 else draws}
    moments = {"moments": draws}
    if functionals is not None:
        moments["functional_moments"] = arrays["functionals"] = functionals[after_warmup]
    for prefix, values in moments.items():
        if len(values):
            arrays |= moments_to_arrays(add_draws(moments_of(before, prefix), values), prefix)
    return arrays


def _n_functionals(model: Model) -> int:
    """K; 0 where the functionals are the position itself."""
    return (
        0 if model.functionals is None else jax.eval_shape(model.functionals, model.position_shape).shape[0]
    )


def _fingerprint(model, kernel, n_draws, seed, chain, block, every, every_saved) -> str:
    """Of all that a chain depends on but its start, and but the model's functions: `agrees` sees to those."""
    of_model = [model.name, model.checksum, model.dimension, _n_functionals(model)]
    of_run = [kernel.n_warmup, kernel.max_tree_depth, n_draws, seed, chain, block, every, every_saved]
    return json.dumps([*of_model, *of_run, jax.__version__, version("numpyro")])
