"""A table: cells with their numbers, the tidy frame of these, and its Markdown and HTML, which need only the frame."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import sqrt
from pathlib import Path

import jinja2
import pandas as pd

from sgtune.study.catalogue import TUNERS as CATALOGUE
from sgtune.study.report.artifact import Artifact
from sgtune.study.report.labels import DETAILS, METRICS, MODELS, SAMPLERS, TUNERS, in_order
from sgtune.support.files import atomic_write

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

FIELDS = ("model", "sampler", "tuner", "metric", "detail")
NUMBERS = ("value", "sd", "se", "upper", "lowest", "highest")
NOT_IN_PAPER = "Not in the paper"
KNOWN = {"model": MODELS, "sampler": SAMPLERS, "tuner": TUNERS}
COLUMNS = (*FIELDS, *NUMBERS, "finite", "replicates", "best", "at_test_set", "shown")
"""Of the tidy frame, and of the CSV."""


def format_number(value: float, form: str = "significant", sd: float | None = None) -> str:
    """``value`` in 3 significant digits, with `` ± sd`` at the decimals of the value.

    Forms as in `labels.Metric`. "by error" without an error is "significant"; so is it with an error of 0, which is not
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
        text = " ± ".join(_fixed(one / scale, decimals) for one in (value, sd) if one is not None)
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
    unit = 10.0**-decimals
    said = f"<{_fixed(unit, decimals)}" if error < unit / 2 else _fixed(error, decimals)
    return f"{_fixed(value, decimals)} ± {said}".replace("-", "\N{MINUS SIGN}")


def _fixed(number: float, decimals: int) -> str:
    """Adding 0 takes the sign from a zero."""
    return f"{round(number, decimals) + 0.0:,.{max(decimals, 0)}f}"


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


class Caption:
    """The text of ``workflow/captions/{name}.md``: the caption, a line ``---``, and the notes.

    The notes are a Jinja2 template: ``{{ replicates }}`` is the number of replicates behind the table's cells, "3" or
    "2 to 10".
    """

    def __init__(self, text: str):
        above, _, below = text.partition("\n---\n")
        self.above, self.notes = above.strip(), below.strip()

    @property
    def paragraphs(self) -> list[str]:
        """Caption and notes of a figure."""
        return list(filter(None, [self.above, self.notes]))

    def below(self, frame: pd.DataFrame) -> str:
        """The notes of a table with these cells."""
        # A cell with an error is a mean of runs; others may be the paper's, or a setting. In a table of choices those
        # of tuners whose runs differ count.
        is_of_runs = frame[["sd", "se"]].notna().any(axis=1)
        is_random = frame["tuner"].map(lambda name: name in CATALOGUE and CATALOGUE[name].is_random)
        of_runs = frame["replicates"][is_of_runs if is_of_runs.any() else is_random]
        ends = (of_runs.min(), of_runs.max()) if len(of_runs) else (frame["replicates"].max(),)
        said = " to ".join(dict.fromkeys(str(int(end)) for end in ends))
        return jinja2.Template(self.notes, undefined=jinja2.StrictUndefined).render(replicates=said)


def frame_of(cells: Iterable[Cell]) -> pd.DataFrame:
    """The tidy frame: a row per cell, with its number unrounded (None: it has none) and ``shown``, the printed text."""
    held = [
        vars(cell)
        | {"shown": cell.shown}
        | dict(zip(("lowest", "highest"), cell.span or (None, None), strict=True))
        for cell in cells
    ]
    return pd.DataFrame(held, columns=COLUMNS, dtype=object)


def read_frame(csv: str | Path) -> pd.DataFrame:
    """The tidy frame from its CSV."""
    words = dict.fromkeys((*FIELDS, "shown"), str)
    return pd.read_csv(csv, dtype=words, keep_default_na=False, na_values=dict.fromkeys(NUMBERS, ""))


