"""The studies: which there are, the artifacts of a run, and how an artifact is made from result files.

Imports nothing heavy: the workflow reads it to decide its targets and inputs. Makers are imported when they are called.
"""

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from math import inf
from pathlib import Path
from typing import NamedTuple

from sgtune.study.adam_mcmc.artifacts import STUDY as ADAM_MCMC
from sgtune.study.audit.artifacts import MODEL as AUDITED
from sgtune.study.audit.artifacts import STUDY as AUDIT
from sgtune.study.audit.artifacts import audited
from sgtune.study.catalogue import MODELS
from sgtune.study.ccadl.artifacts import STUDY as CCADL
from sgtune.study.mamba.artifacts import STUDY as MAMBA
from sgtune.study.pipeline.plan import extras_of, studied
from sgtune.study.pipeline.provenance import Provenance, describe, summarise
from sgtune.study.report.artifact import Artifact, Study
from sgtune.study.report.records import load_records, provenances, records_of
from sgtune.study.user_posteriors.artifacts import STUDY as POSTERIORS
from sgtune.support.errors import DataError, InputError, check_choice
from sgtune.support.files import atomic_write, write_json

MAIN = "mamba"
"""The study that a run makes by default."""

STUDIES: dict[str, Study] = {
    MAIN: MAMBA,
    "ccadl": CCADL,
    "adam_mcmc": ADAM_MCMC,
    "posteriors": POSTERIORS,
    "audit": AUDIT,
}
"""By name, in the order of print."""


class Found(NamedTuple):
    """The entry of a table or figure, the name of its study, and whether it is a ``table`` or a ``figure``."""

    about: Artifact
    study: str
    form: str


def find(name: str) -> Found:
    """The table or figure of this name, or an `InputError`."""
    found = {
        own: Found(about, study, form)
        for study, entry in STUDIES.items()
        for form, artifacts in (("table", entry.tables), ("figure", entry.figures))
        for own, about in artifacts.items()
    }
    return found[check_choice("artifact", name, found)]


def artifact(name: str) -> Artifact:
    """The entry of a table or figure."""
    return find(name).about


def maker_of(name: str) -> Callable:
    """The function that makes the artifact of this name."""
    about, study, form = find(name)
    module, _, function = (about.maker or f"{form}s:{name}").partition(":")
    return getattr(import_module(f"sgtune.study.{STUDIES[study].package or study}.{module}"), function)


def number_in_paper(name: str) -> float:
    """The number that a table or figure has in its paper, by its name; infinite if it is ours."""
    number = name.removeprefix("table").removeprefix("figure")
    return int(number) if number.isdigit() else inf


def artifacts_of_run(config: Mapping, study: str = MAIN) -> list[str]:
    """The study's artifacts that have something to show in a run of this configuration, tables first; of the main study
    those that ``artifacts`` names, if it names any.
    """
    audit, preconditioned = [AUDITED] * bool(audited(config)), config["posteriors"]["models"]
    has = {
        model: {model, *MODELS[model].losses, *extras_of(config, model), *["paper"] * MODELS[model].in_paper}
        | {name for name, models in (("audit", audit), ("preconditioned", preconditioned)) if model in models}
        for model in config["models"]
    }
    arms = {(model, tuner) for model, _, tuner in studied(config)}
    names = [
        name
        for name, entry in (STUDIES[study].tables | STUDIES[study].figures).items()
        if any(
            entry.model in (None, model) and tuner not in entry.without and set(entry.needs) <= has[model]
            for model, tuner in arms
        )
    ]
    if study != MAIN or config["artifacts"] is None:
        return names
    for i, name in enumerate(config["artifacts"]):
        if name not in names:
            raise InputError(
                f"artifacts[{i}]: {name!r} is not allowed; it must be one that this run has: {', '.join(names)}"
            )
    return config["artifacts"]


def files_of(config: Mapping, study: str) -> list[str]:
    """The files by which Snakemake knows the artifacts of a run."""
    folder = f"results/{config['run']}/{study}"
    return [f"{folder}/{find(name).form}s/{name}.html" for name in artifacts_of_run(config, study)]


def _made(name: str, form: str, inputs: Iterable[str | Path]) -> tuple[object, dict]:
    """What the maker of an artifact makes of its records, and the summary of their provenance."""
    about, study, own = find(name)
    if own != form:
        raise InputError(f"{form}: {name!r} is not allowed; it is a {own}")
    records = records_of(load_records(inputs, STUDIES[study].kinds), about)
    maker = maker_of(name)
    try:
        return maker(records, **about.options), summarise(provenances(records))
    except DataError as error:
        raise DataError(f"{name}: {error}") from None


def make_table(name: str, inputs: Iterable[str | Path], caption: str, **files: str | Path) -> None:
    """Write the table ``name`` of ``inputs`` (result files, by `load_records`) with its ``caption`` (the text of its
    file in ``workflow/captions``) to ``files``: ``csv``, ``md`` and ``html``; and its provenance beside the CSV.
    """
    from sgtune.study.report.table import Caption, frame_of, write_table

    started = Provenance()
    cells, sources = _made(name, "table", inputs)
    if not cells:
        raise DataError(f"{name}: no record belongs to it; it needs at least one")
    about, study, _ = find(name)
    names = STUDIES[study].names
    write_table(frame_of(cells), about, Caption(caption), describe(sources), names, **files)
    # A run's files agree on these.
    of_run = {key: values[0] if len(values := sources[key]) == 1 else None for key in ("run", "seed")}
    about_table = {"table": name, "provenance": started.finish() | of_run, "sources": sources}
    write_json(Path(files["csv"]).with_suffix(".json"), about_table)


def make_figure(
    name: str, inputs: Iterable[str | Path], caption: str, *, html: str | Path, **files: str | Path
) -> None:
    """Write the figure ``name`` of ``inputs`` (result files, by `load_records`) to ``files``: ``svg`` and ``pdf``, its
    provenance inside; and a page with the SVG and its ``caption`` (the text of its file in ``workflow/captions``) to
    ``html``.
    """
    from sgtune.study.report.style import save_figure, theme
    from sgtune.study.report.table import Caption, html_page

    with theme():
        figure, sources = _made(name, "figure", inputs)
    title = artifact(name).title
    save_figure(figure, title=title, sources=sources, **files)
    # From its element on: the lines above it are of an SVG that is a file of its own.
    _, element, rest = Path(files["svg"]).read_text(encoding="utf-8").partition("<svg ")
    page = html_page(title, element + rest, Caption(caption).paragraphs, describe(sources))
    with atomic_write(html) as path:
        path.write_text(page, encoding="utf-8")
