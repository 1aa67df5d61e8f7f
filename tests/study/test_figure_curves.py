"""Curves over the run time: means, bands, and what is left out."""

import math

import numpy as np
import pytest
from artifact_records import (
    SAMPLERS,
    choose,
    make_files,
    make_records,
    record_of,
    records_of,
)
from figure_parts import labels_of, line_of, texts

from sgtune.study.mamba.figures import curve
from sgtune.study.report import FIGURES
from sgtune.study.report.labels import TUNERS

SHOWN = ("mamba-ksd", "mamba-fssd", "grid", "heuristic", "grid-ksd", "mamba-ksd-scaled", "theory")


def band_at(band, seconds):
    """The lower and upper end of a band at a given time."""
    x, y = np.concatenate([path.vertices for path in band.get_paths()]).T
    return y[x == seconds].min(), y[x == seconds].max()


def test_curves_are_means_and_bands_two_standard_errors_of_the_replicates():
    """Also on a log axis, where seaborn would otherwise average logarithms."""
    records = make_records(4, ("logistic",))
    axis = FIGURES["figure3"](records).axes[SAMPLERS.index("sghmc-cv")]
    assert axis.get_yscale() == "log"
    lines = [line for line in axis.lines if line.get_label() != "_small"]
    assert len(lines) == len(axis.collections) == len(SHOWN)
    seen = 0
    for tuner, line, band in zip(SHOWN, lines, axis.collections, strict=True):
        assert line.get_label() == TUNERS[tuner]
        rows = record_of(records, "logistic", "sghmc-cv", tuner)["curves"]
        for seconds, mean in line.get_xydata():
            at = [row["ksd"] for row in rows if row["seconds"] == seconds and row["ksd"] is not None]
            assert mean == pytest.approx(np.mean(at))
            se = np.std(at, ddof=1) / np.sqrt(len(at))
            if mean > 2 * se:
                seen += 1
                assert band_at(band, seconds) == pytest.approx((mean - 2 * se, mean + 2 * se))
        low, high = axis.get_ylim()
        assert low < line.get_ydata().min()
        assert all(path.vertices[:, 1].max() < high for path in band.get_paths())
    assert seen >= 2 * len(SHOWN)


def test_a_mean_that_is_within_its_noise_of_zero_has_a_small_marker_and_no_band():
    """On a log axis its band would have no end, and cover all below it."""
    records = make_records(3, ("logistic",))
    values = {0.5: (4.0, 4.4, 4.2), 1.0: (0.1, 0.1, 9.0), 1.5: (2.0, 2.1, 2.2)}
    assert [np.mean(at) > 2 * np.std(at, ddof=1) / np.sqrt(3) for at in values.values()] == [
        True,
        False,
        True,
    ]
    record_of(records, "logistic", "sgld", "mamba-ksd")["curves"] = [
        {"replicate": i, "seconds": seconds, "ksd": at[i]} for seconds, at in values.items() for i in range(3)
    ]
    axis = FIGURES["figure3"](records).axes[0]
    line = line_of(axis, "MAMBA-KSD")
    assert np.allclose(line.get_xdata(), list(values))
    assert line.get_markevery() == [0, 2]
    (small,) = (other for other in axis.lines if other.get_label() == "_small")
    assert small.get_markevery() == [1]
    assert small.get_markersize() < line.get_markersize()
    assert small.get_linestyle() == "None"
    assert np.allclose(small.get_xydata(), line.get_xydata())
    at = [label for label in labels_of(axis) if label != "_small"].index("MAMBA-KSD")
    band = axis.collections[at].get_paths()
    assert {float(x) for path in band for x in path.vertices[:, 0]} == {0.5, 1.5}


def test_replicates_meet_at_their_mean_seconds_and_those_that_are_not_finite_are_left_out():
    rows = [
        {"replicate": i, "seconds": k + 0.1 * i, "ksd": value}
        for i, values in enumerate([(4.0, 2.0), (8.0, 4.0), (6.0, None)])
        for k, value in enumerate(values)
    ]
    table = curve(rows[::-1], "ksd").sort_values(["checkpoint", "replicate"])
    assert np.allclose(table["seconds"], [0.1] * 3 + [1.1] * 3)
    assert np.allclose(table["value"], [4, 8, 6, 2, 4, math.nan], equal_nan=True)
    assert len(curve([], "ksd")) == 0
    records = make_records(3, ("logistic",))
    record_of(records, "logistic", "sgld", "mamba-ksd")["curves"] = rows
    axis = FIGURES["figure3"](records).axes[0]
    assert np.allclose(line_of(axis, "MAMBA-KSD").get_xydata(), [(0.1, 6), (1.1, 3)])
    at = labels_of(axis).index("MAMBA-KSD")
    band = axis.collections[at].get_paths()
    assert {round(x, 9) for path in band for x in path.vertices[:, 0]} == {0.1}  # two values have no band
    assert "MAMBA-KSD: 2 of 3 runs finite" in texts(axis.figure)


def test_all_panels_show_the_longest_run_and_the_lowest_of_each_column_its_seconds():
    files = make_files(1, ("pmf",))
    for tuned in files["tuning"]["pmf/sgld"]["tuners"]:
        choose(files, "pmf", "sgld", tuned["tuner"])
    records = records_of(files)
    kept = SAMPLERS[:4]
    records["evaluation"] = [record for record in records["evaluation"] if record["sampler"] in kept]
    for record in records["evaluation"]:
        if record["sampler"] == kept[-1]:
            record["curves"] = [row | {"seconds": 10 * row["seconds"]} for row in record["curves"]]
    figure = FIGURES["figure4"](records)
    figure.canvas.draw()
    assert len(figure.axes) == 4
    assert {axis.get_xlim() for axis in figure.axes} == {figure.axes[-1].get_xlim()}
    assert figure.axes[0].get_xlim()[0] == 0
    assert figure.axes[0].get_xlim()[1] > 30
    seconds = [bool(axis.get_xlabel()) for axis in figure.axes]
    assert seconds == [False, True, True, True]
    shown = [any(tick.get_visible() for tick in axis.get_xticklabels()) for axis in figure.axes]
    assert shown == seconds
