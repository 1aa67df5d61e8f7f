"""The numbers of the paper's tables, and the comparison with ours."""

import numpy as np
import pandas as pd
import pytest
from artifact_records import PUBLISHED, make_records, studied
from sgtune.study.report.layout import DASH

from sgtune.study.catalogue import TUNERS
from sgtune.study.report import TABLES


def test_published_numbers_are_the_papers():
    table = pd.read_csv(PUBLISHED)
    counts = {1: 48, 2: 36, 3: 36, 5: 56, 6: 120, 7: 42, 8: 72, 9: 42, 10: 72}
    assert table["table"].value_counts().to_dict() == {f"table{n}": count for n, count in counts.items()}
    keys = ["table", "model", "sampler", "tuner", "metric"]
    assert not table.duplicated(keys).any()
    assert table["value"].notna().all()
    values = table.set_index(keys)["value"]
    assert values["table1", "logistic", "sghmc", "heuristic", "ksd"] == 53_972
    assert values["table1", "logistic", "sghmc-cv", "heuristic", "relative_sd_error_x100"] == 3084.0
    assert values["table5", "logistic", "sgnht-cv", "grid", "log10_step_size"] == -4.5
    assert values["table5", "logistic", "sghmc", "mamba-fssd", "n_leapfrog"] == 5
    assert values["table6", "logistic", "sgld-cv", "grid-ksd", "n_samples"] == 66_136
    assert values["table2", "pmf", "sghmc-cv", "grid", "ksd"] == 4_289
    assert values["table3", "bnn", "sghmc", "heuristic", "mce_percent"] == 71.6
    assert values["table7", "pmf", "sghmc-cv", "mamba-ksd", "log10_step_size"] == -6
    assert values["table7", "pmf", "sgnht", "grid", "log10_step_size"] == -5.5
    assert values["table8", "pmf", "sghmc-cv", "mamba-ksd", "rmse"] == 1.10
    assert values["table9", "bnn", "sgnht-cv", "mamba-ksd", "log10_step_size"] == -7.5
    assert values["table10", "bnn", "sghmc-cv", "grid", "accuracy_percent"] == 82.9


@pytest.mark.parametrize(
    ("short", "long"), [("table1", "table6"), ("table2", "table8"), ("table3", "table10")]
)
def test_published_tables_repeat_each_other(short, long):
    table = pd.read_csv(PUBLISHED).set_index(["sampler", "tuner", "metric"])
    short = table[table["table"] == short]["value"]
    long = table[table["table"] == long]["value"].reindex(short.index)
    assert np.allclose(short, long, atol=0.041)  # one ECE is printed as 1.0 in the one and 1.04 in the other
    assert (short != long).sum() <= 1


def test_published_sgnht_of_the_network_is_of_the_smaller_grid():
    table = pd.read_csv(PUBLISHED)
    sgnht = table[(table["model"] == "bnn") & (table["sampler"] == "sgnht")]
    assert set(sgnht["tuner"]) == {"mamba-ksd-smaller", "grid-smaller", "heuristic"}
    others = table[(table["model"] != "bnn") | (table["sampler"] != "sgnht")]
    assert not others["tuner"].str.endswith("smaller").any()
    steps = sgnht[sgnht["metric"] == "log10_step_size"].set_index("tuner")["value"]
    assert steps["mamba-ksd-smaller"] == steps["grid-smaller"] == -5


@pytest.fixture(scope="module")
def compared():
    table = TABLES["published_comparison"](make_records(1))
    return {(c.model, c.sampler, c.tuner, c.metric, c.detail): c for row in table.rows for c in row.cells}


@pytest.mark.parametrize(
    ("whose", "metric", "paper"),
    [
        (("logistic", "sgld", "mamba-ksd"), "ksd", 66),
        (("logistic", "sgnht-cv", "grid-ksd"), "relative_sd_error_x100", 16.9),
        (("pmf", "sgld-cv", "grid"), "ksd", 546),
        (("pmf", "sghmc-cv", "mamba-ksd"), "rmse_as_published", 1.10),
        (("bnn", "sgld", "mamba-ksd"), "ece_percent", 1.04),
        (("bnn", "sgld", "mamba-ksd"), "ece_as_published_percent", 1.04),
        (("bnn", "sgnht", "grid-smaller"), "mce_as_published_percent", 42.2),
        (("bnn", "sghmc-cv", "grid"), "accuracy_percent", 82.9),
    ],
)
def test_comparison_has_the_papers_result_and_the_ratio_of_ours_to_it(compared, whose, metric, paper):
    ours, published, ratio = (compared[*whose, metric, detail] for detail in ("ours", "paper", "ratio"))
    assert published.value == paper
    assert ratio.value == pytest.approx(ours.value / paper)


def test_comparison_has_the_hyperparameters_and_no_ratio_of_them(compared):
    for whose, metric, paper in [
        (("logistic", "sgld", "mamba-ksd"), "log10_step_size", -6),
        (("pmf", "sghmc", "mamba-ksd"), "n_leapfrog", 5),
        (("bnn", "sgnht", "mamba-ksd-smaller"), "batch_percent", 1),
    ]:
        assert compared[*whose, metric, "paper"].value == paper
        assert compared[*whose, metric, "ratio"].shown == DASH


def test_comparison_shows_the_papers_tuners_and_what_diverged(compared):
    assert compared["logistic", "sghmc", "heuristic", "ksd", "ours"].shown == "diverged"
    assert compared["logistic", "sghmc", "heuristic", "ksd", "paper"].shown == "53,972"
    assert compared["logistic", "sghmc", "heuristic", "ksd", "ratio"].value is None
    assert compared["bnn", "sgnht", "mamba-ksd", "ece_percent", "paper"].shown == DASH
    shown = {(model, tuner) for model, _, tuner, *_ in compared}
    assert shown == {(m, t) for m, _, t in studied() if TUNERS[t].in_paper}
