"""The study of the covariance-controlled thermostat (Shang et al. 2015): its samplers, tables and figures in print."""

# ruff: noqa: RUF001 - captions have Greek letters and signs of mathematics

from typing import NamedTuple

from sgtune.study.catalogue.artifact import Artifact
from sgtune.study.catalogue.tuners import BLUE, GREEN, ORANGE, VERMILION

__all__ = ["FIGURES", "KINDS", "LABEL", "METHODS", "SHOWN", "TABLES", "MethodEntry"]

LABEL = "CCAdL"
KINDS = ("normal", "settings", "published")


class MethodEntry(NamedTuple):
    """What is printed of a sampler.

    Attributes:
        label: its name.
        style: colour, marker and line of it in figures.
        in_paper: whether the paper has it.
    """

    label: str
    style: tuple[str, str, str | tuple]
    in_paper: bool = True


METHODS: dict[str, MethodEntry] = {
    "sghmc": MethodEntry("SGHMC", (ORANGE, "s", (0, (4, 1.2)))),
    "sgnht": MethodEntry("SGNHT", (BLUE, "^", (0, (2, 1)))),
    "ccadl": MethodEntry("CCAdL", (VERMILION, "o", "-")),
    "mccadl": MethodEntry("mCCAdL", (GREEN, "D", (0, (5, 1.5, 1.5, 1.5))), in_paper=False),
}
"""By the name of the configuration, in the order of print."""

TABLES: dict[str, Artifact] = {
    "normal": Artifact(
        "normal_table:normal",
        ("normal", "published"),
        title="Mean and precision of a normal: errors and autocorrelation times",
        study="ccadl",
        caption=(
            "Mean μ and precision γ of a normal, sampled with minibatches of 10 of 100 data, step size h and friction "
            "A (Table 1 of the paper): the root mean square error of the marginal densities against the exact "
            "posterior, and integrated autocorrelation times in steps, beside the paper's."
        ),
    ),
    "normal_details": Artifact(
        "normal_table:normal_details",
        ("normal",),
        title="Mean and precision of a normal: what is behind the errors",
        study="ccadl",
        caption=(
            "What is behind the errors of mean μ and precision γ of a normal (not in the paper): the bias of the "
            "densities that longer chains would keep, widths over the exact ones, times that count all lags, and how "
            "many steps crossed γ = 0, where they are reflected."
        ),
    ),
}
"""By name, in the order of print."""

FIGURES: dict[str, Artifact] = {
    "normal_densities": Artifact(
        "normal_figure:normal_densities",
        ("normal",),
        title="Mean and precision of a normal: marginal densities",
        study="ccadl",
        caption=(
            "Marginal posterior densities of the mean μ (above) and the precision γ (below) of a normal (Figure 1 of "
            "the paper), a column per step size h and friction A: the mean over chains of their histograms, and the "
            "exact density. The inset has the peak."
        ),
    ),
}
"""By name, in the order of print."""

SHOWN = ("normal", "normal_densities")
