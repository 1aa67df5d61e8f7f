"""The target of a sampler: gradients of the log density and, for samplers that ask for it, the log density itself.

log pi(position) = log prior + sum over the N data of the log-likelihood, less a constant: N times an ``offset``, the
mean at a centre. Near 100,000 the spacing of float32 numbers is 1/128, too coarse for the ratio of a Metropolis test.
Less the offset, log densities are of the size of the differences that the test needs: with 200,000 data their errors
were about 1e-4.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from sgtune.model import Model
from sgtune.model.posterior import Density, density_of, log_posterior, sum_over_tiles, value_and_score
from sgtune.model.rows import named_faults, number_of_rows
from sgtune.samplers.gradients import GradientEstimator
from sgtune.samplers.minibatch import draw_minibatch
from sgtune.support.errors import InputError

__all__ = ["Target", "offset_at", "target_of"]


class Target(NamedTuple):
    """The functions of one step; all chains of an ensemble use the same minibatches in it.

    The three of log densities are None unless the sampler ``uses_log_density``.

    Attributes:
        gradient: ``(position, i, estimator_state) -> (gradient, estimator_state)``: the i-th estimate of this step.
        log_density: ``position -> ()``, on all data, tile by tile.
        log_density_and_gradient: ``position -> ((), gradient)``, both exact, in one pass over all data.
        minibatch_log_density: ``(position, i) -> ()``: log prior + (N/n) * the sum over the minibatch of the i-th
            gradient; unbiased for ``log_density``.
        gradient_with_covariance: ``(position, i, estimator_state, form) -> (gradient, noise covariance,
            estimator_state)``: the same gradient and, from the same minibatch, the covariance of its noise, "diagonal"
            or "full" (`sgtune.samplers.gradients.GradientEstimator.estimate_with_covariance`).
        fraction: n / N.
    """

    gradient: Callable
    log_density: Callable | None = None
    log_density_and_gradient: Callable | None = None
    minibatch_log_density: Callable | None = None
    gradient_with_covariance: Callable | None = None
    fraction: float = 1.0


def target_of(
    density: Density,
    estimator: GradientEstimator,
    constants: dict,
    batch_size: int,
    minibatch_key: Callable[[Any], PRNGKeyArray],
    minibatch: Callable[[Any], PyTree] | None = None,
) -> Target:
    """The target of one step, of ``constants`` that may be traced.

    Args:
        constants: the estimator's constants, with an ``offset`` if log densities are needed.
        minibatch_key: ``i -> key`` of the i-th minibatch of the step.
        minibatch: ``i -> rows`` of this minibatch, where the data are not in memory but these rows are.
    """
    data = constants["data"]

    def drawn(i):
        key = minibatch_key(i)
        if minibatch is None:
            return constants, key
        return constants | {"data": data.with_minibatch(key, minibatch(i))}, key

    def gradient(position, i, estimator_state):
        return estimator.estimate(density, *drawn(i), position, batch_size, estimator_state)

    def gradient_with_covariance(position, i, estimator_state, form):
        return estimator.estimate_with_covariance(
            density, *drawn(i), position, batch_size, estimator_state, form
        )

    n_data = number_of_rows(data)
    of_covariance = {"gradient_with_covariance": gradient_with_covariance, "fraction": batch_size / n_data}
    if "offset" not in constants:
        return Target(gradient, **of_covariance)
    offset = constants["offset"]

    def minibatch_log_density(position, i):
        def of_rows(rows):
            return jnp.sum(density.log_likelihood(position, rows) - offset)

        known, key = drawn(i)
        batch = draw_minibatch(key, known["data"], batch_size)
        return density.log_prior(position) + n_data / batch_size * sum_over_tiles(of_rows, batch)

    return Target(
        gradient,
        lambda position: _log_density(density, position, data, offset),
        lambda position: _log_density_and_gradient(density, position, data, offset),
        minibatch_log_density,
        **of_covariance,
    )


# Outside a compiled program, as at a chain's start, each is a program of its own, with the data as arguments.
_log_density = jax.jit(log_posterior)
_log_density_and_gradient = jax.jit(value_and_score)


@named_faults()
def offset_at(model: Model, centre: PyTree) -> Float[Array, ""]:
    """log pi(centre) / N, in one pass over the data: with this offset the log density at ``centre`` is about 0.

    Raises:
        InputError: it is not finite.
    """
    offset = _log_density(density_of(model), centre, model.data, 0.0) / model.n_data
    if not jnp.isfinite(offset):
        raise InputError(
            f"centre: the log density of {model.name!r} there is {offset}; it must be finite, for log densities "
            "are taken relative to it"
        )
    return offset
