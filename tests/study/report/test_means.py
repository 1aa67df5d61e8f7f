"""Cells of a KSD: the root of the mean of an unbiased square, which may be negative."""

import math
from statistics import fmean, stdev

import pytest

from sgtune.study.report.means import evaluation_cells
from sgtune.study.report.table import NOISE, format_number


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
