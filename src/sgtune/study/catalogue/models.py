"""The models of the study."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

__all__ = ["MODELS", "PREDICTIVE_LOSSES", "ModelEntry", "Study", "cap_of", "losses_of"]

PREDICTIVE_LOSSES = ("log_loss", "brier", "rmse")
"""Losses of arms that are computed from predictions; all others are errors against a reference."""

XI = "relative_sd_error_x100"
XIS = (XI, "xi_rel_x100", "xi_white_x100")
KSDS = ("ksd", "ksd_se", "ksd_floor", "ksd_scaled", "ksd_scaled_se", "ksd_scaled_floor")


class Study(NamedTuple):
    """The tables of one model. Metrics are keys of `labels.METRICS`.

    ``short`` and ``long``: the table of the text and the one of the appendix, each its name and its metrics;
    ``choices``: the name of the table of chosen hyperparameters; ``paper``: our metric -> the paper's metric that it
    is compared with; ``speedup``: how many times as fast as grid search MAMBA-KSD tunes SGHMC, according to the paper.
    """

    short: tuple[str, tuple[str, ...]]
    long: tuple[str, tuple[str, ...]]
    choices: str
    paper: dict[str, str]
    speedup: str


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
        study: its tables and figures.
        out_of_distribution: whether its evaluation uses the inputs that ``data.ood`` names.
    """

    label: str
    loader: str
    task: str
    n_data: Callable[[Mapping], int]
    dimension: Callable[[Mapping], int | None]
    losses: tuple[str, ...]
    losses_without_reference: tuple[str, ...]
    study: Study
    out_of_distribution: bool = False


def _n_ratings(data: Mapping) -> int:
    n_ratings = 100_000 if data["simulated"] is None else data["simulated"]
    return n_ratings - n_ratings // 5


def _n_images(data: Mapping) -> int:
    return 60_000 if data["simulated"] is None else data["simulated"]


def _n_weights(data: Mapping) -> int:
    """Weights and biases of two layers: from 784 pixels to the hidden units, and from these to 10 classes."""
    return (784 + 1) * data["n_hidden"] + (data["n_hidden"] + 1) * 10


MODELS: dict[str, ModelEntry] = {
    "logistic": ModelEntry(
        "Logistic regression",
        "sgtune.study.posteriors.logistic:load",
        "classification",
        lambda data: data["n_train"],
        lambda data: data["dimension"],
        ("xi_white", "relative_sd_error"),
        ("log_loss", "brier"),
        study=Study(
            short=("table1", ("ksd", XI)),
            long=("table6", (*XIS, *KSDS, "accuracy_percent", "n_samples")),
            choices="table5",
            paper={"ksd": "ksd", XI: XI},
            speedup="about 3",
        ),
    ),
    "pmf": ModelEntry(
        "PMF",
        "sgtune.study.posteriors.pmf:load",
        "regression",
        _n_ratings,
        lambda data: 52_580 if data["simulated"] is None else None,
        ("functional_error", "relative_sd_error"),
        ("rmse",),
        study=Study(
            short=("table2", ("ksd", XI)),
            long=(
                "table8",
                (XI, "xi_rel_x100", "functional_error", *KSDS, "rmse", "rmse_as_published", "n_samples"),
            ),
            choices="table7",
            paper={"ksd": "ksd", XI: XI, "rmse_as_published": "rmse"},
            speedup="about 2",
        ),
    ),
    "bnn": ModelEntry(
        "Neural network",
        "sgtune.study.posteriors.bnn:load",
        "classification",
        _n_images,
        _n_weights,
        ("log_loss", "brier"),
        ("log_loss", "brier"),
        out_of_distribution=True,
        study=Study(
            short=("table3", ("log_loss", "brier", "ece_percent", "mce_percent")),
            long=(
                "table10",
                (
                    "log_loss",
                    "brier",
                    "ece_percent",
                    "mce_percent",
                    "ece_as_published_percent",
                    "mce_as_published_percent",
                    "accuracy_percent",
                    "n_samples",
                ),
            ),
            choices="table9",
            paper={
                "ece_percent": "ece_percent",
                "ece_as_published_percent": "ece_percent",
                "mce_percent": "mce_percent",
                "mce_as_published_percent": "mce_percent",
                "accuracy_percent": "accuracy_percent",
            },
            speedup="4 to 6",
        ),
    ),
}
"""By name, in the order of print."""


def losses_of(model: str, has_reference: bool) -> tuple[str, ...]:
    """The losses by which the chosen arms for ``model`` are judged, the main one first."""
    entry = MODELS[model]
    return entry.losses if has_reference else entry.losses_without_reference


def cap_of(loss: str) -> float:
    """The cap on the loss of a run, which a diverged run has: 10, or 2 for Brier scores, their largest value."""
    return {"brier": 2.0}.get(loss, 10.0)
