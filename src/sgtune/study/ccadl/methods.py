"""The study's samplers as the library has them: the paper's h and A as an arm."""

from collections.abc import Callable
from typing import NamedTuple

from sgtune.errors import check_choice
from sgtune.sampling.arm import Arm

__all__ = ["METHODS", "Method", "arm_of"]


class Method(NamedTuple):
    """A sampler of the study.

    Attributes:
        sampler: its name in `sgtune.samplers`.
        arm: ``(h, A, batch size) -> Arm``, from the paper's parameterisation: momenta of unit scale.
    """

    sampler: str
    arm: Callable[[float, float, int], Arm]


def _by_velocity(step_size: float, friction: float, batch_size: int) -> Arm:
    """With v = h p of a sampler whose momenta have the variance ``step_size``: h^2, and the friction A h."""
    return Arm(step_size=step_size**2, batch_size=batch_size, friction=friction * step_size)


METHODS: dict[str, Method] = {"sgnht": Method("sgnht", _by_velocity)}
"""By the name of the configuration."""


def arm_of(method: str, step_size: float, friction: float, batch_size: int) -> Arm:
    """The arm of ``method`` for the paper's step size h and friction A.

    Raises:
        InputError: no such method.
    """
    return METHODS[check_choice("sampler", method, METHODS)].arm(step_size, friction, batch_size)
