"""The ladder of Gaussians and the sensitivity of discrepancies, from small records."""

from copy import deepcopy

import pytest
from artifact_records import cells_by, make, make_records

from sgtune.study.experiments import ladder as experiment
from sgtune.study.mamba import known_targets
from sgtune.study.mamba.artifacts import JUDGES, KINDS


@pytest.fixture(scope="module")
def records():
    return make_records(1, ("logistic",))


def cells_of(records, detail, tuner):
    found = make("gaussian_ladder", records)
    return {cell.metric: cell for cell in found if (cell.detail, cell.tuner) == (detail, tuner)}


def test_expected_errors_by_hand(records):
    own = cells_of(records, "rotated, D = 10", "mamba-ksd")
    # Errors of 0.2 and 0.4; the oracle's is 0.2, the grid's least 0.16.
    assert (own["ladder_error"].value, own["ladder_error"].se) == pytest.approx((0.3, 0.1))
    assert (own["ladder_over_oracle"].value, own["ladder_over_oracle"].se) == pytest.approx((1.5, 0.5))
    assert own["ladder_worst"].value == pytest.approx(2)
    assert own["ladder_over_smallest"].value == pytest.approx(0.3 / 0.16)
    assert own["ladder_marginal"].value == pytest.approx(0.15)
    assert (own["ladder_escaped"].value, own["ladder_frozen"].value) == (0, 0)


def test_arms_that_escaped_or_are_frozen_are_counted_and_mark_their_means(records):
    own = cells_of(records, "rotated, D = 100", "mamba-ksd-scaled")
    assert (own["ladder_escaped"].shown, own["ladder_frozen"].shown) == ("1", "1")
    assert own["ladder_worst"].shown == "≥ 50.0"
    assert own["ladder_over_oracle"].value == pytest.approx((50 + 0.95 / 0.2) / 2)
    assert all(own[name].shown.startswith("≥ ") for name in ("ladder_error", "ladder_over_oracle"))
    # The oracle is its own reference.
    oracle = cells_of(records, "rotated, D = 100", "oracle")
    assert (oracle["ladder_over_oracle"].value, oracle["ladder_worst"].value) == (None, None)
    assert oracle["ladder_over_smallest"].value == pytest.approx(1.25)


def test_samplers_are_pooled_and_one_race_has_no_standard_error(records):
    found = deepcopy(records)
    for record in found["ladder"]:
        for own in record["gaussians"]:
            own["runs"] = [run for run in own["runs"] if run["replicate"] == 1]
    own = cells_of(found, "rotated, D = 10", "mamba-ksd")
    assert (own["ladder_error"].value, own["ladder_error"].se) == (0.4, None)
    [record] = [one for one in found["ladder"] if one["dimension"] == 10]
    others = deepcopy(record["gaussians"])
    for own in others:
        own["runs"] = [run | {"error": 0.2} for run in own["runs"]]
    record["gaussians"] += [own | {"sampler": "sghmc"} for own in others]
    own = cells_of(found, "rotated, D = 10", "mamba-ksd")
    assert (own["ladder_error"].value, own["ladder_error"].se) == pytest.approx((0.3, 0.1))


def test_names_and_bounds_are_those_of_the_runs():
    assert KINDS.keys() == experiment.KINDS.keys()
    assert known_targets.ESCAPED == experiment.ESCAPED


def test_signals_of_both_widths_by_dimension_and_points(records):
    found = make("signal_of_width", records)
    assert len(found) == 2 * 2 * len(JUDGES) * 4
    cells = cells_by(found, "metric", "detail")
    for metric, detail, value in (
        ("square_signal", "psd, width 0.5, D = 10, n = 500", 250),
        ("value_signal", "ksd, width 0.5, D = 1000, n = 100", -5),
        ("value_signal", "ksd_wide, width 1.5, D = 1000, n = 100", 2.5),
        ("square_signal", "fssd, width 1.5, D = 10, n = 15", 0),
    ):
        assert (cells[metric, detail].value, cells[metric, detail].se) == pytest.approx((value, 0.3))
