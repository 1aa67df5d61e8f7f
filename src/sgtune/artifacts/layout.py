"""A table before it is written: cells with their numbers, formatted once for every file format."""

# ruff: noqa: RUF001 - tables print Greek letters and signs of mathematics

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from sgtune.artifacts.labels import METRICS, MODELS, SAMPLERS, TUNERS, in_order, label
from sgtune.errors import DataError

__all__ = ["DASH", "DIVERGED", "Cell", "Row", "Table", "format_number", "lay_out", "mark_best"]

DASH = "–"
DIVERGED = "diverged"
DIGITS = 3
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
ORDERS = {"model": MODELS, "sampler": SAMPLERS, "tuner": TUNERS, "metric": METRICS}


def format_number(value: float, form: str = "significant", sd: float | None = None) -> str:
    """``value`` in 3 significant digits, with `` ± sd`` at the decimals of the value.

    Forms as in `labels.Metric`. From 10⁶ up and below 10⁻³ the power of ten is written out.
    """
    if form == "count":
        text = f"{value:,.0f}" + ("" if sd is None else f" ± {sd:,.0f}")
    elif form == "printed":
        text = f"{value:,.10g}"
    elif form == "general":
        text = f"{value:.{DIGITS}g}"
    elif value == 0:
        text = "0" if sd is None else f"0 ± {sd:.{DIGITS}g}"
    else:
        exponent = int(f"{value:.{DIGITS - 1}e}".partition("e")[2])
        written_out = not -3 <= exponent < 6
        scale = 10.0**exponent if written_out else 1.0
        decimals = DIGITS - 1 - (0 if written_out else exponent)

        def fixed(number: float) -> str:
            return f"{round(number / scale, decimals):,.{max(decimals, 0)}f}"

        text = fixed(value) if sd is None else f"{fixed(value)} ± {fixed(sd)}"
        if written_out:
            text = text if sd is None else f"({text})"
            text += f" × 10{str(exponent).translate(SUPERSCRIPTS)}"
    return text.replace("-", "\N{MINUS SIGN}")


@dataclass(frozen=True)
class Cell:
    """One number of a table, and whose it is.

    ``value`` is None where there is none, and ``missing`` then says what to print. ``finite`` of
    ``replicates`` runs gave the value. ``text`` replaces the number in print.
    """

    model: str
    sampler: str
    tuner: str
    metric: str
    value: float | None = None
    sd: float | None = None
    finite: int = 1
    replicates: int = 1
    best: bool = False
    missing: str = DASH
    text: str | None = None

    def __post_init__(self):
        if self.value is None:
            object.__setattr__(self, "finite", 0)

    @property
    def shown(self) -> str:
        """What every file format prints; "(8/10)" marks the mean of 8 finite replicates of 10."""
        if self.text is not None:
            return self.text
        if self.value is None:
            return self.missing
        number = format_number(self.value, METRICS[self.metric].form, self.sd)
        return number if self.finite == self.replicates else f"{number} ({self.finite}/{self.replicates})"

    @property
    def rank(self) -> str:
        """The number as printed, without its sd: two that look alike are alike."""
        return format_number(self.value, METRICS[self.metric].form)


@dataclass(frozen=True)
class Row:
    """``labels`` are the row's headings, one per entry of `Table.stub`; a cell per column."""

    labels: tuple[str, ...]
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Table:
    """A table ready to be written. A column is its (heading above, heading); the first may be ""."""

    name: str
    title: str
    caption: str
    stub: tuple[str, ...]
    columns: tuple[tuple[str, str], ...]
    rows: tuple[Row, ...]


def mark_best(cells: Iterable[Cell]) -> list[Cell]:
    """The cells, the best of each (model, sampler, metric) marked.

    All that print the same number as the best are best, unless the whole group does: that marks nothing. A
    cell with a replicate that is not finite never is best: its mean is of the lucky runs.
    """
    cells = list(cells)
    groups: dict[tuple, list[Cell]] = {}
    for cell in cells:
        groups.setdefault((cell.model, cell.sampler, cell.metric), []).append(cell)
    best = set()
    for (_, _, metric), group in groups.items():
        eligible = [cell for cell in group if cell.value is not None and cell.finite == cell.replicates]
        if METRICS[metric].best and eligible:
            winner = METRICS[metric].best(eligible, key=lambda cell: cell.value).rank
            alike = [cell for cell in eligible if cell.rank == winner]
            best.update(alike if len(alike) < len(group) else [])
    return [replace(cell, best=cell in best) for cell in cells]


def lay_out(
    cells: Sequence[Cell],
    *,
    name: str,
    title: str,
    caption: str,
    rows: Sequence[str],
    columns: str,
    headings: dict[str, tuple[str, str]] | None = None,
) -> Table:
    """Cells to a table with a row per distinct value of the fields ``rows`` and a column per one of the field
    ``columns``, in the order of print, preceded by the model where there are several.

    ``headings`` gives the two headings of each column, and their order. Metrics keep the order in which they
    come. Raises `DataError` where there is no cell at all.
    """
    if not cells:
        raise DataError(f"{name}: none of the records belongs in it; it is made from at least one")
    if len({cell.model for cell in cells}) > 1:
        rows = ("model", *rows)
    fields = ("model", "sampler", "tuner", "metric")
    met = dict.fromkeys(cell.metric for cell in cells)
    orders = ORDERS | {"metric": met} | ({columns: headings} if headings else {})
    ranks = {
        field: {
            value: i for i, value in enumerate(in_order((getattr(c, field) for c in cells), orders[field]))
        }
        for field in fields
    }
    placed: dict[tuple, dict[str, Cell]] = {}
    for cell in cells:
        placed.setdefault(tuple(getattr(cell, field) for field in rows), {})[getattr(cell, columns)] = cell
    keys = sorted(
        placed, key=lambda key: [ranks[field][value] for field, value in zip(rows, key, strict=True)]
    )

    def named(field: str, value: str) -> str:
        return METRICS[value].label if field == "metric" else label(value, ORDERS[field])

    def complete(key: tuple, column: str) -> Cell:
        blank = dict.fromkeys(fields, "") | {"model": cells[0].model} | dict(zip(rows, key, strict=True))
        return placed[key].get(column) or Cell(**blank | {columns: column}, finite=0, replicates=0)

    return Table(
        name=name,
        title=title,
        caption=caption,
        stub=tuple(field.capitalize() for field in rows),
        columns=tuple((headings or {}).get(value, ("", named(columns, value))) for value in ranks[columns]),
        rows=tuple(
            Row(
                tuple(named(field, value) for field, value in zip(rows, key, strict=True)),
                tuple(complete(key, column) for column in ranks[columns]),
            )
            for key in keys
        ),
    )
