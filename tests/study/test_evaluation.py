"""Evaluation runs and sweeps: what is dropped, and what stands in a row."""

import numpy as np
import pytest
from predictive_models import random_draws, small_network, small_pmf
from small_models import small_logistic_model

from sgtune import CostTable, metrics
from sgtune.errors import InputError
from sgtune.files import read_json, write_json
from sgtune.mode.curvature import laplace_scale
from sgtune.posterior import scores
from sgtune.sampling import lockstep
from sgtune.sampling.arm import Arm
from sgtune.sampling.chain import Chain
from sgtune.sampling.lockstep import Lockstep
from sgtune.stein import ksd
from sgtune.study import evaluation
from sgtune.study.evaluation import EvaluationSettings, evaluate_replicate
from sgtune.study.per_sampler import evaluation_settings

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
ALWAYS = {"replicate", "seconds", "wall_seconds", "n_samples", "n_points", "ksd", "ksd_scaled"} | {
    "relative_sd_error"
}
TABLE = ALWAYS | {"n_burn_in", "diverged"}
RATINGS = {"rmse", "rmse_published"}
CLASSES = {"accuracy", "log_loss", "brier", "ece", "mce", "ece_published", "mce_published"}


def run(model, arm, part, replicate=0, *, reference_sd=None, cost=None, **changes):
    settings = EvaluationSettings(**SETTINGS | changes)
    return evaluate_replicate(
        model, "sgld", arm, part, replicate, settings=settings, reference_sd=reference_sd, cost=cost
    )


def written(path, record):
    """As a reader of the file sees it: what is not finite is null."""
    write_json(path, record)
    return read_json(path)


def test_a_matrix_factorisation_against_its_reference(tmp_path):
    model = small_pmf()
    reference = np.linspace(0.1, 0.3, model.dimension)
    for replicate in (0, 1):
        (row,) = written(
            tmp_path / "record.json", run(model, Arm(1e-3, 50), "table", replicate, reference_sd=reference)
        )
        assert row["replicate"] == replicate
        assert row["seconds"] == row["wall_seconds"] >= 0.1
        assert row.keys() == TABLE | RATINGS | {"relative_sd_error_by_block"}
        assert row["relative_sd_error_by_block"].keys() == model.position_shape.keys()
        assert 0 < min(row["relative_sd_error_by_block"].values()) <= row["relative_sd_error"]
        assert row["relative_sd_error"] <= max(row["relative_sd_error_by_block"].values())
        # The published one is a mean squared error, of single draws: never below that of the mean.
        assert row["rmse_published"] > row["rmse"] ** 2 > 0
        assert row["ksd"] > 0
        assert row["ksd_scaled"] > 0
        assert 1 <= row["n_points"] <= 15
        assert row["n_burn_in"] > 0
        assert row["diverged"] is False
        assert row["n_samples"] > 60
    rows = run(model, Arm(1e-3, 50), "curve", 1, reference_sd=reference)
    for row, seconds in zip(rows, SETTINGS["curve_seconds"], strict=True):
        assert row.keys() == ALWAYS
        assert (row["replicate"], row["seconds"]) == (1, seconds)
        assert row["wall_seconds"] >= 0.05
        assert (row["ksd"], row["ksd_scaled"], row["n_points"]) == (None, None, 0)
        assert row["relative_sd_error"] > 0
    assert 0 < rows[0]["n_samples"] < rows[1]["n_samples"]


def test_a_network_without_reference_and_without_ksd(tmp_path, monkeypatch):
    """Nothing computes a score where no KSD is asked for."""

    def scores(*arguments):
        raise AssertionError("scores are not needed")

    monkeypatch.setattr(evaluation, "scores", scores)
    model = small_network()
    changes = {"ksd_points": 0, "curve_prediction_draws": 5}
    (row,) = written(tmp_path / "record.json", run(model, Arm(1e-5, 50), "table", **changes))
    assert row.keys() == TABLE | CLASSES | {"ood"}
    assert (row["relative_sd_error"], row["ksd"], row["ksd_scaled"], row["n_points"]) == (None, None, None, 0)
    assert row["accuracy"] > 0.5
    assert 0 <= row["ece"] <= row["mce"] <= 1
    assert row["ood"]["auroc"] > 0.5
    assert row["ood"]["entropy_ood"] > row["ood"]["entropy_test"] > 0
    for row in run(model, Arm(1e-5, 50), "curve", **changes):
        assert row.keys() == ALWAYS | CLASSES
        assert row["relative_sd_error"] is None


@pytest.mark.parametrize("make", [small_pmf, small_network])
def test_a_chain_that_diverges_has_no_numbers(tmp_path, make):
    model = make()
    options = {"reference_sd": np.ones(model.dimension), "curve_points": 5}
    rows = {part: run(model, Arm(1e6, 50), part, **options) for part in ("table", "curve")}
    record = written(tmp_path / "record.json", rows)
    for row in [*record["table"], *record["curve"]]:
        names = {"ksd", "ksd_scaled", "relative_sd_error"} | (row.keys() & (RATINGS | CLASSES))
        assert {name: row[name] for name in names} == dict.fromkeys(names)
    assert record["table"][0]["diverged"]


