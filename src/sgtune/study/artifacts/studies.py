"""Which artifacts a run has, and what a report says of each. Imports nothing heavy."""

from collections.abc import Collection, Iterable

from sgtune.study.catalogue import FIGURES, MODELS, TABLES, Artifact

__all__ = ["artifact", "caption_of", "category_of", "form_of", "labels_of", "requested"]


def artifact(name: str) -> Artifact:
    """The entry of a table or figure."""
    return TABLES[name] if name in TABLES else FIGURES[name]


def form_of(name: str) -> str:
    """``table`` or ``figure``."""
    return "table" if name in TABLES else "figure"


def requested(
    studied: Iterable[tuple[str, str, str]], referenced: Collection[str], ahead: Collection[str] = ()
) -> list[str]:
    """The artifacts that have something to show, where ``studied`` are the (model, sampler, tuner) that a
    run evaluates, ``referenced`` the models with a ground truth, and ``ahead`` those tuned for several horizons."""
    studied = list(studied)
    return [
        name
        for name, entry in (TABLES | FIGURES).items()
        if any(
            entry.model in (None, model)
            and tuner not in entry.without
            and (model in referenced or not entry.needs_reference)
            and (entry.needs_loss is None or entry.needs_loss in MODELS[model].losses)
            and (model in ahead or not entry.needs_horizons)
            for model, _, tuner in studied
        )
    ]


def category_of(wildcards: object) -> str:
    """Where a report lists the artifact of a job's wildcards: under its model, or under all of them."""
    model = artifact(_name_of(wildcards)).model
    return "All models" if model is None else MODELS[model].label


def labels_of(wildcards: object) -> dict[str, str]:
    """What a report calls the artifact of a job's wildcards."""
    return {"artifact": artifact(_name_of(wildcards)).title}


def caption_of(wildcards: object) -> str:
    """What a report says below the artifact of a job's wildcards."""
    return artifact(_name_of(wildcards)).caption


def _name_of(wildcards: object) -> str:
    return getattr(wildcards, "table", None) or wildcards.figure
