"""The bias of AdamMCMC's approximations on N(0, I): E x^2 against gamma / s."""

from collections.abc import Callable, Mapping

import numpy as np

from sgtune.sampling.arm import Arm
from sgtune.sampling.lockstep import independent_chains
from sgtune.study.adam_mcmc.chain_moments import moments_of_chains
from sgtune.study.adam_mcmc.gaussians import standard_normal
from sgtune.study.adam_mcmc.settings import n_chains_of
from sgtune.study.config.sections import fingerprint
from sgtune.study.pipeline.parts import Parts, code_digest
from sgtune.support.randomness import named_seed

__all__ = ["N_DATA", "VARIANTS", "measure_bias"]

N_DATA = 100
BATCH = 10

VARIANTS: dict[str, tuple[str, int, float]] = {
    "isotropic": ("adam-mcmc", N_DATA, 0.0),
    "prolate": ("adam-mcmc", N_DATA, 1.0),
    "prolate-batch": ("adam-mcmc", BATCH, 1.0),
    "minibatch-test": ("adam-mcmc-minibatch", BATCH, 1.0),
    "exact": ("adam-mcmc-exact", N_DATA, 1.0),
}
"""By name: the sampler, the batch size and s_d."""

MOMENTS = {"square": lambda draws: np.einsum("nwd,nwd->nw", draws, draws, dtype=np.float64) / draws.shape[-1]}


def measure_bias(
    settings: Mapping,
    *,
    seed: int = 0,
    parts: Parts,
    report: Callable[[str], None] = lambda line: None,
) -> dict:
    """E x^2, 1 under the target, mean squared jumps of a coordinate, and the acceptance, all after the warm-up, of
    every variant, D and gamma / s, at s = scale / sqrt(D).

    Chains start at exact draws, and each has its own minibatches. A number of ``squares`` is one chain's mean over
    steps and parameters.

    Args:
        settings: the configuration's section ``adam_mcmc.bias``.

    Returns:
        ``cells``: ``variant``, ``dimension``, ``ratio``, ``chains``, ``squares`` and ``acceptance``; ``halves``, the
        squares of the first and of the second half of the run; ``jump``, in units of the target's variance.
    """
    found = []
    for dimension in settings["dimensions"]:
        model = standard_normal(dimension, N_DATA, seed)
        for variant, (sampler, batch_size, along) in VARIANTS.items():
            if variant == "exact" and dimension > settings["exact_up_to"]:
                continue
            for ratio in settings["ratios"]:
                name = f"{variant} D={dimension} ratio={ratio:g}"
                own = fingerprint(
                    {"settings": dict(settings), "seed": seed, "cell": name, "code": code_digest()}
                )
                record = parts.get(name, own)
                if record is None:
                    s = settings["scale"] / np.sqrt(dimension)
                    arm = Arm(ratio * s, batch_size, noise_sd=s, directional_noise=along)
                    record = {"variant": variant, "dimension": dimension, "ratio": ratio}
                    record["chains"] = n_chains_of(variant, settings)
                    record |= _measured(model, sampler, arm, settings, record["chains"], name, seed)
                    parts.keep(name, own, record)
                    report(f"{name}: E x^2 = {np.mean(record['squares']):.3f}")
                found.append(record)
    return {**{key: settings[key] for key in ("scale", "steps", "warmup", "chains")}, "cells": found}


def _measured(model, sampler: str, arm: Arm, settings: Mapping, n_chains: int, name: str, seed: int) -> dict:
    rng = np.random.default_rng(named_seed(seed, "adam_mcmc", "bias", name))
    starts = rng.standard_normal((n_chains, model.dimension))
    chains = independent_chains(
        model, sampler, arm, starts, seed=seed, replicate=f"bias {name}", own_minibatches=True
    )
    means, others = moments_of_chains(chains, settings["warmup"], settings["steps"], MOMENTS)
    squares, *halves = (values.tolist() for values in means["square"])
    others = {name: values.tolist() for name, values in others.items()}
    return {"squares": squares, "halves": halves, **others}
