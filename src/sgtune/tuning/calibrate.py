"""Measure the time of a step: once per shape (sampler and static axes), with nothing else running on the machine."""

from collections.abc import Callable, Iterable
from time import perf_counter

from sgtune.model import Model
from sgtune.sampling.arm import Arm
from sgtune.sampling.budget import CostTable
from sgtune.sampling.lockstep import Lockstep, compile_together
from sgtune.support.axes import STATIC, named, numbers_of

__all__ = ["calibrate_cost"]

LONG_ENOUGH = 1.0
"""If a single step takes longer than this many seconds, it is enough."""


def calibrate_cost(
    model: Model,
    shapes: Iterable[tuple],
    *,
    seconds: float = 0.2,
    report: Callable[[str], None] = lambda line: None,
) -> CostTable:
    """Seconds per step of one chain of each shape, by running it for ``seconds``.

    A cost is the median over chunks of about 20 ms, at least three unless they last longer than a second, so that
    short disturbances do not matter. All programs are compiled first, on all cores, and then measured one by one. The
    cost does not depend on traced numbers; a tiny step size keeps the chain finite.

    Args:
        shapes: tuples (sampler, batch_size, n_leapfrog), such as ``("sgld-cv", 500, None)``: n_leapfrog is None for a
            sampler without leapfrogs, and pairs (name, number) of further static axes follow it. Each is measured once.
        seconds: the time of each measurement.
        report: called with one line per shape.

    Returns:
        The table, for the ``cost`` of `sgtune.tune` and `sgtune.sample`.

    Raises:
        InputError: no such sampler, or a number of a shape is missing or not allowed.
    """
    ensembles = {}
    for sampler, *static in dict.fromkeys(shapes):
        numbers = numbers_of(tuple(static), STATIC)
        ensembles[sampler, *static] = Lockstep.at_mode(model, sampler, [Arm(step_size=1e-12, **numbers)])
    compile_together(ensembles.values())
    table = {}
    for (sampler, *static), ensemble in ensembles.items():
        ensemble.advance_chunk(0)
        began = perf_counter()
        ensemble.advance_chunk(1)
        n_steps = max(1, int(0.02 / max(perf_counter() - began, 1e-6)))
        per_step, spent = [], 0.0
        while spent < seconds or (len(per_step) < 3 and spent < LONG_ENOUGH):
            began = perf_counter()
            done = len(ensemble.advance_chunk(n_steps))
            elapsed = perf_counter() - began
            spent += elapsed
            per_step.append(elapsed / done)
            n_steps = max(1, int(0.02 / per_step[-1]))
        median = sorted(per_step)[len(per_step) // 2]
        table[sampler, *static] = median
        report(f"{sampler}, {named(numbers_of(tuple(static), STATIC))}: {median:.3g} s a step")
    return CostTable(table)
