"""Figures of the study, from small records: what is drawn where, and what is left out."""

import math

import numpy as np
import pytest
from artifact_records import SAMPLERS, make, make_records, record_of
from matplotlib.collections import PathCollection, PolyCollection
from matplotlib.colors import same_color

from sgtune.study.catalogue import cap_of
from sgtune.study.mamba.artifacts import JUDGES
from sgtune.study.mamba.figures import mean_curve, shown_points
from sgtune.study.mamba.regret import regret_cells
from sgtune.study.report.labels import TUNERS as LABELS
from sgtune.support.errors import DataError


def line_of(axis, name):
    """The line with the label ``name`` in the legend."""
    return next(line for line in axis.lines if line.get_label() == name)


def labels_of(axis):
    return [line.get_label() for line in axis.lines]


def line_points(axis, tuner):
    """The dots of a tuner."""
    found = [container.lines[0] for container in axis.containers if container.get_label() == tuner]
    return [point for line in found for point in line.get_xydata()]


def test_estimates_are_where_they_were_measured_and_those_that_are_not_finite_are_left_out():
    records = make_records(1, ("pmf",))
    [record] = records["estimates"]
    for name, varied in (("figure1", "step_size"), ("figure2", "batch_size")):
        own = [row for row in record["rows"] if row["figure"] == varied]
        rows = [row for row in own if (row["gradients"], row["points"]) == ("stochastic", "thinned")]
        rows[1]["ksd"] = None
        figure = make(name, records)
        unit = 1 if varied == "step_size" else 100 / record["n_data"]
        drawn = line_of(figure.axes[0], "stochastic, thinned").get_xydata()
        kept = {unit * row[varied]: row["ksd"] for row in rows if row["ksd"] is not None}
        assert {x: y for x, y in drawn if np.isfinite(y)} == pytest.approx(kept)
        lines = [line for line in figure.axes[0].lines if line.get_label() == "not finite"]
        crosses = {x for line in lines for x in line.get_xdata()}
        lost = {unit * row[varied] for row in own if row["ksd"] is None}
        assert sorted(crosses) == pytest.approx(sorted(lost))
        assert "not finite" in [text.get_text() for text in figure.legends[0].get_texts()]


def test_widths_are_over_the_value_of_exact_draws_and_need_one():
    records = make_records(1, ("pmf",))
    [record] = records["widths"]
    axis = make("widths", records).axes[0]
    for scale, label in (("identity", "raw coordinates"), ("laplace", "scaled by the posterior")):
        own = [row for row in record["rows"] if (row["discrepancy"], row["scale"]) == ("ksd", scale)]
        exact = next(row["value"] for row in own if row["width"] == 1)
        x, y = line_of(axis, label).get_xydata().T
        assert x == pytest.approx([row["width"] for row in own])
        assert y == pytest.approx([row["value"] / exact for row in own])
    record["rows"] = [row for row in record["rows"] if row["width"] != 1]
    with pytest.raises(DataError, match="widths of pmf: no positive value at width 1"):
        make("widths", records)


def rows_of(*replicates, key="ksd"):
    """Rows of curves: of each replicate the values at its checkpoints, a tenth of a second later in each."""
    return [
        {"replicate": i, "seconds": k + 0.1 * i, key: value}
        for i, values in enumerate(replicates)
        for k, value in enumerate(values)
    ]


def test_a_curve_is_a_mean_of_finite_replicates_at_their_mean_seconds_in_two_standard_errors():
    curve = mean_curve(rows_of((4.0, 2.0), (8.0, 4.0), (6.0, None))[::-1], "ksd")
    assert curve["seconds"].tolist() == pytest.approx([0.1, 1.1])
    assert curve["mean"].tolist() == pytest.approx([6, 3])
    assert curve["count"].tolist() == [3, 2]
    # An sd of 2, and twice the standard error of the logarithm; two values have no band.
    factor = math.exp(4 / math.sqrt(3) / 6)
    assert curve["low"][0] == pytest.approx(6 / factor)
    assert curve["high"][0] == pytest.approx(6 * factor)
    assert curve.loc[1, ["low", "high"]].isna().all()
    assert mean_curve(rows_of((0.5,), key="ece"), "ece_percent")["mean"].tolist() == [50]
    assert len(mean_curve([], "ksd")) == 0


