"""The short table of regret: a mean over samplers of the long table, with the names of the samplers."""

# ruff: noqa: RUF001 - tables print Greek letters and signs of mathematics

import math

import pytest
from artifact_records import MODELS, SAMPLERS, cells_by, make_files, records_of
from sgtune.study.mamba.headline import headline
from sgtune.study.report.layout import AT_CAP, NOT_TRUSTED

from sgtune.study.mamba.regret import after, regret_cells, seconds_of


@pytest.fixture(scope="module")
def files():
    return make_files()


def runs_of_mamba_ksd(records):
    """The fresh runs of the arms that it chose for one sampler of the logistic regression."""
    record = next(one for one in records["regret"] if one["model"] == "logistic")
    arms = next(one for one in record["chosen"] if one["tuner"] == "mamba-ksd")["arms"]
    return [run for run in record["runs"] if run["arm"] in arms]


def test_a_cell_is_the_mean_over_samplers_after_the_longest_runs(files):
    records = records_of(files)
    cells = cells_by(headline(records), "model", "tuner")
    own = [record for record in records["regret"] if record["model"] == "logistic"]
    longest = after(max(seconds for record in own for seconds in seconds_of(record)))
    each = [
        cell
        for cell in regret_cells(own)
        if (cell.tuner, cell.metric, cell.detail) == ("mamba-ksd", "xi_white_x100_over_oracle", longest)
    ]
    assert len(each) == len(SAMPLERS)
    found = cells["logistic", "mamba-ksd"]
    assert found.value == pytest.approx(sum(cell.value for cell in each) / len(each))
    assert found.se == pytest.approx(math.sqrt(sum(cell.se**2 for cell in each)) / len(each))
    assert found.finite == found.replicates == len(SAMPLERS)
    assert {model for model, _ in cells} == set(MODELS)


def test_each_loss_with_an_oracle_has_its_own_column(files):
    """Also a loss in which the arms are in another order than in the main one."""
    before = headline(records_of(files))
    assert before.columns[0] == ("", "Logistic regression")
    records = records_of(files)
    for record in records["regret"]:
        if record["model"] == "logistic":
            record["oracles"]["relative_sd_error"] = record["oracles"]["xi_white"][::-1]
    table = headline(records)
    assert table.columns[:2] == (("Logistic regression", "ξ whitened"), ("Logistic regression", "ξ(σ̂)"))
    assert "each loss has its own oracle" in table.caption
    cells = cells_by(table, "model", "tuner", "detail")
    own = [record for record in records["regret"] if record["model"] == "logistic"]
    longest = after(max(seconds for record in own for seconds in seconds_of(record)))
    each = [
        cell.value
        for cell in regret_cells(own)
        if (cell.tuner, cell.metric, cell.detail)
        == ("mamba-ksd", "relative_sd_error_x100_over_oracle", longest)
    ]
    assert len(each) == len(SAMPLERS)
    assert cells["logistic", "mamba-ksd", "ξ(σ̂)"].value == pytest.approx(sum(each) / len(each))
    main = cells_by(before, "model", "tuner")["logistic", "mamba-ksd"]
    assert cells["logistic", "mamba-ksd", "ξ whitened"].value == main.value


def test_a_sampler_whose_runs_all_diverged_is_counted_and_left_out(files):
    records = records_of(files)
    for run in runs_of_mamba_ksd(records):
        run["diverged"] = [True] * len(run["diverged"])
    cell = cells_by(headline(records), "model", "tuner")["logistic", "mamba-ksd"]
    assert (cell.finite, cell.replicates) == (len(SAMPLERS) - 1, len(SAMPLERS))
    assert f"({cell.finite}/{cell.replicates})" in cell.shown


def test_no_number_where_every_oracle_is_at_the_cap(files):
    records = records_of(files)
    for record in records["regret"]:
        if record["model"] == "logistic":
            record["oracles"]["xi_white"] = [None]
    cells = cells_by(headline(records), "model", "tuner")
    assert cells["logistic", "mamba-ksd"].shown == cells["logistic", "frozen"].shown == AT_CAP
    assert cells["pmf", "mamba-ksd"].value is not None


def test_no_number_where_the_reference_is_not_trusted(files):
    records = records_of(files)
    for record in records["regret"]:
        if record["model"] == "pmf":
            record["trusted"] = False
    cells = cells_by(headline(records), "model", "tuner")
    assert cells["pmf", "mamba-ksd"].shown == NOT_TRUSTED
    assert cells["logistic", "mamba-ksd"].value is not None


def marked(files):
    return [cell for row in headline(records_of(files)).rows for cell in row.cells if cell.best]


def test_no_mark_with_one_tuning_run_or_with_two_fresh_replicates():
    """With equal losses for all other tuners, MAMBA-KSD is ahead of them by far."""

    def with_a_winner(tunings, kept):
        files = make_files(4, tunings=tunings)
        for record in files["regret"].values():
            for chosen in record["chosen"]:
                chosen["arms"] = [0 if chosen["tuner"] == "mamba-ksd" else 1] * tunings
            for run in record["runs"]:
                run["diverged"] = [False] * kept
                noise = [0.99, 1.0, 1.01, 1.0][:kept]
                value = {0: 0.1, 1: 1.0}.get(run["arm"], 0.5)
                run["losses"] = {name: [value * factor for factor in noise] for name in run["losses"]}
        return files

    assert {cell.tuner for cell in marked(with_a_winner(2, 4))} == {"mamba-ksd"}
    assert not marked(with_a_winner(1, 4))
    assert not marked(with_a_winner(2, 2))


def test_a_mean_over_a_sampler_at_the_cap_is_a_lower_bound_without_an_error(files):
    records = records_of(files)
    for record in records["regret"]:
        # Not the arms that MAMBA-KSD chose: what is at the cap is no denominator.
        record["oracles"]["xi_white"] = record["random"][:1]
    for run in runs_of_mamba_ksd(records):
        run["losses"]["xi_white"][0] = 10
    cell = cells_by(headline(records), "model", "tuner")["logistic", "mamba-ksd"]
    assert cell.shown.startswith("≥ ")
    assert "±" not in cell.shown
    assert cell.se is None


def test_the_references_own_error_stands_under_it(files):
    assert "Monte Carlo error: ξ whitened × 10²: 1.40" in headline(records_of(files)).caption
