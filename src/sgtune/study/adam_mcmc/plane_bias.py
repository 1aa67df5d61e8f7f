"""The bias of AdamMCMC's approximation on targets in the plane against gamma / s."""

from collections.abc import Callable, Mapping

import numpy as np

from sgtune.sampling.arm import Arm
from sgtune.sampling.lockstep import independent_chains
from sgtune.study.adam_mcmc.chain_moments import moments_of_chains
from sgtune.study.adam_mcmc.distances import QUICK
from sgtune.study.adam_mcmc.planes import N_DATA, PLANES, plane_model
from sgtune.study.adam_mcmc.settings import n_chains_of
from sgtune.support.randomness import named_seed

__all__ = ["VARIANTS", "measure_plane_bias"]

NOISE = 0.5
"""s, about half of the targets' sds."""

VARIANTS: dict[str, tuple[str, dict[str, float]]] = {
    "prolate": ("adam-mcmc", {}),
    "prolate-quick": ("adam-mcmc", QUICK),
    "exact": ("adam-mcmc-exact", {**QUICK, "momentum_noise": 4.0, "second_moment_noise": 2.0}),
}
"""By name: the sampler, and the hyperparameters that are not the sampler's own defaults; s_d is 1. Gradients and the
test are on all data. With the default decay rates the exact variant stays for thousands of steps where it is: means
over chains of this length are then far from normal."""


def measure_plane_bias(
    settings: Mapping, *, seed: int = 0, report: Callable[[str], None] = lambda line: None
) -> dict:
    """Moments of the targets in `PLANES`, 1 under the target, of AdamMCMC as in its paper and of its exact variant.

    Independent chains start at exact draws.

    Args:
        settings: ``ratios``, ``steps``, ``warmup`` and ``chains`` of the configuration's section ``adam_mcmc.bias``.

    Returns:
        ``noise``, ``steps``, ``warmup``, ``chains``, and ``cells``: of each ``target``, ``variant``, ``ratio`` and
        ``moment`` the means of the chains as ``squares``, ``halves``, ``jump`` and ``acceptance``, as those of
        `sgtune.study.adam_mcmc.bias.measure_bias`.
    """
    cells = []
    for target, plane in PLANES.items():
        model = plane_model(target)
        for variant, (sampler, numbers) in VARIANTS.items():
            for ratio in settings["ratios"]:
                name = f"{target} {variant} ratio={ratio:g}"
                rng = np.random.default_rng(named_seed(seed, "adam_mcmc", "plane bias", name))
                chains = independent_chains(
                    model,
                    sampler,
                    Arm(ratio * NOISE, N_DATA, noise_sd=NOISE, directional_noise=1.0, **numbers),
                    plane.draw(rng, n_chains_of(variant, settings)),
                    seed=seed,
                    replicate=f"plane bias {name}",
                    centre=np.zeros(2, np.float32),
                )
                means, others = moments_of_chains(
                    chains, settings["warmup"], settings["steps"], plane.moments
                )
                others = {key: values.tolist() for key, values in others.items()}
                for moment, (whole, *halves) in means.items():
                    own = {"target": target, "variant": variant, "ratio": ratio, "moment": moment}
                    own["chains"] = chains.width
                    values = {"squares": whole.tolist(), "halves": [half.tolist() for half in halves]}
                    cells.append({**own, **values, **others})
                report(
                    f"{name}: " + ", ".join(f"{key} {whole.mean():.3f}" for key, (whole, *_) in means.items())
                )
    return {"noise": NOISE, **{key: settings[key] for key in ("steps", "warmup", "chains")}, "cells": cells}
