"""The tuners of the study."""

from typing import NamedTuple

__all__ = ["TUNERS", "TunerEntry", "method_of", "smaller_of"]

# Colours that are distinct for colour-blind readers: the first six by Okabe and Ito (2008).
BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION = "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00"
BLACK, GREY, OLIVE, WINE = "#000000", "#8c8c8c", "#8A7B00", "#882255"
# For tuners that are not in the paper, from Tol's muted scheme; their markers differ from the others, too.
INDIGO, TEAL = "#332288", "#44AA99"


class TunerEntry(NamedTuple):
    """The entry of a tuner.

    Attributes:
        label: its name in tables and figures.
        section: the section of the configuration with its settings; theory, which runs nothing, uses only the horizon.
        style: its colour, marker and line in figures.
        method: the tuner of `sgtune.tuning.TUNERS` that it runs on the grid ``smaller`` of a model that has one;
            None if it has the tuner's own name and the whole grid.
        needs_classes: whether it judges by predicted classes.
        looks_at_test_set: whether it judges by the test set, on which it is then evaluated.
        in_paper: whether the paper has it.
        is_random: whether its choice differs between tuning replicates.
    """

    label: str
    section: str
    style: tuple[str, str, str | tuple]
    method: str | None = None
    needs_classes: bool = False
    looks_at_test_set: bool = False
    in_paper: bool = True
    is_random: bool = True


TUNERS: dict[str, TunerEntry] = {
    "mamba-ksd": TunerEntry("MAMBA-KSD", "mamba", (BLUE, "o", "-")),
    "mamba-ksd-smaller": TunerEntry(
        "MAMBA-KSD, smaller grid", "mamba", (BLUE, "o", (0, (2, 1))), method="mamba-ksd"
    ),
    "mamba-fssd": TunerEntry("MAMBA-FSSD", "mamba", (SKY, "s", (0, (5, 1.5)))),
    "grid": TunerEntry("Grid", "grid", (ORANGE, "^", (0, (3, 1.2))), looks_at_test_set=True),
    "grid-smaller": TunerEntry(
        "Grid, smaller grid", "grid", (ORANGE, "^", (0, (1.2, 1))), method="grid", looks_at_test_set=True
    ),
    "heuristic": TunerEntry("Heuristic", "heuristic", (PURPLE, "X", (0, (1.2, 1.2))), is_random=False),
    "grid-ksd": TunerEntry("Grid-KSD", "grid_ksd", (VERMILION, "v", (0, (4, 1.2, 1.2, 1.2, 1.2, 1.2)))),
    # A star is too small to see at the size of the other markers.
    "mamba": TunerEntry("MAMBA (default)", "mamba", (INDIGO, ">", "-"), in_paper=False),
    "mamba-psd": TunerEntry("MAMBA-PSD", "mamba", (TEAL, "d", (0, (3, 1, 1, 1))), in_paper=False),
    "mamba-ksd-scaled": TunerEntry(
        "MAMBA-KSD scaled", "mamba", (GREEN, "D", (0, (7, 1.5, 1.5, 1.5))), in_paper=False
    ),
    "theory": TunerEntry("Theory", "mamba", (BLACK, "p", (0, (1, 2))), in_paper=False, is_random=False),
    "mamba-ece": TunerEntry(
        "MAMBA-ECE", "mamba", (BLACK, "P", "-"), needs_classes=True, looks_at_test_set=True, in_paper=False
    ),
    "mamba-mce": TunerEntry(
        "MAMBA-MCE",
        "mamba",
        (GREY, "h", (0, (5, 1.5))),
        needs_classes=True,
        looks_at_test_set=True,
        in_paper=False,
    ),
    "mamba-accuracy": TunerEntry(
        "MAMBA-accuracy",
        "mamba",
        (OLIVE, "<", (0, (7, 1.5, 1.5, 1.5))),
        needs_classes=True,
        looks_at_test_set=True,
        in_paper=False,
    ),
    "mamba-log-loss": TunerEntry(
        "MAMBA-log-loss",
        "mamba",
        (WINE, ">", (0, (3, 1.2))),
        needs_classes=True,
        looks_at_test_set=True,
        in_paper=False,
    ),
}
"""By the name of the configuration, in the order of print. One that runs another on other step sizes has its colour."""


def method_of(tuner: str) -> str:
    """The name in `sgtune.tuning.TUNERS` of the tuner that runs under the name ``tuner``."""
    return TUNERS[tuner].method or tuner


def smaller_of(tuner: str) -> str | None:
    """The name under which ``tuner`` also runs on a model's smaller grid, if it does."""
    return next((name for name, entry in TUNERS.items() if entry.method == tuner), None)