def test_a_band_is_at_least_as_wide_as_the_choices_of_its_tuning_runs_differ():
    """Ten replicates of two choices, each with its own value, are two values."""
    rows = rows_of(*((6.0 + (-1) ** i,) for i in range(10)))
    by_runs, by_choices = (mean_curve(rows, "ksd", n)["high"][0] for n in (1, 2))
    assert by_runs == pytest.approx(6 * math.exp(2 * math.sqrt(10 / 9 / 10) / 6))
    assert by_choices == pytest.approx(6 * math.exp(2 * 1 / 6))


def test_a_curve_of_a_ksd_is_the_root_of_the_mean_of_its_unbiased_squares():
    squares = ((9.0, -1.0, 90.0), (16.0, -2.0, 100.0), (26.0, 1.0, -10.0))
    rows = [row | {"ksd": 1.0} for row in rows_of(*squares, key="ksd_squared")]
    curve = mean_curve(rows, "ksd")
    assert curve["mean"].tolist() == pytest.approx([math.sqrt(17), math.nan, math.sqrt(60)], nan_ok=True)
    error = np.std([9, 16, 26], ddof=1) / math.sqrt(3)
    assert curve["low"][0] == pytest.approx(math.sqrt(17) / math.exp(error / 17))
    assert curve["high"][0] == pytest.approx(math.sqrt(17) * math.exp(error / 17))
    # A mean that is not two standard errors above zero has no band.
    assert curve.loc[2, ["low", "high"]].isna().all()


def test_panels_show_the_curves_with_markers_where_they_are_clear_of_zero_and_name_what_is_lost():
    records = make_records(3, ("logistic",))
    record_of(records, "logistic", "sgld", "mamba-ksd")["curves"] = rows_of(
        (4.0, 0.1, 2.0), (4.4, 0.1, 2.1), (4.2, 9.0, 2.2)
    )
    record_of(records, "logistic", "sgld", "mamba-fssd")["curves"] = rows_of((4.0, 2.0), (8.0, None))
    noise = [row | {"ksd": 1.0} for row in rows_of((-4.0, -2.0), key="ksd_squared")]
    record_of(records, "logistic", "sgld", "grid-ksd")["curves"] = noise
    axis = make("figure3", records).axes[0]
    assert axis.get_yscale() == "log"
    line = line_of(axis, "MAMBA-KSD")
    assert line.get_xydata() == pytest.approx(np.array([(0.1, 4.2), (1.1, 9.2 / 3), (2.1, 2.1)]))
    assert line.get_markevery() == [0, 2]
    # The one that is not clear has a small dot.
    dots = [
        dot for dot in axis.findobj(PathCollection) if same_color(dot.get_facecolor()[0], line.get_color())
    ]
    [dot] = [point.tolist() for dot in dots for point in dot.get_offsets()]
    assert dot == pytest.approx([1.1, 9.2 / 3])
    words, *ends = [text.get_text() for text in axis.texts]
    assert set(words.split("\n")) == {"MAMBA-FSSD: 1/2 finite", "Grid-KSD: within noise"}
    assert "Grid-KSD" not in labels_of(axis)
    assert set(ends) == set(labels_of(axis))


