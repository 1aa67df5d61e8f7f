"""Evaluation runs: burn-in, the entries of a row, and the draws that tables and curves share."""

import re

import numpy as np
import pytest
from predictive_models import random_draws, small_network, small_pmf
from small_models import gaussian_model, small_logistic_model

from sgtune import CostTable, metrics
from sgtune.mode.curvature import laplace_scale
from sgtune.model.posterior import scores
from sgtune.sampling.arm import Arm
from sgtune.sampling.chain import Chain
from sgtune.stein import ksd
from sgtune.study.experiments import evaluation
from sgtune.study.experiments.evaluation import EvaluationSettings, evaluate_run
from sgtune.study.experiments.per_sampler import evaluation_settings
from sgtune.support.errors import InputError
from sgtune.support.files import read_json, write_json

SETTINGS = {
    "seconds": 0.1,
    "thin": 2,
    "ksd_points": 15,
    "burn_in": 0.2,
    "kept_draws": 60,
    "prediction_draws": 10,
    "curve_seconds": [0.02, 0.05],
    "curve_points": 0,
    "curve_prediction_draws": 0,
}
ALWAYS = {"replicate", "seconds", "wall_seconds", "n_samples", "n_burn_in", "n_points"}
STEIN = {name + part for name in ("ksd", "ksd_scaled") for part in ("", "_se", "_squared", "_floor")}
ERRORS = {"relative_sd_error", "xi_rel", "xi_white", "functional_error"}
# Where nothing asks for them.
LEFT_OUT = {"ksd", "ksd_scaled", "relative_sd_error"}
RATINGS = {"rmse", "rmse_published"}
CLASSES = {"accuracy", "log_loss", "brier", "ece", "mce", "ece_published", "mce_published"}


def reference_of(model, sd=1.0):
    return metrics.Reference(np.broadcast_to(sd, model.dimension))


def run(model, arm, replicate=0, *, has_table=True, has_curve=True, reference=None, cost=None, **changes):
    settings = EvaluationSettings(**SETTINGS | changes)
    parts = {"has_table": has_table, "has_curve": has_curve}
    return evaluate_run(
        model, "sgld", arm, replicate, settings=settings, reference=reference, cost=cost, **parts
    )


def written(path, record):
    """The row as in its JSON file, where values that are not finite are null."""
    write_json(path, record)
    return read_json(path)


def test_a_matrix_factorisation_against_its_reference(tmp_path, by_steps):
    by_steps(2e-3)
    model = small_pmf()
    reference = reference_of(model, np.linspace(0.1, 0.3, model.dimension))
    changes = {"seconds": 0.4, "curve_seconds": [0.2, 0.3]}
    for replicate in (0, 1):
        record = run(model, Arm(1e-3, 50), replicate, reference=reference, **changes)
        record = written(tmp_path / "record.json", record)
        assert record["arm"] == {"step_size": 1e-3, "batch_size": 50, "n_leapfrog": None}
        row = record["table"]
        assert record["replicate"] == row["replicate"] == replicate
        assert row["seconds"] == 0.4 <= row["wall_seconds"]
        assert row.keys() == ALWAYS | STEIN | ERRORS | RATINGS | {"diverged", "relative_sd_error_by_block"}
        assert row["relative_sd_error_by_block"].keys() == model.position_shape.keys()
        assert 0 < min(row["relative_sd_error_by_block"].values()) <= row["relative_sd_error"]
        assert row["relative_sd_error"] <= max(row["relative_sd_error_by_block"].values())
        # The published number is a mean squared error of single draws, so at least the error of their mean.
        assert row["rmse_published"] > row["rmse"] ** 2 > 0
        assert row["ksd"] > 0
        assert row["ksd_scaled"] > 0
        assert 1 <= row["n_points"] <= 15
        assert row["n_burn_in"] > 0
        assert row["diverged"] is False
        assert row["n_samples"] == pytest.approx(200, abs=1)
        for row, seconds in zip(record["curves"], changes["curve_seconds"], strict=True):
            assert row.keys() == ALWAYS | LEFT_OUT
            assert (row["replicate"], row["seconds"]) == (replicate, seconds)
            assert row["wall_seconds"] == record["table"]["wall_seconds"], "it is the same run"
            assert (row["ksd"], row["ksd_scaled"], row["n_points"]) == (None, None, 0)
            assert row["relative_sd_error"] is None
        made = [row["n_samples"] for row in (*record["curves"], record["table"])]
        assert 0 < made[0] < made[1] < made[2]


