"""The samplers of the study: those of the paper."""

from typing import NamedTuple

__all__ = ["SAMPLERS", "SamplerEntry"]


class SamplerEntry(NamedTuple):
    """What the study knows of a sampler of `sgtune.samplers`: its name in print, and whether its arms have a number
    of leapfrogs."""

    label: str
    has_leapfrog: bool = False


SAMPLERS: dict[str, SamplerEntry] = {
    "sgld": SamplerEntry("SGLD"),
    "sgld-cv": SamplerEntry("SGLD-CV"),
    "sghmc": SamplerEntry("SGHMC", has_leapfrog=True),
    "sghmc-cv": SamplerEntry("SGHMC-CV", has_leapfrog=True),
    "sgnht": SamplerEntry("SGNHT"),
    "sgnht-cv": SamplerEntry("SGNHT-CV"),
}
"""By name, in the order of print."""
