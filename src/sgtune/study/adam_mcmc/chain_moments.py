"""Moments of many chains after a warm-up, without keeping their draws."""

from collections.abc import Callable, Mapping

import numpy as np
from jaxtyping import Float

from sgtune.sampling.lockstep import Lockstep

__all__ = ["moments_of_chains"]


def moments_of_chains(
    chains: Lockstep,
    warmup: int,
    steps: int,
    moments: Mapping[str, Callable[[np.ndarray], Float[np.ndarray, "n w"]]],
) -> tuple[dict[str, Float[np.ndarray, "3 w"]], dict[str, Float[np.ndarray, " w"]]]:
    """Means over ``steps`` steps of each of W chains, after ``warmup`` steps that are left out.

    Args:
        moments: name -> function of draws ``(n, W, D)``. Memory: 8 x steps x W bytes each.

    Returns:
        By moment, its means over the whole run, over its first and over its second half. And of the chains: ``jump``,
        the mean squared jump of a coordinate, and ``acceptance``, the mean acceptance probability.
    """
    last = chains.advance(warmup, warmup)[-1:]
    before = chains.statistics["mean_acceptance_probability"].astype(np.float64)
    values = {name: np.zeros((steps, chains.width)) for name in moments}
    jumps, done = np.zeros(chains.width), 0
    while done < steps:
        draws = chains.advance_chunk(steps - done)
        for name, moment in moments.items():
            values[name][done : done + len(draws)] = moment(draws)
        moved = np.diff(np.concatenate([last, draws]), axis=0)
        jumps += np.einsum("nwd,nwd->w", moved, moved, dtype=np.float64)
        last = draws[-1:]
        done += len(draws)
    after = chains.statistics["mean_acceptance_probability"].astype(np.float64)
    half = steps // 2
    means = {
        name: np.stack([own.mean(axis=0), own[:half].mean(axis=0), own[half:].mean(axis=0)])
        for name, own in values.items()
    }
    return means, {
        "jump": jumps / (steps * chains.model.dimension),
        "acceptance": ((warmup + steps) * after - warmup * before) / steps,
    }