def test_dots_of_regret_are_the_table_s_with_bars_of_two_standard_errors():
    records = make_records(1, ("pmf",))
    record = records["regret"][0]
    for run in record["runs"]:
        if run["arm"] in record["random"][:1]:
            run["diverged"][0], run["losses"]["functional_error"][0] = True, cap_of("functional_error")
    [axis] = make("regret_dots", records).axes
    cells = {
        (cell.tuner, cell.sampler): cell
        for cell in regret_cells(records["regret"])
        if (cell.metric, cell.detail) == ("functional_error_over_oracle", "after 10 s")
    }
    bars = {container.get_label(): container.lines[2][0].get_segments() for container in axis.containers}
    for tuner in ("mamba-ksd", "grid"):
        for i, sampler in enumerate(SAMPLERS):
            cell = cells[tuner, sampler]
            factor = 1.0 if cell.text else math.exp(2 * cell.se / cell.value)
            [at] = [x for x, y in line_points(axis, LABELS[tuner]) if abs(y - i) < 0.5]
            assert at == pytest.approx(cell.value)
            [ends] = [bar[:, 0] for bar in bars[LABELS[tuner]] if abs(bar[0, 1] - i) < 0.5]
            assert ends == pytest.approx([cell.value / factor, cell.value * factor])
            assert axis.get_xlim()[0] < ends[0] <= ends[1] < axis.get_xlim()[1]
    # A lower bound has an arrow in place of the bar.
    bounds = [cell.value for (tuner, _), cell in cells.items() if cell.text and tuner in {*LABELS, "random"}]
    arrows = [text.xyann[0] for text in axis.texts if getattr(text, "arrow_patch", None)]
    assert bounds
    assert sorted(arrows) == pytest.approx(sorted(bounds))
    for name in ("random", "frozen"):
        points = [
            point for line in axis.lines if line.get_label() == name for point in line.get_xydata().tolist()
        ]
        expected = [[cells[name, sampler].value, float(i)] for i, sampler in enumerate(SAMPLERS)]
        assert sorted(points, key=lambda point: point[1]) == expected


def test_regret_says_where_the_reference_is_not_trusted():
    records = make_records(1)
    for record in records["regret"]:
        record["trusted"] = False if record["model"] == "pmf" else record["trusted"]
    axes = make("regret_dots", records).axes
    said = ["the reference is\nnot trusted" in [text.get_text() for text in axis.texts] for axis in axes]
    assert said == [False, True, False]
    assert not line_points(axes[1], "Grid")


@pytest.mark.parametrize(
    ("name", "statistic", "shown"),
    [
        ("sensitivity", "square", [(10, "width"), (10, "direction"), (1_000, "width"), (1_000, "direction")]),
        ("sensitivity_values", "value", [(10, "width"), (1_000, "width")]),
    ],
)
def test_lines_of_sensitivity_are_the_records_clipped_with_bands_of_two_standard_errors(
    name, statistic, shown
):
    records = make_records(1, ("logistic",))
    rows = records["sensitivity"][0]["rows"]
    signal, error = f"{statistic}_signal", f"{statistic}_signal_se"
    next(row for row in rows if row["points"] == 500 and row["judge"] == "psd")[signal] = 1e6
    axes = make(name, records).axes
    for axis, (dimension, disturbance) in zip(axes, shown, strict=True):
        points = {10: 500, 1_000: 100}[dimension]
        own = [row for row in rows if (row["dimension"], row["points"]) == (dimension, points)]
        own = [row for row in own if row["perturbation"] == disturbance]
        for judge, words in JUDGES.items():
            expected = sorted((row["size"], row[signal]) for row in own if row["judge"] == judge)
            expected = [[size, min(max(value, -1000), 1000)] for size, value in expected]
            np.testing.assert_allclose(line_of(axis, words).get_xydata(), expected)
        heights = [
            {round(y, 6) for y in band.get_paths()[0].vertices[:, 1]}
            for band in axis.collections
            if isinstance(band, PolyCollection)
        ]
        one = next(row for row in own if row["judge"] == "virial" and row["size"] == 0)
        ends = [round(min(one[signal] + sign * 2 * one[error], 1000), 6) for sign in (-1, 1)]
        assert any(set(ends) <= found for found in heights)
    # The area in which narrow draws are preferred to exact ones.
    is_misled = min(row[signal] for row in rows) < 0
    assert any(line.get_label() == "preferred to exact draws" for line in axes[0].patches) == is_misled


def test_a_row_shows_the_points_that_judges_have_in_its_dimension():
    assert shown_points(10, {15, 100, 500}) == 500
    assert shown_points(1_000, {15, 100, 500}) == 100
    assert shown_points(50_000, {15, 100}) == 15
    assert shown_points(10, {15, 100}) == 100
