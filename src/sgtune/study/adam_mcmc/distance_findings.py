"""Sentences on the geometric rates of Theorem 2."""

# ruff: noqa: RUF001 - sentences have Greek letters and signs of mathematics

from collections.abc import Mapping
from math import ceil, exp, expm1

from sgtune.study.adam_mcmc.sentences import listed

__all__ = ["DISTANCES", "QUICK_NAMES", "STRAIGHT", "distance_findings"]

DISTANCES = {
    "mala-grid": "MALA, exactly",
    "mala": "MALA",
    "adam-mcmc-exact": "AdamMCMC, exact",
    "adam-mcmc-exact-slow": "AdamMCMC, exact, Adam's b₁, b₂",
    "adam-mcmc": "AdamMCMC, γ / s = 0.1",
    "adam-mcmc-large": "AdamMCMC, γ / s = 1",
}
"""Lines of total variation, in print."""

CLEAR_OF_FLOOR = 2
"""A curve that ends at more than this many times the distance of as many exact draws ends at a bias."""

STRAIGHT = 0.15
"""A line whose largest misfit, in log, is more than this is not called straight."""


def distance_findings(found: Mapping, names: Mapping[str, str]) -> list[str]:
    """On the straight lines of Theorem 2: rates with their windows, and the curves that have none.

    Args:
        names: of the lines, in print.
    """
    lines = []
    for line in found["lines"]:
        fit, label = line["fit"], names[line["name"]]
        if fit is None or fit["misfit"] > STRAIGHT:
            lines.append(
                f"{label}: no rate; the distance falls only to {line.get('plateau', line['distances'][-1]):.3g} in "
                f"{len(line['distances']) - 1} steps."
                if fit is None
                else f"{label}: no rate; the curve is up to a factor of {exp(fit['misfit']):.2g} off a line."
            )
        else:
            lines.append(
                f"{label}: a factor of {fit['rate']:.3f} a step over steps {fit['first']} to {fit['last']}, at most "
                f"{ceil(100 * expm1(fit['misfit']))}% off the line."
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
