"""SGNHT in the units of the CCAdL paper (Shang et al. 2015, Eq. 8), and the map between these and the units of `sgnht`.

`sgnht` and `sghmc` use the units of Ding et al. and Chen et al.: their momentum v has the variance ``step_size``. The
CCAdL paper has p ~ N(0, I), a time step h, a friction A and a thermostat xi, both per unit of time. With Sigma the
covariance of the gradient's noise, these are the same chains under

    step_size = h^2        v = h p        alpha = h xi        a = A h        b = h^2 Sigma / 2

(b is the ``noise_estimate`` of `sghmc`): v <- v + step_size grad - alpha v + N(0, 2 a step_size I) is h times
p <- p + h grad - h xi p + N(0, 2 A h I), theta <- theta + v is theta <- theta + h p, and
alpha <- alpha + |v|^2 / D - step_size is h times xi <- xi + h (|p|^2 / D - 1).

``sgnht-shang`` is `sgnht` with these values, so the arm {step_size: h, friction: A} means the same for it, for
`sgtune.samplers.ccadl` and for `sgtune.samplers.sghmc_shang`. Its state is the state of `sgnht`, in v and alpha. It
kicks before it drifts, the others after: its draw t is their draw t + 1 of the same sequence of positions.

Invariant density, as h -> 0 and for noise of a constant Sigma = sigma^2 I: pi(theta) N(p | 0, I)
N(xi | A + h sigma^2 / 2, 1 / D) (Proposition 1).
"""

from collections.abc import Mapping
from typing import Any

from jaxtyping import PRNGKeyArray, PyTree

from sgtune.samplers.base import Sampler
from sgtune.samplers.sgnht import SGNHTState, sgnht
from sgtune.samplers.target import Target
from sgtune.support.axes import FRICTION, FRICTION_RATE, STEP_SIZE

__all__ = ["in_units_of_steps", "sgnht_shang"]


def in_units_of_steps(numbers: Mapping[str, Any]) -> dict[str, Any]:
    """An arm with h and A converted to the units of `sgnht`: step_size h^2, friction A h, other numbers unchanged.

    ``sample(model, "sgnht", **in_units_of_steps(arm))`` and ``sample(model, "sgnht-shang", **arm)`` are one method.
    """
    h, friction = numbers[STEP_SIZE.name], numbers[FRICTION.name]
    return {**numbers, STEP_SIZE.name: h**2, FRICTION.name: friction * h}


def init(
    key: PRNGKeyArray, position: PyTree, estimator: PyTree, target: Target, hyperparameters: dict
) -> SGNHTState:
    """A chain at ``position`` with p ~ N(0, I) and xi = A."""
    return sgnht.init(key, position, estimator, target, in_units_of_steps(hyperparameters))


def step(key: PRNGKeyArray, state: SGNHTState, target: Target, hyperparameters: dict) -> SGNHTState:
    """One step of the thermostat."""
    return sgnht.step(key, state, target, in_units_of_steps(hyperparameters))


sgnht_shang = Sampler(init, step, (FRICTION_RATE,), step_size_power=2)
