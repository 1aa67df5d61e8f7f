"""Cells of a KSD, the root of the mean of an unbiased square, which may be negative; and which cells are in bold."""

import math
from dataclasses import replace
from statistics import fmean, stdev

import pytest

from sgtune.study.report.means import evaluation_cells, mark_best
from sgtune.study.report.table import NOISE, Cell, format_number


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


def test_the_mean_is_of_squares_with_their_signs_and_the_spread_of_its_root_is_theirs_to_first_order():
    """The mean of the roots, of which none is negative, would be far above the truth where squares are mostly noise."""
    assert cell_of(400.0, 350.0, 300.0, -10.0).value == pytest.approx(math.sqrt(260.0))
    squares = (90.0, 100.0, 110.0)
    cell = cell_of(*squares)
    assert (cell.value, cell.sd) == pytest.approx((10.0, 10.0 / 20.0))
    assert cell.se == pytest.approx(error_of(squares) / 20.0)
    assert cell.square == pytest.approx((100.0, error_of(squares)))
    # Large squares of few runs differ by their chains, not by the noise of an estimate about 0.
    assert cell_of(100.0, 200.0, 3_000.0).value == pytest.approx(math.sqrt(1_100.0))


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
    assert (cell_of(-4.0).shown, cell_of(4.0).shown) == (NOISE, "2.00")
    for squares, shown in (
        ([9.0, 16.0], "4.00 (1/2)"),
        ([9.0, 1.0, -4.0], f"< {math.sqrt(2 * error_of([1.0, -4.0])):.3g} (2/3)"),
    ):
        record = record_of(squares)
        record["table"][0] |= {"diverged": True, "ksd": None, "ksd_squared": None}
        [cell] = evaluation_cells(record, ["ksd"])
        assert cell.shown == shown


def cells_of(metric, *values, **changes):
    return [
        Cell("logistic", "sgld", str(i), metric, value, **{"se": 0.1, "finite": 3, "replicates": 3} | changes)
        for i, value in enumerate(values)
    ]


def bold(cells, **among):
    return [cell.best for cell in mark_best(cells, **among)]


def test_best_is_the_lowest_or_highest_if_the_runner_up_is_two_standard_errors_away():
    apart = 2 * math.hypot(0.1, 0.1)
    assert bold(cells_of("ksd", 3.0, None, 3.01 + apart, 4.0)) == [True, False, False, False]
    assert not any(bold(cells_of("ksd", 3.0, None, 2.99 + apart, 4.0)))
    assert bold(cells_of("accuracy_percent", 93.0, 94.0)) == [False, True]
    assert not any(bold(cells_of("accuracy_percent", 93.91, 93.89)))
    assert not any(bold(cells_of("n_samples", 1, 2)))
    assert not any(bold(cells_of("ksd", None, None)))
    # A lower bound is no best, and the next not either.
    assert not any(
        bold([replace(first, text="≥ 3.00") for first in cells_of("ksd", 3.0)] + cells_of("ksd", 5.0))
    )
    # Every other must be so far away, not only the next, whose error may be small.
    first, near, far = cells_of("ksd", 3.0, 3.4, 5.0)
    assert not any(bold([first, near, replace(far, se=1.1)]))


def test_each_model_sampler_metric_and_detail_has_a_best_of_its_own():
    cells = [replace(cell, detail=detail) for detail in "ab" for cell in cells_of("ksd", 3.0, 4.0)]
    assert bold(cells) == [True, False, True, False]
    samplers = [replace(cell, sampler=str(i), tuner="") for i, cell in enumerate(cells[:2])]
    assert not any(bold(samplers))
    assert bold(samplers, among="sampler") == [True, False]


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


def test_a_cell_of_one_or_two_runs_or_over_the_lucky_replicates_is_never_best():
    assert not any(bold(cells_of("ksd", 1.0, 2.0, se=None)))
    assert not any(bold(cells_of("ksd", 1.0, 2.0, finite=2, replicates=2)))
    assert bold(cells_of("ksd", 1.0, se=None) + cells_of("ksd", 2.0, 3.0)) == [False, True, False]
    lucky = cells_of("ksd", 1.0, finite=3, replicates=4)
    assert bold(lucky + cells_of("ksd", None, 5.0)) == [False, False, True]


def test_a_best_that_prints_like_an_unmarked_competitor_is_not_marked():
    """Two numbers that read the same cannot be one in bold and one not, however small their standard errors are."""
    close = cells_of("rmse", 1.021, 1.024, 1.031, sd=0.001, se=None)
    assert [cell.shown for cell in close] == ["1.02 ± 0.00", "1.02 ± 0.00", "1.03 ± 0.00"]
    assert not any(bold(close))
    assert bold([close[0], replace(close[0], tuner="same runs"), close[2]]) == [True, True, False]
    # The powers of ten differ, or digits that only "by error" prints.
    assert bold(cells_of("rmse", 1.5e6, 1.5e7, sd=1e4, se=None)) == [True, False]
    assert bold(cells_of("error_percent", 4.512, 4.514, sd=0.0001, se=None)) == [True, False]


def root_of(tuner, mean, error):
    """The cell of a root of a mean square, or where that is within its noise, of its upper end."""
    cell = Cell("logistic", "sgld", tuner, "ksd", 0.0, square=(mean, error), finite=3, replicates=3)
    if mean > 2 * error:
        return replace(cell, value=math.sqrt(mean))
    return replace(cell, value=None, upper=math.sqrt(max(mean, 0) + 2 * error))


@pytest.mark.parametrize(
    ("squares", "marked"),
    [
        ([(100, 5), (1_550, 30)], [True, False]),
        ([(7, 40), (1_550, 30)], [True, False]),
        ([(7, 40), (7, 40), (1_550, 30)], [True, True, False]),
        ([(7, 40), (-3, 40)], [False, False]),
        # A mean far below 0 is noise, not a smaller square: it counts as 0, and its upper end is above the other.
        ([(-4_700, 2_600), (1_550, 30)], [False, False]),
        # An upper end is marked only below the lower ends of all others, two standard errors each: 200 here, where two
        # standard errors of the difference are 141.
        ([(0, 50), (199, 50)], [False, False]),
        ([(0, 50), (201, 50)], [True, False]),
        ([(101, 50), (299, 50)], [True, False]),
    ],
)
def test_roots_are_compared_by_their_squares(squares, marked):
    cells = [root_of(str(i), *square) for i, square in enumerate(squares)]
    assert bold(cells) == marked
