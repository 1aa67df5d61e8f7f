"""Differences of a run from the paper: its configuration compared with `paper_settings` and `paper_code`."""

from collections.abc import Iterator, Mapping, Sequence

from sgtune.study.config.sections import model_settings
from sgtune.study.mamba.paper_code import OTHERWISE, Otherwise
from sgtune.study.mamba.paper_settings import SETTINGS, Setting
from sgtune.study.report.artifacts import artifact
from sgtune.study.report.labels import MODELS, in_order, label
from sgtune.study.report.layout import DASH, Cell, Row, Table
from sgtune.study.report.records import Records, need

__all__ = ["deviations"]

COLUMNS = {"paper": "The paper", "run": "This run", "why": "Why"}


def _concerns(entry: Setting | Otherwise, settings: Mapping) -> bool:
    """Whether a run has what an entry is about."""
    samplers, tuners = settings["samplers"], settings["tuners"]
    return (not entry.of_tuners or any(tuner in tuners for tuner in entry.of_tuners)) and (
        not entry.of_samplers or any(name.startswith(tuple(entry.of_samplers)) for name in samplers)
    )


def _compared(setting: Setting, all_settings: Mapping[str, Mapping]) -> dict[str, tuple[str, str]]:
    """What the paper and the run say of each model that both have."""
    found = {}
    for model, settings in all_settings.items():
        paper = setting.paper if isinstance(setting.paper, str) else setting.paper.get(model)
        ours = setting.ours(settings, model) if _concerns(setting, settings) else None
        if paper is not None and ours is not None:
            found[model] = (paper, ours)
    return found


def _rows(all_settings: Mapping[str, Mapping]) -> Iterator[tuple[str, str, Sequence[str]]]:
    """(model or "" for all, what it is, what the columns say) of what differs."""
    for setting in SETTINGS:
        found = _compared(setting, all_settings)
        if len(set(found.values())) == 1 and len(found) == len(all_settings):
            found = {"": next(iter(found.values()))}
        for model, (paper, ours) in found.items():
            if paper != ours:
                yield model, setting.what, (paper, ours, setting.why)
    for entry in OTHERWISE:
        concerned = [model for model, settings in all_settings.items() if _concerns(entry, settings)]
        if entry.model in concerned if entry.model else concerned:
            yield entry.model or "", entry.what, (entry.paper, entry.ours, entry.why)


def deviations(records: Records) -> Table:
    """The differences of this run from the paper, and the reasons."""
    config = need(records, "settings", "deviations")[0]["configuration"]
    models = in_order(config["models"], MODELS)
    all_settings = {model: model_settings(config, model) for model in models}
    found = sorted(_rows(all_settings), key=lambda row: ["", *models].index(row[0]))
    differ = {what for _, what, _ in found}
    as_in_paper = [
        setting.what
        for setting in SETTINGS
        if _compared(setting, all_settings) and setting.what not in differ
    ]
    rows = []
    for model, what, words in found:
        cells = tuple(
            Cell(model, "", "", metric, detail=what, text=text or DASH)
            for metric, text in zip(COLUMNS, words, strict=True)
        )
        rows.append(Row((label(model, MODELS) if model else "All models", what), cells))
    same = (
        f"\nSettings of the configuration as in the paper: {'; '.join(as_in_paper)}." if as_in_paper else ""
    )
    return Table(
        name="deviations",
        title=artifact("deviations").title,
        caption="Where this run differs from the paper, and why: for all models and for each, first settings of "
        "its configuration, then differences of every run of this package. Results that the paper does not "
        f"have at all (further tuners, regret, widths) are not listed.{same}",
        stub=("Model", "What"),
        columns=tuple(("", heading) for heading in COLUMNS.values()),
        rows=tuple(rows),
        is_prose=True,
    )
