"""Acceptance rates and effective sample sizes of AdamMCMC against the noise s, with and without directional noise."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import product
from math import log

import jax
import numpy as np
from jaxtyping import Float

from sgtune.mode.curvature import laplace_scale
from sgtune.mode.find import map_position
from sgtune.model import Model
from sgtune.model.positions import to_matrix
from sgtune.sampling.arm import Arm
from sgtune.sampling.budget import batch_size_of
from sgtune.study.adam_mcmc.autocorrelation import effective_share
from sgtune.study.adam_mcmc.cell_chains import chains_of_cell
from sgtune.study.adam_mcmc.gaussians import standard_normal
from sgtune.study.adam_mcmc.names import OPTIMAL_SCALE
from sgtune.study.adam_mcmc.verdicts import is_decided
from sgtune.study.config.sections import fingerprint
from sgtune.study.pipeline.parts import Parts, code_digest
from sgtune.support.randomness import named_seed

__all__ = ["acceptance_on_gaussian", "acceptance_on_posterior", "arms_of"]


def arms_of(
    settings: Mapping, root_trace: float, batch_size: int, *, long: int, long_at: float | None
) -> list[dict]:
    """Every (gamma / s, s_d, s) of the section ``acceptance``: the numbers as printed, and the arm.

    ``scale`` is s in units of 1 / ``root_trace``, the root of the trace of -log pi's Hessian: there log pi changes by
    about 1, of a random walk, for any D. ``long`` is the most steps of a chain: of those at the scale ``long_at``, or
    of all if that is None; the others have ``steps``.
    """
    steps = settings["steps"]
    cells = product(settings["drifts"], settings["directional_noises"], settings["scales"])
    return [
        {
            **{"drift_ratio": ratio, "directional_noise": along, "scale": scale},
            "long": max(steps, long) if long_at in (None, scale) else steps,
            "arm": Arm(
                step_size=ratio * scale / root_trace,
                batch_size=batch_size,
                noise_sd=scale / root_trace,
                directional_noise=along,
            ),
        }
        for ratio, along, scale in cells
    ]


def acceptance_on_gaussian(
    dimension: int,
    settings: Mapping,
    *,
    seed: int = 0,
    parts: Parts,
    report: Callable[[str], None] = lambda line: None,
) -> dict:
    """On N(0, I), from exact draws, by exact gradients: `_measured` with the steps of the section ``acceptance``.

    Autocorrelation times grow with D. Chains at the scale at which a random walk moves fastest therefore have up to
    ``steps_per_dimension`` D steps, and up to the dimension ``long_up_to`` those at all scales: but at most
    ``most_steps``, and fewer where longer chains would tell nothing else (`verdicts.is_decided`). Above ``long_up_to``
    chains with a clear bias end before they have settled, and there are half as many chains, but at least four: each
    has many coordinates. The section ``few_dimensions`` has the number and length of chains ``up_to`` a dimension in
    which steps are cheap.
    """
    few = settings["few_dimensions"]
    if dimension <= few["up_to"]:
        settings = {**settings, **{name: few[name] for name in ("replicates", "steps_per_dimension")}}
    rng = np.random.default_rng(named_seed(seed, "adam_mcmc", "starts", dimension))
    is_long = dimension <= settings["long_up_to"]
    starts = rng.standard_normal(
        (settings["replicates"] if is_long else _fewer(settings["replicates"]), dimension)
    )
    common = {"seed": seed, "parts": parts, "report": report, "must_settle": is_long}
    cells = arms_of(
        settings,
        np.sqrt(dimension),
        1,
        long=min(settings["steps_per_dimension"] * dimension, settings["most_steps"]),
        long_at=None if is_long else _fastest(settings["scales"]),
    )
    scale = np.ones(dimension)
    found = _measured(
        standard_normal(dimension), cells, settings, starts, scale, np.zeros(dimension), 1.0, **common
    )
    return {"target": f"gaussian-{dimension}", "dimension": dimension, "n_data": 1, **found}


def acceptance_on_posterior(
    model: Model,
    settings: Mapping,
    *,
    seed: int = 0,
    parts: Parts,
    report: Callable[[str], None] = lambda line: None,
) -> dict:
    """On a posterior close to Gaussian, from draws of its Laplace approximation; gradients of minibatches."""
    factor = np.asarray(laplace_scale(model), np.float64)
    mode = np.asarray(_mode(model), np.float64)
    rng = np.random.default_rng(named_seed(seed, "adam_mcmc", "starts", model.name))
    starts = mode + rng.standard_normal((settings["posterior_replicates"], model.dimension)) @ factor.T
    root_trace = float(np.sqrt(np.sum(np.linalg.inv(factor) ** 2)))
    batch_size = batch_size_of(settings["batch_fraction"], model.n_data)
    sds = np.linalg.norm(factor, axis=1)
    replaced = ("steps", "warmup", "drifts", "scales", "replicates")
    own = {**settings, **{key: settings[f"posterior_{key}"] for key in replaced}}
    cells = arms_of(
        own, root_trace, batch_size, long=settings["posterior_long"], long_at=_fastest(own["scales"])
    )
    share = effective_share(factor @ factor.T)
    found = _measured(model, cells, own, starts, sds, mode, share, seed=seed, parts=parts, report=report)
    return {"target": model.name, "dimension": model.dimension, "n_data": model.n_data, **found}


def _fastest(scales: Sequence[float]) -> float:
    """The scale nearest, by ratio, to the one at which a random walk in many dimensions moves fastest."""
    return min(scales, key=lambda scale: abs(log(scale / OPTIMAL_SCALE)))


def _fewer(n_chains: int) -> int:
    return max(min(n_chains, 4), n_chains // 2)


def _mode(model: Model) -> Float[np.ndarray, " d"]:
    """The MAP as a vector."""
    tree = jax.tree.map(lambda leaf: np.asarray(leaf)[None], map_position(model))
    return np.asarray(to_matrix(tree))[0]


def _measured(
    model: Model,
    cells: list[dict],
    settings: Mapping,
    starts: Float[np.ndarray, "w d"],
    sds: Float[np.ndarray, " d"],
    centre: Float[np.ndarray, " d"],
    share: float,
    *,
    must_settle: bool = True,
    seed: int,
    parts: Parts,
    report: Callable[[str], None],
) -> dict:
    """Of every cell (gamma / s, s_d, s), its arm and what `chains_of_cell` says of its chains."""
    depends_on = {
        **{"target": model.name, "data": model.checksum, "seed": seed},
        **{"settings": dict(settings), "code": code_digest()},
    }
    found = []
    for cell in cells:
        name = " ".join(f"{key}={value:g}" for key, value in cell.items() if key not in ("arm", "long"))
        own = fingerprint({**depends_on, "cell": name})
        record = parts.get(name, own)
        if record is None:
            record = {key: value for key, value in cell.items() if key not in ("arm", "long")}
            record |= chains_of_cell(
                model,
                cell["arm"],
                starts,
                sds,
                centre,
                warmup=settings["warmup"],
                steps=settings["steps"],
                long=cell["long"],
                is_decided=partial(
                    is_decided,
                    longest=cell["long"],
                    starts_are_exact=model.n_data == 1,
                    must_settle=must_settle,
                ),
                seed=seed,
                name=name,
                share=share,
            )
            parts.keep(name, own, record)
            report(f"{name}: acceptance {np.mean(record['acceptance']):.3f}")
        found.append(record)
    return {"warmup": settings["warmup"], "cells": found}
