"""The shape that all samplers share: a pair of pure functions and the numbers they may be given."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import PRNGKeyArray

__all__ = ["GradientFn", "Sampler", "noise_like"]

PyTree = Any

GradientFn = Callable[[PyTree, Any, PyTree], tuple[PyTree, PyTree]]
"""``(position, i, estimator_state) -> (gradient, estimator_state)``: the i-th gradient of this step.

The chain closes it over the step's minibatch key, which all arms of a lockstep ensemble share."""


class Sampler(NamedTuple):
    """A stochastic-gradient MCMC method.

    Attributes:
        init: ``(key, position, estimator_state, hyperparameters) -> State``.
        step: ``(key, state, gradient_fn, hyperparameters) -> State``: one sample of the chain. The key is for the
            sampler's own noise.
        hyperparameters: names and defaults of the numbers besides ``step_size`` that a user may set; all traced.
        has_leapfrog: whether a step makes ``n_leapfrog`` gradients; otherwise it makes one.
        least_leapfrog: the smallest ``n_leapfrog`` for which the method is defined.
    """

    init: Callable
    step: Callable
    hyperparameters: tuple[tuple[str, float], ...] = ()
    has_leapfrog: bool = False
    least_leapfrog: int = 1

    def gradients_per_step(self, n_leapfrog: int | None) -> int:
        """Minibatch gradients that one step evaluates."""
        return n_leapfrog if self.has_leapfrog else 1


def noise_like(key: PRNGKeyArray, position: PyTree) -> PyTree:
    """Independent standard normals in the shape of ``position``."""
    flat, unravel = ravel_pytree(position)
    return unravel(jax.random.normal(key, flat.shape, jnp.float32))
