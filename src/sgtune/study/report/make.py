"""Make a table's or a figure's files from result files; called by the workflow's scripts."""

from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path

from sgtune.study.mamba import catalogue_figures, catalogue_tables
from sgtune.study.pipeline.provenance import collect, summarise
from sgtune.study.report.artifact import Artifact
from sgtune.study.report.artifacts import artifact, figures_by_name, tables_by_name
from sgtune.study.report.records import Records, belonging, kinds_of, load_records, provenances
from sgtune.study.report.writers import write_table
from sgtune.support.errors import check_choice

__all__ = ["FIGURES", "TABLES", "make_figure", "make_table"]


def _maker(entry: Artifact) -> Callable[[Records], object]:
    """What makes an artifact; its module, which may load seaborn and Matplotlib, is imported when it is called."""
    module, _, name = entry.maker.partition(":")
    package = f"sgtune.study.{entry.study or 'mamba'}"

    def make(records: Records) -> object:
        return getattr(import_module(f"{package}.{module}"), name)(records, **entry.options)

    return make


TABLES = {name: _maker(entry) for name, entry in catalogue_tables.TABLES.items()}
FIGURES = {name: _maker(entry) for name, entry in catalogue_figures.FIGURES.items()}


def _required(name: str, inputs: Iterable[str | Path]) -> Records:
    """The records that ``name`` is made from; other inputs are not in its provenance."""
    entry = artifact(name)
    records = load_records(inputs, kinds_of(entry))
    return {kind: belonging(records, kind, name) for kind in entry.kinds}


def _only(values: list) -> object:
    """The one value a run's files agree on, or None."""
    return values[0] if len(values) == 1 else None


def make_table(
    name: str, inputs: Iterable[str | Path], *, csv: str | Path, md: str | Path, html: str | Path
) -> None:
    """Write the table ``name`` of ``inputs`` (result files, by `load_records`), and its provenance
    beside the CSV.

    Raises `InputError` for a name that is no table, `DataError` where its records are missing.
    """
    maker = _maker(artifact(check_choice("table", name, tables_by_name())))
    records = _required(name, inputs)
    sources = summarise(provenances(records))
    started = collect(_only(sources["run"]), _only(sources["seed"]))
    table = maker(records)
    write_table(table, csv=csv, md=md, html=html, provenance=started.finish(), sources=sources)


def make_figure(name: str, inputs: Iterable[str | Path], *, svg: str | Path, pdf: str | Path) -> None:
    """Write the figure ``name`` of ``inputs`` (result files, by `load_records`), its provenance inside.

    Raises `InputError` for a name that is no figure, `DataError` where its records are missing.
    """
    from sgtune.study.report.style import save_figure

    about = artifact(check_choice("figure", name, figures_by_name()))
    maker, records = _maker(about), _required(name, inputs)
    save_figure(maker(records), title=about.title, svg=svg, pdf=pdf, sources=summarise(provenances(records)))
