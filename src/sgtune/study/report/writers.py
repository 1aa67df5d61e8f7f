"""Tables to files: CSV for programs, Markdown and HTML for readers, JSON for their provenance."""

import csv
from collections.abc import Iterable
from html import escape
from itertools import groupby
from pathlib import Path

from sgtune.study.pipeline.provenance import describe
from sgtune.study.report.layout import Cell, Table
from sgtune.support.files import atomic_write, write_json

__all__ = ["to_html", "to_markdown", "write_table"]

COLUMNS = (
    "model",
    "sampler",
    "tuner",
    "metric",
    "detail",
    "value",
    "sd",
    "se",
    "upper",
    "lowest",
    "highest",
    "finite",
    "replicates",
    "best",
    "at_test_set",
    "shown",
)

STYLE = """
:root { color-scheme: light; }
body { margin: 2rem auto; max-width: max-content; padding: 0 1.5rem; background: #fff; color: #1a1a1a;
  font: 15px/1.45 system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; border-top: 2px solid #1a1a1a; border-bottom: 2px solid #1a1a1a;
  font-variant-numeric: tabular-nums; }
caption { text-align: left; padding-bottom: .8rem; max-width: 60rem; font-size: 15px; }
caption p { margin: .3rem 0 0; }
caption b { display: block; font-size: 1.15rem; margin-bottom: .25rem; }
th, td { padding: .28rem .8rem; text-align: right; white-space: nowrap; font-weight: 400; }
thead th { font-weight: 600; vertical-align: bottom; }
thead tr:last-child th { border-bottom: 1px solid #1a1a1a; }
thead th.over { text-align: center; border-bottom: 1px solid #999; }
th.stub { text-align: left; vertical-align: top; }
tbody th.group { font-weight: 600; }
tbody + tbody { border-top: 1px solid #ccc; }
tbody.section th { padding-top: .8rem; font-weight: 700; }
tbody + tbody.section { border-top: 1px solid #1a1a1a; }
tbody.section + tbody.under { border-top: none; }
tbody.under th { padding-top: .4rem; font-weight: 600; font-style: italic; }
td.missing { color: #767676; }
td.opens { border-left: 1px solid #ccc; }
.grouped { font-size: .85em; }
.grouped th, .grouped td { padding-left: .5rem; padding-right: .5rem; }
.prose td { text-align: left; white-space: normal; vertical-align: top; min-width: 9rem; max-width: 22rem; }
.prose td:only-of-type { max-width: 46rem; }
.prose td p { margin: .5rem 0 0; }
.prose thead th { text-align: left; }
.prose th.stub { white-space: normal; max-width: 16rem; }
td b { font-weight: 700; }
footer { margin-top: .9rem; max-width: 60rem; color: #595959; font-size: .8rem; }
"""


