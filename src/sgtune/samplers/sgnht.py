"""Stochastic gradient Nose-Hoover thermostat (Ding et al. 2014, Alg. 2; preprint Eq. 7).

Let h be the ``step_size``, a the ``friction`` (0.01) and D the number of parameters. A chain starts with v ~ N(0, h I)
and alpha = a:

    v     <- v + h grad - alpha v + N(0, 2 a h I)
    theta <- theta + v
    alpha <- alpha + |v|^2 / D - h

One thermostat alpha serves the whole parameter vector: it adapts to the friction that balances gradient noise of
unknown size.

Invariant density, as h -> 0: pi(theta) N(v | 0, h I) N(alpha | a + B, ...), where B is the (isotropic) gradient noise
in units of the friction. The Euler discretisation leaves an O(h) bias.

alpha moves in units of the position squared, so the algorithm depends on these: about its target alpha oscillates with
the frequency sqrt(2 h) a step, whatever the curvature lambda, and the position with sqrt(h lambda). With a large h
alpha heats the chain or throws it out. On N(0, I), from the mode and with a = 0.01, sds were at most 4% too wide up to
h = 0.03, 4% to 6% at 0.04 and 9% to 25% at 0.1, and all chains were lost from 0.4 on (D from 1 to 200; below D = 10
some from 0.1 on). Hence `LARGEST_OF_THERMOSTAT`. It binds where curvatures are about one, as in coordinates of a
preconditioner; in raw coordinates of many data h lambda < 4 is the narrower bound.

``sgnht-shang`` is the same sampler in the units of the CCAdL paper (Shang et al. 2015, Eq. 8), which has p ~ N(0, I), a
time step h, a friction A and a thermostat xi, both per unit of time. With Sigma the covariance of the gradient's noise,
these are the same chains under

    step_size = h^2        v = h p        alpha = h xi        a = A h        b = h^2 Sigma / 2

(b is the ``noise_estimate`` of `sghmc`): v <- v + step_size grad - alpha v + N(0, 2 a step_size I) is h times
p <- p + h grad - h xi p + N(0, 2 A h I), theta <- theta + v is theta <- theta + h p, and
alpha <- alpha + |v|^2 / D - step_size is h times xi <- xi + h (|p|^2 / D - 1). So the arm {step_size: h, friction: A}
means the same for it, for `sgtune.samplers.ccadl` and for `sgtune.samplers.sghmc_shang`. Its state is in v and alpha.
It kicks before it drifts, the others after: its draw t is their draw t + 1 of the same sequence of positions. As
h -> 0 its density is pi(theta) N(p | 0, I) N(xi | A + h sigma^2 / 2, 1 / D), if Sigma = sigma^2 I (Proposition 1).
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from sgtune.samplers.base import Sampler, noise_like
from sgtune.samplers.target import Target
from sgtune.support.axes import FRICTION, FRICTION_RATE, STEP_SIZE

__all__ = ["LARGEST_OF_THERMOSTAT", "SGNHTState", "in_units_of_steps", "sgnht", "sgnht_shang"]

LARGEST_OF_THERMOSTAT = 0.03
"""The largest step size h at which the thermostat hardly disturbs a chain."""


class SGNHTState(NamedTuple):
    """Position, momentum in the shape of the position, scalar thermostat, and the gradient estimator's state."""

    position: PyTree
    momentum: PyTree
    thermostat: Float[Array, ""]
    estimator: PyTree


def init(
    key: PRNGKeyArray, position: PyTree, estimator: PyTree, target: Target, hyperparameters: dict
) -> SGNHTState:
    """A chain at ``position`` with v ~ N(0, h I) and alpha = a."""
    root_h = jnp.sqrt(hyperparameters["step_size"])
    momentum = jax.tree.map(lambda z: root_h * z, noise_like(key, position))
    return SGNHTState(position, momentum, jnp.asarray(hyperparameters["friction"], jnp.float32), estimator)


def step(key: PRNGKeyArray, state: SGNHTState, target: Target, hyperparameters: dict) -> SGNHTState:
    """One step of the thermostat."""
    h = hyperparameters["step_size"]
    noise_sd = jnp.sqrt(2 * hyperparameters["friction"] * h)
    gradient, estimator = target.gradient(state.position, 0, state.estimator)
    momentum = jax.tree.map(
        lambda v, g, z: v + h * g - state.thermostat * v + noise_sd * z,
        state.momentum,
        gradient,
        noise_like(key, state.momentum),
    )
    position = jax.tree.map(jnp.add, state.position, momentum)
    leaves = jax.tree.leaves(momentum)
    mean_square = sum(jnp.sum(v**2) for v in leaves) / sum(v.size for v in leaves)
    return SGNHTState(position, momentum, state.thermostat + mean_square - h, estimator)


def in_units_of_steps(numbers: Mapping[str, Any]) -> dict[str, Any]:
    """An arm with h and A converted to the units of `sgnht`: step_size h^2, friction A h, other numbers unchanged; an
    arm without A has the default of ``sgnht-shang``.

    ``sample(model, "sgnht", **in_units_of_steps(arm))`` and ``sample(model, "sgnht-shang", **arm)`` are one method.
    """
    h, friction = numbers[STEP_SIZE.name], numbers.get(FRICTION.name, FRICTION_RATE.default)
    return {**numbers, STEP_SIZE.name: h**2, FRICTION.name: friction * h}


sgnht = Sampler(init, step, (FRICTION,), largest_step=4.0, largest_of_thermostat=LARGEST_OF_THERMOSTAT)
sgnht_shang = Sampler(
    lambda key, position, estimator, target, numbers: init(
        key, position, estimator, target, in_units_of_steps(numbers)
    ),
    lambda key, state, target, numbers: step(key, state, target, in_units_of_steps(numbers)),
    (FRICTION_RATE,),
    step_size_power=2,
    largest_of_thermostat=LARGEST_OF_THERMOSTAT**0.5,
)
