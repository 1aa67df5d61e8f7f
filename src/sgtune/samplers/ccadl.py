"""Covariance-controlled adaptive Langevin thermostat, CCAdL (Shang, Zhu, Leimkuhler and Storkey 2015, Algorithm 1).

Let h be the ``step_size``, A the ``friction`` (1), D the number of parameters, and grad an estimate of grad log pi
whose noise has the covariance Sigma. A chain starts with p ~ N(0, I) and xi = A:

    theta <- theta + h p
    S     <- (1 - kappa_t) S + kappa_t Sigma(theta)              kappa_t = max(1 / t, kappa), t = 1, 2, ...
    p     <- p + h grad - h (h / 2) S p - h xi p + N(0, 2 A h I)
    xi    <- xi + h (|p|^2 / D - 1)

Gradient and Sigma are from one minibatch, at the new theta. The momentum has unit scale, so ``step_size`` is the
paper's own h, a time: it is the square root of the ``step_size`` of `sgtune.samplers.sgnht`, whose momentum is
v = h p. The arm {step_size: h, friction: A} corresponds to SGNHT's {step_size: h^2, friction: A h}, with alpha = h xi.
With S = 0, as for batches of all N data, CCAdL is SGNHT.

Invariant density, as h -> 0 and with S the exact Sigma(theta): pi(theta) N(p | 0, I) N(xi | A, 1 / D) (Proposition 2;
M = I, beta = 1 and thermal mass mu = D, as in Algorithm 1). The term (h / 2) Sigma p compensates for gradient noise of
any covariance Sigma(theta); SGNHT's scalar xi compensates only for a constant multiple of I.

``kappa`` is 0 in Algorithm 1: S is then the mean of Sigma over all steps so far and converges to a constant, so the
chain keeps a bias where Sigma depends on theta. With ``kappa`` > 0, S follows the chain, with a memory of 1 / kappa
steps (`sgtune.samplers.covariance`). An example: N(0, I) in two dimensions; the covariance of the noise, which
is supplied exactly, grows from left to right from 0 to 1,000 times a matrix of correlation 0.5; h = 0.01 and A = 1
(standard errors 0.02; `tests/samplers/test_parameter_dependent_noise.py`):

    bias of             mean of theta_1    E theta_1 theta_2
    SGNHT                      0.27               0.34
    CCAdL, kappa = 0           0.26              -0.04
    CCAdL, kappa = 0.1         0.12               0.00
    CCAdL, kappa = 1           0.01               0.00
    mCCAdL                     0.01               0.00

So the mean over all steps compensates for the correlation of the noise, but not for its dependence on theta.

Sigma is (N^2 / n) (1 - n / N) V for minibatches without replacement, and 0 at n = N. V is the minibatch's covariance of
the per-datum gradients (with control variates: of their differences from the gradients at the centre). The paper's
Eq. (17), N^2 / n V, is ``factor="as printed"``.

Cost: besides SGNHT's minibatch gradient, a step computes the n per-datum gradients, n D numbers, in chunks
(`sgtune.samplers.covariance`); their squares, n D operations, or for the full covariance a product of matrices, n D^2;
and S p, D or D^2. Memory is a few times D or D^2 numbers for each chain. So the diagonal form costs a constant multiple
of SGNHT's cost, and the full form's cost grows with D. With n = N it costs as much as SGNHT, except for S p.

Registered are ``ccadl`` (full covariance), ``ccadl-diagonal`` and ``ccadl-as-published`` (full, Eq. 17).
"""

from functools import cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from sgtune.samplers.base import Sampler, noise_like
from sgtune.samplers.covariance import FORMS, RunningCovariance, no_steps, times, updated
from sgtune.samplers.sgnht import LARGEST_OF_THERMOSTAT
from sgtune.samplers.target import Target
from sgtune.support.axes import FRICTION_RATE, KAPPA
from sgtune.support.errors import check_choice

__all__ = ["CCAdLState", "FACTORS", "ccadl", "ccadl_as_published", "ccadl_diagonal", "make_ccadl"]

FACTORS = ("without replacement", "as printed")
"""The factor of V in Sigma: (N^2 / n) (1 - n / N), or N^2 / n as in Eq. (17)."""


class CCAdLState(NamedTuple):
    """Position, momentum of unit scale in its shape, thermostat xi, S, and the state of the gradient estimator."""

    position: PyTree
    momentum: PyTree
    thermostat: Float[Array, ""]
    noise: RunningCovariance
    estimator: PyTree


def init(
    form: str, key: PRNGKeyArray, position: PyTree, estimator: PyTree, target: Target, hyperparameters: dict
) -> CCAdLState:
    """A chain at ``position`` with p ~ N(0, I) and xi = A."""
    thermostat = jnp.asarray(hyperparameters["friction"], jnp.float32)
    return CCAdLState(position, noise_like(key, position), thermostat, no_steps(form, position), estimator)


def step(
    form: str, factor: str, key: PRNGKeyArray, state: CCAdLState, target: Target, hyperparameters: dict
) -> CCAdLState:
    """One step of Algorithm 1."""
    h, friction = hyperparameters["step_size"], hyperparameters["friction"]
    position = jax.tree.map(lambda x, p: x + h * p, state.position, state.momentum)
    gradient, covariance, estimator = target.gradient_with_covariance(position, 0, state.estimator, form)
    if factor == "as printed" and target.fraction < 1:
        covariance = covariance / (1 - target.fraction)
    noise = updated(state.noise, covariance, hyperparameters["kappa"])
    flat, unravel = ravel_pytree(state.momentum)
    damped = unravel(h / 2 * times(noise.covariance, flat) + state.thermostat * flat)
    momentum = jax.tree.map(
        lambda p, g, d, z: p + h * (g - d) + jnp.sqrt(2 * friction * h) * z,
        state.momentum,
        gradient,
        damped,
        noise_like(key, state.momentum),
    )
    mean_square = jnp.mean(ravel_pytree(momentum)[0] ** 2)
    return CCAdLState(position, momentum, state.thermostat + h * (mean_square - 1), noise, estimator)


def make_ccadl(*, covariance: str = "full", factor: str = "without replacement") -> Sampler:
    """A variant of CCAdL; the same arguments give the same object. `sgtune.sample` takes it by a name, once it is in
    `sgtune.samplers.SAMPLERS` under that.

    Args:
        covariance: "full", ``(D, D)`` for each chain, refused above D = 5,000; or "diagonal", ``(D,)``.
        factor: one of `FACTORS`. Sigma is 0 at n = N for both, because the gradient has no noise there.

    Raises:
        InputError: an argument is not known.
    """
    check_choice("covariance", covariance, FORMS)
    check_choice("factor", factor, FACTORS)
    return _make(covariance, factor)


@cache
def _make(covariance: str, factor: str) -> Sampler:
    return Sampler(
        partial(init, covariance),
        partial(step, covariance, factor),
        (FRICTION_RATE, KAPPA),
        covariance=covariance,
        step_size_power=2,
        largest_of_thermostat=LARGEST_OF_THERMOSTAT**0.5,
    )


ccadl = make_ccadl()
ccadl_diagonal = make_ccadl(covariance="diagonal")
ccadl_as_published = make_ccadl(factor="as printed")
