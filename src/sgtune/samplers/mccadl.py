"""CCAdL by a symmetric splitting into flows that are solved exactly, mCCAdL (after Wei and Shang, arXiv 2512.24515).

The dynamics are CCAdL's (Shang et al. 2015, Eq. 12). With h the ``step_size``, a time, A the ``friction`` (1), D the
number of parameters and mu = D,

    d theta = p dt
    d p     = grad dt - (h / 2) Sigma p dt - xi p dt + sqrt(2 A) dW
    d xi    = (|p|^2 - D) / mu dt

They are split into five flows over a time t,

    drift         theta <- theta + t p
    kick          p     <- p + t grad
    covariance    p     <- exp(-(h / 2) Sigma t) p
    OU            p     <- exp(-xi t) p + sqrt(A (1 - exp(-2 xi t)) / xi) N(0, I), the root of 2 A t at xi = 0
    thermostat    xi    <- xi + t (|p|^2 / D - 1)

which are composed symmetrically. With t = h for the OU flow and t = h / 2 for all others, a step is

    kick  covariance  drift  thermostat  OU  thermostat  drift  covariance  kick

Only the drifts change theta. So the last two flows of a step and the first two of the next have the same theta,
minibatch, gradient and Sigma; together they are covariance(h/2) kick(h) covariance(h/2). The function `step` therefore
goes from the end of one such triple to the end of the next: it evaluates one gradient, and the draws are the same as in
the symmetric order.

Why this order: a symmetric composition is of second order in h, Algorithm 1 of first. Kick and drift surround OU as in
BAOAB (Leimkuhler and Matthews 2013). With exact gradients on a Gaussian, and constant xi, the draws at the position of
the gradient then have the exact covariance, and so has p where the thermostat reads it; draws at OU would be off by
h^2 / 4. The covariance flow surrounds the kick because gradient noise alone then gives p the variance x / sinh(x),
x = h^2 Sigma / 2: this is 1 - x^2 / 6 for small x, and never above 1. A kick around the covariance flow would give
(x / 2) coth(x / 2), which grows with x.

Sigma is the estimate of the current minibatch (kappa = 1), with (N^2 / n) (1 - n / N); there is no moving average. In
the full form the covariance flow uses the scaling of scaling and squaring: a Taylor polynomial of exp(-M / 2^k), with
M = (h / 2) Sigma t, is applied 2^k times to the vector, where k brings the norm of M / 2^k to 1/2 or less. No D x D
exponential is computed. In the diagonal form it is the exponential itself.

Stability: every kick of Algorithm 1, and of SGNHT, adds noise of variance h^2 Sigma to p, and no friction cools p
below it: |p|^2 cannot come down to D unless h^2 tr Sigma < D. So their limit is h = 1 / sigma for Sigma = sigma^2 I
(they diverge there; at 0.9 / sigma they run, with a variance of 0.56 on N(0, I)). Here the covariance flow damps the
noise of a kick by exp(-h^2 Sigma / 4), and gradient noise never makes p too hot, for any h. On the same target the
variance is 1.03 at 0.9 / sigma, 1.05 at 1.1 / sigma and 1.27 at 2 / sigma; it grows further with h, because the
gradient is damped too. All three methods have the limit of the leapfrog, h < 2 / sqrt(largest curvature).

Invariant density, as h -> 0 and with the exact Sigma(theta): pi(theta) N(p | 0, I) N(xi | A, 1 / D), as for CCAdL.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from sgtune.samplers.base import Sampler, noise_like
from sgtune.samplers.covariance import Covariance, times
from sgtune.samplers.target import Target
from sgtune.support.axes import FRICTION_RATE

__all__ = ["MCCAdLState", "mccadl", "mccadl_diagonal"]

TAYLOR_DEGREE = 6
"""Degree of the polynomial for exp(-X): its error at a norm of 1/2 is 1.6e-6 of the vector."""

LARGEST_HALVING = 8
"""The largest k. A chain for which the norm of M is above 128, at h beyond 20 / sigma, may diverge: more halvings
would slow down the other chains of its ensemble."""


class MCCAdLState(NamedTuple):
    """Position, momentum of unit scale in its shape, thermostat xi, and the state of the gradient estimator."""

    position: PyTree
    momentum: PyTree
    thermostat: Float[Array, ""]
    estimator: PyTree


def init(
    key: PRNGKeyArray, position: PyTree, estimator: PyTree, target: Target, hyperparameters: dict
) -> MCCAdLState:
    """A chain at ``position`` with p ~ N(0, I) and xi = A."""
    thermostat = jnp.asarray(hyperparameters["friction"], jnp.float32)
    return MCCAdLState(position, noise_like(key, position), thermostat, estimator)


def damped(exponent: Covariance, vector: Float[Array, " D"]) -> Float[Array, " D"]:
    """exp(-M) times the vector, for M >= 0; a diagonal M is given as ``(D,)``."""
    if exponent.ndim == 1:
        return jnp.exp(-exponent) * vector
    # Two bounds of the largest eigenvalue.
    norm = jnp.minimum(jnp.linalg.norm(exponent), jnp.abs(exponent).sum(1).max())
    halvings = jnp.clip(jnp.ceil(jnp.log2(jnp.maximum(2 * norm, 1.0))), 0, LARGEST_HALVING)
    # A norm that is not finite cannot become an integer.
    n_times = jnp.left_shift(1, jnp.where(jnp.isfinite(norm), halvings, 0).astype(jnp.int32))

    def polynomial(_, vector):
        # Horner's scheme.
        result = vector
        for degree in range(TAYLOR_DEGREE, 0, -1):
            result = vector - times(exponent, result) / (n_times * degree)
        return result

    return jax.lax.fori_loop(0, n_times, polynomial, vector)


def ornstein_uhlenbeck(
    vector: Float[Array, " D"],
    noise: Float[Array, " D"],
    friction: float | Float[Array, ""],
    thermostat: Float[Array, ""],
    time: float | Float[Array, ""],
) -> Float[Array, " D"]:
    """The flow OU: exp(-xi t) p + sqrt(A (1 - exp(-2 xi t)) / xi) R; xi may be 0 or less."""
    x = 2 * thermostat * time
    is_small = jnp.abs(x) < 1e-3
    # (1 - exp(-x)) / x, whose series replaces it where x is too small to divide by.
    share = jnp.where(is_small, 1 - x / 2, -jnp.expm1(-x) / jnp.where(is_small, 1.0, x))
    return jnp.exp(-thermostat * time) * vector + jnp.sqrt(2 * friction * time * share) * noise


def step(
    form: str, key: PRNGKeyArray, state: MCCAdLState, target: Target, hyperparameters: dict
) -> MCCAdLState:
    """From the end of one covariance-kick-covariance triple to the end of the next."""
    h, friction = hyperparameters["step_size"], hyperparameters["friction"]
    momentum, unravel = ravel_pytree(state.momentum)
    noise = ravel_pytree(noise_like(key, state.momentum))[0]

    def drift(position, momentum):
        return jax.tree.map(lambda x, p: x + h / 2 * p, position, unravel(momentum))

    def thermalise(thermostat, momentum):
        return thermostat + h / 2 * (jnp.mean(momentum**2) - 1)

    position = drift(state.position, momentum)
    thermostat = thermalise(state.thermostat, momentum)
    momentum = ornstein_uhlenbeck(momentum, noise, friction, thermostat, h)
    thermostat = thermalise(thermostat, momentum)
    position = drift(position, momentum)

    gradient, covariance, estimator = target.gradient_with_covariance(position, 0, state.estimator, form)
    exponent = h**2 / 4 * covariance
    momentum = damped(exponent, damped(exponent, momentum) + h * ravel_pytree(gradient)[0])
    return MCCAdLState(position, unravel(momentum), thermostat, estimator)


def _with(covariance: str) -> Sampler:
    # Without a limit of the thermostat's own: the chain of a normal keeps its sd up to h = 1.5, where CCAdL's is lost.
    return Sampler(
        init, partial(step, covariance), (FRICTION_RATE,), covariance=covariance, step_size_power=2
    )


mccadl = _with("full")
mccadl_diagonal = _with("diagonal")
