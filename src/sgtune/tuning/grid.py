"""The grids of arms that tuners choose from (paper App. B.1.2, B.1.3)."""

from collections.abc import Sequence

import numpy as np

from sgtune.errors import InputError, check_integer, check_number
from sgtune.samplers import resolve_sampler
from sgtune.sampling.arm import Arm
from sgtune.sampling.budget import batch_size_of

__all__ = ["BATCH_FRACTIONS", "LEAPFROGS", "LOG10_STEP_SIZES", "make_arms"]

LOG10_STEP_SIZES = tuple(float(x) for x in np.arange(-1.0, -7.75, -0.5))
BATCH_FRACTIONS = (1.0, 0.1, 0.01, 0.001)
LEAPFROGS = (5, 10)


def make_arms(
    n_data: int,
    sampler: str,
    *,
    log10_step_sizes: Sequence[float] = LOG10_STEP_SIZES,
    batch_fractions: Sequence[float] = BATCH_FRACTIONS,
    n_leapfrogs: Sequence[int] = LEAPFROGS,
) -> list[Arm]:
    """All combinations, in this order of nesting: batch fraction, leapfrog number, step size.

    ``n_leapfrogs`` is for samplers with leapfrogs; others get None.

    Raises:
        InputError: the grid is empty, or one of its values is not allowed.
    """
    leapfrogs = list(n_leapfrogs) if resolve_sampler(sampler)[0].has_leapfrog else [None]
    named = {
        "log10_step_sizes": log10_step_sizes,
        "batch_fractions": batch_fractions,
        "n_leapfrogs": leapfrogs,
    }
    for name, values in named.items():
        if isinstance(values, str) or not isinstance(values, Sequence | np.ndarray):
            raise InputError(f"{name}: {values!r} is not allowed; it must be a list of numbers")
        if len(values) == 0:
            raise InputError(f"{name}: the grid is empty; give at least one value")
    for value in log10_step_sizes:
        check_number("log10_step_sizes", value, at_most=10, at_least=-30)
    for value in leapfrogs:
        if value is not None:
            check_integer("n_leapfrogs", value, at_least=1)
    return [
        Arm(float(10.0**log10_step_size), batch_size_of(fraction, n_data), n_leapfrog)
        for fraction in batch_fractions
        for n_leapfrog in leapfrogs
        for log10_step_size in log10_step_sizes
    ]
