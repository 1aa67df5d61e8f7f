"""The chains of one replicate: one of each (h, A), on common minibatches."""

from collections.abc import Mapping, Sequence

import jax
import jax.numpy as jnp
from jaxtyping import PyTree

from sgtune.model import Model
from sgtune.sampling.arm import Arm
from sgtune.sampling.lockstep import Lockstep

__all__ = ["ensemble_of", "records_of"]


def ensemble_of(
    model: Model,
    sampler: str,
    cells: Sequence[tuple[float, float]],
    *,
    batch_size: int,
    start: PyTree,
    seed: int,
    replicate: str,
) -> Lockstep:
    """A chain of ``sampler``, a name of `sgtune.samplers`, for each (h, A) of ``cells``, all from ``start``."""
    arms = [
        Arm(step_size=step_size, batch_size=batch_size, friction=friction) for step_size, friction in cells
    ]
    position = jax.tree.map(jnp.asarray, start)
    return Lockstep.at_mode(model, sampler, arms, position=position, seed=seed, replicate=replicate)


def records_of(ensemble: Lockstep, replicate: int, found: Sequence[Mapping]) -> list[dict]:
    """The record of each chain: the replicate, what was ``found`` of it, and the sampler's ``statistics``."""
    statistics = ensemble.statistics
    return [
        {
            "replicate": replicate,
            **own,
            "statistics": {name: float(values[i]) for name, values in statistics.items()},
        }
        for i, own in enumerate(found)
    ]
