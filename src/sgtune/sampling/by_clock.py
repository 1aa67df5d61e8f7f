"""Chains advanced by the wall clock, and the seconds that a step takes."""

from collections.abc import Callable, Iterable, Iterator
from itertools import product
from time import perf_counter

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from sgtune.mode.coordinates import check_preconditioner, precondition, resolve_preconditioner
from sgtune.model import Model
from sgtune.model.preconditioner import Preconditioner
from sgtune.sampling.arm import Arm
from sgtune.sampling.budget import CostTable
from sgtune.sampling.lockstep import Lockstep, compile_together
from sgtune.support.axes import STATIC, named, numbers_of
from sgtune.support.errors import check_number
from sgtune.support.progress import progress_bar, tracked

__all__ = ["advance_for", "calibrate_cost", "draws_for"]


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
    with progress_bar(ensemble.sampler_name, seconds, "s") as passed:
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
            passed(elapsed - before)
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


LONG_ENOUGH = 1.0
"""If the steps of two passes take longer than this many seconds, they are enough."""

PASSES = 3
"""So many times the costs of all shapes are measured in turn."""


def calibrate_cost(
    model: Model,
    shapes: Iterable[tuple],
    *,
    seconds: float = 0.2,
    preconditioner: str | Preconditioner | ArrayLike = "none",
    report: Callable[[str], None] = lambda line: None,
) -> CostTable:
    """Seconds per step of one chain of each shape, by running it for ``seconds``.

    A cost is the median over chunks of about 20 ms. All programs are compiled first, on all cores, and then measured
    one by one, in three passes over all shapes, so that a machine that is slow for some seconds is not slow for one
    shape alone. Where the steps of two passes take longer than a second, these are enough, and of two numbers the
    smaller counts. The cost does not depend on traced numbers; a tiny step size keeps the chain finite.

    Args:
        shapes: tuples (sampler, batch_size, n_leapfrog), such as ``("sgld-cv", 500, None)``: n_leapfrog is None for a
            sampler without leapfrogs, and pairs (name, number) of further static axes follow it. Each is measured once.
        seconds: the time of each shape, over all passes.
        preconditioner: the coordinates of the chains, as for `sgtune.sample`. Steps in those of a full factor cost
            more, the more the larger D is. `sgtune.tune` measures in its own, and its result keeps the table, ``cost``.
        report: called with one line per shape.

    Returns:
        The table, for the ``cost`` of `sgtune.tune` and `sgtune.sample`.

    Raises:
        InputError: no such sampler, or a number of a shape is missing or not allowed.
    """
    check_number("seconds", seconds, above=0)
    check_preconditioner(model, preconditioner)
    model, ensembles = precondition(model, resolve_preconditioner(model, preconditioner)), {}
    for sampler, *static in dict.fromkeys(shapes):
        numbers = numbers_of(tuple(static), STATIC)
        ensembles[sampler, *static] = Lockstep(model, sampler, [Arm(step_size=1e-12, **numbers)])
    compile_together(ensembles.values())
    per_step: dict[tuple, list[float]] = {shape: [] for shape in ensembles}
    spent = dict.fromkeys(ensembles, 0.0)
    for i, (shape, ensemble) in tracked(
        product(range(PASSES), ensembles.items()), "cost of a step", "measurements"
    ):
        if i == 0:
            ensemble.advance_chunk(0)
            began = perf_counter()
            ensemble.advance_chunk(1)
            last = perf_counter() - began
        elif i > 1 and spent[shape] >= max(seconds, LONG_ENOUGH):
            continue
        else:
            last = per_step[shape][-1]
        while True:
            began = perf_counter()
            done = len(ensemble.advance_chunk(max(1, int(0.02 / max(last, 1e-6)))))
            elapsed = perf_counter() - began
            last = elapsed / done
            per_step[shape].append(last)
            spent[shape] += elapsed
            if spent[shape] >= seconds * (i + 1) / PASSES:
                break
    table = {shape: sorted(own)[(len(own) - 1) // 2] for shape, own in per_step.items()}
    for (sampler, *static), cost in table.items():
        report(f"{sampler}, {named(numbers_of(tuple(static), STATIC))}: {cost:.3g} s a step")
    return CostTable(table)
