"""Pictures show what the tables say: survivors, the arm that was chosen, dead arms, and parameters that were named."""

import matplotlib
import numpy as np
import pandas as pd
import pytest

from sgtune.bridges.plots import BAD, OK, plot_chains, plot_diagnosis, plot_race
from sgtune.support.errors import InputError

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def _closed():
    yield
    matplotlib.pyplot.close("all")


def rungs():
    columns = ["race", "rung", "step_size", "batch_size", "discrepancy", "pruned"]
    rows = []
    for race in (1, 2):
        rows += [(race, 1, 1e-3, 10, 0.4, True), (race, 1, 1e-3, 20, 0.2, False)]
        rows += [(race, 1, 1e-2, 20, 0.3 * race, False), (race, 1, 1e-1, 20, None, True)]
        rows += [(race, 2, 1e-3, 20, 0.2, True), (race, 2, 1e-2, 20, 0.1, False)]
    return pd.DataFrame(rows, columns=columns).assign(n_leapfrog=None, steps=10)


def points_of(axis, *, is_full):
    """The points of all collections that are filled, or those that are not, without crosses and rings."""
    found = []
    for each in axis.collections:
        if each.get_sizes()[0] == 28 and len(each.get_offsets()):
            assert len(each.get_edgecolor()) == 1
            if bool(len(each.get_facecolor())) == is_full:
                found += each.get_offsets().tolist()
    return sorted(found)


def test_a_race_has_a_panel_for_each_rung_of_its_last_race():
    axes = plot_race(rungs(), {"step_size": 1e-2, "batch_size": 20})
    assert len(axes) == 2
    assert points_of(axes[0], is_full=True) == [[1e-3, 0.2], [1e-2, 0.6]]
    assert points_of(axes[0], is_full=False) == [[1e-3, 0.4]]
    assert points_of(axes[1], is_full=True) == [[1e-2, 0.1]]
    crosses = [each for each in axes[0].collections if each.get_sizes()[0] == 24]
    assert [each.get_offsets()[:, 0].tolist() for each in crosses if len(each.get_offsets())] == [[0.1]]
    for axis, value in zip(axes, (0.6, 0.1), strict=True):
        (ring,) = [each for each in axis.collections if each.get_sizes()[0] == 140]
        assert ring.get_offsets().tolist() == [[1e-2, value]]
    legend = axes[-1].get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["10", "20"]


def test_parameters_that_were_named_are_red_and_the_worst_is_at_the_top():
    columns = {"sd_ratio": [2.0, 1.0], "mean_error": [0.0, 0.1], "problems": ["too wide", ""]}
    columns |= {"sd_ratio_se": [0.1, 0.1], "mean_error_se": [0.1, 0.1]}
    axis = plot_diagnosis(pd.DataFrame(columns, index=["u", "v"]))[0]
    labels = [text.get_text() for text in axis.get_yticklabels()]
    assert dict(zip(axis.get_yticks(), labels, strict=True)) == {1: "u: too wide", 0: "v"}
    marks = [line for line in axis.lines if line.get_marker() == "o"]
    found = [(*line.get_xydata()[0], line.get_color()) for line in marks]
    assert found == [(2, 1, BAD), (1, 0, OK)]


def test_a_race_of_one_size_without_a_winner():
    table = rungs()[lambda t: (t["batch_size"] == 20) & (t["race"] == 1)].drop(columns="race")
    axes = plot_race(table, None)
    assert axes[-1].get_legend() is None
    assert not [each for each in axes[0].collections if each.get_sizes()[0] == 140]


def test_without_seaborn_one_line_names_the_extra(monkeypatch):
    def missing(name):
        raise ModuleNotFoundError(name=name)

    monkeypatch.setattr("sgtune.support.errors.import_module", missing)
    with pytest.raises(InputError, match=r"pip install 'sgtune\[plots\]'"):
        plot_chains(np.zeros((1, 5, 1)), ["a"])
