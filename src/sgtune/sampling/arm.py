"""One setting of a sampler, and the checks of what a user may give a chain."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from sgtune.errors import InputError, check_integer, check_number
from sgtune.model import Model
from sgtune.samplers import Sampler, resolve_sampler

__all__ = ["Arm", "check_arm", "check_hyperparameters", "check_position"]

PyTree = Any


class Arm(NamedTuple):
    """One setting of the tuned hyperparameters. ``n_leapfrog`` is None for samplers without leapfrogs."""

    step_size: float
    batch_size: int
    n_leapfrog: int | None = None


def check_arm(model: Model, sampler_name: str, arm: Arm) -> Arm:
    """``arm`` in canonical types.

    Raises:
        InputError: the step size is not positive, the batch size is not in 1..N, or not N where the sampler needs all
            data, or the leapfrog number is missing, too small, or given to a sampler that has none.
    """
    sampler, _ = resolve_sampler(sampler_name)
    step_size = check_number("step_size", arm.step_size, above=0)
    if sampler.needs_all_data and arm.batch_size != model.n_data:
        raise InputError(
            f"batch_size: {arm.batch_size!r} is not allowed; {sampler_name} takes all data in every step: it must be "
            f"{model.n_data}"
        )
    batch_size = check_integer("batch_size", arm.batch_size, at_least=1, at_most=model.n_data)
    if not sampler.has_leapfrog:
        if arm.n_leapfrog is not None:
            raise InputError(f"n_leapfrog: {arm.n_leapfrog!r} given, but {sampler_name} makes no leapfrogs")
        return Arm(step_size, batch_size, None)
    n_leapfrog = check_integer("n_leapfrog", arm.n_leapfrog, at_least=sampler.least_leapfrog)
    return Arm(step_size, batch_size, n_leapfrog)


def check_hyperparameters(sampler_name: str, sampler: Sampler, overrides: dict) -> dict[str, float]:
    """The sampler's hyperparameters besides the tuned ones, with ``overrides``.

    Raises:
        InputError: one is unknown to the sampler, negative, or a noise estimate above the friction.
    """
    defaults = dict(sampler.hyperparameters)
    for name, value in overrides.items():
        if name not in defaults:
            allowed = f"allowed: {', '.join(defaults)}" if defaults else "it has none to set"
            raise InputError(
                f"{name}: {value!r} given, but {sampler_name} has no such hyperparameter; {allowed}"
            )
        check_number(name, value, at_least=0)
    numbers = {**defaults, **overrides}
    if numbers.get("noise_estimate", 0.0) > numbers.get("friction", 0.0):
        raise InputError(
            f"noise_estimate: {numbers['noise_estimate']!r} is not allowed; it must be at most the friction, "
            f"{numbers['friction']!r}"
        )
    return numbers


def check_position(name: str, model: Model, position: PyTree) -> PyTree:
    """``position`` as arrays of the model's own shapes.

    Raises:
        InputError: it has another structure or shape.
    """
    shapes = jax.tree.map(lambda leaf: leaf.shape, model.position_shape)
    given = jax.tree.map(jnp.shape, position)
    if given != shapes:
        raise InputError(f"{name}: shape {given} is not allowed; {model.name!r} needs {shapes}")
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), position)
