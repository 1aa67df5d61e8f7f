"""The tables and figures of AdamMCMC's study, from small records."""

# ruff: noqa: RUF001 - tables print signs of mathematics

import pytest

from sgtune.study.adam_mcmc.acceptance_figure import adam_acceptance_curves
from sgtune.study.adam_mcmc.acceptance_table import adam_acceptance, adam_prolate
from sgtune.study.adam_mcmc.bias_table import VARIANTS as LABELS
from sgtune.study.adam_mcmc.bias_table import adam_bias
from sgtune.study.adam_mcmc.evaluation_table import adam_evaluation
from sgtune.study.adam_mcmc.races import judges_for
from sgtune.study.adam_mcmc.regret_table import adam_choices, adam_regret
from sgtune.study.adam_mcmc.theory_figures import VARIANTS, adam_bias_curves, adam_distances

ARM = {"step_size": 0.1, "batch_size": 1, "n_leapfrog": None}


def acceptance(dimension, *, with_noise):
    rates = {0: [0.2, 0.3], 1: with_noise}
    return {
        **{"target": f"gaussian-{dimension}", "dimension": dimension, "steps": 100, "warmup": 10},
        "cells": [
            {
                **{"drift_ratio": 0.1, "directional_noise": along, "scale": scale, "arm": ARM},
                **{"acceptance": rates[along], "time": [5.0, None if along else 5.0], "square": [0.5, 0.7]},
            }
            for along in (0, 1)
            for scale in (0.7, 1.4)
        ],
    }


@pytest.fixture
def records():
    return {
        "acceptance": [acceptance(1000, with_noise=[0.8, 0.6]), acceptance(10, with_noise=[0.25, 0.25])],
        "costs": [{"seconds_per_step": {"gaussian-10": 0.001, "gaussian-1000": 0.01}}],
    }


def test_gain_is_the_difference_with_its_standard_error(records):
    rows = adam_prolate(records).rows
    assert [row.labels[0] for row in rows] == ["N(0, I), D = 10", "N(0, I), D = 1,000"]
    gains = [row.cells[2] for row in rows]
    assert gains[0].text == "+0.000 ± 0.050"
    assert gains[1].value == pytest.approx(0.45)
    assert gains[1].se == pytest.approx((0.05**2 + 0.1**2) ** 0.5)


def test_ess_is_of_measured_seconds_and_none_where_a_chain_was_too_slow(records):
    small, large = adam_prolate(records).rows
    assert small.cells[5].value == pytest.approx(1 / (5 * 0.001))
    assert large.cells[5].value == pytest.approx(1 / (5 * 0.01))
    assert small.cells[6].shown == "too slow"


def test_acceptance_has_a_column_per_scale(records):
    table = adam_acceptance(records)
    assert [heading for _, heading in table.columns] == ["0.7", "1.4"]
    assert len(table.rows) == 4
    assert adam_acceptance_curves(records).axes


def test_bias_stands_beside_its_acceptance():
    assert {name: label for name, (label, *_) in VARIANTS.items()} == LABELS
    cells = [
        {"variant": variant, "dimension": 2, "ratio": ratio, "squares": [0.9, 1.1], "acceptance": [0.5, 0.7]}
        for variant in ("prolate", "exact")
        for ratio in (0.1, 1.0)
    ]
    found = {"bias": [{"scale": 0.7, "steps": 10, "warmup": 1, "chains": 2, "cells": cells}]}
    table = adam_bias(found)
    assert table.rows[0].labels == ("2", "s_d = 1", "E x²")
    assert table.rows[0].cells[0].value == pytest.approx(1.0)
    assert table.rows[1].cells[0].value == pytest.approx(0.6)
    assert adam_bias_curves(found).axes


def test_lines_of_distances_say_their_rates():
    fit = {"rate": 0.5, "constant": 1.0, "first": 1, "last": 3, "misfit": 0.0}
    lines = [{"name": "mala", "distances": [1.0, 0.5, 0.25], "fit": fit}]
    lines += [{"name": "adam-mcmc", "distances": [1.0, 0.9, 0.9], "fit": None}]
    figure = adam_distances({"distances": [{"floor": 0.01, "lines": lines}]})
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert texts == ["MALA: 0.500 a step", "AdamMCMC, γ / s = 0.1", "exact draws"]


def race(judge, replicate, step_size):
    best = {"step_size": step_size, "batch_size": 10, "n_leapfrog": None}
    return {"judge": judge, "replicate": replicate, "best": best, "n_arms": 2, "reason": ""}


def races():
    losses = {0: [0.1, 0.1, 0.1], 1: [0.2, 0.22, 0.18]}
    return {
        **{"model": "logistic", "sampler": "mala", "n_data": 100, "seconds": 1.0, "trusted": True},
        "races": [race("mamba", 0, 1e-5), race("acceptance", 0, 1e-4)],
        "regret": {
            "losses": ["relative_sd_error"],
            "arms": [{"step_size": 1e-5}, {"step_size": 1e-4}],
            "finalists": {"relative_sd_error": [0, 1]},
            "chosen": [{"tuner": "mamba", "arms": [0]}, {"tuner": "acceptance", "arms": [1]}],
            "oracles": {"relative_sd_error": [0]},
            "random": [1],
            "frozen": {"relative_sd_error": 1.0},
            "runs": [
                {"arm": arm, "seconds": 2.0, "steps": 5, "diverged": [False] * 3}
                | {"losses": {"relative_sd_error": values}}
                for arm, values in losses.items()
            ],
        },
    }


def test_regret_is_over_the_best_finalist():
    table = adam_regret({"races": [races()]})
    values = {row.labels[1]: row.cells[0].value for row in table.rows}
    assert values["Best finalist: ξ × 10²"] == pytest.approx(10.0)
    assert (values["MAMBA"], values["Acceptance"]) == (pytest.approx(1.0), pytest.approx(2.0))
    assert values["Frozen chain"] == pytest.approx(10.0)
    assert "not to be trusted" not in table.caption
    chosen = adam_choices({"races": [races()]}).rows
    assert chosen[0].cells[0].text == "h=1e-05 n=10"


def test_samplers_stand_beside_the_map():
    rows = [
        {"replicate": i, "n_samples": 100, "accuracy": 0.9 + 0.01 * i, "log_loss": 0.3, "ksd": 2.0}
        for i in range(3)
    ]
    record = {
        **{"model": "bnn", "sampler": "adam-mcmc", "tuner": "mamba", "best": {"step_size": 0.1}},
        **{"arms": [{"step_size": 0.1}], "table": rows, "seconds": 5.0, "race_seconds": 1.0},
        "map": {"accuracy": 0.8},
    }
    table = adam_evaluation({"evaluations": [record]})
    (own, mode), place = table.rows, [heading for _, heading in table.columns].index("Pred. acc. (%)")
    assert own.labels[1] == "AdamMCMC"
    assert own.cells[place].value == pytest.approx(91.0)
    assert mode.cells[place].value == pytest.approx(80.0)


def test_acceptance_judges_where_the_step_size_alone_is_tuned():
    names = ["mamba", "acceptance"]
    assert judges_for("mala", names) == judges_for("hmc", names) == names
    assert judges_for("adam-mcmc", names) == ["mamba"]