def ramp(model, n=40, stride=3):
    """A chain of random draws, one call of 0.1 s each."""
    draws = random_draws(model, n, sd=0.5)
    clock = [(0.1 * (i + 1), stride * (i + 1)) for i in range(n)]
    return Chain(model, Arm(1e-3, 10), draws, stride, stride * n, 0.1 * n, False, clock)


@pytest.mark.parametrize(("burn_in", "dropped"), [(0.0, 0), (0.25, 10), (0.99, 39)])
def test_burn_in_is_the_first_part_of_a_run_and_nothing_else(monkeypatch, burn_in, dropped):
    """The rows are those of the rest alone; at a checkpoint, of the rest of what was made until then."""
    model = small_pmf()
    chain = ramp(model)
    monkeypatch.setattr(evaluation, "sample", lambda *arguments, **options: chain)
    options = {"ksd_points": 7, "prediction_draws": 4, "reference_sd": np.ones(model.dimension)}
    changes = {"burn_in": burn_in, "curve_seconds": [0.21, 2.01], "thin": 6, "curve_points": 7}
    changes |= {"curve_prediction_draws": 4, **options}

    def wanted(draws):
        # Every sixth sample is every second kept draw.
        return evaluation.judge_draws(model, draws, thin=2, **options)

    (row,) = run(model, chain.arm, "table", **changes)
    assert (row["n_burn_in"], row["n_samples"]) == (3 * dropped, 120)
    whole = wanted(chain.draws[dropped:])
    assert whole == {name: row[name] for name in whole}
    for row, n_kept in zip(run(model, chain.arm, "curve", **changes), (2, 20), strict=True):
        assert row["n_samples"] == 3 * n_kept
        part = wanted(chain.draws[int(burn_in * n_kept) : n_kept])
        assert part == {name: row[name] for name in part}


def test_what_judges_the_draws(monkeypatch):
    """xi: all; the KSD: every thin-th; predictions: so many, evenly spaced, with the last."""
    model = small_pmf()
    draws = random_draws(model, 40)
    scored = []
    monkeypatch.setattr(evaluation, "scores", lambda model, points: scored.append(points) or -points)
    row = evaluation.judge_draws(
        model, draws, thin=4, ksd_points=5, prediction_draws=4, reference_sd=np.ones(model.dimension)
    )
    np.testing.assert_array_equal(scored, draws[[7, 15, 23, 31, 39]][None])
    sd = draws.astype(np.float64).std(axis=0)
    assert row["relative_sd_error"] == pytest.approx(np.linalg.norm(sd - 1) / np.sqrt(model.dimension))
    predicted = metrics.predictive_metrics(model, draws[[9, 19, 29, 39]])
    assert predicted == {name: row[name] for name in RATINGS}


def test_a_checkpoint_before_the_first_step_has_no_numbers(monkeypatch):
    model = small_pmf()
    chain = ramp(model)
    monkeypatch.setattr(evaluation, "sample", lambda *arguments, **options: chain)
    changes = {"curve_seconds": [0.05], "curve_points": 5, "curve_prediction_draws": 3}
    (row,) = run(model, chain.arm, "curve", **changes)
    assert (row["n_samples"], row["n_points"], row["ksd"]) == (0, 0, np.inf)
    assert np.isnan(row["rmse"])


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [("burn_in", 1.0, ">= 0 and < 1"), ("burn_in", -0.1, ">= 0"), ("prediction_draws", -1, ">= 0")],
)
def test_settings_out_of_range_get_one_line(name, value, allowed):
    with pytest.raises(InputError, match=f"^{name}: {value}.*{allowed}$"):
        EvaluationSettings(**SETTINGS | {name: value})


def test_the_section_evaluation_says_how_runs_are_judged():
    names = {"seconds", "burn_in", "kept_draws", "prediction_draws", "thin", "ksd_points"}
    curves = {"seconds": [0.02, 0.05], "replicates": 1, "ksd_points": 0, "prediction_draws": 0}
    section = {name: SETTINGS[name] for name in names} | {"replicates": 2, "curves": curves}
    assert evaluation_settings(section) == EvaluationSettings(**SETTINGS)


def test_there_is_no_third_part():
    with pytest.raises(InputError, match=r"^part: 'tabel' .*did you mean 'table'.*curve, table$"):
        run(small_pmf(), Arm(1e-3, 50), "tabel")


