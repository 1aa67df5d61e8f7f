"""The bias of AdamMCMC's approximations on N(0, I): E x^2 against gamma / s."""

from collections.abc import Callable, Mapping

import numpy as np

from sgtune.randomness import named_seed
from sgtune.sampling.arm import Arm
from sgtune.sampling.ensembles import independent_chains
from sgtune.study.adam_mcmc.gaussians import standard_normal
from sgtune.study.config.sections import fingerprint
from sgtune.study.parts import Parts, code_digest

__all__ = ["N_DATA", "VARIANTS", "measure_bias"]

N_DATA = 100
BATCH = 10
SHARED = 4
"""Number of chains that share minibatches: chains of a group are not independent."""

VARIANTS: dict[str, tuple[str, int, float]] = {
    "isotropic": ("adam-mcmc", N_DATA, 0.0),
    "prolate": ("adam-mcmc", N_DATA, 1.0),
    "prolate-batch": ("adam-mcmc", BATCH, 1.0),
    "minibatch-test": ("adam-mcmc-minibatch", BATCH, 1.0),
    "exact": ("adam-mcmc-exact", N_DATA, 1.0),
}
"""By name: the sampler, the batch size and s_d."""


def measure_bias(
    settings: Mapping,
    *,
    seed: int = 0,
    parts: Parts,
    report: Callable[[str], None] = lambda line: None,
) -> dict:
    """E x^2, 1 under the target, and the acceptance, both after the warm-up, of every variant, D and gamma / s, at
    s = scale / sqrt(D).

    Chains start at exact draws. A number of ``squares`` is a mean over steps, parameters and the chains that share
    minibatches (with all data: of one chain): these are independent.

    Args:
        settings: the configuration's section ``adam_mcmc.bias``.

    Returns:
        ``cells``: ``variant``, ``dimension``, ``ratio``, ``squares`` and ``acceptance``.
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
                    squares, rates = _squares(model, sampler, arm, settings, name, seed)
                    record = {"variant": variant, "dimension": dimension, "ratio": ratio}
                    record |= {"squares": squares, "acceptance": rates}
                    parts.keep(name, own, record)
                    report(f"{name}: E x^2 = {np.mean(squares):.3f}, acceptance {np.mean(rates):.3f}")
                found.append(record)
    return {**{key: settings[key] for key in ("scale", "steps", "warmup", "chains")}, "cells": found}


def _squares(
    model, sampler: str, arm: Arm, settings: Mapping, name: str, seed: int
) -> tuple[list[float], list[float]]:
    rng = np.random.default_rng(named_seed(seed, "adam_mcmc", "bias", name))
    starts = rng.standard_normal((settings["chains"], model.dimension))
    groups = [starts] if arm.batch_size == model.n_data else np.array_split(starts, SHARED)
    squares: list[float] = []
    rates: list[float] = []
    for place, group in enumerate(groups):
        chains = independent_chains(model, sampler, arm, group, seed=seed, replicate=f"bias {name} {place}")
        chains.advance(settings["warmup"], settings["warmup"])
        before = chains.statistics["mean_acceptance_probability"].astype(np.float64)
        total, done = np.zeros(len(group)), 0
        while done < settings["steps"]:
            draws = chains.advance_chunk(settings["steps"] - done)
            total += np.einsum("nwd,nwd->w", draws, draws, dtype=np.float64) / model.dimension
            done += len(draws)
        own, after = total / done, chains.statistics["mean_acceptance_probability"].astype(np.float64)
        rate = ((settings["warmup"] + done) * after - settings["warmup"] * before) / done
        squares += [float(own.mean())] if len(groups) > 1 else own.tolist()
        rates += [float(rate.mean())] if len(groups) > 1 else rate.tolist()
    return squares, rates
