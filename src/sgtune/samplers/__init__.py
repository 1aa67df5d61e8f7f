"""Samplers, by name. ``NAME`` uses plain minibatch gradients, ``NAME-cv`` control variates at the MAP.

``mala`` takes all data in every step, so it has one name only.
"""

from sgtune.errors import InputError, check_choice
from sgtune.samplers.base import Sampler
from sgtune.samplers.gradients import ESTIMATORS, GradientEstimator
from sgtune.samplers.mala import mala
from sgtune.samplers.sghmc import sghmc, sghmc_as_published, sghmc_chen
from sgtune.samplers.sgld import sgld
from sgtune.samplers.sgnht import sgnht

__all__ = ["SAMPLERS", "Sampler", "resolve_sampler", "sampler_names"]

SAMPLERS: dict[str, Sampler] = {
    "sgld": sgld,
    "sghmc": sghmc,
    "sghmc-chen": sghmc_chen,
    "sghmc-as-published": sghmc_as_published,
    "sgnht": sgnht,
    "mala": mala,
}


def sampler_names() -> list[str]:
    """Every name that `resolve_sampler` knows."""
    return [
        name + (f"-{ending}" if ending else "")
        for name, sampler in SAMPLERS.items()
        for ending in ESTIMATORS
        if not (ending and sampler.needs_all_data)
    ]


def resolve_sampler(name: str) -> tuple[Sampler, GradientEstimator]:
    """The sampler and the gradient estimator that a published name such as ``sghmc-cv`` stands for.

    Raises:
        InputError: no such sampler.
    """
    base, _, ending = str(name).rpartition("-")
    if ending in ESTIMATORS and base in SAMPLERS and SAMPLERS[base].needs_all_data:
        raise InputError(
            f"sampler: {name!r} is not allowed; {base!r} takes all data in every step, which leaves control "
            f"variates nothing to do: it must be {base!r}"
        )
    check_choice("sampler", name, sampler_names())
    if ending in ESTIMATORS and base in SAMPLERS:
        return SAMPLERS[base], ESTIMATORS[ending]
    return SAMPLERS[name], ESTIMATORS[""]
