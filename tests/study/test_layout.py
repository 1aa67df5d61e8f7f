"""Cells and tables before they are written: formats of numbers, bold cells, and the order of columns."""

# ruff: noqa: RUF001 - tables print signs of mathematics

import math
from dataclasses import replace

import pytest

from sgtune.study.report.layout import Cell, format_number, lay_out, mark_best


@pytest.mark.parametrize(
    ("value", "form", "sd", "text"),
    [
        (66.04, "significant", None, "66.0"),
        (0.12345, "significant", None, "0.123"),
        (53_972.0, "significant", 1_234.0, "54,000 ± 1,200"),
        (0.9996, "significant", 0.02, "1.00 ± 0.02"),
        (2.5e9, "significant", 1e8, "(2.50 ± 0.10) × 10⁹"),
        (1.5e-7, "significant", None, "1.50 × 10⁻⁷"),
        (0.0, "significant", None, "0"),
        (math.log10(1 / 800_000), "general", None, "−5.9"),
        (-6.0, "general", None, "−6"),
        (22_255.4, "count", 310.2, "22,255 ± 310"),
        (3000.3, "printed", None, "3,000.3"),
        (216.34, "by error", 0.117, "216.34 ± 0.12"),
        (-0.15126, "by error", 0.000432, "−0.15126 ± 0.00043"),
        (2612.0, "by error", 310.0, "2,610 ± 310"),
        (19.96, "by error", 0.0996, "19.96 ± 0.10"),
        (-0.001, "by error", 0.02, "−0.001 ± 0.020"),
        (-0.0001, "by error", 0.02, "0.000 ± 0.020"),
        (100.0, "by error", 0.0, "100"),
        (0.11904, "by error", 1e-17, "0.119"),
        (66.04, "by error", None, "66.0"),
        (22.0009, "by error", 0.0078, "22.001 ± 0.008"),
        (0.14454555, "by error", 9e-7, "0.14455 ± <0.00001"),
        (123_456.0, "by error", 7.0, "123,460 ± 10"),
        (123_456.0, "by error", 3.0, "123,460 ± <10"),
    ],
)
def test_numbers_have_three_significant_digits(value, form, sd, text):
    assert format_number(value, form, sd) == text


def cells_of(metric, *values, **changes):
    return [
        Cell("logistic", "sgld", str(i), metric, value, **{"se": 0.1, "finite": 3, "replicates": 3} | changes)
        for i, value in enumerate(values)
    ]


def bold(cells):
    return [cell.best for cell in mark_best(cells)]


def test_best_is_the_lowest_or_highest_if_the_runner_up_is_two_standard_errors_away():
    apart = 2 * math.hypot(0.1, 0.1)
    assert bold(cells_of("ksd", 3.0, None, 3.01 + apart, 4.0)) == [True, False, False, False]
    assert not any(bold(cells_of("ksd", 3.0, None, 2.99 + apart, 4.0)))
    assert bold(cells_of("accuracy_percent", 93.0, 94.0)) == [False, True]
    assert not any(bold(cells_of("accuracy_percent", 93.91, 93.89)))
    assert not any(bold(cells_of("accuracy_percent", 93.92, 93.94, se=0.001)))
    assert not any(bold(cells_of("n_samples", 1, 2)))
    assert not any(bold(cells_of("ksd", None, None)))


def test_a_best_below_its_floor_is_not_marked_and_neither_is_the_second():
    first, *others = cells_of("ksd", 3.0, 4.0, 5.0)
    assert bold([replace(first, floor=2.9), *others]) == [True, False, False]
    assert not any(bold([replace(first, floor=3.1), *others]))


def test_cells_of_the_same_runs_are_best_together_unless_they_are_all_there_is():
    cells = cells_of("ksd", 3.0, 3.0, 4.0)
    assert bold(cells) == [True, True, False]
    assert not any(bold(cells[:2]))
    # The same mean from other runs: neither is better.
    assert not any(bold([replace(cells[0], se=0.2), *cells[1:]]))


def test_a_cell_of_one_or_two_runs_is_never_best():
    assert not any(bold(cells_of("ksd", 1.0, 2.0, se=None)))
    assert not any(bold(cells_of("ksd", 1.0, 2.0, finite=2, replicates=2)))
    assert bold(cells_of("ksd", 1.0, se=None) + cells_of("ksd", 2.0, 3.0)) == [False, True, False]


def test_a_mean_over_the_lucky_replicates_is_never_best():
    cells = cells_of("ksd", 1.0, finite=2, replicates=3, se=None) + cells_of("ksd", None, 5.0)
    assert bold(cells) == [False, False, True]
    assert cells[0].shown == "1.00 (2/3)"


def test_a_best_that_prints_like_an_unmarked_competitor_is_not_marked():
    """Two numbers that read the same cannot be one in bold and one not, however small their standard errors are."""
    close = cells_of("rmse", 1.021, 1.024, 1.031, sd=0.001, se=None)
    assert [cell.shown for cell in close] == ["1.02 ± 0.00", "1.02 ± 0.00", "1.03 ± 0.00"]
    assert not any(bold(close))
    assert bold([close[0], replace(close[0], tuner="same runs"), close[2]]) == [True, True, False]
    # The powers of ten differ, or digits that only "by error" prints.
    assert bold(cells_of("rmse", 1.5e6, 1.5e7, sd=1e4, se=None)) == [True, False]
    assert bold(cells_of("error_percent", 4.512, 4.514, sd=0.0001, se=None)) == [True, False]


def test_a_cell_prints_its_sd_or_else_its_standard_error_or_the_span_of_its_choices():
    [cell] = cells_of("ksd", 3.0, sd=0.4, se=None, finite=4, replicates=4)
    assert (cell.shown, cell.se) == ("3.00 ± 0.40", 0.2)
    assert replace(cell, sd=None).shown == "3.00 ± 0.20"
    assert replace(cell, sd=None, se=None).shown == "3.00"
    [choice] = cells_of("log10_step_size", -5.5, se=None, span=(-6.0, -5.0))
    assert (choice.shown, choice.lowest, choice.highest) == ("−5.5 [−6, −5]", -6.0, -5.0)
    assert replace(choice, span=(-5.5, -5.5), finite=1, replicates=2).shown == "−5.5 (1/2)"


def test_columns_of_two_levels_stand_in_order_and_blanks_are_dashes():
    cells = [
        Cell("logistic", sampler, "grid", "ksd", 1.0, detail=detail)
        for sampler, detail in [("sgnht", "ours"), ("sgld", "ours"), ("sgld", "paper")]
    ]
    cells.append(replace(cells[0], tuner="mamba-ksd"))
    names = {"name": "t", "title": "", "caption": "", "stub": {"tuner": "Who"}}
    table = lay_out(cells, **names, rows=("tuner",), columns=("sampler", "detail"))
    assert table.columns == (("SGLD", "ours"), ("SGLD", "paper"), ("SGNHT", "ours"))
    assert table.stub == ("Who",)
    assert [[cell.shown for cell in row.cells] for row in table.rows] == [["–", "–", "1.00"], ["1.00"] * 3]