def test_a_network_without_reference_and_without_ksd(tmp_path, monkeypatch):
    """No score is computed if no KSD is requested."""

    def scores(*arguments):
        raise AssertionError("scores are not needed")

    monkeypatch.setattr(evaluation, "scores", scores)
    model = small_network()
    changes = {"ksd_points": 0, "curve_prediction_draws": 5}
    record = written(tmp_path / "record.json", run(model, Arm(1e-5, 50), **changes))
    row = record["table"]
    assert row.keys() == ALWAYS | LEFT_OUT | CLASSES | {"diverged", "ood"}
    assert (row["relative_sd_error"], row["ksd"], row["ksd_scaled"], row["n_points"]) == (None, None, None, 0)
    assert row["accuracy"] > 0.5
    assert 0 <= row["ece"] <= row["mce"] <= 1
    assert row["ood"]["auroc"] > 0.5
    assert row["ood"]["entropy_ood"] > row["ood"]["entropy_test"] > 0
    for row in record["curves"]:
        assert row.keys() == ALWAYS | LEFT_OUT | CLASSES
        assert row["relative_sd_error"] is None


@pytest.mark.parametrize("make", [small_pmf, small_network])
def test_a_chain_that_diverges_has_no_numbers(tmp_path, make):
    model = make()
    record = run(model, Arm(1e6, 50), reference=reference_of(model), curve_points=5)
    record = written(tmp_path / "record.json", record)
    assert record["table"]["xi_rel"] is None
    for row in [record["table"], *record["curves"]]:
        names = {"ksd", "ksd_scaled", "relative_sd_error"} | (row.keys() & (RATINGS | CLASSES))
        assert {name: row[name] for name in names} == dict.fromkeys(names)
    assert record["table"]["diverged"]


def ramp(model, n=40, stride=3):
    """A chain of random draws, one call of 0.1 s each."""
    draws = random_draws(model, n, sd=0.5)
    clock = [(0.1 * (i + 1), stride * (i + 1)) for i in range(n)]
    return Chain(model, Arm(1e-3, 10), draws, stride, stride * n, 0.1 * n, False, clock)


@pytest.mark.parametrize(("burn_in", "dropped"), [(0.0, 0), (0.25, 10), (0.99, 39)])
def test_burn_in_is_the_first_part_of_a_run_and_nothing_else(monkeypatch, burn_in, dropped):
    """Rows use only draws after the burn-in, and at a checkpoint only draws up to then."""
    model = small_pmf()
    chain = ramp(model)
    monkeypatch.setattr(evaluation, "sample", lambda *arguments, **options: chain)
    options = {"ksd_points": 100, "prediction_draws": 4, "reference": reference_of(model)}
    changes = {"burn_in": burn_in, "curve_seconds": [0.21, 2.01], "seconds": 12, "thin": 6}
    changes |= {"curve_points": 100, "curve_prediction_draws": 4, **options}

    def wanted(draws):
        # Every sixth sample is every second kept draw.
        return evaluation.judge_draws(model, draws, thin=2, **options)

    record = run(model, chain.arm, **changes)
    row = record["table"]
    assert (row["n_burn_in"], row["n_samples"]) == (3 * dropped, 120)
    whole = wanted(chain.draws[dropped:])
    assert whole == {name: row[name] for name in whole}
    options["reference"] = None
    for row, n_kept in zip(record["curves"], (2, 20), strict=True):
        assert row["n_samples"] == 3 * n_kept
        part = wanted(chain.draws[int(burn_in * n_kept) : n_kept])
        assert part == {name: row[name] for name in part}


def test_what_judges_the_draws(monkeypatch):
    """xi uses all draws, the KSD a random subset of every thin-th, predictions evenly spaced draws with the last."""
    model = small_pmf()
    draws = random_draws(model, 40)
    scored = []
    monkeypatch.setattr(evaluation, "scores", lambda model, points, chunk: scored.append(points) or -points)
    options = {"thin": 4, "prediction_draws": 4, "reference": reference_of(model)}
    seen = set()
    for stream in range(20):
        row = evaluation.judge_draws(model, draws, ksd_points=5, stream=(0, stream), **options)
        (points,) = scored
        places = [int(np.flatnonzero((draws == point).all(axis=1))[0]) for point in points]
        assert places == sorted(set(places)), "each at most once, in their order"
        assert set(places) <= set(range(3, 40, 4))
        assert row["n_points"] == len(points) == 5
        seen.add(tuple(places))
        scored.clear()
    assert len(seen) > 10
    sd = draws.astype(np.float64).std(axis=0)
    assert row["relative_sd_error"] == pytest.approx(np.linalg.norm(sd - 1) / np.sqrt(model.dimension))
    predicted = metrics.predictive_metrics(model, draws[[9, 19, 29, 39]])
    assert predicted == {name: row[name] for name in RATINGS}


def test_a_checkpoint_before_the_first_step_has_no_numbers(monkeypatch):
    model = small_pmf()
    chain = ramp(model)
    monkeypatch.setattr(evaluation, "sample", lambda *arguments, **options: chain)
    changes = {"curve_seconds": [0.05], "curve_points": 5, "curve_prediction_draws": 3}
    (row,) = run(model, chain.arm, **changes)["curves"]
    assert (row["n_samples"], row["n_points"], row["ksd"]) == (0, 0, np.inf)
    assert (row["ksd_se"], row["ksd_floor"]) == (None, None)
    assert np.isnan(row["rmse"])


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("burn_in", 1.0, ">= 0 and < 1"),
        ("burn_in", -0.1, ">= 0"),
        ("prediction_draws", -1, ">= 0"),
        ("curve_seconds", [0.05, 0.02], "up to seconds = 0.1"),
        ("curve_seconds", [0.05, 0.2], "up to seconds = 0.1"),
    ],
)
def test_settings_out_of_range_get_one_line(name, value, allowed):
    with pytest.raises(InputError, match=rf"^{name}: {re.escape(str(value))}.*{allowed}$"):
        EvaluationSettings(**SETTINGS | {name: value})


