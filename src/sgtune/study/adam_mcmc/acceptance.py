"""Acceptance rates and effective sample sizes of AdamMCMC against the noise s, with and without directional noise."""

from collections.abc import Callable, Mapping
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from sgtune.mode.curvature import laplace_scale
from sgtune.mode.find import map_position
from sgtune.model import Model
from sgtune.positions import to_matrix
from sgtune.randomness import named_seed
from sgtune.samplers.adam_mcmc import drift
from sgtune.sampling.arm import Arm
from sgtune.sampling.budget import batch_size_of
from sgtune.sampling.ensembles import independent_chains
from sgtune.sampling.lockstep import Lockstep
from sgtune.study.adam_mcmc.autocorrelation import pooled_time
from sgtune.study.adam_mcmc.gaussians import standard_normal
from sgtune.study.adam_mcmc.names import common_middle
from sgtune.study.config.sections import fingerprint
from sgtune.study.parts import Parts, code_digest

__all__ = ["SAMPLER", "acceptance_on_gaussian", "acceptance_on_posterior", "arms_of"]

SAMPLER = "adam-mcmc"
MOST_PARAMETERS = 50
"""Autocorrelation times are computed from this many parameters, evenly spaced."""
SNAPSHOTS = 50
"""The mean length of an update is over this many steps."""


