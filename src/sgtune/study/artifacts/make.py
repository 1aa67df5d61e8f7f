"""From result files to a table's or a figure's files: what the workflow's scripts call."""

from collections.abc import Callable, Iterable
from functools import partial
from importlib import import_module
from pathlib import Path

from sgtune.errors import check_choice
from sgtune.study.artifacts import comparisons, tables, timings
from sgtune.study.artifacts.records import Records, belonging, load_records, provenances
from sgtune.study.artifacts.reference import modes, reference
from sgtune.study.artifacts.regret import regret
from sgtune.study.artifacts.studies import ARTIFACTS, STUDIES
from sgtune.study.artifacts.writers import write_table
from sgtune.study.provenance import collect, summarise

__all__ = ["FIGURES", "TABLES", "make_figure", "make_table"]


def _of(module: str, maker: str, **options: str) -> Callable[[Records], object]:
    """A maker in a module that loads Matplotlib, which only the jobs of figures wait for."""

    def make(records: Records) -> object:
        return getattr(import_module(f"sgtune.study.artifacts.{module}"), maker)(records, **options)

    return make


TABLES = {
    "table4": tables.table4,
    "regret": regret,
    "tuning_time": comparisons.tuning_time,
    "published_comparison": comparisons.published_comparison,
    "xi_by_block": tables.xi_by_block,
    "ood": _of("entropies", "ood"),
    "modes": modes,
    "cost": timings.cost,
    "timings": timings.timings,
    "reference": reference,
}

FIGURES = {
    "figure1": _of("figures", "figure1"),
    "figure2": _of("figures", "figure2"),
    "widths": _of("regret_figures", "widths"),
    "regret_dots": _of("regret_figures", "regret_dots"),
    "ood_entropy": _of("entropies", "ood_entropy"),
}

for _model, _study in STUDIES.items():
    TABLES[_study.short[0]] = partial(tables.short_table, model=_model)
    TABLES[_study.long[0]] = partial(tables.long_table, model=_model)
    TABLES[_study.choices] = partial(tables.choices_table, model=_model)
    for _figure, _metric in _study.curves.items():
        FIGURES[_figure] = _of("figures", "run_time", name=_figure, metric=_metric)


def _required(name: str, inputs: Iterable[str | Path]) -> Records:
    """The records that ``name`` is made from: others among the inputs have no part in its provenance."""
    records = load_records(inputs)
    return {kind: belonging(records, kind, name) for kind in ARTIFACTS[name].kinds}


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
    maker = TABLES[check_choice("table", name, TABLES)]
    records = _required(name, inputs)
    sources = summarise(provenances(records))
    started = collect(_only(sources["run"]), _only(sources["seed"]))
    table = maker(records)
    write_table(table, csv=csv, md=md, html=html, provenance=started.finish(), sources=sources)


def make_figure(name: str, inputs: Iterable[str | Path], *, svg: str | Path, pdf: str | Path) -> None:
    """Write the figure ``name`` of ``inputs`` (result files, by `load_records`), its provenance inside.

    Raises `InputError` for a name that is no figure, `DataError` where its records are missing.
    """
    from sgtune.study.artifacts.style import save_figure

    maker = FIGURES[check_choice("figure", name, FIGURES)]
    records = _required(name, inputs)
    save_figure(maker(records), name=name, svg=svg, pdf=pdf, sources=summarise(provenances(records)))
