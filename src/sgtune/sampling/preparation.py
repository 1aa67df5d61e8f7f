"""The arrays that are computed from all data before the first step, once for all chains of an ensemble."""

from collections.abc import Callable

import jax
import numpy as np
from jaxtyping import PyTree

from sgtune.mode.find import map_position
from sgtune.model import Model
from sgtune.samplers import Sampler
from sgtune.samplers.gradients import GradientEstimator
from sgtune.samplers.target import offset_at
from sgtune.sampling.arm import check_position
from sgtune.support.errors import InputError

__all__ = ["check_states", "shared_constants"]


def shared_constants(
    model: Model, sampler: Sampler, estimator: GradientEstimator, centre: PyTree | None
) -> dict:
    """The estimator's arrays, and the offset of the log density if the sampler uses it.

    Arrays that need a centre use ``centre``, or the MAP, for which they are computed once per model.

    Raises:
        InputError: ``centre`` has another shape than a position, or the log density is not finite there.
    """
    if estimator.needs_centre:
        constants = _at_centre(estimator.name, estimator.prepare, model, centre)
    else:
        constants = estimator.prepare(model, None)
    if sampler.uses_log_density:
        constants = {**constants, "offset": _at_centre("offset", offset_at, model, centre)}
    return constants


def _at_centre(name: str, make: Callable, model: Model, centre: PyTree | None) -> PyTree:
    if centre is not None:
        return make(model, check_position("centre", model, centre))
    return model.found.once_at_mode(name, lambda: make(model, map_position(model)))


def check_states(model: Model, sampler: Sampler, states: PyTree) -> None:
    """Check that log density and gradient are finite at the start: a Metropolis test would never leave it otherwise.

    Raises:
        InputError: the sampler uses the log density, and a state is not finite.
    """
    if sampler.uses_log_density and not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(states)):
        raise InputError(
            f"position: the log density of {model.name!r} or its gradient is not finite at a chain's start; it must be"
        )
