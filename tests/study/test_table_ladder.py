"""The table and the figure of the ladder of Gaussians, from artificial records."""

import math

import pytest
from artifact_records import make_files, records_of
from figure_parts import line_points

from sgtune.study.experiments import ladder as runs
from sgtune.study.experiments.ladder import KINDS
from sgtune.study.mamba import ladder
from sgtune.study.mamba.ladder import choices_of
from sgtune.study.mamba.ladder_figure import STEP
from sgtune.study.report import FIGURES, TABLES


@pytest.fixture(scope="module")
def records():
    return records_of(make_files(1, ("logistic",)))


def cells_of(table):
    """The cells by dimension, curvatures, tuner and metric."""
    return {(*row.labels, cell.metric): cell for row in table.rows for cell in row.cells}


def test_rows_are_tuners_of_each_dimension_and_kind_in_order(records):
    table = TABLES["gaussian_ladder"](records)
    assert [row.labels for row in table.rows] == [
        (dimension, kind, tuner)
        for dimension in ("D = 10", "D = 100")
        for kind in ("Along the axes", "Rotated")
        for tuner in ("MAMBA-KSD", "MAMBA-KSD scaled", "Oracle")
    ]


def test_numbers_by_hand(records):
    cells = cells_of(TABLES["gaussian_ladder"](records))
    own = {key[3]: cell for key, cell in cells.items() if key[:3] == ("D = 10", "Rotated", "MAMBA-KSD")}
    # Errors of 0.2 and 0.4; the oracle's is 0.2, the grid's least 0.16.
    assert own["ladder_error"].shown == "0.300 ± 0.100"
    assert (own["ladder_over_oracle"].value, own["ladder_over_oracle"].se) == pytest.approx((1.5, 0.5))
    assert own["ladder_worst"].shown == "2.00"
    assert own["ladder_over_smallest"].value == pytest.approx(0.3 / 0.16)
    assert own["ladder_marginal"].shown == "0.150 ± 0.050"
    assert (own["ladder_escaped"].shown, own["ladder_frozen"].shown) == ("0", "0")


def test_arms_that_escaped_or_are_frozen_are_counted_and_mark_their_means(records):
    cells = cells_of(TABLES["gaussian_ladder"](records))
    own = {
        key[3]: cell for key, cell in cells.items() if key[:3] == ("D = 100", "Rotated", "MAMBA-KSD scaled")
    }
    assert (own["ladder_escaped"].shown, own["ladder_frozen"].shown) == ("1", "1")
    assert own["ladder_worst"].shown == "≥ 50.0"
    assert own["ladder_over_oracle"].value == pytest.approx((50 + 0.95 / 0.2) / 2)
    assert all(own[name].shown.startswith("≥ ") for name in ("ladder_error", "ladder_over_oracle"))
    # The oracle is its own reference.
    oracle = {key[3]: cell for key, cell in cells.items() if key[:3] == ("D = 100", "Rotated", "Oracle")}
    assert (oracle["ladder_over_oracle"].value, oracle["ladder_worst"].value) == (None, None)
    assert oracle["ladder_over_smallest"].value == pytest.approx(1.25)


def test_the_caption_counts_the_gaussians_above_the_bound(records):
    caption = TABLES["gaussian_ladder"](records).caption
    assert "MAMBA-KSD on 4 of 4, MAMBA-KSD scaled on 2 of 4 Gaussians." in caption
    assert "SGLD; 2 races of R = 0.1 s by a given clock; N = 1,000." in caption


def test_samplers_are_pooled_and_one_race_has_no_standard_error():
    files = make_files(1, ("logistic",))
    for record in files["ladder"].values():
        for own in record["gaussians"]:
            own["runs"] = [run for run in own["runs"] if run["replicate"] == 0]
        record["gaussians"] += [{**own, "sampler": "sghmc"} for own in record["gaussians"]]
    found = records_of(files)
    assert {len(choices.runs) for choices in choices_of(found["ladder"])} == {2}
    assert "SGLD, SGHMC; 1 race of each of R = 0.1 s" in TABLES["gaussian_ladder"](found).caption
    for record in found["ladder"]:
        record["gaussians"] = record["gaussians"][:2]
    cells = cells_of(TABLES["gaussian_ladder"](found))
    assert cells["D = 10", "Rotated", "MAMBA-KSD", "ladder_error"].shown == "0.200"


def test_the_figure_has_a_panel_per_kind_with_the_tables_means(records):
    figure = FIGURES["gaussian_ladder_dots"](records)
    assert [axis.get_title() for axis in figure.axes] == ["Along the axes", "Rotated"]
    for axis in figure.axes:
        for name, aside in (("MAMBA-KSD", STEP**-0.5), ("MAMBA-KSD scaled", STEP**0.5)):
            x, y = zip(*line_points(axis, name), strict=True)
            assert x == pytest.approx([10 * aside, 100 * aside])
            assert y == pytest.approx([1.5, 1.5] if name == "MAMBA-KSD" else [1, (50 + 4.75) / 2])
        marks = {line.get_marker() for line in axis.lines if math.isclose(line.get_ydata()[0], 50)}
        assert marks == {"x"}
    entries = [text.get_text() for text in figure.legends[0].get_texts()]
    assert "Worst race, escaped" in entries
    assert "Worst race, frozen" not in entries


def test_names_and_bounds_are_those_of_the_runs():
    assert ladder.KINDS.keys() == KINDS.keys()
    assert ladder.ESCAPED == runs.ESCAPED
