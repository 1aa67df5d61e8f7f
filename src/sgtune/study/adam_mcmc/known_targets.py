"""AdamMCMC on targets that are known, N(0, I) as a posterior of any dimension and the logistic regression's: acceptance
rates against the noise s with and without directional noise, and E x^2 of the draws, also against gamma / s."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import product
from math import log

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from sgtune.mode.curvature import laplace_scale
from sgtune.mode.find import map_position
from sgtune.model import Model, define_model
from sgtune.model.positions import flatten, to_matrix
from sgtune.sampling.arm import Arm
from sgtune.sampling.budget import batch_size_of
from sgtune.sampling.lockstep import Lockstep, independent_chains
from sgtune.study.adam_mcmc import verdicts
from sgtune.study.experiments.ladder import with_mode_at_zero
from sgtune.study.pipeline.parts import Parts, Task
from sgtune.support.randomness import named_seed

SAMPLER = "adam-mcmc"

OPTIMAL_SCALE = 2.38
"""s sqrt(T) of the random walk that moves fastest in many dimensions (Roberts, Gelman and Gilks 1997, "Weak convergence
and optimal scaling of random walk Metropolis algorithms")."""

MOST_PARAMETERS = 200
"""Jumps are of this many parameters, evenly spaced; squares are of all."""

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


def standard_normal(dimension: int, n_data: int = 1, seed: int = 0) -> Model:
    """N data y_j with the log-likelihood -|theta - y_j|^2 / (2 N), a flat prior, and the posterior N(0, I).

    The y_j have mean 0 and sd sqrt(N) in every coordinate: the gradient of a minibatch of n has noise of sd
    sqrt((N / n) (N - n) / (N - 1)). One datum is 0, and has no noise. Data: 4 N D bytes. The mode is given.
    """
    rows = np.zeros((n_data, dimension))
    if n_data > 1:
        rng = np.random.default_rng(named_seed(seed, "adam_mcmc", dimension, n_data))
        rows = rng.standard_normal((n_data, dimension))
        rows -= rows.mean(axis=0)
        rows *= np.sqrt(n_data) / rows.std(axis=0)
    model = define_model(
        f"standard-normal-{dimension}",
        log_prior=flat,
        log_likelihood=_log_likelihood,
        data={"y": (rows / n_data).astype(np.float32), "share": np.full(n_data, 1 / n_data, np.float32)},
        init=lambda key: jax.random.normal(key, (dimension,)),
        shuffle_seed=None,
    )
    return with_mode_at_zero(model)


def _log_likelihood(position, batch):
    return batch["y"] @ position - 0.5 * batch["share"] * jnp.sum(position**2)


def flat(position) -> jax.Array:
    """The log density, up to a constant, of a prior that is flat."""
    return jnp.zeros(())


def moments_of_chains(
    model: Model,
    sampler: str,
    arm: Arm,
    starts: Float[np.ndarray, "w d"],
    *,
    seed: int,
    replicate: str,
    warmup: int,
    steps: int,
    sds: Float[np.ndarray, " d"] | float = 1.0,
    centre: Float[np.ndarray, " d"] | float = 0.0,
    long: int = 0,
    is_decided: Callable[[Mapping], bool] = lambda record: True,
) -> dict:
    """What each of W independent chains, with minibatches of its own, did in ``steps`` steps after its warm-up.

    After ``steps`` steps, and whenever that number has doubled, the chains stop if what they did ``is_decided``, and
    after ``long`` steps at the latest. Draws are not kept.

    Args:
        replicate: names the chains' noise and minibatches; chains that are compared must not have it in common.
        sds, centre: squares and jumps are in units of ``sds``, and squares about ``centre``.

    Returns:
        ``steps``, and of each chain: ``acceptance``, the mean probability of the tests; ``square``, the mean square
        of a coordinate over the run, and ``halves``, those of its first and its second half, of every draw up to
        D = 399, and of each (D / 200)-th from there on, in which a coordinate hardly moves; ``jump``, the mean square
        of a coordinate's jump, of at most `MOST_PARAMETERS` coordinates.
    """
    names = {"seed": seed, "replicate": replicate}
    chains = independent_chains(model, sampler, arm, starts, own_minibatches=True, **names)
    stride = max(1, model.dimension // MOST_PARAMETERS)
    places = np.linspace(0, model.dimension - 1, min(model.dimension, MOST_PARAMETERS)).astype(int)
    sds, centre = (np.broadcast_to(numbers, model.dimension) for numbers in (sds, centre))

    def squares_of(draws: Float[np.ndarray, "n w d"]) -> Float[np.ndarray, "n w"]:
        return (((draws.astype(np.float64) - centre) / sds) ** 2).mean(axis=2)

    def jumps_of(draws: Float[np.ndarray, "n w d"]) -> Float[np.ndarray, " w"]:
        moved = np.diff(draws[:, :, places].astype(np.float64), axis=0) / sds[places]
        return (moved**2).sum(axis=(0, 2))

    if warmup:
        chains.advance(warmup, warmup)
    before, last = _rates(chains), np.asarray(to_matrix(chains.states.position))[None]
    found, jumps, done, target = [], np.zeros(chains.width), 0, steps
    while True:
        while done < target:
            draws = chains.advance_chunk(target - done)
            jumps += jumps_of(np.concatenate([last, draws]))
            # Of the whole run, the draws of the steps 0, stride, 2 stride, ...
            found.append(squares_of(draws[-done % stride :: stride]))
            last, done = draws[-1:], done + len(draws)
        squares = np.concatenate(found)
        halves = squares[: len(squares) // 2], squares[len(squares) // 2 :]
        record = {
            "steps": done,
            "acceptance": (((warmup + done) * _rates(chains) - warmup * before) / done).tolist(),
            "jump": (jumps / (done * len(places))).tolist(),
            "square": squares.mean(axis=0).tolist(),
            "halves": [half.mean(axis=0).tolist() for half in halves],
        }
        if done >= long or is_decided(record):
            return record
        target = min(2 * target, max(long, steps))


def _rates(chains: Lockstep) -> Float[np.ndarray, " w"]:
    return chains.statistics["mean_acceptance_probability"].astype(np.float64)


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
    options = {"root_trace": np.sqrt(dimension), "batch_size": 1, "must_settle": is_long}
    options["long"] = min(settings["steps_per_dimension"] * dimension, settings["most_steps"])
    options["long_at"] = settings["scales"] if is_long else [_fastest(settings["scales"])]
    task = Task(standard_normal(dimension), SAMPLER, seed=seed, parts=parts)
    found = _measured(task, settings, rng.standard_normal((n_chains, dimension)), **options)
    return {"target": f"gaussian-{dimension}", **found}


def acceptance_on_posterior(model: Model, settings: Mapping, parts: Parts, seed: int = 0) -> dict:
    """On a posterior close to Gaussian, from draws of its Laplace approximation; gradients of minibatches."""
    factor = np.asarray(laplace_scale(model), np.float64)
    mode = np.asarray(flatten(map_position(model)), np.float64)
    rng = np.random.default_rng(named_seed(seed, "adam_mcmc", "starts", model.name))
    replaced = ("steps", "warmup", "drifts", "scales", "replicates")
    own = {**settings, **{key: settings[f"posterior_{key}"] for key in replaced}}
    # The covariance is factor @ factor.T.
    root_trace = float(np.sqrt(np.sum(np.linalg.inv(factor) ** 2)))
    batch_size = batch_size_of(settings["batch_fraction"], model.n_data)
    lengths = {"long": settings["posterior_long"], "long_at": [_fastest(own["scales"])]}
    starts = mode + rng.standard_normal((own["replicates"], model.dimension)) @ factor.T
    options = {"root_trace": root_trace, "batch_size": batch_size, **lengths}
    units = {"sds": np.linalg.norm(factor, axis=1), "centre": mode}
    found = _measured(Task(model, SAMPLER, seed=seed, parts=parts), own, starts, **options, **units)
    return {"target": model.name, **found}


def _fastest(scales: Sequence[float]) -> float:
    """The scale nearest, by ratio, to the one at which a random walk in many dimensions moves fastest."""
    return min(scales, key=lambda scale: abs(log(scale / OPTIMAL_SCALE)))


def _measured(
    task: Task,
    settings: Mapping,
    starts: Float[np.ndarray, "w d"],
    *,
    root_trace: float,
    batch_size: int,
    long: int,
    long_at: Sequence[float],
    must_settle: bool = True,
    **units: Float[np.ndarray, " d"],
) -> dict:
    """Of every (gamma / s, s_d, s) its arm, and what its chains did (`moments_of_chains`), ``square`` and ``jump`` in
    ``units``, the posterior's sds about its centre: 1 of the posterior.

    The scale is s in units of 1 / ``root_trace``, the root of the trace of -log pi's Hessian: there log pi changes by
    about 1, of a random walk, for any D. ``long`` is the most steps of chains at the scales ``long_at``.
    """
    model = task.model
    depends_on = {"target": model.name, "data": model.checksum, "settings": dict(settings)}
    common = {"steps": settings["steps"], "warmup": settings["warmup"], "seed": task.seed, **units}
    is_decided = partial(verdicts.is_decided, starts_are_exact=model.n_data == 1, must_settle=must_settle)
    found = []
    for ratio, along, scale in product(
        settings["drifts"], settings["directional_noises"], settings["scales"]
    ):
        cell = {"drift_ratio": ratio, "directional_noise": along, "scale": scale}
        name, s = " ".join(f"{key}={value:g}" for key, value in cell.items()), scale / root_trace
        arm = Arm(ratio * scale / root_trace, batch_size, noise_sd=s, directional_noise=along)
        most = max(settings["steps"], long) if scale in long_at else settings["steps"]
        own = {
            "long": most,
            "is_decided": partial(is_decided, longest=most),
            "replicate": f"adam_mcmc {name}",
        }
        make = partial(moments_of_chains, model, task.sampler, arm, starts, **common, **own)
        record = task.once(name, make, **depends_on)
        task.report(f"{name}: acceptance {np.mean(record['acceptance']):.3f}")
        found.append({**cell, "arm": arm.to_record(), **record})
    about = {"dimension": model.dimension, "n_data": model.n_data, "warmup": settings["warmup"]}
    return {**about, "cells": found}


def measure_bias(settings: Mapping, parts: Parts, seed: int = 0) -> dict:
    """E x^2, 1 under the target, mean squared jumps of a coordinate, and the acceptance, all after the warm-up, of
    every variant, D and gamma / s, at s = scale / sqrt(D); by section ``adam_mcmc.bias``.

    Chains start at exact draws, and each has its own minibatches; no two cells have draws in common. A number of
    ``squares`` is one chain's mean over steps and parameters.

    Returns:
        ``cells``: ``variant``, ``dimension``, ``ratio``, ``chains``, ``squares`` and ``acceptance``; ``halves``, the
        squares of the first and of the second half of the run; ``jump``, in units of the target's variance.
    """
    found, lengths = [], {key: settings[key] for key in ("warmup", "steps")}

    def moments(cell: Mapping, name: str) -> dict:
        dimension, (sampler, batch_size, along) = cell["dimension"], VARIANTS[cell["variant"]]
        s = settings["scale"] / np.sqrt(dimension)
        rng = np.random.default_rng(named_seed(seed, "adam_mcmc", "bias", name))
        own = moments_of_chains(
            standard_normal(dimension, N_DATA, seed),
            sampler,
            Arm(cell["ratio"] * s, batch_size, noise_sd=s, directional_noise=along),
            rng.standard_normal((cell["chains"], dimension)),
            seed=seed,
            replicate=f"bias {name}",
            **lengths,
        )
        cell = {**cell, "squares": own["square"]}
        return cell | {key: own[key] for key in ("halves", "jump", "acceptance")}

    for dimension, variant, ratio in product(settings["dimensions"], VARIANTS, settings["ratios"]):
        if variant == "exact" and dimension > settings["exact_up_to"]:
            continue
        name = f"{variant} D={dimension} ratio={ratio:g}"
        cell = {"variant": variant, "dimension": dimension, "ratio": ratio}
        cell["chains"] = settings["chains"] * (MORE_OF_EXACT if variant == "exact" else 1)
        depends_on = {"settings": dict(settings), "seed": seed}
        own = parts.once(name, depends_on, partial(moments, cell, name))
        parts.report(f"{name}: E x^2 = {np.mean(own['squares']):.3f}")
        found.append(own)
    return {**{key: settings[key] for key in ("scale", "steps", "warmup", "chains")}, "cells": found}
