"""Acceptance rates of AdamMCMC against the noise s, with and without directional noise, and E x^2 of its draws."""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from math import log

import numpy as np
from jaxtyping import Float

from sgtune.mode.curvature import laplace_scale
from sgtune.mode.find import map_position
from sgtune.model import Model
from sgtune.model.positions import flatten
from sgtune.sampling.arm import Arm
from sgtune.sampling.budget import batch_size_of
from sgtune.study.adam_mcmc.chains import moments_of_chains, standard_normal
from sgtune.study.adam_mcmc.verdicts import is_decided
from sgtune.study.pipeline.parts import Parts
from sgtune.support.randomness import named_seed

__all__ = ["SAMPLER", "acceptance_on_gaussian", "acceptance_on_posterior"]

SAMPLER = "adam-mcmc"

OPTIMAL_SCALE = 2.38
"""s sqrt(T) of the random walk that moves fastest in many dimensions (Roberts, Gelman and Gilks 1997, "Weak convergence
and optimal scaling of random walk Metropolis algorithms")."""

MOST_PARAMETERS = 200
"""Jumps are of this many parameters, evenly spaced; squares are of all."""


def acceptance_on_gaussian(dimension: int, settings: Mapping, parts: Parts, seed: int = 0) -> dict:
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
    is_long, n_chains = dimension <= settings["long_up_to"], settings["replicates"]
    n_chains = n_chains if is_long else max(min(n_chains, 4), n_chains // 2)
    found = _measured(
        standard_normal(dimension),
        settings,
        rng.standard_normal((n_chains, dimension)),
        np.ones(dimension),
        np.zeros(dimension),
        root_trace=np.sqrt(dimension),
        batch_size=1,
        long=min(settings["steps_per_dimension"] * dimension, settings["most_steps"]),
        long_at=settings["scales"] if is_long else [_fastest(settings["scales"])],
        must_settle=is_long,
        parts=parts,
        seed=seed,
    )
    return {"target": f"gaussian-{dimension}", **found}


def acceptance_on_posterior(model: Model, settings: Mapping, parts: Parts, seed: int = 0) -> dict:
    """On a posterior close to Gaussian, from draws of its Laplace approximation; gradients of minibatches."""
    factor = np.asarray(laplace_scale(model), np.float64)
    mode = np.asarray(flatten(map_position(model)), np.float64)
    rng = np.random.default_rng(named_seed(seed, "adam_mcmc", "starts", model.name))
    replaced = ("steps", "warmup", "drifts", "scales", "replicates")
    own = {**settings, **{key: settings[f"posterior_{key}"] for key in replaced}}
    found = _measured(
        model,
        own,
        mode + rng.standard_normal((own["replicates"], model.dimension)) @ factor.T,
        # The covariance is factor @ factor.T.
        np.linalg.norm(factor, axis=1),
        mode,
        root_trace=float(np.sqrt(np.sum(np.linalg.inv(factor) ** 2))),
        batch_size=batch_size_of(settings["batch_fraction"], model.n_data),
        long=settings["posterior_long"],
        long_at=[_fastest(own["scales"])],
        parts=parts,
        seed=seed,
    )
    return {"target": model.name, **found}


def _fastest(scales: Sequence[float]) -> float:
    """The scale nearest, by ratio, to the one at which a random walk in many dimensions moves fastest."""
    return min(scales, key=lambda scale: abs(log(scale / OPTIMAL_SCALE)))


def _measured(
    model: Model,
    settings: Mapping,
    starts: Float[np.ndarray, "w d"],
    sds: Float[np.ndarray, " d"],
    centre: Float[np.ndarray, " d"],
    *,
    root_trace: float,
    batch_size: int,
    long: int,
    long_at: Sequence[float],
    must_settle: bool = True,
    parts: Parts,
    seed: int,
) -> dict:
    """Of every (gamma / s, s_d, s) its arm, and what its chains did (`moments_of_chains`), ``square`` and ``jump`` in
    units of the posterior's sds about ``centre``: 1 of the posterior.

    The scale is s in units of 1 / ``root_trace``, the root of the trace of -log pi's Hessian: there log pi changes by
    about 1, of a random walk, for any D. ``long`` is the most steps of chains at the scales ``long_at``.
    """
    depends_on = {"target": model.name, "data": model.checksum, "seed": seed, "settings": dict(settings)}
    found = []
    for ratio, along, scale in product(
        settings["drifts"], settings["directional_noises"], settings["scales"]
    ):
        cell = {"drift_ratio": ratio, "directional_noise": along, "scale": scale}
        name = " ".join(f"{key}={value:g}" for key, value in cell.items())
        arm = Arm(
            step_size=ratio * scale / root_trace,
            batch_size=batch_size,
            noise_sd=scale / root_trace,
            directional_noise=along,
        )
        most = max(settings["steps"], long) if scale in long_at else settings["steps"]
        make = partial(
            moments_of_chains,
            model,
            SAMPLER,
            arm,
            starts,
            seed=seed,
            replicate=f"adam_mcmc {name}",
            warmup=settings["warmup"],
            steps=settings["steps"],
            long=most,
            is_decided=partial(
                is_decided, longest=most, starts_are_exact=model.n_data == 1, must_settle=must_settle
            ),
            **_in_sds(sds, centre),
        )
        own = parts.once(name, depends_on, make)
        parts.report(f"{name}: acceptance {np.mean(own['acceptance']):.3f}")
        found.append({**cell, "arm": arm.to_record(), **own})
    common = {"dimension": model.dimension, "n_data": model.n_data, "warmup": settings["warmup"]}
    return {**common, "cells": found}


def _in_sds(sds: Float[np.ndarray, " d"], centre: Float[np.ndarray, " d"]) -> dict:
    """How `moments_of_chains` takes squares and jumps, in units of ``sds`` about ``centre``.

    Squares are of every draw up to D = 399, and of each (D / 200)-th from there on, in which a coordinate hardly moves.
    """
    dimension = len(sds)
    places = np.unique(np.linspace(0, dimension - 1, min(dimension, MOST_PARAMETERS)).astype(int))

    def deviations(draws: np.ndarray, of: np.ndarray | slice) -> np.ndarray:
        return (draws[:, :, of].astype(np.float64) - centre[of]) / sds[of]

    return {
        "square": lambda draws: (deviations(draws, slice(None)) ** 2).mean(axis=2),
        "jump": lambda draws: (np.diff(deviations(draws, places), axis=0) ** 2).sum(axis=(0, 2)),
        "n_jumping": len(places),
        "stride": max(1, dimension // MOST_PARAMETERS),
    }
