"""What each model's tables and figures show, and what every artifact is made from. Imports nothing heavy."""

from collections.abc import Collection, Iterable
from typing import NamedTuple

from sgtune.study.artifacts.labels import METRICS, MODELS, label

__all__ = ["ARTIFACTS", "STUDIES", "TITLES", "Artifact", "Study", "category_of", "labels_of", "requested"]

XI = "relative_sd_error_x100"


class Study(NamedTuple):
    """One model's part of the study. Metrics are those of `labels.METRICS`.

    ``short`` and ``long``: the table of the text and the one of the appendix, each its name and its metrics;
    ``choices``: the name of the table of chosen hyperparameters; ``curves``: figure -> its metric against run
    time; ``regret``: the metrics by which tuners are judged, the first the main one; ``paper``: our metric ->
    the paper's that it is held against; ``speedup``: how many times as fast as grid search the paper says
    MAMBA-KSD tunes SGHMC.
    """

    short: tuple[str, tuple[str, ...]]
    long: tuple[str, tuple[str, ...]]
    choices: str
    curves: dict[str, str]
    regret: tuple[str, ...]
    paper: dict[str, str]
    speedup: str


STUDIES = {
    "logistic": Study(
        short=("table1", ("ksd", XI)),
        long=("table6", (XI, "ksd", "ksd_scaled", "accuracy_percent", "n_samples")),
        choices="table5",
        curves={"figure3": "ksd", "figure3_scaled": "ksd_scaled"},
        regret=(XI,),
        paper={"ksd": "ksd", XI: XI},
        speedup="about 3",
    ),
    "pmf": Study(
        short=("table2", ("ksd", XI)),
        long=("table8", (XI, "ksd", "ksd_scaled", "rmse", "rmse_as_published", "n_samples")),
        choices="table7",
        curves={"figure4": "ksd", "figure4_scaled": "ksd_scaled"},
        regret=(XI,),
        paper={"ksd": "ksd", XI: XI, "rmse_as_published": "rmse"},
        speedup="about 2",
    ),
    "bnn": Study(
        short=("table3", ("ece_percent", "mce_percent")),
        long=(
            "table10",
            (
                "ece_percent",
                "mce_percent",
                "ece_as_published_percent",
                "mce_as_published_percent",
                "accuracy_percent",
                "log_loss",
                "n_samples",
            ),
        ),
        choices="table9",
        curves={"figure5": "ece_percent"},
        regret=("ece_percent", "log_loss"),
        paper={
            "ece_percent": "ece_percent",
            "ece_as_published_percent": "ece_percent",
            "mce_percent": "mce_percent",
            "mce_as_published_percent": "mce_percent",
            "accuracy_percent": "accuracy_percent",
        },
        speedup="4 to 6",
    ),
}


class Artifact(NamedTuple):
    """A table or figure (``form``): the kinds of files it is made from, the model it is of (None: all), the
    tuners that it leaves out, and whether it shows only models with a reference."""

    form: str
    kinds: tuple[str, ...]
    model: str | None = None
    without: tuple[str, ...] = ()
    needs_reference: bool = False


# The paper's Tables 1 to 3 leave out what its appendix has of grid search by KSD.
NOT_IN_TEXT = ("grid-ksd",)
NOT_IN_PAPER = ("mamba-ksd-scaled", "mamba-ece", "mamba-mce", "mamba-accuracy", "mamba-log-loss")

ARTIFACTS = {
    "table4": Artifact("table", ("tuning",)),
    "tuning_time": Artifact("table", ("tuning",)),
    "regret": Artifact("table", ("tuning", "sweep")),
    "published_comparison": Artifact("table", ("evaluation", "published"), without=NOT_IN_PAPER),
    "xi_by_block": Artifact("table", ("evaluation",), "pmf", needs_reference=True),
    "ood": Artifact("table", ("evaluation",), "bnn"),
    "modes": Artifact("table", ("reference",)),
    "reference": Artifact("table", ("reference",), needs_reference=True),
    "cost": Artifact("table", ("cost",)),
    "timings": Artifact(
        "table", ("data", "reference", "cost", "tuning", "evaluation", "sweep", "estimates", "widths")
    ),
    "figure1": Artifact("figure", ("estimates",)),
    "figure2": Artifact("figure", ("estimates",)),
    "widths": Artifact("figure", ("widths",), needs_reference=True),
    "regret_dots": Artifact("figure", ("tuning", "sweep")),
    "ood_entropy": Artifact("figure", ("evaluation",), "bnn"),
}
for _model, _study in STUDIES.items():
    ARTIFACTS[_study.short[0]] = Artifact("table", ("evaluation",), _model, without=NOT_IN_TEXT)
    ARTIFACTS[_study.long[0]] = Artifact("table", ("evaluation",), _model)
    ARTIFACTS[_study.choices] = Artifact("table", ("tuning",), _model)
    ARTIFACTS |= {_figure: Artifact("figure", ("evaluation",), _model) for _figure in _study.curves}


TITLES = {
    "table4": "Table 4. What each tuner tunes",
    "tuning_time": "What tuning costs",
    "regret": "Regret of the tuners",
    "published_comparison": "Beside the published numbers",
    "xi_by_block": "Relative error of the standard deviations, by block of the parameters",
    "ood": "Out-of-distribution images",
    "modes": "The modes",
    "reference": "How well the reference is sampled",
    "cost": "What a step costs",
    "timings": "What the run takes",
    "figure1": "Figure 1. Discrepancies against the step size",
    "figure2": "Figure 2. Discrepancies against the batch size",
    "widths": "What the discrepancies can see: draws that are too narrow or too wide",
    "regret_dots": "Regret of the tuners, by sampler",
    "ood_entropy": "Entropy on out-of-distribution images",
}
"""What a reader calls each artifact."""

for _model, _study in STUDIES.items():
    for _name, _what in {
        _study.short[0]: "accuracy of the tuned samplers",
        _study.long[0]: "tuners compared",
        _study.choices: "hyperparameters chosen",
    }.items():
        TITLES[_name] = f"Table {_name.removeprefix('table')}. {label(_model, MODELS)}: {_what}"
    for _figure, _metric in _study.curves.items():
        _number, _, _scaled = _figure.removeprefix("figure").partition("_")
        _which = f"Figure {_number}" + (", scaled" if _scaled else "")
        TITLES[_figure] = f"{_which}. {label(_model, MODELS)}: {METRICS[_metric].label} against run time"


def requested(studied: Iterable[tuple[str, str, str]], referenced: Collection[str]) -> list[str]:
    """The artifacts that have something to show, where ``studied`` are the (model, sampler, tuner) that a
    run evaluates, and ``referenced`` the models with a ground truth."""
    studied = list(studied)
    return [
        name
        for name, artifact in ARTIFACTS.items()
        if any(
            artifact.model in (None, model)
            and tuner not in artifact.without
            and (model in referenced or not artifact.needs_reference)
            for model, _, tuner in studied
        )
    ]


def category_of(wildcards: object) -> str:
    """Where a report lists the artifact of a job's wildcards: under its model, or under all of them."""
    model = ARTIFACTS[_artifact_of(wildcards)].model
    return "All models" if model is None else label(model, MODELS)


def labels_of(wildcards: object) -> dict[str, str]:
    """What a report calls the artifact of a job's wildcards."""
    return {"artifact": TITLES[_artifact_of(wildcards)]}


def _artifact_of(wildcards: object) -> str:
    return getattr(wildcards, "table", None) or wildcards.figure
