"""The samplers of the study, which are the paper's."""

from typing import NamedTuple

__all__ = ["SAMPLERS", "SamplerEntry"]


class SamplerEntry(NamedTuple):
    """The entry of a sampler of `sgtune.samplers`.

    Attributes:
        label: its name in tables and figures.
        axes: the names of the hyperparameters of its arms besides step size and batch size. (They repeat the sampler's
            own axes, because importing the sampler would import JAX.)
    """

    label: str
    axes: tuple[str, ...] = ()


SGHMC_AXES = ("n_leapfrog", "friction", "noise_estimate")

SAMPLERS: dict[str, SamplerEntry] = {
    "sgld": SamplerEntry("SGLD"),
    "sgld-cv": SamplerEntry("SGLD-CV"),
    "sghmc": SamplerEntry("SGHMC", SGHMC_AXES),
    "sghmc-cv": SamplerEntry("SGHMC-CV", SGHMC_AXES),
    "sgnht": SamplerEntry("SGNHT", ("friction",)),
    "sgnht-cv": SamplerEntry("SGNHT-CV", ("friction",)),
}
"""By name, in the order of print."""
