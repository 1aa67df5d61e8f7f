"""The checks of a chain's arguments, and the numbers that its arm stands for."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from sgtune.model import Model
from sgtune.model.preconditioner import Preconditioner
from sgtune.samplers import Sampler, resolve_sampler
from sgtune.samplers.covariance import check_covariance
from sgtune.support.axes import BATCH_SIZE, COMMON, N_LEAPFROG, STATIC, Arm, key_of
from sgtune.support.errors import DataError, InputError

__all__ = [
    "Arm",
    "as_saved",
    "chain_numbers",
    "check_arm",
    "check_hyperparameters",
    "from_saved",
    "shape_of",
    "static_numbers",
]


def shape_of(sampler_name: str, arm: Arm) -> tuple:
    """The sampler and the arm's static numbers, which arms of one ensemble share: the key of a cost table."""
    static = {axis.name for axis in resolve_sampler(sampler_name)[0].axes if axis.is_static}
    return (sampler_name, *key_of({name: arm[name] for name in arm if name in static}, STATIC))


def check_arm(model: Model, sampler_name: str, arm: Arm, overrides: Mapping[str, float] | None = None) -> Arm:
    """``arm`` in canonical types.

    Args:
        overrides: values, in place of the defaults, for axes that the arm does not have.

    Raises:
        InputError: a number that it must have is missing or out of bounds (the batch size must be in 1..N, and N where
            the sampler needs all data), the sampler has no such hyperparameter, the noise estimate exceeds the
            friction, or the sampler asks for a covariance that cannot be estimated (`sgtune.samplers.covariance`).
    """
    sampler, _ = resolve_sampler(sampler_name)
    axes = {axis.name: axis for axis in sampler.axes}
    for name in arm:
        if name not in axes:
            raise _unknown(name, arm[name], sampler_name, axes)
    if sampler.needs_all_data and arm.batch_size != model.n_data:
        raise InputError(
            f"batch_size: {arm.batch_size!r} is not allowed; {sampler_name} takes all data in every step: it must be "
            f"{model.n_data}"
        )
    checked = {
        name: axis.check(arm.get(name), at_most=model.n_data if name == BATCH_SIZE.name else None)
        for name, axis in axes.items()
        if name in arm or axis.default is None
    }
    further = {name: number for name, number in checked.items() if axes[name].default is not None}
    check_hyperparameters(sampler_name, sampler, {**(overrides or {}), **further})
    if sampler.covariance:
        check_covariance(sampler.covariance, checked[BATCH_SIZE.name], model.n_data, model.dimension)
    return Arm(**checked)


def _unknown(name: str, value: object, sampler_name: str, allowed: Mapping) -> InputError:
    hint = f"allowed: {', '.join(allowed)}" if allowed else "it has none to set"
    return InputError(f"{name}: {value!r} given, but {sampler_name} has no such hyperparameter; {hint}")


def check_hyperparameters(
    sampler_name: str, sampler: Sampler, overrides: Mapping[str, float]
) -> dict[str, float | Callable]:
    """The values of the sampler's axes that have a default, with ``overrides``; a default that depends on other axes
    is a function.

    Raises:
        InputError: the sampler does not have an axis, a value is out of bounds, or the noise estimate is above the
            friction.
    """
    axes = {axis.name: axis for axis in sampler.axes if axis.default is not None}
    for name, value in overrides.items():
        if name not in axes:
            raise _unknown(name, value, sampler_name, axes)
        axes[name].check(value)
    numbers = {**{name: axis.default for name, axis in axes.items()}, **overrides}
    if numbers.get("noise_estimate", 0.0) > numbers.get("friction", 0.0):
        raise InputError(
            f"noise_estimate: {numbers['noise_estimate']!r} is not allowed; it must be at most the friction, "
            f"{numbers['friction']!r}"
        )
    return numbers


def chain_numbers(sampler_name: str, arms: Sequence[Arm], overrides: Mapping[str, float]) -> dict[str, Array]:
    """The hyperparameters of W chains: ``(W,)`` arrays for the traced axes that the arms have, and ``()`` for all
    others, which the chains share. The batch size is not included, because it belongs to the gradient; nor are further
    static axes (`static_numbers`).

    Raises:
        InputError: `check_hyperparameters` refuses ``overrides``, or the arms are not of one shape.
    """
    sampler, _ = resolve_sampler(sampler_name)
    if len({shape_of(sampler_name, arm) for arm in arms}) > 1:
        raise InputError(f"arms: {arms!r} are not allowed; chains of one ensemble share all static numbers")
    numbers = check_hyperparameters(sampler_name, sampler, overrides)
    given: dict[str, Array] = {}
    of_arms: list[dict] = [{} for _ in arms]
    for axis in sampler.axes:
        default = numbers.get(axis.name)
        for arm, known in zip(arms, of_arms, strict=True):
            known[axis.name] = arm.get(axis.name, default(known) if callable(default) else default)
        each = [known[axis.name] for known in of_arms]
        varies = not axis.is_static and (callable(default) or any(axis.name in arm for arm in arms))
        dtype = np.int32 if axis.is_integer else np.float32
        is_leapfrog = axis.name == N_LEAPFROG.name
        if is_leapfrog or not axis.is_static:
            given[axis.name] = jnp.asarray(np.asarray(each if varies else each[0], dtype))
    return given


def static_numbers(
    sampler_name: str, arm: Arm, overrides: Mapping[str, float]
) -> tuple[tuple[str, float | int], ...]:
    """The further static axes of a sampler and their numbers, not traced: each value needs its own program. The number
    of leapfrogs is one of them only if the sampler says so."""
    sampler, _ = resolve_sampler(sampler_name)
    numbers = check_hyperparameters(sampler_name, sampler, overrides)
    common = {axis.name for axis in COMMON} - ({N_LEAPFROG.name} if sampler.static_leapfrog else set())
    return tuple(
        (axis.name, arm.get(axis.name, numbers.get(axis.name)))
        for axis in sampler.axes
        if axis.is_static and axis.name not in common
    )


def as_saved(arm: Arm) -> tuple[dict, dict[str, np.ndarray]]:
    """What a file has of an arm: its numbers, and the arrays of its preconditioner, if there is one."""
    numbers = {name: value for name, value in arm.items() if name != "preconditioner"}
    return numbers, {} if len(numbers) == len(arm) else arm["preconditioner"].arrays


def from_saved(path: str | Path, numbers: Mapping, arrays: Mapping[str, np.ndarray]) -> Arm:
    """The inverse of `as_saved`, for the file ``path``.

    Raises:
        DataError: the arrays are no preconditioner.
    """
    try:
        return Arm(**numbers, preconditioner=Preconditioner(**arrays) if arrays else None)
    except (InputError, TypeError) as error:
        raise DataError(f"{path}: its preconditioner is damaged ({error})") from None
