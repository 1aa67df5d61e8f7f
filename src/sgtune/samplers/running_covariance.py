"""The running average over steps of the covariance of a gradient's noise (Shang et al. 2015, Eq. 18).

With Sigma_t the estimate from the minibatch of step t = 1, 2, ... (`sgtune.samplers.covariance`), the average is

    S_t = (1 - kappa_t) S_{t-1} + kappa_t Sigma_t,      kappa_t = max(1 / t, kappa)

so that kappa = 0 is the paper's kappa_t = 1 / t, the plain mean of all steps. With kappa > 0, kappa_t is constant once
t > 1 / kappa: the average then has a memory of 1 / kappa steps and follows the chain. Before, it is the plain mean, so
no initial value has any weight. With kappa = 1, S_t is the estimate of the current minibatch alone.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int, PyTree

from sgtune.samplers.covariance import Covariance, no_covariance

__all__ = ["RunningCovariance", "no_steps", "times", "updated"]


class RunningCovariance(NamedTuple):
    """S_t, ``(D,)`` or ``(D, D)`` in the order of `ravel_pytree`, and t."""

    covariance: Covariance
    n_steps: Int[Array, ""]


def no_steps(form: str, position: PyTree) -> RunningCovariance:
    """The average before the first step: zeros; ``form`` is "diagonal" or "full"."""
    return RunningCovariance(no_covariance(form, ravel_pytree(position)[0].size), jnp.int32(0))


def updated(
    before: RunningCovariance, covariance: Covariance, kappa: float | Float[Array, ""]
) -> RunningCovariance:
    """The average after one more step, whose estimate is ``covariance``."""
    n_steps = before.n_steps + 1
    weight = jnp.maximum(1 / n_steps, kappa)
    # A difference, not two products: in float32 the mean of equal numbers then stays exactly that number.
    new = before.covariance + weight * (covariance - before.covariance)
    # After the first step the average is the minibatch's estimate to the last bit.
    return RunningCovariance(jnp.where(weight == 1, covariance, new), n_steps)


def times(covariance: Covariance, vector: Float[Array, " D"]) -> Float[Array, " D"]:
    """The matrix times the vector; a diagonal matrix is given by its D numbers."""
    if covariance.ndim == 1:
        return covariance * vector
    # A GPU's default precision for float32 products has three digits.
    return jnp.dot(covariance, vector, precision="highest")
