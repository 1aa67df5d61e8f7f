"""Sentences on the geometric rates of Theorem 2."""

# ruff: noqa: RUF001 - sentences have Greek letters and signs of mathematics

from collections.abc import Mapping
from math import ceil, exp, expm1

from sgtune.study.adam_mcmc.names import SLOW_CURVE
from sgtune.study.adam_mcmc.sentences import listed

__all__ = ["DISTANCES", "QUICK_NAMES", "distance_findings", "fall_text", "is_straight"]

DISTANCES = {
    "mala-grid": "MALA, exactly",
    "mala": "MALA",
    "adam-mcmc-exact": "AdamMCMC, exact",
    SLOW_CURVE: "AdamMCMC, exact, Adam's b₁, b₂",
    "adam-mcmc": "AdamMCMC, γ / s = 0.1",
    "adam-mcmc-large": "AdamMCMC, γ / s = 1",
}
"""Lines of total variation, in print."""

CLEAR_OF_FLOOR = 2
"""A curve that ends at more than this many times the distance of as many exact draws ends at a bias."""

STRAIGHT = 0.15
"""A line whose largest misfit, in log, is more than this is not called straight."""

NEAR_1 = 0.99
"""Rates from here on have five digits."""


def is_straight(fit: Mapping | None) -> bool:
    """Whether a curve has a line, and is nowhere far from it."""
    return fit is not None and fit["misfit"] <= STRAIGHT


def fall_text(fit: Mapping) -> tuple[str, str]:
    """The factor of a step, with more digits near 1, and how far the curve is off the line."""
    rate = f"{fit['rate']:.3f}" if fit["rate"] < NEAR_1 else f"{fit['rate']:.5f}"
    return rate, f"at most {ceil(100 * expm1(fit['misfit']))}% off"


def distance_findings(found: Mapping, names: Mapping[str, str]) -> list[str]:
    """On the straight lines of Theorem 2: rates with their windows, and the curves that have none.

    Args:
        names: of the lines, in print.
    """
    lines = []
    for line in found["lines"]:
        fit, label = line["fit"], names[line["name"]]
        if not is_straight(fit):
            lines.append(
                f"{label}: no rate; the distance falls only to {line['plateau']:.3g} in "
                f"{line['steps'][-1]:.0f} steps."
                if fit is None
                else f"{label}: no rate; the curve is up to a factor of {exp(fit['misfit']):.2g} off a line."
            )
        else:
            rate, off = fall_text(fit)
            lines.append(
                f"{label}: a factor of {rate} a step over steps {fit['first']} to {fit['last']}, {off} the line."
            )
    return lines + _ends_of_the_printed(found, names)


QUICK_NAMES = ("adam-mcmc-exact", "adam-mcmc", "adam-mcmc-large")
"""The lines of AdamMCMC with the decay rates `sgtune.study.adam_mcmc.distances.QUICK`."""


def _ends_of_the_printed(found: Mapping, names: Mapping[str, str]) -> list[str]:
    """The decay rates that no label has, and the distances at which the paper's own algorithm ends."""
    lines = {line["name"]: line for line in found["lines"]}
    said = []
    if any(name in lines for name in QUICK_NAMES):
        said.append("The curves of AdamMCMC without a mark have b₁ = 0.5 and b₂ = 0.9.")
    ends = [
        (names[name], lines[name]["plateau"])
        for name in ("adam-mcmc", "adam-mcmc-large")
        if "plateau" in lines.get(name, ())
    ]
    if ends:
        above = listed(f"{end:.2g} ({label})" for label, end in ends)
        verdict = (
            ": the rest is the bias of the algorithm"
            if min(end for _, end in ends) > CLEAR_OF_FLOOR * found["floor"]
            else ""
        )
        said.append(
            f"The algorithm as printed ends at a distance of {above}, as many exact draws at "
            f"{found['floor']:.2g}{verdict}."
        )
    return said
