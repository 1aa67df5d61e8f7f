"""What the files of a table print: CSV, Markdown and HTML, from small records."""

# ruff: noqa: RUF001 - tables print signs of mathematics

import csv
import json
import re
from html.parser import HTMLParser

import pytest
from artifact_records import make_records, make_tables

from sgtune.study.report import TABLES
from sgtune.study.report.layout import Cell, Row, Table
from sgtune.study.report.writers import to_html, to_markdown


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make_tables(3, tmp_path_factory.mktemp("run"))


class Body(HTMLParser):
    """The text of the data cells of a page, in order, and whether each is bold."""

    def __init__(self):
        super().__init__()
        self.cells, self.inside, self.bold = [], False, False

    def handle_starttag(self, tag, attrs):
        if tag == "td":
            self.inside, self.bold, self.text = True, False, ""
        self.bold |= self.inside and tag == "b"

    def handle_data(self, data):
        if self.inside:
            self.text += data

    def handle_endtag(self, tag):
        if tag == "td":
            self.cells.append((self.text, self.bold))
            self.inside = False


@pytest.mark.parametrize("name", TABLES)
def test_csv_markdown_and_html_print_the_same(made, name):
    folder, _ = made
    with (folder / f"{name}.csv").open(encoding="utf-8") as file:
        tidy = [(row["shown"], row["best"] == "True") for row in csv.DictReader(file)]
    page = Body()
    page.feed((folder / f"{name}.html").read_text(encoding="utf-8"))
    lines = [
        row for row in (folder / f"{name}.md").read_text(encoding="utf-8").splitlines() if row[:1] == "|"
    ]
    n_columns = len(tidy) // len(lines[2:])
    printed = [cell for row in lines[2:] for cell in row.strip("| ").split(" | ")[-n_columns:]]
    assert page.cells == tidy
    assert [(cell.strip("*"), cell.startswith("**")) for cell in printed] == tidy


def test_several_models_have_a_heading_each():
    table = TABLES["regret"](make_records(1))
    assert table.stub == ("Model", "Runs", "Tuner", "Metric")
    page = to_html(table, "footer")
    headings = re.findall(r'colspan="8">([^<]*)<', page)
    runs = ["after 1 s", "after 10 s"]
    assert headings == ["Logistic regression", *runs, "PMF", *runs, "Neural network", *runs]
    page = page[page.index("<thead>") :]
    assert page.index("Logistic regression") < page.index("ξ(σ̂), regret") < page.index("Neural network")
    assert TABLES["regret"](make_records(1, ("pmf",))).stub == ("Runs", "Tuner", "Metric")


def test_tables_carry_the_provenance_of_their_own_records_only(made):
    folder, _paths = made
    # The reference has a mode, and a summary and two chains of NUTS; all models share one file of settings. Table 1 has
    # the file of widths, from which the KSD of exact draws is taken above 200 parameters.
    for name, n_files in (
        ("cost", 3),
        ("deviations", 1),
        ("table10", 6),
        ("table1", 6 + 4 + 1),
        ("regret", 18 + 5 + 2 * 2 + 1),
    ):
        sidecar = json.loads((folder / f"{name}.json").read_text())
        assert sidecar["sources"]["files"] == n_files
    assert (sidecar["provenance"]["run"], sidecar["provenance"]["seed"]) == ("quick", 7)
    for kind in ("md", "html"):
        assert "seed 7 · commit 0123456789 ·" in (folder / f"table1.{kind}").read_text()


def test_html_and_markdown_escape_what_they_print():
    records = make_records(1)
    for record in records["evaluation"]:
        record["tuner"] = "a|<b>"
    table = TABLES["table6"](records)
    assert "A\\|<B>" in to_markdown(table, "footer")
    assert "A|&lt;B&gt;" in to_html(table, "footer")


def test_every_line_of_a_cell_of_prose_is_a_paragraph():
    cell = Cell("logistic", "", "", "", text="First <b>.\nSecond.")
    rows = (Row(("Why?",), (cell,)),)
    table = Table("t", "T", "", ("Question",), (("", "Finding"),), rows, is_prose=True)
    assert "| Why? | First <b>.<br>Second. |" in to_markdown(table, "footer")
    assert '<td class="missing">' not in to_html(table, "footer")
    assert "<td>First &lt;b&gt;.<p>Second.</p></td>" in to_html(table, "footer")