def arms_of(
    settings: Mapping, root_trace: float, batch_size: int, *, long: int = 0, shown: float | None = None
) -> list[dict]:
    """Every (gamma / s, s_d, s) of the section ``acceptance``: the numbers as printed, a chain's steps, and the arm.

    ``scale`` is s in units of 1 / ``root_trace``, the root of the trace of -log pi's Hessian: there log pi changes by
    about 1, of a random walk, for any D. At the scale ``shown`` a chain has at least ``long`` steps.
    """
    steps = settings["steps"]
    cells = product(settings["drifts"], settings["directional_noises"], settings["scales"])
    return [
        {
            **{"drift_ratio": ratio, "directional_noise": along, "scale": scale},
            "steps": max(steps, long) if scale == shown else steps,
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

    Autocorrelation times grow with D. Chains at the scale of the tables therefore have ``steps_per_dimension`` D steps
    or more, up to the dimension ``long_up_to``.
    """
    rng = np.random.default_rng(named_seed(seed, "adam_mcmc", "starts", dimension))
    starts = rng.standard_normal((settings["replicates"], dimension))
    common = {"seed": seed, "parts": parts, "report": report}
    is_long = dimension <= settings["long_up_to"]
    cells = arms_of(
        settings,
        np.sqrt(dimension),
        1,
        long=settings["steps_per_dimension"] * dimension if is_long else 0,
        shown=common_middle([settings["scales"], settings["posterior_scales"]]),
    )
    scale = np.ones(dimension)
    found = _measured(
        standard_normal(dimension), cells, settings, starts, scale, np.zeros(dimension), **common
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
    starts = mode + rng.standard_normal((settings["replicates"], model.dimension)) @ factor.T
    root_trace = float(np.sqrt(np.sum(np.linalg.inv(factor) ** 2)))
    batch_size = batch_size_of(settings["batch_fraction"], model.n_data)
    sds = np.linalg.norm(factor, axis=1)
    replaced = ("steps", "warmup", "drifts", "scales")
    own = {**settings, **{key: settings[f"posterior_{key}"] for key in replaced}}
    cells = arms_of(own, root_trace, batch_size)
    found = _measured(model, cells, own, starts, sds, mode, seed=seed, parts=parts, report=report)
    return {"target": model.name, "dimension": model.dimension, "n_data": model.n_data, **found}


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
    *,
    seed: int,
    parts: Parts,
    report: Callable[[str], None],
) -> dict:
    """Of every cell, a number for each chain of: ``acceptance``, the mean probability of the tests after the warm-up;
    ``time``, the integrated autocorrelation time in steps (None: too slow for the run, or it never moved);
    ``jump``, the mean of ((theta_{t+1} - theta_t) / sd)^2, which needs no long run; ``square``, the mean of
    ((theta - centre) / sd)^2, 1 of the posterior; and ``update``, the mean of |u| / s at about `SNAPSHOTS` steps.
    ``halves`` has the ``square`` of the first and of the second half of the run. And the cell's ``steps``.

    Chains of a cell share their minibatches. Memory: 4 W bytes for each step and each of at most 50 parameters.
    """
    depends_on = {
        **{"target": model.name, "data": model.checksum, "seed": seed},
        **{"settings": dict(settings), "code": code_digest()},
    }
    places = np.unique(np.linspace(0, model.dimension - 1, min(model.dimension, MOST_PARAMETERS)).astype(int))
    found = []
    for cell in cells:
        name = " ".join(f"{key}={value:g}" for key, value in cell.items() if key not in ("arm", "steps"))
        own = fingerprint({**depends_on, "cell": name})
        record = parts.get(name, own)
        if record is None:
            chains = _chains(
                model, cell["arm"], settings["warmup"], cell["steps"], starts, places, seed, name
            )
            record = {
                **{key: value for key, value in cell.items() if key != "arm"},
                **{"arm": cell["arm"].to_record(), **_said(*chains, sds[places], centre[places])},
            }
            parts.keep(name, own, record)
            report(f"{name}: acceptance {np.mean(record['acceptance']):.3f}")
        found.append(record)
    return {"warmup": settings["warmup"], "cells": found}


def _chains(
    model: Model,
    arm: Arm,
    warmup: int,
    steps: int,
    starts: Float[np.ndarray, "w d"],
    places: np.ndarray,
    seed: int,
    name: str,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """After the warm-up: each chain's acceptance, its mean of |u| / s, and the draws of the parameters ``places``."""
    chains = independent_chains(model, SAMPLER, arm, starts, seed=seed, replicate=f"adam_mcmc {name}")
    if warmup:
        chains.advance(warmup, warmup)
    before = np.asarray(chains.states.acceptance.mean_probability, np.float64)
    kept, lengths, done = [], [], 0
    # Short pieces, because u is known only where a piece ends.
    piece = max(1, steps // SNAPSHOTS)
    while done < steps:
        kept.append(chains.advance_chunk(min(piece, steps - done))[:, :, places])
        lengths.append(_update_lengths(chains))
        done += len(kept[-1])
    after = np.asarray(chains.states.acceptance.mean_probability, np.float64)
    rates = ((warmup + steps) * after - warmup * before) / steps
    return rates, np.mean(lengths, axis=0) / arm.to_record()["noise_sd"], np.concatenate(kept)


def _update_lengths(chains: Lockstep) -> Float[np.ndarray, " w"]:
    """|u| of each chain's last step."""
    axes = {name: 0 if jnp.ndim(number) else None for name, number in chains.hyperparameters.items()}
    states = chains.states
    updates = jax.vmap(drift, in_axes=(0, 0, 0, axes))(states.m, states.v, states.k, chains.hyperparameters)
    return np.linalg.norm(np.asarray(to_matrix(updates), np.float64), axis=1)


def _said(
    rates: Float[np.ndarray, " w"],
    updates: Float[np.ndarray, " w"],
    draws: Float[np.ndarray, "n w k"],
    sds: Float[np.ndarray, " k"],
    centre: Float[np.ndarray, " k"],
) -> dict:
    deviations = (draws.astype(np.float64) - centre) / sds
    squares = deviations**2
    halves = squares[: len(draws) // 2], squares[len(draws) // 2 :]
    return {
        "acceptance": [float(rate) for rate in rates],
        "time": [pooled_time(deviations[:, i]) for i in range(deviations.shape[1])],
        "jump": [float(value) for value in (np.diff(deviations, axis=0) ** 2).mean(axis=(0, 2))],
        "square": [float(value) for value in squares.mean(axis=(0, 2))],
        "halves": [[float(value) for value in half.mean(axis=(0, 2))] for half in halves],
        "update": [float(value) for value in updates],
    }
