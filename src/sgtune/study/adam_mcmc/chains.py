"""Chains on a known target: N(0, I) as a posterior of any dimension, and what chains do after their warm-up."""

from collections.abc import Callable, Mapping

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from sgtune.model import Model, define_model
from sgtune.model.positions import to_matrix
from sgtune.sampling.arm import Arm
from sgtune.sampling.lockstep import Lockstep, independent_chains
from sgtune.study.experiments.ladder import with_mode_at_zero
from sgtune.support.randomness import named_seed

__all__ = ["flat", "moments_of_chains", "standard_normal"]


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
    square: Callable[[Float[np.ndarray, "n w d"]], Float[np.ndarray, "n w"]],
    jump: Callable[[Float[np.ndarray, "n w d"]], Float[np.ndarray, " w"]],
    n_jumping: int,
    stride: int = 1,
    long: int = 0,
    is_decided: Callable[[Mapping], bool] = lambda record: True,
) -> dict:
    """What each of W independent chains, with minibatches of its own, did in ``steps`` steps after its warm-up.

    After ``steps`` steps, and whenever that number has doubled, the chains stop if what they did ``is_decided``, and
    after ``long`` steps at the latest. Draws are not kept.

    Args:
        replicate: names the chains' noise and minibatches; chains that are compared must not have it in common.
        square: of every ``stride``-th draw, a mean of squares over coordinates. Memory: 8 W bytes for each.
        jump: of the draws of n - 1 steps and the one before them, the sum over steps and over ``n_jumping``
            coordinates of their squared jumps.

    Returns:
        ``steps``, and of each chain: ``acceptance``, the mean probability of the tests; ``square``, the mean over the
        run, and ``halves``, the means over its first and its second half; ``jump``, the mean square of a coordinate's
        jump.
    """
    names = {"seed": seed, "replicate": replicate}
    chains = independent_chains(model, sampler, arm, starts, own_minibatches=True, **names)
    if warmup:
        chains.advance(warmup, warmup)
    before, last = _rates(chains), np.asarray(to_matrix(chains.states.position))[None]
    found, jumps, done, target = [], np.zeros(chains.width), 0, steps
    while True:
        while done < target:
            draws = chains.advance_chunk(target - done)
            jumps += jump(np.concatenate([last, draws]))
            # Of the whole run, the draws of the steps 0, stride, 2 stride, ...
            found.append(square(draws[-done % stride :: stride]))
            last, done = draws[-1:], done + len(draws)
        squares = np.concatenate(found)
        halves = squares[: len(squares) // 2], squares[len(squares) // 2 :]
        record = {
            "steps": done,
            "acceptance": (((warmup + done) * _rates(chains) - warmup * before) / done).tolist(),
            "jump": (jumps / (done * n_jumping)).tolist(),
            "square": squares.mean(axis=0).tolist(),
            "halves": [half.mean(axis=0).tolist() for half in halves],
        }
        if done >= long or is_decided(record):
            return record
        target = min(2 * target, max(long, steps))


def _rates(chains: Lockstep) -> Float[np.ndarray, " w"]:
    return chains.statistics["mean_acceptance_probability"].astype(np.float64)
