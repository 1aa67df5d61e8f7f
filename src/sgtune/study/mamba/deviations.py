"""Where a run's configuration differs from the paper's settings, key by key."""

from collections.abc import Mapping

from sgtune.study.config.sections import model_settings
from sgtune.study.report.labels import MODELS, in_order
from sgtune.study.report.records import Records, required
from sgtune.study.report.table import Cell

__all__ = ["deviations"]

OF_TUNERS = {"grid": "grid", "grid_ksd": "grid-ksd", "heuristic": "heuristic"}
"""Sections of one tuner, which concern only a run that has it."""


def deviations(records: Records) -> list[Cell]:
    """This run's value and the paper's of every key of the paper's settings (`workflow/resources/paper_settings.yaml`)
    in which they differ; without a model where all models of the run differ alike."""
    config = required(records, "settings")[0]["configuration"]
    papers = required(records, "paper_settings")[0]
    models = in_order(config["models"], MODELS)
    found: dict[str, dict[tuple[str, str], list[str]]] = {key: {} for own in papers.values() for key in own}
    for model in models:
        settings = model_settings(config, model)
        for key, paper in papers[model].items():
            tuner = OF_TUNERS.get(key.split(".")[0])
            is_there, ours = _value(settings, key)
            if is_there and ours != paper and (tuner is None or tuner in settings["tuners"]):
                found[key].setdefault((_text(ours), _text(paper)), []).append(model)
    return [
        Cell(model, "", "", key, detail=whose, text=text)
        for key, alike in found.items()
        for texts, differ in alike.items()
        for model in ([""] if differ == models else differ)
        for whose, text in zip(("this run", "the paper"), texts, strict=True)
    ]


def _value(settings: Mapping, key: str) -> tuple[bool, object]:
    """Whether the settings have a key, and its value: earlier runs do not have all keys of today."""
    for part in key.split("."):
        if not isinstance(settings, Mapping) or part not in settings:
            return False, None
        settings = settings[part]
    return True, settings


def _text(value: object) -> str:
    """As in a configuration, with digits in groups of three."""
    if isinstance(value, list | tuple):
        return ", ".join(map(_text, value))
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    return value if isinstance(value, str) else f"{value:,.10g}".replace("-", "\N{MINUS SIGN}")
