"""The figures and the table of what the discrepancies can see, from small records."""

# ruff: noqa: RUF001 - tables print signs of mathematics

import numpy as np
import pytest
from figure_parts import line_of
from judge_records import sensitivity_record
from sgtune.study.mamba.sensitivity_figure import MOST, SEEN, shown_points
from sgtune.study.mamba.sensitivity_table import JUDGES

from sgtune.study.report import FIGURES, TABLES

DISTURBANCES = ("width", "shift", "coordinate", "direction", "weights")


@pytest.fixture
def rows():
    return sensitivity_record()["rows"]


def drawn(name, rows):
    figure = FIGURES[name]({"sensitivity": [{"rows": rows}]})
    return figure, np.reshape(figure.axes, (-1, len(DISTURBANCES)))


def test_a_row_shows_the_points_that_judges_have_in_its_dimension():
    assert shown_points(10, {15, 100, 500}) == 500
    assert shown_points(1_000, {15, 100, 500}) == 100
    assert shown_points(50_000, {15, 100}) == 15
    assert shown_points(10, {15, 100}) == 100


@pytest.mark.parametrize(("name", "statistic"), [("sensitivity", "square"), ("sensitivity_values", "value")])
def test_lines_are_signals_in_a_band_of_two_standard_errors_and_end_at_the_edge(rows, name, statistic):
    next(row for row in rows if row["points"] == 500 and row["size"] == 2.0)[f"{statistic}_signal"] = 9_999.0
    _, axes = drawn(name, rows)
    assert axes.shape == (2, 5)
    clipped = 0
    for line, (dimension, n) in zip(axes, ((10, 500), (1_000, 100)), strict=True):
        for axis, disturbance in zip(line, DISTURBANCES, strict=True):
            for judge, label in JUDGES.items():
                whose = (dimension, n, disturbance, judge)
                names = ("dimension", "points", "perturbation", "judge")
                own = [row for row in rows if tuple(row[key] for key in names) == whose]
                points = sorted((row["size"], row[f"{statistic}_signal"]) for row in own)
                x, y = line_of(axis, label).get_xydata().T
                assert x.tolist() == [size for size, _ in points]
                assert y == pytest.approx(np.clip([signal for _, signal in points], -MOST, MOST))
                clipped += max(signal for _, signal in points) > MOST
            # The last line is the virial's, and the last band.
            band = axis.collections[-1].get_paths()[0].vertices
            for row in own:
                ends = band[band[:, 0] == row["size"], 1]
                low, high = (
                    row[f"{statistic}_signal"] + sign * 2 * row[f"{statistic}_signal_se"] for sign in (-1, 1)
                )
                assert (ends.min(), ends.max()) == pytest.approx((low, high))
    assert clipped == 1


def test_panels_have_one_scale_and_only_values_have_draws_that_are_preferred_to_exact_ones(rows):
    figure, axes = drawn("sensitivity", rows)
    values, others = drawn("sensitivity_values", rows)
    for panels, low in ((axes, -4), (others, -MOST)):
        assert {axis.get_ylim() for axis in panels.flat} == {(low, MOST)}
        assert {axis.get_yscale() for axis in panels.flat} == {"symlog"}
    words = [[text.get_text() for text in shown.legends[0].get_texts()] for shown in (figure, values)]
    assert [("preferred to exact draws" in own) for own in words] == [False, True]
    for own in words:
        assert set(own) >= {*JUDGES.values(), "exact draws", "not distinguished from exact draws"}
    assert axes[0, 0].get_ylabel() == "D = 10, n = 500\nsignal / noise"
    assert axes[1, 0].get_ylabel() == "D = 1,000, n = 100\nsignal / noise"
    # The grey band ends where a signal is seen.
    band = axes[0, 0].patches[0].get_extents().transformed(axes[0, 0].transData.inverted())
    assert (band.y0, band.y1) == pytest.approx((-SEEN, SEEN))


def test_a_table_has_signals_of_both_widths_by_dimension_and_points(rows):
    table = TABLES["signal_of_width"]({"sensitivity": [{"rows": rows}]})
    assert table.columns == (
        ("D = 10", "n = 15"),
        ("D = 10", "n = 500"),
        ("D = 1,000", "n = 15"),
        ("D = 1,000", "n = 100"),
    )
    assert len(table.rows) == 2 * 2 * len(JUDGES)
    shown = {row.labels: [cell.shown for cell in row.cells] for row in table.rows}
    assert shown["Width 0.5", "Density of the draws", "PSD"] == [
        "7.5 ± 0.3",
        "250 ± 0",
        "7.5 ± 0.3",
        "50.0 ± 0.3",
    ]
    assert shown["Width 0.5", "Value of the draws", "KSD, kernel width 1"] == [
        *("0.8 ± 0.3", "25.0 ± 0.3", "−0.8 ± 0.3", "−5.0 ± 0.3")
    ]
    assert shown["Width 1.5", "Value of the draws", "KSD, kernel width √D"][3] == "2.5 ± 0.3"
    assert shown["Width 1.5", "Density of the draws", "FSSD"] == ["0.0 ± 0.3"] * 4


def test_what_was_not_measured_is_a_dash(rows):
    kept = [row for row in rows if (row["judge"], row["points"]) != ("psd", 100)]
    table = TABLES["signal_of_width"]({"sensitivity": [{"rows": kept}]})
    shown = {row.labels: row.cells[-1].shown for row in table.rows}
    assert shown["Width 1.5", "Density of the draws", "PSD"] == "–"
    assert shown["Width 1.5", "Density of the draws", "KSD, kernel width 1"] == "5.0 ± 0.3"
