"""The bias of AdamMCMC's approximations on N(0, I): E x^2 against gamma / s."""

from collections.abc import Mapping
from itertools import product

import numpy as np
from jaxtyping import Float

from sgtune.sampling.arm import Arm
from sgtune.study.adam_mcmc.chains import moments_of_chains, standard_normal
from sgtune.study.pipeline.parts import Parts
from sgtune.support.randomness import named_seed

__all__ = ["VARIANTS", "measure_bias"]

N_DATA, BATCH = 100, 10

VARIANTS: dict[str, tuple[str, int, float]] = {
    "isotropic": ("adam-mcmc", N_DATA, 0.0),
    "prolate": ("adam-mcmc", N_DATA, 1.0),
    "prolate-batch": ("adam-mcmc", BATCH, 1.0),
    "minibatch-test": ("adam-mcmc-minibatch", BATCH, 1.0),
    "exact": ("adam-mcmc-exact", N_DATA, 1.0),
}
"""By name: the sampler, the batch size and s_d."""

MORE_OF_EXACT = 8
"""The exact variant is claimed to have no bias. It has this many times the chains, so that a small one would show."""


def measure_bias(settings: Mapping, parts: Parts, seed: int = 0) -> dict:
    """E x^2, 1 under the target, mean squared jumps of a coordinate, and the acceptance, all after the warm-up, of
    every variant, D and gamma / s, at s = scale / sqrt(D).

    Chains start at exact draws, and each has its own minibatches; no two cells have draws in common. A number of
    ``squares`` is one chain's mean over steps and parameters.

    Args:
        settings: the configuration's section ``adam_mcmc.bias``.

    Returns:
        ``cells``: ``variant``, ``dimension``, ``ratio``, ``chains``, ``squares`` and ``acceptance``; ``halves``, the
        squares of the first and of the second half of the run; ``jump``, in units of the target's variance.
    """
    found = []
    for dimension, variant, ratio in product(settings["dimensions"], VARIANTS, settings["ratios"]):
        if variant == "exact" and dimension > settings["exact_up_to"]:
            continue
        name = f"{variant} D={dimension} ratio={ratio:g}"
        cell = {"variant": variant, "dimension": dimension, "ratio": ratio}
        cell["chains"] = settings["chains"] * (MORE_OF_EXACT if variant == "exact" else 1)
        depends_on = {"settings": dict(settings), "seed": seed}
        own = parts.once(name, depends_on, lambda cell=cell, name=name: _measured(cell, settings, name, seed))
        parts.report(f"{name}: E x^2 = {np.mean(own['squares']):.3f}")
        found.append(own)
    return {**{key: settings[key] for key in ("scale", "steps", "warmup", "chains")}, "cells": found}


def _measured(cell: Mapping, settings: Mapping, name: str, seed: int) -> dict:
    dimension, (sampler, batch_size, along) = cell["dimension"], VARIANTS[cell["variant"]]
    s = settings["scale"] / np.sqrt(dimension)
    starts = np.random.default_rng(named_seed(seed, "adam_mcmc", "bias", name)).standard_normal(
        (cell["chains"], dimension)
    )
    found = moments_of_chains(
        standard_normal(dimension, N_DATA, seed),
        sampler,
        Arm(cell["ratio"] * s, batch_size, noise_sd=s, directional_noise=along),
        starts,
        seed=seed,
        replicate=f"bias {name}",
        warmup=settings["warmup"],
        steps=settings["steps"],
        square=_square,
        jump=_jump,
        n_jumping=dimension,
    )
    squares = {"squares": found["square"]}
    return {**cell, **squares, **{name: found[name] for name in ("halves", "jump", "acceptance")}}


def _square(draws: Float[np.ndarray, "n w d"]) -> Float[np.ndarray, "n w"]:
    return np.einsum("nwd,nwd->nw", draws, draws, dtype=np.float64) / draws.shape[-1]


def _jump(draws: Float[np.ndarray, "n w d"]) -> Float[np.ndarray, " w"]:
    moved = np.diff(draws, axis=0)
    return np.einsum("nwd,nwd->w", moved, moved, dtype=np.float64)
