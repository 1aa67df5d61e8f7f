"""Cells of a KSD: the root of the mean of an unbiased square, which may be negative."""

import math
from dataclasses import replace
from statistics import fmean, stdev

import pytest
from artifact_records import cells_by, make_files, records_of

from sgtune.study.report import TABLES
from sgtune.study.report.layout import NOISE, format_number, mark_best
from sgtune.study.report.means import evaluation_cells


def record_of(squares):
    rows = [
        {"replicate": i, "diverged": False, "ksd": math.sqrt(max(square, 0.0)), "ksd_squared": square}
        for i, square in enumerate(squares)
    ]
    return {"model": "logistic", "sampler": "sgld", "tuner": "grid", "best": {}, "arms": [{}], "table": rows}


def cell_of(*squares):
    [cell] = evaluation_cells(record_of(squares), ["ksd"])
    return cell


def error_of(squares):
    return stdev(squares) / math.sqrt(len(squares))


def test_the_mean_is_taken_of_the_squares_with_their_signs():
    """The mean of the roots, of which none is negative, would be far above the truth where squares are mostly noise."""
    squares = (400.0, 350.0, 300.0, -10.0)
    assert cell_of(*squares).value == pytest.approx(math.sqrt(260.0))
    assert cell_of(9.0, 16.0, 25.0).value == pytest.approx(math.sqrt(50 / 3))


def test_the_spread_of_a_root_is_that_of_its_squares_to_first_order():
    squares = (90.0, 100.0, 110.0)
    cell = cell_of(*squares)
    assert cell.value == pytest.approx(10.0)
    assert cell.sd == pytest.approx(10.0 / 20.0)
    assert cell.se == pytest.approx(error_of(squares) / 20.0)
    assert cell.square == pytest.approx((100.0, error_of(squares)))
    # Large squares of few runs differ by their chains, not by the noise of an estimate about 0.
    wide = cell_of(100.0, 200.0, 3_000.0)
    assert wide.value == pytest.approx(math.sqrt(1_100.0))


def test_standard_errors_of_squares_are_of_the_tuning_runs_where_these_differ_more():
    record = record_of([1.0, 9.0] * 10) | {"arms": [{}, {}]}
    [cell] = evaluation_cells(record, ["ksd"])
    assert cell.square == pytest.approx((5.0, error_of([1.0, 9.0])))


@pytest.mark.parametrize(
    "squares",
    [(100.0, -150.0, -100.0), (400.0, -150.0, -100.0), (-3101.0, 4922.0, -748.0), (-9.0, -9.1, -9.2)],
)
def test_a_mean_within_its_noise_has_an_upper_end_and_no_value(squares):
    """A negative mean does not bring the end down: the true square is at least 0."""
    cell = cell_of(*squares)
    upper = math.sqrt(max(fmean(squares), 0.0) + 2 * error_of(squares))
    assert cell.upper == pytest.approx(upper)
    assert cell.shown == f"< {format_number(upper)}"
    assert (cell.value, cell.sd, cell.se, cell.finite) == (None, None, None, 3)
    assert cell.square == pytest.approx((fmean(squares), error_of(squares)))


def test_a_single_run_and_one_that_diverged():
    assert cell_of(-4.0).shown == NOISE
    assert cell_of(4.0).shown == "2.00"
    record = record_of([9.0, 16.0])
    record["table"][0] |= {"diverged": True, "ksd": None, "ksd_squared": None}
    [cell] = evaluation_cells(record, ["ksd"])
    assert cell.shown == "4.00 (1/2)"
    record = record_of([9.0, 1.0, -4.0])
    record["table"][0] |= {"diverged": True, "ksd": None, "ksd_squared": None}
    [cell] = evaluation_cells(record, ["ksd"])
    assert cell.shown == f"< {math.sqrt(2 * error_of([1.0, -4.0])):.3g} (2/3)"


def marks_of(*all_squares):
    """Whether the cell of each tuner is marked."""
    cells = [replace(cell_of(*squares), tuner=f"tuner {i}") for i, squares in enumerate(all_squares)]
    return [cell.best for cell in mark_best(cells)]


def test_marks_compare_mean_squares_with_their_standard_errors():
    far = (1_500.0, 1_600.0, 1_550.0)
    # Three noisy squares below 0 are no proof: their upper end is above the other's lower end.
    assert marks_of((-5_000.0, -100.0, -9_000.0), far) == [False, False]
    assert marks_of((-50.0, 90.0, -20.0), far) == [True, False]
    assert marks_of(far, (-5_000.0, 9_000.0, 8_000.0)) == [False, False]
    assert marks_of((-50.0, 90.0, -20.0), (-60.0, 70.0, -20.0)) == [False, False]
    assert marks_of((-50.0, 90.0, -20.0), (-50.0, 90.0, -20.0), far) == [True, True, False]
    assert marks_of((90.0, 100.0, 110.0), far) == [True, False]


def test_an_upper_end_is_marked_only_below_the_lower_ends_of_all_others():
    """Two standard errors each, which is more than two of the difference."""
    noisy = (-100.0, 100.0, 0.0)  # mean 0, standard error 100 / sqrt(3)
    error = error_of(noisy)
    between = 2 * math.hypot(error, error) + 1.0
    beyond = 4 * error + 1.0
    for mean, marked in ((between, False), (beyond, True)):
        assert marks_of(noisy, tuple(mean + square for square in noisy)) == [marked, False]


def test_captions_define_an_upper_end_where_one_stands():
    files = make_files(3, ("logistic",))
    record = files["evaluation"]["logistic/sgld"]
    assert not any("“<" in TABLES[name](records_of(files)).caption for name in WITH_KSD)
    for run in record["runs"]:
        if run["table"] is not None:
            run["table"]["ksd_squared"] = (-10.0, 20.0, -30.0)[run["replicate"]]
    records = records_of(files)
    upper = math.sqrt(2 * error_of([-10.0, 20.0, -30.0]))
    for name in WITH_KSD:
        table = TABLES[name](records)
        assert f"< {upper:.3g}" in {cell.shown for row in table.rows for cell in row.cells}
        assert "“< x” of a KSD: squares are estimated without bias" in table.caption
    cells = cells_by(TABLES["published_comparison"](records), "sampler", "tuner", "metric", "detail")
    ours, paper, ratio = (cells["sgld", "mamba-ksd", "ksd", detail] for detail in ("ours", "paper", "ratio"))
    # Two tuning runs, whose means are -20 and 20.
    assert ours.upper == pytest.approx(math.sqrt(2 * error_of([-20.0, 20.0])))
    assert paper.shown == f"{paper.value:g}"
    assert ratio.shown == f"< {format_number(ours.upper / paper.value)}"


WITH_KSD = ("table1", "table6", "published_comparison")
