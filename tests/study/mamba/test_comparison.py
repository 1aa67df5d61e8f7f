"""The numbers of the paper's tables, the comparison with ours, and that of the two clocks."""

import math

import numpy as np
import pandas as pd
import pytest
from artifact_records import (
    MODELS,
    PUBLISHED,
    SAMPLERS,
    cells_by,
    make,
    make_files,
    make_records,
    records_of,
    tuners_of,
)

from sgtune.study.catalogue import TUNERS


def test_published_numbers_are_the_papers():
    table = pd.read_csv(PUBLISHED)
    counts = {1: 48, 2: 36, 3: 36, 5: 56, 6: 120, 7: 42, 8: 72, 9: 42, 10: 72}
    assert table["table"].value_counts().to_dict() == {f"table{n}": count for n, count in counts.items()}
    keys = ["table", "model", "sampler", "tuner", "metric"]
    assert not table.duplicated(keys).any()
    assert table["value"].notna().all()
    values = table.set_index(keys)["value"]
    assert values["table1", "logistic", "sghmc", "heuristic", "ksd"] == 53_972
    assert values["table5", "logistic", "sgnht-cv", "grid", "log10_step_size"] == -4.5
    assert values["table8", "pmf", "sghmc-cv", "mamba-ksd", "rmse"] == 1.10
    assert values["table10", "bnn", "sghmc-cv", "grid", "accuracy_percent"] == 82.9
    # The network's SGNHT is of the smaller grid.
    sgnht = table[(table["model"] == "bnn") & (table["sampler"] == "sgnht")]
    assert set(sgnht["tuner"]) == {"mamba-ksd-smaller", "grid-smaller", "heuristic"}


@pytest.mark.parametrize(
    ("short", "long"), [("table1", "table6"), ("table2", "table8"), ("table3", "table10")]
)
def test_published_tables_repeat_each_other(short, long):
    table = pd.read_csv(PUBLISHED).set_index(["sampler", "tuner", "metric"])
    short = table[table["table"] == short]["value"]
    long = table[table["table"] == long]["value"].reindex(short.index)
    assert np.allclose(short, long, atol=0.041)  # one ECE is printed as 1.0 in the one and 1.04 in the other
    assert (short != long).sum() <= 1


@pytest.fixture(scope="module")
def compared():
    found = make("published_comparison", make_records(1))
    return cells_by(found, "model", "sampler", "tuner", "metric", "detail")


@pytest.mark.parametrize(
    ("whose", "metric", "paper"),
    [
        (("logistic", "sgld", "mamba-ksd"), "ksd", 66),
        (("logistic", "sgnht-cv", "grid-ksd"), "relative_sd_error_x100", 16.9),
        (("pmf", "sghmc-cv", "mamba-ksd"), "rmse_as_published", 1.10),
        (("bnn", "sgld", "mamba-ksd"), "ece_percent", 1.04),
        (("bnn", "sgld", "mamba-ksd"), "ece_as_published_percent", 1.04),
        (("bnn", "sgnht", "grid-smaller"), "mce_as_published_percent", 42.2),
    ],
)
def test_comparison_has_the_papers_result_and_the_ratio_of_ours_to_it(compared, whose, metric, paper):
    ours, published, ratio = (compared[*whose, metric, detail] for detail in ("ours", "paper", "ratio"))
    assert published.value == paper
    assert ratio.value == pytest.approx(ours.value / paper)


def test_an_upper_end_is_compared_as_one():
    files = make_files(3, ("logistic",))
    for run in files["evaluation"]["logistic/sgld"]["runs"]:
        run["table"]["ksd_squared"] = (-1) ** run["replicate"] * 100.0
    cells = cells_by(make("published_comparison", records_of(files)), "sampler", "tuner", "metric", "detail")
    ours, ratio = (cells["sgld", "mamba-ksd", "ksd", detail] for detail in ("ours", "ratio"))
    assert ratio.value is None
    assert ratio.upper == pytest.approx(ours.upper / 66)


def test_comparison_has_the_hyperparameters_and_no_ratio_of_them(compared):
    for whose, metric, paper in [
        (("logistic", "sgld", "mamba-ksd"), "log10_step_size", -6),
        (("pmf", "sghmc", "mamba-ksd"), "n_leapfrog", 5),
        (("bnn", "sgnht", "mamba-ksd-smaller"), "batch_percent", 1),
    ]:
        assert compared[*whose, metric, "paper"].value == paper
        assert (*whose, metric, "ratio") not in compared


def test_comparison_shows_the_papers_tuners_and_what_diverged(compared):
    assert compared["logistic", "sghmc", "heuristic", "ksd", "ours"].shown == "diverged"
    assert compared["logistic", "sghmc", "heuristic", "ksd", "paper"].shown == "53,972"
    assert ("logistic", "sghmc", "heuristic", "ksd", "ratio") not in compared
    assert ("bnn", "sgnht", "mamba-ksd", "ece_percent", "paper") not in compared
    shown = {(model, tuner) for model, _, tuner, *_ in compared}
    run = {(m, tuner) for m in MODELS for s in SAMPLERS for tuner in tuners_of(m, s)}
    assert shown == {(m, tuner) for m, tuner in run if TUNERS[tuner].in_paper}


def test_the_two_clocks_are_compared_by_hand():
    files = make_files(1, ("pmf", "bnn"))
    held = files["clocks"]["pmf"]
    for clock, factor in (("calibrated", 1), ("wall", 2)):
        for i, row in enumerate(held[clock]):
            row |= {"n_samples": 1000 * factor, "functional_error": 0.1 * factor * (i + 1)}
            row |= {"wall_seconds": 9.0 + i}
    held["wall"][2]["diverged"] = True
    found = make("clocks", records_of(files))
    shown = {(cell.metric, cell.detail): cell.shown for cell in found if cell.model == "pmf"}
    assert shown["budget_seconds", "wall"] == "10.0 (2/3)"
    assert shown["wall_seconds", "calibrated"] == "10.0 ± 1.0"
    assert shown["wall_seconds", "wall"] == "9.50 ± 0.71 (2/3)"
    assert not {("budget_seconds", "wall_over_calibrated"), ("wall_seconds", "wall_over_calibrated")} & set(
        shown
    )
    assert shown["n_samples", "wall_over_calibrated"] == "2.00 ± 0.00"
    # 0.2 ± 0.1/√3 and 0.3 ± 0.1.
    se = 1.5 * math.hypot(0.5 / math.sqrt(3), 1 / 3)
    assert shown["functional_error", "calibrated"] == "0.200 ± 0.100"
    assert shown["functional_error", "wall_over_calibrated"] == f"1.50 ± {se:.2f}"
    metrics = dict.fromkeys(cell.metric for cell in found if cell.model == "bnn")
    assert list(metrics) == ["budget_seconds", "wall_seconds", "n_samples", "log_loss", "brier"]
