"""A table before it is written: cells with their numbers, formatted once for every file format."""

# ruff: noqa: RUF001 - tables print Greek letters and signs of mathematics

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

from sgtune.study.report.labels import DETAILS, METRICS, MODELS, SAMPLERS, TUNERS, in_order, label
from sgtune.study.report.marks import FEWEST_REPLICATES, mark_best
from sgtune.support.errors import DataError

__all__ = [
    "AT_CAP",
    "DAGGER",
    "DASH",
    "DIVERGED",
    "FEWEST_REPLICATES",
    "NOISE",
    "NOT_TRUSTED",
    "NO_ARM",
    "Cell",
    "Row",
    "Table",
    "format_number",
    "lay_out",
    "mark_best",
]

DASH = "–"
DIVERGED = "diverged"
NO_ARM = f"{DASH} (no arm)"
NOISE = f"{DASH} (noise)"
NOT_TRUSTED = f"{DASH} (reference)"
AT_CAP = f"{DASH} (cap)"
DAGGER = "†"
DIGITS = 3
MOST_DIGITS = 5
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
ORDERS = {"model": MODELS, "sampler": SAMPLERS, "tuner": TUNERS}


def format_number(value: float, form: str = "significant", sd: float | None = None) -> str:
    """``value`` in 3 significant digits, with `` ± sd`` at the decimals of the value.

    Forms as in `metric.Metric`. "by error" without an error is "significant"; so is it with an error of 0, which is not
    printed, because all replicates are the same number. From 10⁶ up and below 10⁻³ the power of ten is written out.
    """
    if form == "by error":
        # A spread of rounding errors is one of 0.
        if sd is None or not sd > 1e-9 * abs(value):
            return format_number(value)
        return _by_error(value, sd)
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


def _by_error(value: float, error: float) -> str:
    """``value ± error``, both to the second significant digit of the error, but the value in no more than 5 digits.

    An error below half of the last digit is printed as less than one of them.
    """
    decimals = 1 - _exponent(error)
    if value != 0:
        decimals = min(decimals, MOST_DIGITS - 1 - _exponent(value))

    def fixed(number: float) -> str:
        return f"{round(number, decimals) + 0.0:,.{max(decimals, 0)}f}"

    unit = 10.0**-decimals
    said = f"<{fixed(unit)}" if error < unit / 2 else fixed(error)
    return f"{fixed(value)} ± {said}".replace("-", "\N{MINUS SIGN}")


def _exponent(number: float) -> int:
    """The power of ten of a number's first digit, once it is rounded to two digits."""
    return int(f"{number:.1e}".partition("e")[2])


@dataclass(frozen=True)
class Cell:
    """One number of a table, and the model, sampler, tuner and metric that it belongs to.

    Attributes:
        value: from ``finite`` of ``replicates`` runs; None where there is none, and ``missing`` is then printed.
        sd: over these runs; printed after the value.
        se: standard error of the value; for a mean it follows from ``sd``. Printed where there is no ``sd``.
        upper: where the value is not distinguished from 0, and is None: its upper end, printed "< upper".
        square: of a root of an unbiased estimate: the mean of the estimates, which may be negative, and its standard
            error; by these it is marked.
        floor: the value that as many exact draws have: a smaller one does not mean better draws, and is not marked.
        span: the lowest and the highest of the replicates, one of which ``value`` is; printed where they differ.
        best: printed in bold.
        text: replaces the number in print; a line of it is a paragraph.
        detail: distinguishes several numbers of one metric: a block of the parameters, or ours and the paper's.
        at_test_set: whether its tuner judges arms by the test set.
    """

    model: str
    sampler: str
    tuner: str
    metric: str
    value: float | None = None
    sd: float | None = None
    se: float | None = None
    upper: float | None = None
    square: tuple[float, float] | None = None
    floor: float | None = None
    span: tuple[float, float] | None = None
    finite: int = 1
    replicates: int = 1
    best: bool = False
    missing: str = DASH
    text: str | None = None
    detail: str = ""
    at_test_set: bool = False

    def __post_init__(self):
        if self.value is None and self.upper is None:
            object.__setattr__(self, "finite", 0)
        elif self.sd is not None and self.se is None:
            object.__setattr__(self, "se", self.sd / sqrt(self.finite))

    @property
    def shown(self) -> str:
        """The text in every file format; "(8/10)" marks a mean of 8 of 10 replicates."""
        if self.text is not None:
            return self.text
        if self.value is None and self.upper is None:
            return self.missing
        form = METRICS[self.metric].form
        if self.upper is not None:
            number = f"< {format_number(self.upper, form)}"
        else:
            number = format_number(self.value, form, self.se if self.sd is None else self.sd)
        ends = [format_number(end, form) for end in self.span or ()]
        number += f" [{ends[0]}, {ends[1]}]" if len(set(ends)) > 1 else ""
        return number if self.finite == self.replicates else f"{number} ({self.finite}/{self.replicates})"

    @property
    def of_runs(self) -> tuple:
        """Value and spread, and those of the square: cells in which these agree are from the same runs."""
        return self.value, self.se if self.sd is None else self.sd, self.square

    @property
    def lowest(self) -> float | None:
        """Of the replicates, where the value is one of theirs."""
        return self.span and self.span[0]

    @property
    def highest(self) -> float | None:
        """As `lowest`."""
        return self.span and self.span[1]