def write_csv(table: Table, path: Path) -> None:
    """One row per cell: what it belongs to, its number unrounded (empty: none), and ``shown``, the printed text."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for row in table.rows:
            writer.writerows([getattr(cell, column) for column in COLUMNS] for cell in row.cells)


def _headings(table: Table) -> list[str]:
    return [" ".join(filter(None, column)) for column in table.columns]


def _markdown_cell(cell: Cell) -> str:
    text = cell.shown.replace("\n", "<br>")
    return f"**{text}**" if cell.best else text


def to_markdown(table: Table, footer: str) -> str:
    """A pipe table with its title and caption above and its provenance below; the best in bold."""

    def line(entries: Iterable[str]) -> str:
        return "| " + " | ".join(entry.replace("|", "\\|") for entry in entries) + " |"

    head = [*table.stub, *_headings(table)]
    rule = [":--"] * len(table.stub) + [":--" if table.is_prose else "--:"] * len(table.columns)
    body = [line([*row.labels, *map(_markdown_cell, row.cells)]) for row in table.rows]
    caption = table.caption.replace("\n", "\n\n")
    return "\n".join(
        [f"**{table.title}**", "", caption, "", line(head), line(rule), *body, "", f"*{footer}*", ""]
    )


def _html_head(table: Table) -> str:
    grouped = any(over for over, _ in table.columns)
    span = ' rowspan="2"' if grouped else ""
    stub = "".join(f'<th class="stub" scope="col"{span}>{escape(name)}</th>' for name in table.stub[-2:])
    names = "".join(
        f'<th scope="col">{escape(name).replace(", ", ",<br>")}</th>' for _, name in table.columns
    )
    if not grouped:
        return f"<tr>{stub}{names}</tr>"
    above = ""
    for over, columns in groupby(table.columns, key=lambda column: column[0]):
        above += f'<th class="over" scope="colgroup" colspan="{len(list(columns))}">{escape(over)}</th>'
    return f"<tr>{stub}{above}</tr>\n<tr>{names}</tr>"


def _html_cell(cell: Cell, opens_group: bool) -> str:
    first, *more = escape(cell.shown).split("\n")
    text = "".join([first, *(f"<p>{line}</p>" for line in more)])
    text = f"<b>{text}</b>" if cell.best else text
    is_missing = cell.value is None and cell.upper is None and cell.text is None
    classes = " ".join(["missing"] * is_missing + ["opens"] * opens_group)
    return f'<td class="{classes}">{text}</td>' if classes else f"<td>{text}</td>"


def _html_body(table: Table) -> str:
    bodies = []
    above = [over for over, _ in table.columns]
    opens = [bool(over) and (i == 0 or above[i - 1] != over) for i, over in enumerate(above)]
    # The last two labels of a row stand in its stub; those before them in headings above all rows that share them.
    last = ()
    for sections, members in groupby(table.rows, key=lambda row: row.labels[:-2]):
        same = next(
            (i for i, pair in enumerate(zip(sections, last, strict=False)) if len(set(pair)) > 1), len(last)
        )
        last = sections
        for depth, name in enumerate(sections[same:], start=same):
            width = min(len(table.stub), 2) + len(table.columns)
            heading = f'<th class="stub" scope="rowgroup" colspan="{width}">{escape(name)}</th>'
            under = " under" if depth else ""
            bodies.append(f'<tbody class="section{under}">\n<tr>{heading}</tr>\n</tbody>')
        # Rows that differ only in their last label belong together: they share the cell of the other.
        for shared, group in groupby(members, key=lambda row: row.labels[-2:-1]):
            rows = list(group)
            lines = []
            for i, row in enumerate(rows):
                stub = [
                    f'<th class="stub group" scope="rowgroup" rowspan="{len(rows)}">{escape(name)}</th>'
                    for name in shared
                    if i == 0
                ]
                own = f'<th class="stub" scope="row">{escape(row.labels[-1])}</th>'
                cells = [_html_cell(cell, at_edge) for cell, at_edge in zip(row.cells, opens, strict=True)]
                lines.append(f"<tr>{''.join(stub)}{own}{''.join(cells)}</tr>")
            bodies.append("<tbody>\n" + "\n".join(lines) + "\n</tbody>")
    return "\n".join(bodies)


def _html_class(table: Table) -> str:
    of_table = ["grouped"] * any(over for over, _ in table.columns) + ["prose"] * table.is_prose
    return f' class="{" ".join(of_table)}"' if of_table else ""


def to_html(table: Table, footer: str) -> str:
    """A page that needs no other file: the table with its caption, the best in bold, its provenance below."""
    caption = "".join(f"<p>{escape(line)}</p>" for line in table.caption.splitlines())
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(table.title)}</title>
<style>{STYLE}</style>
</head>
<body>
<div class="scroll">
<table{_html_class(table)}>
<caption><b>{escape(table.title)}</b> {caption}</caption>
<thead>
{_html_head(table)}
</thead>
{_html_body(table)}
</table>
</div>
<footer>{escape(footer)}</footer>
</body>
</html>
"""


def write_table(
    table: Table, *, csv: str | Path, md: str | Path, html: str | Path, provenance: dict, sources: dict
) -> None:
    """The table in three formats that print the same, and beside the CSV a ``.json`` with its provenance.

    ``provenance``: of the writing itself; ``sources``: `summarise` of the records it is made from.
    """
    footer = describe(sources)
    with atomic_write(csv) as path:
        write_csv(table, path)
    for target, text in ((md, to_markdown(table, footer)), (html, to_html(table, footer))):
        with atomic_write(target) as path:
            path.write_text(text, encoding="utf-8")
    write_json(
        Path(csv).with_suffix(".json"), {"table": table.name, "provenance": provenance, "sources": sources}
    )