def lay_out(frame: pd.DataFrame, about: Artifact, names: Mapping[str, str] = {}) -> pd.DataFrame:
    """The positions in ``frame`` of the cells of the table: a row and a column for each place, with printed labels.

    Names stand in the order of print, those of ``names`` (`Study.names`) after those of the catalogue; metrics, and
    details that have none, in the order in which they come.
    """
    keys = frame[list(FIELDS)].copy()
    is_ours = [name not in CATALOGUE or not CATALOGUE[name].in_paper for name in frame["tuner"]]
    keys["origin"] = [NOT_IN_PAPER if ours else "" for ours in is_ours]
    for place, part in enumerate(about.parts):
        keys[part] = frame["detail"].str.split(", ").str[place].fillna("")
    rows, columns = list(about.rows), list(about.columns)
    if keys["model"].nunique() > 1 and "model" not in rows + columns:
        rows.insert(rows[0] == "origin", "model")
    at_test_set = set(keys["tuner"][frame["at_test_set"].astype(bool)])
    printed = {field: _printed(field, list(dict.fromkeys(keys[field])), names) for field in rows + columns}
    if of_user := about.model == "own" and "detail" in printed:
        # A user's parameters keep their names.
        printed["detail"] = {name: name for name in printed["detail"]}
    if "tuner" in printed:
        printed["tuner"] |= {name: f"{printed['tuner'][name]} {DAGGER}" for name in at_test_set}
    for field, labels in printed.items():
        keys[field] = pd.Categorical(keys[field], list(labels), ordered=True)
    # A cell that only fills a place, in the files of older versions, takes part in the order alone.
    is_shown = (frame["replicates"] > 0) | (frame["shown"] != DASH)
    kept = keys[is_shown].assign(position=keys.index[is_shown])
    table = kept.pivot(index=rows, columns=columns, values="position").sort_index().sort_index(axis="columns")
    if of_user:
        # The worst parameters come first, which are others for each sampler.
        places = table.min(axis="columns").rename("first").reset_index()
        table = table.iloc[places.sort_values([*rows[:-1], "first"]).index]

    def labelled(axis: pd.Index, fields: Sequence[str]) -> pd.MultiIndex:
        levels = [axis.get_level_values(field).astype(str).map(printed[field]) for field in fields]
        headings = [about.stub.get(field, field.capitalize()) for field in fields]
        return pd.MultiIndex.from_arrays(levels, names=headings)

    return table.set_axis(labelled(table.index, rows)).set_axis(
        labelled(table.columns, columns), axis="columns"
    )


def _printed(field: str, found: Sequence[str], names: Mapping[str, str]) -> dict[str, str]:
    """The labels of the names that a field has, in the order of print."""
    if field == "origin":
        return {name: name for name in sorted(found)}
    if field == "metric":
        known, order = {name: metric.label for name, metric in METRICS.items()}, found
    elif field in KNOWN:
        known, order = KNOWN[field], [*KNOWN[field], *names]
    else:
        words = {name: name.replace("_", " ") for name in found}
        known, order = words | DETAILS, [*DETAILS, *names, *found]
    known = known | names
    return {
        name: known.get(name, name.upper() if field in KNOWN else name) for name in in_order(found, order)
    }


def _parts(
    frame: pd.DataFrame, about: Artifact, names: Mapping[str, str], printed: Callable[[str, bool], str]
) -> Iterator[tuple[str, pd.DataFrame, bool]]:
    """The table as printed text, labels and all, in parts: all but the last two labels of a row are the heading of its
    part, in which a column without any cell is left out; and whether it is a group of rows of the part before, whose
    columns it has, because only its origin differs. ``printed`` takes a text, and whether it is the best."""

    def plain(text: str) -> str:
        return printed(text, False)

    table = lay_out(frame, about, names).rename(index=plain, columns=plain).rename_axis(index=plain)
    texts = [printed(text, bool(best)) for text, best in zip(frame["shown"], frame["best"], strict=True)]
    outer, before = list(range(table.index.nlevels - 2)), pd.Index([])
    for heading, part in table.groupby(level=outer, sort=False) if outer else [((), table)]:
        part = part.droplevel(outer) if outer else part
        part = part.dropna(axis="columns", how="all")
        heading = " · ".join(filter(None, heading if isinstance(heading, tuple) else (heading,)))
        is_group = heading == NOT_IN_PAPER and part.columns.equals(before)
        before = part.columns
        yield heading, part.map(lambda at: plain(DASH) if pd.isna(at) else texts[int(at)]), is_group


def markdown_tables(frame: pd.DataFrame, about: Artifact, names: Mapping[str, str] = {}) -> str:
    """Pipe tables, the best in bold."""

    def printed(text: str, is_best: bool) -> str:
        text = text.replace("\n", "<br>").replace("|", "\\|")
        return f"**{text}**" if is_best else text

    blocks = []
    for heading, part, is_group in _parts(frame, about, names, printed):
        above = [" ".join(filter(None, key)) for key in part.columns]
        body = part.set_axis(above, axis="columns").reset_index()
        aligned = ["left"] * part.index.nlevels + ["left" if about.is_prose else "right"] * len(above)
        text = body.to_markdown(index=False, disable_numparse=True, colalign=aligned)
        if is_group:
            cells = " |" * len(aligned)
            blocks[-1] += "\n".join([f"\n| **{heading}**{cells}", *text.splitlines()[2:]])
        else:
            blocks += [f"**{heading}**"] * bool(heading) + [text]
    return "\n\n".join(blocks)


