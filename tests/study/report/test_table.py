"""Cells, their frame, and how it is printed: formats of numbers, order of rows and columns, Markdown and HTML."""

import math
import re
from dataclasses import replace

import pytest

from sgtune.study.report.artifact import Artifact
from sgtune.study.report.table import (
    COLUMNS,
    Caption,
    Cell,
    format_number,
    frame_of,
    read_frame,
    to_html,
    to_markdown,
    write_table,
)

CAPTION = Caption("What it shows.\n---\nMeans of {{ replicates }} replicates.\n")


@pytest.mark.parametrize(
    ("value", "form", "sd", "text"),
    [
        (66.04, "significant", None, "66.0"),
        (0.12345, "significant", None, "0.123"),
        (53_972.0, "significant", 1_234.0, "54,000 ± 1,200"),
        (0.9996, "significant", 0.02, "1.00 ± 0.02"),
        (2.5e9, "significant", 1e8, "(2.50 ± 0.10) × 10⁹"),
        (0.0, "significant", None, "0"),
        (math.log10(1 / 800_000), "general", None, "−5.9"),
        (-6.0, "general", None, "−6"),
        (22_255.4, "count", 310.2, "22,255 ± 310"),
        (3000.3, "printed", None, "3,000.3"),
        (216.34, "by error", 0.117, "216.34 ± 0.12"),
        (-0.15126, "by error", 0.000432, "−0.15126 ± 0.00043"),
        (-0.001, "by error", 0.02, "−0.001 ± 0.020"),
        (100.0, "by error", 0.0, "100"),
        (0.11904, "by error", 1e-17, "0.119"),
        (0.14454555, "by error", 9e-7, "0.14455 ± <0.00001"),
        (123_456.0, "by error", 3.0, "123,460 ± <10"),
    ],
)
def test_numbers_have_three_significant_digits(value, form, sd, text):
    assert format_number(value, form, sd) == text


def test_a_cell_prints_its_sd_or_else_its_standard_error_or_the_span_of_its_choices():
    cell = Cell("logistic", "sgld", "grid", "ksd", 3.0, sd=0.4, finite=4, replicates=4)
    assert (cell.shown, cell.se) == ("3.00 ± 0.40", 0.2)
    assert replace(cell, sd=None).shown == "3.00 ± 0.20"
    assert replace(cell, sd=None, se=None).shown == "3.00"
    choice = Cell("logistic", "sgld", "grid", "log10_step_size", -5.5, span=(-6.0, -5.0))
    assert choice.shown == "−5.5 [−6, −5]"
    assert replace(choice, span=(-5.5, -5.5), replicates=2).shown == "−5.5 (1/2)"


def test_a_cell_says_of_how_many_of_its_replicates_it_is_and_has_an_upper_end_or_no_number():
    cell = Cell("logistic", "sgld", "grid", "ksd", 1.0, se=0.5, finite=2, replicates=3)
    assert cell.shown == "1.00 ± 0.50 (2/3)"
    assert replace(cell, finite=3).shown == "1.00 ± 0.50"
    assert replace(cell, value=None, se=None, upper=2.0).shown == "< 2.00 (2/3)"
    lost = replace(cell, value=None, se=None, missing="diverged")
    assert (lost.shown, lost.finite) == ("diverged", 0)
    assert replace(lost, text="first\nsecond").shown == "first\nsecond"


GRID = Cell("logistic", "sgld", "grid", "ksd", detail="ours", at_test_set=True)
CELLS = [
    replace(GRID, sampler="sgnht", value=1.0, finite=1),
    replace(GRID, value=2.0, sd=0.1, finite=4, replicates=4),
    replace(GRID, value=54_046, finite=1, detail="paper", span=(3, 4), text="a|<b>\nc"),
    Cell("logistic", "sgnht", "mamba-ksd", "ksd", 4.0, best=True, finite=2, replicates=2, detail="ours"),
]
ABOUT = Artifact((), "T & U", rows=("tuner",), columns=("sampler", "detail"), stub={"tuner": "Who"})


def test_the_frame_is_the_same_read_from_its_csv_and_prints_the_same(tmp_path):
    frame = frame_of(CELLS)
    assert tuple(frame.columns) == COLUMNS
    files = {kind: tmp_path / f"t.{kind}" for kind in ("csv", "md", "html")}
    write_table(frame, ABOUT, CAPTION, "made", **files)
    rows = files["csv"].read_text("utf-8").splitlines()
    assert rows[1] == "logistic,sgnht,grid,ksd,ours,1.0,,,,,,1,1,False,True,1.00"
    assert ",54046,,,,3,4,1,1,False,True," in rows[3]
    again = read_frame(files["csv"])
    assert again.astype(object).where(again.notna(), None).to_dict() == frame.to_dict()
    assert to_markdown(again, ABOUT, CAPTION, "made") == files["md"].read_text("utf-8")
    assert to_html(again, ABOUT, CAPTION, "made") == files["html"].read_text("utf-8")


def test_markdown_and_html_have_the_best_in_bold_and_escape_what_they_print():
    frame = frame_of(CELLS)
    lines = to_markdown(frame, ABOUT, CAPTION, "made").splitlines()
    rows = [[cell.strip() for cell in line.split(" | ")] for line in lines[6:8]]
    assert rows[0] == ["| MAMBA-KSD", "–", "–", "**4.00** |"]
    assert rows[1] == ["| Grid †", "2.00 ± 0.10", "a\\|<b><br>c", "1.00 |"]
    assert lines[9:] == ["Means of 4 replicates.", "", "*made*"]
    page = to_html(frame, ABOUT, CAPTION, "made <here>")
    assert "<h1>T &amp; U</h1>" in page
    assert "<footer>made &lt;here&gt;</footer>" in page
    printed = ["–", "–", "<b>4.00</b>", "2.00 ± 0.10", "a|&lt;b&gt;<br>c", "1.00"]
    assert re.findall("<td>(.*)</td>", page) == printed
