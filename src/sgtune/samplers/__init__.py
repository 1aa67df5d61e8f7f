"""Samplers, by name. ``NAME`` uses plain minibatch gradients, ``NAME-cv`` control variates at the MAP.

``mala``, ``hmc`` and ``adam-mcmc-exact`` take all data in every step, so they have one name only.
"""

from sgtune.samplers.adam_mcmc import adam_mcmc, adam_mcmc_exact, adam_mcmc_minibatch
from sgtune.samplers.base import Sampler
from sgtune.samplers.ccadl import ccadl, ccadl_as_published, ccadl_diagonal, make_ccadl
from sgtune.samplers.gradients import ESTIMATORS, GradientEstimator
from sgtune.samplers.hmc import hmc
from sgtune.samplers.mala import mala
from sgtune.samplers.mccadl import mccadl, mccadl_diagonal
from sgtune.samplers.sghmc import sghmc, sghmc_as_published, sghmc_chen
from sgtune.samplers.sghmc_shang import (
    make_sghmc_shang,
    sghmc_shang,
    sghmc_shang_diagonal,
    sghmc_shang_lazy,
)
from sgtune.samplers.sgld import sgld
from sgtune.samplers.sgnht import in_units_of_steps, sgnht, sgnht_shang
from sgtune.support.errors import InputError, check_choice

__all__ = [
    "SAMPLERS",
    "Sampler",
    "ccadl",
    "ccadl_as_published",
    "ccadl_diagonal",
    "in_units_of_steps",
    "make_ccadl",
    "make_sghmc_shang",
    "adam_mcmc",
    "adam_mcmc_exact",
    "adam_mcmc_minibatch",
    "hmc",
    "mala",
    "mccadl",
    "mccadl_diagonal",
    "published_name",
    "resolve_sampler",
    "sampler_names",
    "sghmc",
    "sghmc_as_published",
    "sghmc_chen",
    "sghmc_shang",
    "sghmc_shang_diagonal",
    "sghmc_shang_lazy",
    "sgld",
    "sgnht",
    "sgnht_shang",
]

SAMPLERS: dict[str, Sampler] = {
    "sgld": sgld,
    "sghmc": sghmc,
    "sghmc-chen": sghmc_chen,
    "sghmc-as-published": sghmc_as_published,
    "sgnht": sgnht,
    "mala": mala,
    "ccadl": ccadl,
    "ccadl-diagonal": ccadl_diagonal,
    "ccadl-as-published": ccadl_as_published,
    "sghmc-shang": sghmc_shang,
    "sghmc-shang-diagonal": sghmc_shang_diagonal,
    "sghmc-shang-lazy": sghmc_shang_lazy,
    "sgnht-shang": sgnht_shang,
    "mccadl": mccadl,
    "mccadl-diagonal": mccadl_diagonal,
    "hmc": hmc,
    "adam-mcmc": adam_mcmc,
    "adam-mcmc-minibatch": adam_mcmc_minibatch,
    "adam-mcmc-exact": adam_mcmc_exact,
}
"""By name, without the ending of a gradient estimator; your own entries are added here."""


def sampler_names() -> list[str]:
    """Every name that `resolve_sampler` knows: all samplers, and those that take minibatches also with the ending of a
    gradient estimator, such as ``-cv``."""
    return [
        name + (f"-{ending}" if ending else "")
        for name, sampler in SAMPLERS.items()
        for ending in ESTIMATORS
        if not (ending and sampler.needs_all_data)
    ]


def resolve_sampler(name: str) -> tuple[Sampler, GradientEstimator]:
    """The sampler and the gradient estimator of a published name, for example ``sghmc-cv``.

    Raises:
        InputError: no such sampler.
    """
    base, _, ending = str(name).rpartition("-")
    if ending in ESTIMATORS and base in SAMPLERS and SAMPLERS[base].needs_all_data:
        raise InputError(
            f"sampler: {name!r} is not allowed; {base!r} takes all data in every step, so control variates "
            f"have no effect: it must be {base!r}"
        )
    check_choice("sampler", name, sampler_names())
    if ending in ESTIMATORS and base in SAMPLERS:
        return SAMPLERS[base], ESTIMATORS[ending]
    return SAMPLERS[name], ESTIMATORS[""]


def published_name(sampler: str | Sampler, gradient: GradientEstimator | None = None) -> str:
    """The name of a sampler with a gradient estimator, for example ``sghmc-cv``; ``sampler`` is a name or an object.

    Args:
        gradient: the estimator. None: the one that the name stands for, or plain minibatches for a sampler object.

    Raises:
        InputError: the sampler or the estimator is in no registry (`SAMPLERS`, `sgtune.samplers.gradients.ESTIMATORS`),
            or the name stands for another estimator.
    """
    if isinstance(sampler, str):
        base, named = sampler, gradient is None or sampler in SAMPLERS
    else:
        base = next((name for name, known in SAMPLERS.items() if known is sampler), None)
        named = base is not None
    if not named:
        raise InputError(
            f"sampler: {sampler!r} is not allowed{' with a gradient' if isinstance(sampler, str) else ''}; "
            f"it must be one of sgtune.samplers.SAMPLERS: {', '.join(SAMPLERS)}"
        )
    if gradient is None:
        return base
    ending = next((ending for ending, known in ESTIMATORS.items() if known is gradient), None)
    if ending is None:
        raise InputError(
            f"gradient: {gradient!r} is not allowed; it must be one of sgtune.gradients.ESTIMATORS: "
            f"{', '.join(estimator.name for estimator in ESTIMATORS.values())}"
        )
    return f"{base}-{ending}" if ending else base