def to_markdown(
    frame: pd.DataFrame, about: Artifact, caption: Caption, footer: str, names: Mapping[str, str] = {}
) -> str:
    """`markdown_tables` with title and caption above, notes and provenance (if it is given) below."""
    tables = markdown_tables(frame, about, names)
    blocks = [f"**{about.title}**", caption.above, tables, caption.below(frame), footer and f"*{footer}*"]
    return "\n\n".join(filter(None, blocks)) + "\n"


STYLE = """
:root { color-scheme: light; }
body { margin: 2rem auto; max-width: max-content; padding: 0 1.5rem; background: #fff; color: #1a1a1a;
  font: 15px/1.45 system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; }
h1 { font-size: 1.15rem; }
h2 { font-size: 1rem; margin: 1.2rem 0 .3rem; }
p, footer { max-width: 60rem; }
.scroll { overflow-x: auto; }
svg { max-width: 100%; height: auto; }
table { border: 0; border-collapse: collapse; border-bottom: 2px solid; font-variant-numeric: tabular-nums; }
th, td { border: 0; padding: .28rem .8rem; text-align: right; white-space: nowrap; font-weight: 400; }
thead th { font-weight: 600; vertical-align: bottom; }
thead th[colspan] { text-align: center; }
thead tr:first-child th { border-top: 2px solid; }
thead tr:last-child th { border-bottom: 1px solid; text-align: left; }
tbody th { text-align: left; vertical-align: top; }
tbody.group { border-top: 2px solid; }
tbody.group th[colspan] { font-weight: 600; }
tbody th[rowspan], tbody th[rowspan] ~ * { border-top: 1px solid #ccc; }
.prose thead th { text-align: left; }
.prose td { text-align: left; white-space: normal; vertical-align: top; min-width: 9rem; max-width: 46rem; }
.prose tbody th { white-space: normal; max-width: 16rem; }
footer { margin-top: .9rem; color: #595959; font-size: .8rem; }
"""


def html_tables(frame: pd.DataFrame, about: Artifact, names: Mapping[str, str] = {}) -> str:
    """The tables of a page, the best in bold; labels that several rows share stand once, in a cell as high as these."""

    def printed(text: str, is_best: bool) -> str:
        text = escape(text, quote=False).replace("\n", "<br>")
        return f"<b>{text}</b>" if is_best else text

    def flat(axis: pd.MultiIndex) -> pd.Index:
        return axis if axis.nlevels > 1 else axis.get_level_values(0)

    blocks = []
    for heading, part, is_group in _parts(frame, about, names, printed):
        above = flat(part.columns.rename([None] * part.columns.nlevels))
        part = part.set_axis(flat(part.index)).set_axis(above, axis="columns")
        text = part.to_html(escape=False, border=0, classes=["prose"] * about.is_prose)
        if is_group:
            rows = text[text.index("<tbody>") + len("<tbody>") : text.index("</table>")]
            first = (
                f'<tr><th colspan="{part.index.nlevels + len(above)}" scope="rowgroup">{heading}</th></tr>'
            )
            blocks[-1] = blocks[-1].replace("</table>", f'<tbody class="group">\n{first}{rows}</table>')
        else:
            blocks += [f"<h2>{heading}</h2>"] * bool(heading) + [f'<div class="scroll">\n{text}\n</div>']
    return "\n".join(blocks)


def to_html(
    frame: pd.DataFrame, about: Artifact, caption: Caption, footer: str, names: Mapping[str, str] = {}
) -> str:
    """A page that needs no other file: the caption, the table, and the notes below it."""
    shown = f"<p>{escape(caption.above)}</p>\n{html_tables(frame, about, names)}"
    return html_page(about.title, shown, caption.below(frame).splitlines(), footer)


def html_page(title: str, shown: str, notes: Iterable[str], footer: str = "") -> str:
    """A page that needs no other file: a table or figure, ``shown``, with its notes below."""
    blocks = [f"<h1>{escape(title)}</h1>", shown, *(f"<p>{escape(line)}</p>" for line in notes if line)]
    body = "\n".join([*blocks, f"<footer>{escape(footer)}</footer>"])
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>{STYLE}</style>
</head>
<body>
{body}
</body>
</html>
"""


def write_table(
    frame: pd.DataFrame,
    about: Artifact,
    caption: Caption,
    footer: str,
    names: Mapping[str, str] = {},
    **files: str | Path,
) -> None:
    """The table as ``csv``, ``md`` and ``html``, which print the same."""
    texts = {
        "csv": frame.to_csv(index=False, lineterminator="\n"),
        "md": to_markdown(frame, about, caption, footer, names),
        "html": to_html(frame, about, caption, footer, names),
    }
    for form, text in texts.items():
        with atomic_write(files[form]) as path:
            path.write_text(text, encoding="utf-8")