def test_the_section_evaluation_says_how_runs_are_judged():
    names = {"seconds", "burn_in", "kept_draws", "prediction_draws", "thin", "ksd_points"}
    curves = {"seconds": [0.02, 0.05], "replicates": 1, "ksd_points": 0, "prediction_draws": 0}
    section = {name: SETTINGS[name] for name in names} | {"replicates": 2, "curves": curves, "clock": "wall"}
    assert evaluation_settings(section) == EvaluationSettings(**SETTINGS)


@pytest.mark.parametrize(("seconds_per_step", "table", "curve"), [(1e-3, 100, [20, 50]), (1.0, 10, [0, 0])])
def test_by_a_cost_table_a_run_is_the_same_every_time(seconds_per_step, table, curve):
    """Steps are what the budget buys, at least ten. All but measured seconds repeat bit for bit; replicates differ."""
    model, cost = small_pmf(), CostTable({("sgld", 50, None): seconds_per_step})
    options = {"reference": reference_of(model), "cost": cost, "curve_points": 5}

    def record(replicate):
        made = run(model, Arm(1e-3, 50), replicate, **options)
        assert all(row.pop("wall_seconds") > 0 for row in (made["table"], *made["curves"]))
        return made

    first, other = record(0), record(1)
    rows = [first["table"], *first["curves"]]
    assert [row["n_samples"] for row in rows] == [table, *curve]
    assert [row["seconds"] for row in rows] == [0.1, 0.02, 0.05]
    assert record(0) == first
    assert other["table"]["relative_sd_error"] != first["table"]["relative_sd_error"]


def test_a_curve_is_the_first_seconds_of_the_run_behind_the_table():
    """A curve does not depend on later parts of the run or on checkpoints; its last row equals the table's row."""
    model, cost = small_pmf(), CostTable({("sgld", 50, None): 1e-3})
    options = {"reference": reference_of(model), "cost": cost, "ksd_points": 5, "curve_points": 5}
    options["kept_draws"] = 100
    changes = {"curve_seconds": [0.02, 0.05, 0.1], "curve_prediction_draws": SETTINGS["prediction_draws"]}
    whole = run(model, Arm(1e-3, 50), **options, **changes)

    def numbers(row):
        left_out = {"wall_seconds", "diverged", "relative_sd_error_by_block"} | ERRORS
        return {name: value for name, value in row.items() if name not in left_out}

    assert numbers(whole["curves"][-1]) == numbers(whole["table"])
    short = run(model, Arm(1e-3, 50), has_table=False, **options, **changes | {"curve_seconds": [0.02, 0.05]})
    assert short["table"] is None
    assert [numbers(row) for row in short["curves"]] == [numbers(row) for row in whole["curves"][:2]]
    alone = run(model, Arm(1e-3, 50), has_curve=False, **options, **changes)
    assert alone["curves"] == []
    assert numbers(alone["table"]) == numbers(whole["table"])


def test_the_two_discrepancies_of_a_row_differ_by_the_scale_alone():
    model = small_classifier()
    draws = random_draws(model, 40, sd=0.3)
    row = evaluation.judge_draws(model, draws, thin=2, ksd_points=20, prediction_draws=0)
    points = draws[1::2]
    gradients = scores(model, points)
    assert row["ksd"] == pytest.approx(ksd(points, gradients))
    assert row["ksd_scaled"] == pytest.approx(ksd(points, gradients, scale=laplace_scale(model)))
    assert row["ksd_scaled"] != pytest.approx(row["ksd"], rel=0.1)


def test_the_floor_is_what_exact_draws_have():
    """Exact draws of a Gaussian posterior, as many as in the run, in raw and in scaled coordinates."""
    precision = np.diag([400.0, 25.0, 1.0]) + 0.5
    model = gaussian_model(precision, np.zeros(3))
    rng, factor = np.random.default_rng(0), np.linalg.cholesky(np.linalg.inv(precision))
    squares, floors = {"ksd": [], "ksd_scaled": []}, {}
    for _ in range(200):
        draws = (rng.standard_normal((60, 3)) @ factor.T).astype(np.float32)
        (row,) = evaluation.stein_metrics(model, [draws], at_most=[100], streams=[(0,)])
        for name, values in squares.items():
            values.append(row[f"{name}_squared"])
            floors[name] = row[f"{name}_floor"]
    for name, values in squares.items():
        error = np.std(values) / np.sqrt(len(values))
        assert abs(np.mean(values) - floors[name] ** 2) < 4 * error
        assert error < 0.2 * floors[name] ** 2


def small_classifier():
    return small_logistic_model(n_data=500)
