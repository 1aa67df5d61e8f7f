"""The grids of arms that tuners choose from (paper App. B.1.2, B.1.3): products of named axes."""

from collections.abc import Iterable, Sequence
from itertools import product
from math import log10

import numpy as np

from sgtune.samplers import SAMPLERS, resolve_sampler
from sgtune.sampling.budget import batch_size_of, rows_of
from sgtune.support.axes import BATCH_SIZE, STEP_SIZE, Arm, Axis
from sgtune.support.errors import InputError, check_choice, check_number

__all__ = [
    "BATCH_FRACTIONS",
    "LEAPFROGS",
    "LOG10_STEP_SIZES",
    "check_listed",
    "check_names",
    "default_fractions",
    "fitted_step_sizes",
    "make_arms",
    "remarks_on_default",
]

LOG10_STEP_SIZES = tuple(float(x) for x in np.arange(-1.0, -7.75, -0.5))
BATCH_FRACTIONS = (1.0, 0.1, 0.01, 0.001)
LEAPFROGS = (5, 10)

DECADES, PER_DECADE = 2, 4
"""The default grid has this range of step sizes below the largest stable one, and this many of them in a decade."""

LARGEST, SMALLEST = 10, -30
"""log10 of the step sizes that are allowed."""

FEWEST_ROWS = 10
"""The default grid has no batch of fewer rows, unless the data have fewer."""


def default_fractions(n_data: int) -> tuple[float, ...]:
    """The `BATCH_FRACTIONS` that give batches of ten rows or more of ``n_data``; 1 in any case."""
    return tuple(
        fraction for fraction in BATCH_FRACTIONS if fraction == 1 or rows_of(fraction, n_data) >= FEWEST_ROWS
    )


def fitted_step_sizes(sampler: str, fraction: float, curvature: float = 1.0) -> tuple[float, ...]:
    """log10 of the step sizes of the default grid for batches of ``fraction`` of the data.

    They begin at the largest stable one, `sgtune.samplers.Sampler.largest_step` over the largest ``curvature`` of
    -log pi, or ``largest_of_thermostat`` if that is smaller, and end at 0.01 of it; or, where the noise of minibatches
    has no control variate, at 0.01 times ``fraction``: this noise widens the posterior by e N / n. A quarter of a
    decade apart, all in units of e, the step size of SGLD (`sgtune.samplers.Sampler.step_size_power`); range and
    distance of a sampler with a Metropolis test in its own units, for in D dimensions it may need 1 / sqrt(D) of a
    posterior sd.
    """
    method, estimator = resolve_sampler(sampler)
    decades = DECADES - (0.0 if estimator.needs_centre else log10(fraction))
    power = method.step_size_power
    largest = log10(method.largest_step) - log10(curvature) / power
    largest = min(largest, log10(min(method.largest_of_thermostat, 10.0**LARGEST)))
    per_decade = PER_DECADE * (1 if method.uses_log_density else power)
    # Half a step of tolerance, so that rounding does not cut the last one.
    count = int(decades * PER_DECADE + 0.5) + 1
    return tuple(largest - i / per_decade for i in range(count))


def remarks_on_default(n_data: int) -> list[str]:
    """A line that names the batch fractions which the default grid omits, if there are any."""
    kept = default_fractions(n_data)
    left_out = ", ".join(f"{fraction:g}" for fraction in BATCH_FRACTIONS if fraction not in kept)
    line = (
        f"batch_fractions: the default grid omits {left_out}: a batch would have fewer than {FEWEST_ROWS} of the "
        f"{n_data} rows"
    )
    return [line] if left_out else []


def make_arms(
    n_data: int,
    sampler: str,
    *,
    log10_step_sizes: Sequence[float] = LOG10_STEP_SIZES,
    batch_fractions: Sequence[float] | None = None,
    n_leapfrogs: Sequence[int] = LEAPFROGS,
    **hyperparameters: Sequence[float],
) -> list[Arm]:
    """All combinations, in this order of nesting: batch fraction, leapfrog number, further axes, step size.

    Args:
        batch_fractions: None for the default (`default_fractions`; 1 for samplers that need all data).
        n_leapfrogs: used only for samplers with leapfrogs.
        hyperparameters: values of further axes by name, such as ``friction=(0.01, 0.1)``, used for the samplers that
            have them. Axes that the grid does not list have their default values in all arms.

    Raises:
        InputError: the grid is empty, one of its values is not allowed, or no sampler has such a hyperparameter.
    """
    check_names(hyperparameters)
    if batch_fractions is None:
        needs_all = resolve_sampler(sampler)[0].needs_all_data
        batch_fractions = (1.0,) if needs_all else default_fractions(n_data)
    values = {
        "log10_step_sizes": log10_step_sizes,
        "batch_fractions": batch_fractions,
        "n_leapfrogs": n_leapfrogs,
        **hyperparameters,
    }
    axes = [axis for axis in resolve_sampler(sampler)[0].axes if axis.in_grids in values]
    for axis in axes:
        listed = values[axis.in_grids]
        check_listed(axis.in_grids, listed)
    # The step size varies fastest, so arms of one shape are neighbours.
    nesting = [axis for axis in axes if axis.is_static] + [axis for axis in axes[::-1] if not axis.is_static]
    numbers = [[_number(axis, value, n_data) for value in values[axis.in_grids]] for axis in nesting]
    return [
        Arm(**{axis.name: number for axis, number in zip(nesting, chosen, strict=True)})
        for chosen in product(*numbers)
    ]


def check_listed(name: str, values: object) -> None:
    """Check that the ``values`` of an axis are a list, and not empty.

    Raises:
        InputError: they are not.
    """
    if isinstance(values, str) or not isinstance(values, Sequence | np.ndarray):
        raise InputError(f"{name}: {values!r} is not allowed; it must be a list of numbers")
    if len(values) == 0:
        raise InputError(f"{name}: the grid is empty; give at least one value")


def check_names(hyperparameters: Iterable[str]) -> None:
    """Check that each name is an axis of some sampler which grids list under this name.

    Raises:
        InputError: no sampler has it, or grids use another name for it.
    """
    axes = [axis for sampler in SAMPLERS.values() for axis in sampler.axes]
    for name in hyperparameters:
        check_choice("hyperparameters", name, {axis.name for axis in axes if axis.name == axis.in_grids})


def _number(axis: Axis, value: float, n_data: int) -> float | int:
    if axis.name == BATCH_SIZE.name:
        return batch_size_of(value, n_data)
    if axis.name == STEP_SIZE.name:
        return float(10.0 ** check_number(axis.in_grids, value, at_most=LARGEST, at_least=SMALLEST))
    return axis.check(value, name=axis.in_grids)
