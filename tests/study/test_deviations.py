"""The table of differences between a run and the paper."""

# ruff: noqa: RUF001 - tables print signs of mathematics

from copy import deepcopy

import pytest
from artifact_records import CONFIG, cells_by, make_records
from config_files import changed, valid
from sgtune.study.mamba.paper_settings import SETTINGS
from sgtune.study.mamba.settings_said import listed
from sgtune.study.report.writers import to_html

from sgtune.study.config.sections import model_settings
from sgtune.study.report import TABLES


def table_of(config):
    return TABLES["deviations"]({"settings": [{"run": "quick", "configuration": config}]})


def rows_of(config):
    """(model, setting) -> the texts for the paper and for this run."""
    return {row.labels: [cell.shown for cell in row.cells[:2]] for row in table_of(config).rows}


def paper_config(**changes):
    """The schema's defaults, which are the paper's values where it gives them."""
    config = valid()
    return changed(config, **changes)


def test_a_network_of_another_size_differs_from_the_papers():
    assert ("Neural network", "Data") not in rows_of(paper_config())
    rows = rows_of(paper_config(data__bnn__n_hidden=50))
    assert rows["Neural network", "Data"] == ["MNIST", "MNIST, 50 hidden units"]


def test_changed_settings_are_beside_the_papers_and_unchanged_ones_are_named():
    rows = rows_of(CONFIG)
    assert rows["All models", "Tuning runs of a tuner"] == ["1", "2"]
    assert rows["Logistic regression", "NUTS: draws"] == ["20,000", "300"]
    assert rows["PMF", "NUTS: draws"] == ["10,000", "300"]
    assert ("Neural network", "NUTS: draws") not in rows
    assert rows["Neural network", "Data"] == ["MNIST", "300 simulated"]
    assert rows["Logistic regression", "Grid: log₁₀(h)"] == ["−1 to −7.5 by 0.5", "−4 to −7 by 1"]
    assert rows["All models", "SGHMC: order of updates"][1] == "leapfrog"
    caption = table_of(CONFIG).caption
    same = caption.partition("as in the paper")[2]
    assert "MAMBA: R;" in same
    assert "Tuning runs of a tuner" not in same
    assert not {what for _, what in rows} & set(same.strip(" .").split("; "))


def test_a_run_with_the_paper_s_values_differs_by_caps_clocks_and_chains():
    rows = rows_of(paper_config())
    of_configuration = {what for _, what in rows} & {setting.what for setting in SETTINGS}
    assert of_configuration <= {
        *("NUTS: chains", "NUTS: draws", "NUTS: warm-up"),
        *("MAMBA: clock", "MAMBA: number of draws that judge"),
        *("Grid search: draws that predict", "Tuning runs of a tuner"),
        *("Grid-KSD: clock", "Grid-KSD: number of draws that judge"),
        *(
            "Data on which arms are judged by predictions",
            "Evaluation: clock",
            "Evaluation: runs behind a table",
        ),
        "Evaluation: runs behind a curve",
        *("Evaluation: burn-in", "Evaluation: draws kept", "Evaluation: points of a KSD"),
        *("Evaluation: draws that predict", "Figs. 1, 2: “all samples”"),
    }
    assert rows["All models", "MAMBA: clock"] == ["wall", "calibrated"]


@pytest.mark.parametrize(
    ("changes", "absent", "present"),
    [
        ({"samplers": ["sgld"]}, "SGHMC: order of updates", "Minibatches"),
        ({"tuners": ["grid"], "per_model": {}}, "FSSD", "Grid search: draws that predict"),
        ({"tuners": ["grid"], "per_model": {}}, "Shortest run of an arm", "Grid search: draws that predict"),
        ({"models": ["pmf"]}, "ECE and MCE", "RMSE"),
    ],
)
def test_settings_that_a_run_does_not_have_are_not_listed(changes, absent, present):
    whats = {what for _, what in rows_of(CONFIG)}
    assert absent in whats
    whats = {what for _, what in rows_of(CONFIG | changes)}
    assert absent not in whats
    assert present in whats


def test_every_setting_speaks_of_every_configuration():
    for config in (paper_config(), deepcopy(CONFIG)):
        for model in config["models"]:
            settings = model_settings(config, model)
            assert all(isinstance(setting.ours(settings, model), str) for setting in SETTINGS)


def test_words_break_into_lines_and_are_no_missing_numbers():
    page = to_html(TABLES["deviations"](make_records(1)), "footer")
    assert '<table class="prose">' in page
    assert 'class="missing"' not in page
    cells = cells_by(TABLES["deviations"](make_records(1)), "model", "detail", "metric")
    assert cells["", "Tuning runs of a tuner", "run"].shown == "2"


def test_evenly_spaced_numbers_are_printed_by_their_ends():
    assert listed([-1, -1.5, -2, -2.5]) == "−1 to −2.5 by 0.5"
    assert listed([-1, -1.5, -3, -3.5]) == "−1, −1.5, −3, −3.5"
    assert listed([5, 10]) == "5, 10"
