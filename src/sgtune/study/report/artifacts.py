"""The artifacts of a run, and their places, titles and captions in a report. Imports nothing heavy."""

from collections.abc import Collection, Iterable, Mapping

from sgtune.study.catalogue import MODELS
from sgtune.study.config.sections import has_horizons, has_regret, model_settings, studied
from sgtune.study.mamba.catalogue_figures import FIGURES
from sgtune.study.mamba.catalogue_tables import TABLES
from sgtune.study.report.artifact import Artifact
from sgtune.study.report.studies import STUDIES
from sgtune.support.errors import InputError

__all__ = [
    "artifact",
    "artifacts_of",
    "artifacts_of_run",
    "caption_of",
    "category_of",
    "figures_by_name",
    "form_of",
    "labels_of",
    "requested",
    "tables_by_name",
]


def tables_by_name() -> dict[str, Artifact]:
    """The tables of all studies."""
    return TABLES | {name: entry for study in STUDIES.values() for name, entry in study.tables.items()}


def figures_by_name() -> dict[str, Artifact]:
    """The figures of all studies."""
    return FIGURES | {name: entry for study in STUDIES.values() for name, entry in study.figures.items()}


def artifact(name: str) -> Artifact:
    """The entry of a table or figure."""
    return (tables_by_name() | figures_by_name())[name]


def form_of(name: str) -> str:
    """``table`` or ``figure``."""
    return "table" if name in tables_by_name() else "figure"


def requested(
    studied: Iterable[tuple[str, str, str]],
    referenced: Collection[str],
    ahead: Collection[str] = (),
    judged: Collection[str] | None = None,
) -> list[str]:
    """The main study's artifacts that have something to show, where ``studied`` are the (model, sampler, tuner) that a
    run evaluates, ``referenced`` the models with a ground truth, ``ahead`` those tuned for several horizons, and
    ``judged`` those with regret, all unless given."""
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
            and (judged is None or model in judged or not entry.needs_regret)
            for model, _, tuner in studied
        )
    ]


def artifacts_of_run(config: Mapping) -> list[str]:
    """The main study's artifacts that a run makes: all that have something to show, or those that ``artifacts`` names.

    Raises:
        InputError: ``artifacts`` names another one.
    """
    models = config["models"]
    names = requested(
        studied(config),
        [model for model in models if model_settings(config, model)["reference"]["nuts"]],
        [model for model in models if has_horizons(config, model)],
        [model for model in models if has_regret(config, model)],
    )
    for i, name in enumerate(config["artifacts"] or ()):
        if name not in names:
            raise InputError(
                f"artifacts[{i}]: {name!r} is not allowed; it must be one that this run has: {', '.join(names)}"
            )
    return names if config["artifacts"] is None else config["artifacts"]


def artifacts_of(study: str) -> list[str]:
    """The artifacts of a further study: tables first."""
    return [*STUDIES[study].tables, *STUDIES[study].figures]


def category_of(wildcards: object) -> str:
    """The report's section for the artifact of a job's wildcards: its study, its model, or all models."""
    entry = artifact(_name_of(wildcards))
    if entry.study:
        return STUDIES[entry.study].label
    return "All models" if entry.model is None else MODELS[entry.model].label


def labels_of(wildcards: object) -> dict[str, str]:
    """The title in a report of the artifact of a job's wildcards."""
    return {"artifact": artifact(_name_of(wildcards)).title}


def caption_of(wildcards: object) -> str:
    """The caption in a report of the artifact of a job's wildcards."""
    return artifact(_name_of(wildcards)).caption


def _name_of(wildcards: object) -> str:
    return getattr(wildcards, "table", None) or wildcards.figure
