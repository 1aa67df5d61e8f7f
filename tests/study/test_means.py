"""Cells of a KSD: the root of the mean of an unbiased square, which may be negative."""

import math

import pytest

from sgtune.study.artifacts.means import evaluation_cells


def record_of(squares):
    rows = [
        {"replicate": i, "diverged": False, "ksd": math.sqrt(max(square, 0.0)), "ksd_squared": square}
        for i, square in enumerate(squares)
    ]
    return {"model": "logistic", "sampler": "sgld", "tuner": "grid", "best": {}, "arms": [{}], "table": rows}


def cell_of(*squares):
    [cell] = evaluation_cells(record_of(squares), ["ksd"])
    return cell


def test_the_mean_is_taken_of_the_squares_with_their_signs():
    """The mean of the roots, of which none is negative, would be far above the truth where squares are mostly noise."""
    cell = cell_of(400.0, -150.0, -100.0)
    assert cell.value == pytest.approx(math.sqrt(50.0))
    assert cell.value > 0.5 * cell.se
    assert cell_of(9.0, 16.0, 25.0).value == pytest.approx(math.sqrt(50 / 3))


def test_a_mean_within_its_noise_has_an_upper_bound():
    squares = (100.0, -150.0, -100.0)
    cell = cell_of(*squares)
    mean = sum(squares) / 3
    error = math.sqrt(sum((square - mean) ** 2 for square in squares) / 2 / 3)
    assert cell.value == 0
    assert cell.shown == f"< {math.sqrt(mean + 2 * error):.3g}"


def test_a_single_run_and_one_that_diverged():
    assert cell_of(-4.0).value == 0
    record = record_of([9.0, 16.0])
    record["table"][0] |= {"diverged": True, "ksd": None, "ksd_squared": None}
    [cell] = evaluation_cells(record, ["ksd"])
    assert cell.shown == "4.00 (1/2)"