@dataclass(frozen=True)
class Row:
    """``labels`` are the row's headings, one per entry of `Table.stub`; a cell per column."""

    labels: tuple[str, ...]
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Table:
    """A table ready to be written. A column is its (heading above, heading); the first may be "". A line of the caption
    is a paragraph. ``is_prose``: the cells are words, which break into lines."""

    name: str
    title: str
    caption: str
    stub: tuple[str, ...]
    columns: tuple[tuple[str, str], ...]
    rows: tuple[Row, ...]
    is_prose: bool = False


def _named(field: str, name: str) -> str:
    if field == "metric":
        return METRICS[name].label
    if field == "detail":
        return DETAILS.get(name, name.replace("_", " "))
    return label(name, ORDERS[field])


def lay_out(
    cells: Sequence[Cell],
    *,
    name: str,
    title: str,
    caption: str,
    rows: Sequence[str],
    columns: Sequence[str],
    stub: dict[str, str] | None = None,
) -> Table:
    """Cells to a table with a row per distinct value of the fields ``rows``, preceded by the model where there
    are several, and a column per one of ``columns`` (one field or two, the first above the second).

    Names stand in the order of print; metrics, and details that have none, in the order in which they come.
    ``stub`` renames the headings of the fields ``rows``. Raises `DataError` where there is no cell at all.
    """
    if not cells:
        raise DataError(f"{name}: no record belongs to it; it needs at least one")
    if len({cell.model for cell in cells}) > 1 and "model" not in (*rows, *columns):
        rows = ("model", *rows)
    orders = ORDERS | {
        "metric": dict.fromkeys(cell.metric for cell in cells),
        "detail": dict.fromkeys([*DETAILS, *(cell.detail for cell in cells)]),
    }
    ranks = {
        field: {
            value: i
            for i, value in enumerate(in_order((getattr(cell, field) for cell in cells), orders[field]))
        }
        for field in orders
    }

    def key_of(cell: Cell, fields: Sequence[str]) -> tuple[str, ...]:
        return tuple(getattr(cell, field) for field in fields)

    def sort(keys: set[tuple[str, ...]], fields: Sequence[str]) -> list[tuple[str, ...]]:
        return sorted(
            keys, key=lambda key: [ranks[field][value] for field, value in zip(fields, key, strict=True)]
        )

    placed = {(key_of(cell, rows), key_of(cell, columns)): cell for cell in cells}
    across = sort({column for _, column in placed}, columns)

    def complete(row: tuple[str, ...], column: tuple[str, ...]) -> Cell:
        blank = dict.fromkeys(orders, "") | {"model": cells[0].model}
        blank |= dict(zip((*rows, *columns), (*row, *column), strict=True))
        return placed.get((row, column)) or Cell(**blank, finite=0, replicates=0)

    def names(fields: Sequence[str], key: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(
            _named(field, value) + (f" {DAGGER}" if field == "tuner" and value in marked else "")
            for field, value in zip(fields, key, strict=True)
        )

    marked = {cell.tuner for cell in cells if cell.at_test_set} if "tuner" in (*rows, *columns) else ()
    if marked:
        caption += f"\n{DAGGER}: judges arms by the test set, on which they are then evaluated."
    if any(cell.missing == NO_ARM and cell.value is None for cell in cells):
        caption += (
            f"\n“{NO_ARM}”: the tuner chose no arm: all that it tried diverged, left the posterior, or are unstable by "
            "theory."
        )
    return Table(
        name=name,
        title=title,
        caption=caption,
        stub=tuple((stub or {}).get(field, field.capitalize()) for field in rows),
        columns=tuple(("", *names(columns, column))[-2:] for column in across),
        rows=tuple(
            Row(names(rows, row), tuple(complete(row, column) for column in across))
            for row in sort({row for row, _ in placed}, rows)
        ),
    )
