"""The interface of all samplers: a pair of pure functions, and the hyperparameters that they take."""

from collections.abc import Callable
from dataclasses import replace
from math import inf
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, PRNGKeyArray, PyTree

from sgtune.support.axes import BATCH_SIZE, N_LEAPFROG, STEP_SIZE, Axis

__all__ = ["Sampler", "noise_like"]


class Sampler(NamedTuple):
    """A stochastic-gradient MCMC method.

    Attributes:
        init: ``(key, position, estimator_state, target, hyperparameters) -> State``; a state has a ``position``.
        step: ``(key, state, target, hyperparameters) -> State``: one sample of the chain. The key is for the
            sampler's own noise; gradients and log densities are from the `sgtune.samplers.target.Target`.
        hyperparameters: the axes besides step size, batch size and number of leapfrogs, each with a default.
        has_leapfrog: whether a step evaluates ``n_leapfrog`` gradients; otherwise it evaluates one.
        least_leapfrog: the smallest ``n_leapfrog`` for which the method is defined.
        static_leapfrog: whether a step needs ``n_leapfrog`` as a Python number: each then has its own program.
        uses_log_density: whether it asks its target for log densities. This takes one pass over all data at the
            start, and the log density must be finite at the starting position.
        needs_all_data: whether it is defined only for batches of all N data; it then has no ``-cv`` variant.
        statistics: ``state -> {name: number}``: diagnostics of a run besides its draws; empty for most samplers.
        covariance: "diagonal" or "full" if it asks its target for this form of the covariance of the gradient's noise
            (`sgtune.samplers.covariance`); a batch of 1 < N is then refused. Empty if it does not.
        step_size_power: k of e = step_size^k, the step size that SGLD and `heuristic` count in: 2 for samplers whose
            momentum has unit scale, or whose step size has the unit of a position.
        largest_step: the step size above which the chain of a standard normal leaves it, with exact gradients and as
            the friction vanishes; with a Metropolis test, a step size of which hardly any proposal is accepted. Without
            a thermostat, which has a limit of its own:
        largest_of_thermostat: the step size above which a thermostat may leave its target or heat the chain, whatever
            the curvature (`sgtune.samplers.sgnht`).
        log_density_terms: ``(batch_size, n_data) -> data terms``: the terms of log densities that a step evaluates
            besides its gradients.
        when_stuck: advice on what to change if the Metropolis test accepts nothing.
        optimal_acceptance: the mean acceptance probability to aim at; None for a sampler without a Metropolis test.
    """

    init: Callable
    step: Callable
    hyperparameters: tuple[Axis, ...] = ()
    has_leapfrog: bool = False
    least_leapfrog: int = 1
    static_leapfrog: bool = False
    uses_log_density: bool = False
    needs_all_data: bool = False
    statistics: Callable[[Any], dict[str, Array]] = lambda state: {}
    covariance: str = ""
    step_size_power: int = 1
    largest_step: float = 2.0
    largest_of_thermostat: float = inf
    log_density_terms: Callable[[int, int], int] = lambda batch_size, n_data: 0
    when_stuck: str = ""
    optimal_acceptance: float | None = None

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The axes that an arm of this sampler may have; it must have those without a default."""
        leapfrogs = (replace(N_LEAPFROG, at_least=self.least_leapfrog),) if self.has_leapfrog else ()
        return (STEP_SIZE, BATCH_SIZE, *leapfrogs, *self.hyperparameters)

    def gradients_per_step(self, n_leapfrog: int | None) -> int:
        """Minibatch gradients that one step evaluates."""
        return n_leapfrog if self.has_leapfrog else 1


def noise_like(key: PRNGKeyArray, position: PyTree) -> PyTree:
    """Independent standard normals in the shape of ``position``."""
    flat, unravel = ravel_pytree(position)
    return unravel(jax.random.normal(key, flat.shape, jnp.float32))
