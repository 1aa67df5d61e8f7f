"""The shape that all samplers share: a pair of pure functions and the numbers they may be given."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, PRNGKeyArray, PyTree

from sgtune.axes import BATCH_SIZE, N_LEAPFROG, STEP_SIZE, Axis

__all__ = ["Sampler", "noise_like"]


def _no_statistics(state: Any) -> dict[str, Array]:
    return {}


def _no_terms(batch_size: int, n_data: int) -> int:
    return 0


class Sampler(NamedTuple):
    """A stochastic-gradient MCMC method.

    Attributes:
        init: ``(key, position, estimator_state, target, hyperparameters) -> State``; a state has a ``position``.
        step: ``(key, state, target, hyperparameters) -> State``: one sample of the chain. The key is for the
            sampler's own noise; gradients and log densities are those of the `sgtune.samplers.target.Target`.
        hyperparameters: the axes besides step size, batch size and number of leapfrogs, each with a default; a pair
            (name, default) is short for a traced one.
        has_leapfrog: whether a step makes ``n_leapfrog`` gradients; otherwise it makes one.
        least_leapfrog: the smallest ``n_leapfrog`` for which the method is defined.
        uses_log_density: whether it asks its target for log densities. These need one pass over all data at the
            start, and a start at which they are finite.
        needs_all_data: whether it is defined for batches of all N data only; it has no ``-cv`` then.
        statistics: ``state -> {name: number}``: what a run says of itself besides its draws; nothing as a rule.
        covariance: "diagonal" or "full" if it asks its target for that covariance of the gradient's noise
            (`sgtune.samplers.covariance`); batches of 1 < N are refused then. Empty if it does not.
        step_size_power: k of e = step_size^k, the step size that SGLD and `heuristic` count in: 2 for samplers whose
            momentum has unit scale.
        log_density_terms: ``(batch_size, n_data) -> data terms`` of log densities that a step evaluates where it makes
            no gradient.
        when_stuck: what to change where a Metropolis test accepts nothing.
        optimal_acceptance: the mean acceptance probability to aim at; None of a sampler without a Metropolis test.
    """

    init: Callable
    step: Callable
    hyperparameters: tuple[Axis | tuple[str, float], ...] = ()
    has_leapfrog: bool = False
    least_leapfrog: int = 1
    uses_log_density: bool = False
    needs_all_data: bool = False
    statistics: Callable[[Any], dict[str, Array]] = _no_statistics
    covariance: str = ""
    step_size_power: int = 1
    log_density_terms: Callable[[int, int], int] = _no_terms
    when_stuck: str = ""
    optimal_acceptance: float | None = None

    @property
    def axes(self) -> tuple[Axis, ...]:
        """What an arm of this sampler may hold; it must hold those that have no default."""
        leapfrogs = (replace(N_LEAPFROG, at_least=self.least_leapfrog),) if self.has_leapfrog else ()
        further = (axis if isinstance(axis, Axis) else Axis(*axis) for axis in self.hyperparameters)
        return (STEP_SIZE, BATCH_SIZE, *leapfrogs, *further)

    def gradients_per_step(self, n_leapfrog: int | None) -> int:
        """Minibatch gradients that one step evaluates."""
        return n_leapfrog if self.has_leapfrog else 1


def noise_like(key: PRNGKeyArray, position: PyTree) -> PyTree:
    """Independent standard normals in the shape of ``position``."""
    flat, unravel = ravel_pytree(position)
    return unravel(jax.random.normal(key, flat.shape, jnp.float32))