@pytest.mark.parametrize(("seconds_per_step", "table", "curve"), [(1e-3, 100, [20, 50]), (1.0, 10, [0, 10])])
def test_by_a_cost_table_a_run_is_the_same_every_time(seconds_per_step, table, curve):
    """As many steps as the budget buys, or ten; all but the clock's seconds bit for bit; another for each replicate."""
    model, cost = small_pmf(), CostTable({("sgld", 50, None): seconds_per_step})
    options = {"reference_sd": np.ones(model.dimension), "cost": cost, "curve_points": 5}

    def rows(replicate):
        made = [*run(model, Arm(1e-3, 50), "table", replicate, **options)]
        made += run(model, Arm(1e-3, 50), "curve", replicate, **options)
        assert all(row.pop("wall_seconds") > 0 for row in made)
        return made

    first, other = rows(0), rows(1)
    assert [row["n_samples"] for row in first] == [table, *curve]
    assert [row["seconds"] for row in first] == [0.1, 0.02, 0.05]
    assert rows(0) == first
    # Table and curve are chains of their own, too.
    errors = {row["relative_sd_error"] for row in first + other if row["n_samples"]}
    assert len(errors) == sum(row["n_samples"] > 0 for row in first + other)


def test_the_two_discrepancies_of_a_row_differ_by_the_scale_alone():
    model = small_classifier()
    draws = random_draws(model, 40, sd=0.3)
    row = evaluation.judge_draws(model, draws, thin=2, ksd_points=20, prediction_draws=0)
    points = draws[1::2]
    gradients = scores(model, points)
    assert row["ksd"] == pytest.approx(ksd(points, gradients))
    assert row["ksd_scaled"] == pytest.approx(ksd(points, gradients, scale=laplace_scale(model)))
    assert row["ksd_scaled"] != pytest.approx(row["ksd"], rel=0.1)


GRID = {"log10_step_sizes": [-3, -4, 6], "batch_fractions": [0.5, 0.1]}
EXTRA = [Arm(2e-4, 50)]


def sweep(model, n_steps, **options):
    sizes = {int(fraction * model.n_data) for fraction in GRID["batch_fractions"]} | {50}
    cost = CostTable({("sgld", size, None): 1.0 / n_steps for size in sizes})
    return evaluation.sweep_arms(
        model, "sgld", grid=GRID, extra=EXTRA, seconds=1.0 + 1e-9, cost=cost, **options
    )


def small_classifier():
    return small_logistic_model(n_data=500)


@pytest.mark.parametrize("make", [small_pmf, small_network, small_classifier])
def test_a_sweep_with_and_without_reference(make, monkeypatch):
    """The predictions are the same; xi is that of all draws; an arm that diverges has no numbers."""
    # So that the ends of programs and the draws that predict do not fall together.
    monkeypatch.setattr(lockstep, "CHUNK_DRAWS", 10)
    model = make()
    reference = np.full(model.dimension, 0.2)
    plain = sweep(model, 90, prediction_draws=7)
    both = sweep(model, 90, prediction_draws=7, reference_sd=reference)
    names = metrics.predictive_names(model)
    for row, other in zip(plain, both, strict=True):
        assert row.keys() == {"step_size", "batch_size", "n_leapfrog", "steps", "is_heuristic"} | {
            "relative_sd_error",
            *names,
        }
        assert row["relative_sd_error"] is None
        assert row["steps"] == 90
        arm = Arm(row["step_size"], row["batch_size"])
        assert row["is_heuristic"] == (arm == EXTRA[0])
        draws = Lockstep.at_mode(model, "sgld", [arm], replicate="sweep").advance(90)[:, 0]
        xi = metrics.relative_sd_error(metrics.sd_of_draws(draws), reference)
        assert other["relative_sd_error"] == pytest.approx(xi, rel=1e-2)
        # 90 steps by at most 7 draws: every 13th.
        alone = metrics.predictive_metrics(model, draws[12::13])
        assert {name: other[name] for name in names} == pytest.approx(
            {name: row[name] for name in names}, nan_ok=True
        )
        smooth = {name: value for name, value in alone.items() if name in ("log_loss", "rmse")}
        assert {name: row[name] for name in smooth} == pytest.approx(smooth, rel=1e-2, nan_ok=True)
        assert np.isnan([row[name] for name in names]).all() == (arm.step_size == 1e6)
    assert len(plain) == 7


def test_a_sweep_keeps_only_the_draws_that_predict(monkeypatch):
    model, kept = small_pmf(), []
    monkeypatch.setattr(
        metrics, "predictive_metrics", lambda model, draws: kept.append(draws.base.nbytes) or {}
    )
    for reference in (None, np.ones(model.dimension)):
        sweep(model, 1_000, prediction_draws=3, reference_sd=reference)
    assert len(kept) == 14
    assert max(kept) <= 4 * model.dimension * 4 * 3


def test_a_sweep_without_predictions_names_them_all_the_same():
    model = small_pmf()
    for row in sweep(model, 20, reference_sd=np.ones(model.dimension)):
        assert {name: row[name] for name in RATINGS} == dict.fromkeys(RATINGS)


def test_a_sweep_that_nothing_judges_is_refused():
    with pytest.raises(InputError, match=r"prediction_draws: 0 .* 'pmf'"):
        sweep(small_pmf(), 20)
