"""Chains advanced by the wall clock."""

from collections.abc import Iterator
from time import perf_counter

import numpy as np
from jaxtyping import Float

from sgtune.sampling.lockstep import Lockstep

__all__ = ["advance_for", "draws_for"]


def advance_for(
    ensemble: Lockstep, seconds: float, most_kept: int, at_least: int = 1
) -> tuple[np.ndarray, int, list[tuple[float, int]]]:
    """Advance by the wall clock, at least ``at_least`` steps, and keep at most ``most_kept`` draws, evenly spaced.

    Compiles first, so that the clock measures only sampling, and overshoots the time by less than a step. If there are
    too many draws, every second one is dropped, and the stride doubles; draws between the kept ones stay on the device.
    Memory: twice the kept draws, and twice `sgtune.sampling.lockstep.CHUNK_BYTES`. Stops early when no chain is finite
    any more; the last draw is then not finite.

    Returns:
        draws ``(n_kept, W, D)``; the stride: the i-th draw, i = 1, 2, ..., was made by i * stride steps;
        the clock: (seconds since the start, steps so far) at the end of each call.
    """
    ensemble.advance_chunk(0)
    chunks, clock, stride, n_kept = [], [], 1, 0
    n_steps, done, elapsed, is_finite = 1, 0, 0.0, True
    began = perf_counter()
    while (elapsed < seconds or done < at_least) and is_finite:
        before, until_kept = elapsed, stride - done % stride
        if until_kept == stride <= n_steps:
            draws = ensemble.advance_chunk(n_steps // stride, stride)
            made = len(draws) * stride
        else:
            made = min(n_steps, until_kept)
            draws = ensemble.advance_chunk(1, made)
        elapsed, done = perf_counter() - began, done + made
        clock.append((elapsed, done))
        if done % stride == 0:
            chunks.append(draws)
            n_kept += len(draws)
        while n_kept > most_kept:
            chunks, stride, n_kept = _every_second(chunks), 2 * stride, n_kept // 2
        is_finite = bool(np.isfinite(draws[-1]).all(axis=1).any())
        n_steps = _next_call(made, elapsed - before, seconds - elapsed)
    if not is_finite:
        chunks[-1][-1] = draws[-1]
    return np.concatenate(chunks), stride, clock


def draws_for(
    ensemble: Lockstep, seconds: float, at_least: int = 1
) -> Iterator[tuple[Float[np.ndarray, "n w d"], float]]:
    """Yield the draws of each call, and the seconds of sampling so far, by the wall clock as in `advance_for`. Time
    that the caller spends between calls does not count, and no draws are kept here."""
    ensemble.advance_chunk(0)
    n_steps, done, elapsed, is_finite = 1, 0, 0.0, True
    while (elapsed < seconds or done < at_least) and is_finite:
        began = perf_counter()
        draws = ensemble.advance_chunk(n_steps)
        took = perf_counter() - began
        elapsed, done = elapsed + took, done + len(draws)
        yield draws, elapsed
        is_finite = bool(np.isfinite(draws[-1]).all(axis=1).any())
        n_steps = _next_call(len(draws), took, seconds - elapsed)


def _next_call(made: int, took: float, left: float) -> int:
    """Steps of the next call, after a call of ``made`` steps that took ``took`` seconds."""
    # Aim at 20 ms a call: short compared with every budget, long compared with the overhead of a call.
    room = min(0.02, max(left, 0.0))
    return int(np.clip(room * made / took, 1, 4 * made))


def _every_second(chunks: list[np.ndarray]) -> list[np.ndarray]:
    """The second, fourth, ... of all draws, copied chunk by chunk, so that memory of the others is freed at once."""
    start = 0
    for i, chunk in enumerate(chunks):
        chunks[i] = chunk[(start + 1) % 2 :: 2].copy()
        start += len(chunk)
    return [chunk for chunk in chunks if len(chunk)]
