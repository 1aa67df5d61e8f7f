"""The catalogue of the study: its models, samplers and tuners, with their names in print.

A new one is an entry here and a module of its own, and the configuration takes its name. Nothing heavy is imported.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from sgtune.support.axes import BATCH_SIZE, STEP_SIZE

PREDICTIVE_LOSSES = ("log_loss", "brier", "rmse")
"""Losses of arms that are computed from predictions; all others are errors against a reference."""


class ModelEntry(NamedTuple):
    """The entry of a model, which does not depend on its data.

    Attributes:
        label: its name in tables and figures.
        loader: ``module:function`` of ``function(data_dir) -> Model``, imported when it is called.
        task: as in `sgtune.Model`.
        n_data: number of training rows, given the model's section of ``data``.
        dimension: D, given the same section; None if it depends on the data.
        losses: the losses by which the chosen arms are judged in expectation, the main one first: keys of
            `sgtune.metrics.reference_errors`, or of the predictive metrics (`PREDICTIVE_LOSSES`).
        losses_without_reference: the losses where NUTS does not sample the model.
        out_of_distribution: whether its evaluation uses the inputs that ``data.ood`` names.
        in_paper: whether it is one of the paper's; otherwise it is that of a user's file.
    """

    label: str
    loader: str
    task: str
    n_data: Callable[[Mapping], int]
    dimension: Callable[[Mapping], int | None]
    losses: tuple[str, ...]
    losses_without_reference: tuple[str, ...]
    out_of_distribution: bool = False
    in_paper: bool = True


MODELS: dict[str, ModelEntry] = {
    "logistic": ModelEntry(
        "Logistic regression",
        "sgtune.study.posteriors.logistic:load",
        "classification",
        lambda data: data["n_train"],
        lambda data: data["dimension"],
        ("xi_white", "relative_sd_error"),
        ("log_loss", "brier"),
    ),
    "pmf": ModelEntry(
        "PMF",
        "sgtune.study.posteriors.pmf:load",
        "regression",
        lambda data: (n_ratings := data["simulated"] or 100_000) - n_ratings // 5,
        lambda data: 52_580 if data["simulated"] is None else None,
        ("functional_error", "relative_sd_error"),
        ("rmse",),
    ),
    "bnn": ModelEntry(
        "Neural network",
        "sgtune.study.posteriors.bnn:load",
        "classification",
        lambda data: data["simulated"] or 60_000,
        # Weights and biases of two layers: from 784 pixels to the hidden units, and from these to 10 classes.
        lambda data: (784 + 1) * data["n_hidden"] + (data["n_hidden"] + 1) * 10,
        ("log_loss", "brier"),
        ("log_loss", "brier"),
        out_of_distribution=True,
    ),
    # Of the file that the key `model` names: its facts take the place of a section of `data`. The file says what it
    # predicts, and nobody knows which of its predictions matter.
    "own": ModelEntry(
        "Your model",
        "sgtune.study.posteriors.own:load",
        "",
        lambda facts: facts["n_data"],
        lambda facts: facts["dimension"],
        ("xi_white", "relative_sd_error"),
        (),
        in_paper=False,
    ),
}
"""By name, in the order of print."""

NEEDS_RAW = ("heuristic",)
"""Tuners whose step sizes are for the parameters themselves: a user's model runs in other coordinates."""


def losses_of(model: str, has_reference: bool) -> tuple[str, ...]:
    """The losses by which the chosen arms for ``model`` are judged, the main one first."""
    entry = MODELS[model]
    return entry.losses if has_reference else entry.losses_without_reference


def cap_of(loss: str) -> float:
    """The cap on the loss of a run, which a diverged run has: 10, or 2 for Brier scores, their largest value."""
    return {"brier": 2.0}.get(loss, 10.0)


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


def has_axis(sampler: str, axis: str) -> bool:
    """Whether arms of ``sampler`` have a number on ``axis``."""
    return axis in (STEP_SIZE.name, BATCH_SIZE.name, *SAMPLERS[sampler].axes)


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


def _by_classes(label: str, style: tuple) -> TunerEntry:
    return TunerEntry(label, "mamba", style, needs_classes=True, looks_at_test_set=True, in_paper=False)


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
    "mamba-ece": _by_classes("MAMBA-ECE", (BLACK, "P", "-")),
    "mamba-mce": _by_classes("MAMBA-MCE", (GREY, "h", (0, (5, 1.5)))),
    "mamba-accuracy": _by_classes("MAMBA-accuracy", (OLIVE, "<", (0, (7, 1.5, 1.5, 1.5)))),
    "mamba-log-loss": _by_classes("MAMBA-log-loss", (WINE, ">", (0, (3, 1.2)))),
}
"""By the name of the configuration, in the order of print. One that runs another on other step sizes has its colour."""


def method_of(tuner: str) -> str:
    """The name in `sgtune.tuning.TUNERS` of the tuner that runs under the name ``tuner``."""
    return TUNERS[tuner].method or tuner
