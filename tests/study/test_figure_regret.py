"""The figure of regret, and what legends say."""

import numpy as np
import pytest
from artifact_records import SAMPLERS, choose, make_files, make_records, record_of, records_of
from figure_parts import line_of, line_points, regret_at, texts

from sgtune.study.mamba.regret import regret_cells
from sgtune.study.report import FIGURES
from sgtune.study.report.labels import TUNERS


def test_regret_has_a_panel_per_model_and_says_where_the_reference_is_not_trusted():
    records = make_records(1)
    for record in records["regret"]:
        record["trusted"] = False if record["model"] == "pmf" else record["trusted"]
    figure = FIGURES["regret_dots"](records)
    titles = ["Logistic regression, after 10 s", "PMF, after 10 s", "Neural network, after 10 s"]
    assert [axis.get_title() for axis in figure.axes] == titles
    words = "the reference is\nnot trusted"
    assert [words in [text.get_text() for text in axis.texts] for axis in figure.axes] == [False, True, False]
    assert not line_points(figure.axes[1], "Grid")


def test_dots_of_regret_are_the_table_s_with_bars_of_two_standard_errors():
    records = make_records(1, ("pmf",))
    [axis] = FIGURES["regret_dots"](records).axes
    cells = {
        (cell.tuner, cell.sampler): cell
        for cell in regret_cells(records["regret"])
        if (cell.metric, cell.detail) == ("functional_error_over_oracle", "after 10 s")
    }
    bars = {container.get_label(): container.lines[2][0].get_segments() for container in axis.containers}
    for tuner in ("mamba-ksd", "grid"):
        for i, sampler in enumerate(SAMPLERS):
            cell = cells[tuner, sampler]
            assert regret_at(axis, TUNERS[tuner], sampler) == pytest.approx(cell.value)
            [ends] = [bar[:, 0] for bar in bars[TUNERS[tuner]] if abs(bar[0, 1] - i) < 0.5]
            assert ends == pytest.approx([cell.value - 2 * cell.se, cell.value + 2 * cell.se])
    for name in ("random", "frozen"):
        points = [
            point for line in axis.lines if line.get_label() == name for point in line.get_xydata().tolist()
        ]
        expected = [[cells[name, sampler].value, float(i)] for i, sampler in enumerate(SAMPLERS)]
        assert sorted(points, key=lambda point: point[1]) == expected


def test_tuners_that_judge_by_the_test_set_have_a_dagger_unless_they_held_out_training_data():
    def entries(figure):
        return [text.get_text() for text in figure.legends[0].get_texts()]

    files = make_files(1, ("bnn",))
    for name in ("figure5", "ood_entropy", "regret_dots"):
        assert {"Grid †", "MAMBA-KSD"} < set(entries(FIGURES[name](records_of(files))))
    for held in (*files["evaluation"].values(), *files["regret"].values()):
        for tuned in held.get("tuners", held.get("chosen")):
            tuned["validation_fraction"] = 0.2
    for name in ("figure5", "ood_entropy", "regret_dots"):
        assert "†" not in "".join(entries(FIGURES[name](records_of(files))))


def test_panels_say_in_how_many_tuning_runs_a_tuner_found_no_arm():
    files = make_files(4, ("pmf",))
    choose(files, "pmf", "sgld", "grid", tunings=(1,))
    figure = FIGURES["figure4"](records_of(files))
    assert "Grid:\nno arm in 1 of 2 tuning runs" in texts(figure)
    # The runs of the others are all that there are of it.
    rows = record_of(records_of(files), "pmf", "sgld", "grid")["curves"]
    assert {row["replicate"] for row in rows} == {0, 2}
    assert line_of(figure.axes[0], "Grid").get_ydata()[0] == pytest.approx(
        np.mean([row["ksd"] for row in rows if row["seconds"] == 1.0])
    )


def test_a_legend_explains_lines_and_bands():
    title = FIGURES["figure4"](make_records(4, ("pmf",))).legends[0].get_title().get_text()
    assert title == "mean ± 2 s.e. of n = 4 runs, with the arms of 2 tuning runs in turn"
    title = FIGURES["figure4"](make_records(4, ("pmf",), tunings=1)).legends[0].get_title().get_text()
    assert title == "mean ± 2 s.e. of n = 4 runs, with the arm of one tuning run"
    figure = FIGURES["figure4"](make_records(2, ("pmf",)))
    assert (
        figure.legends[0].get_title().get_text()
        == "mean of n = 2 runs, with the arms of 2 tuning runs in turn"
    )
    paths = [path for axis in figure.axes for band in axis.collections for path in band.get_paths()]
    assert not any(path.vertices.size for path in paths)
    assert not FIGURES["figure4"](make_records(1, ("pmf",))).legends[0].get_title().get_text()
