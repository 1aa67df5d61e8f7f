"""Evaluation runs: the entries of a row, the draws that tables and curves share, and each chosen arm run once."""

import jax
import numpy as np
import pytest
from job_pieces import Calls, Log
from predictive_models import random_draws, small_network, small_pmf
from small_models import gaussian_model, small_logistic_model
from stein_forms import autoregressive

from sgtune import Arm, Chain, CostTable, metrics
from sgtune.model.positions import from_matrix
from sgtune.sampling.lockstep import Lockstep
from sgtune.sampling.thinning import evenly_spaced
from sgtune.study.experiments import evaluate as module
from sgtune.study.experiments.evaluate import compare_clocks, evaluate_run, evaluate_tuned
from sgtune.study.ground_truth.diagnostics import per_parameter
from sgtune.study.pipeline.parts import Task
from sgtune.support.files import read_json, write_json

CURVES = {"seconds": [0.02, 0.05], "replicates": 3, "ksd_points": 0, "prediction_draws": 0}
SECTION = {
    **{"seconds": 0.1, "thin": 2, "ksd_points": 15, "burn_in": 0.2, "kept_draws": 60, "prediction_draws": 10},
    **{"replicates": 2, "curves": CURVES},
}
# Where nothing asks for them.
LEFT_OUT = {"ksd", "ksd_scaled", "relative_sd_error"}
RATINGS = {"rmse", "rmse_published"}
CLASSES = {"accuracy", "log_loss", "brier", "ece", "mce", "ece_published", "mce_published"}


def run(model, arm, replicate=0, *, curves=CURVES, reference=None, cost=None, **changes):
    task = Task(model, "sgld", reference=reference, cost=cost)
    return evaluate_run(task, arm, replicate, {**SECTION, **changes, "curves": CURVES | curves})


def test_a_factorisation_has_errors_by_block_and_a_network_without_ksds_needs_no_scores(monkeypatch):
    model = small_pmf()
    reference = metrics.Reference(np.linspace(0.1, 0.3, model.dimension))
    row = run(model, Arm(1e-3, 50), reference=reference)["table"]
    by_block = row["relative_sd_error_by_block"]
    assert by_block.keys() == model.position_shape.keys()
    assert 0 < min(by_block.values()) <= row["relative_sd_error"] <= max(by_block.values())
    monkeypatch.setattr(module, "scores", None)
    record = run(small_network(), Arm(1e-5, 50), ksd_points=0, curves={"prediction_draws": 5})
    row = record["table"]
    assert {row[name] for name in LEFT_OUT} == {None}
    assert row["ood"]["entropy_ood"] > row["ood"]["entropy_test"] > 0
    assert all(row.keys() >= CLASSES and "ood" not in row for row in record["curves"])


@pytest.mark.parametrize("make", [small_pmf, small_network])
def test_a_chain_that_diverges_has_no_numbers(tmp_path, make, by_steps):
    by_steps(1e-3)
    model = make()
    reference = metrics.Reference(np.ones(model.dimension))
    write_json(
        tmp_path / "record.json", run(model, Arm(1e12, 50), reference=reference, curves={"ksd_points": 5})
    )
    record = read_json(tmp_path / "record.json")
    for row in [record["table"], *record["curves"]]:
        assert {row[name] for name in LEFT_OUT | (row.keys() & (RATINGS | CLASSES))} == {None}
    assert record["table"]["diverged"]


@pytest.mark.parametrize(("burn_in", "dropped"), [(0.0, 0), (0.25, 10), (0.99, 39)])
def test_rows_are_of_the_draws_after_the_burn_in_and_up_to_their_time(monkeypatch, burn_in, dropped):
    """xi uses all of them, the KSD a random subset of every thin-th sample, predictions evenly spaced draws."""
    model = small_pmf()
    draws = random_draws(model, 40, sd=0.5)
    # Every third sample is kept; a call of 0.1 s each.
    clock = [(0.1 * (i + 1), 3 * (i + 1)) for i in range(40)]
    chain = Chain(model, Arm(1e-3, 10), draws, 3, 120, 4.0, False, clock)
    scored = []
    monkeypatch.setattr(module, "sample", lambda *arguments, **options: chain)
    monkeypatch.setattr(module, "scores", lambda model, points: scored.append(points) or -points)
    changes = {"burn_in": burn_in, "seconds": 12, "thin": 6, "ksd_points": 5, "prediction_draws": 4}
    changes["curves"] = {"seconds": [0.05, 0.21, 2.01], "ksd_points": 5, "prediction_draws": 4}
    record = run(model, chain.arm, reference=metrics.Reference(np.ones(model.dimension)), **changes)
    for row, n_kept in zip((record["table"], *record["curves"]), (40, 0, 2, 20), strict=True):
        used = draws[int(burn_in * n_kept) : n_kept]
        assert (row["n_samples"], row["n_burn_in"]) == (3 * n_kept, 3 * int(burn_in * n_kept))
        if n_kept == 0:
            assert (row["n_points"], row["ksd"], row["ksd_se"], row["ksd_floor"]) == (0, np.inf, None, None)
            assert np.isnan(row["rmse"])
            continue
        points = scored.pop(0)
        places = [int(np.flatnonzero((used == point).all(axis=1))[0]) for point in points]
        assert places == sorted(set(places)), "each at most once, in their order"
        if len(used) >= 20:
            assert all(place % 2 for place in places), "every second kept draw is every sixth sample"
        predicted = metrics.predictive_metrics(model, evenly_spaced(used, 4))
        assert row["rmse"] == pytest.approx(predicted["rmse"])
    assert record["table"]["n_burn_in"] == 3 * dropped
    sd = draws[dropped:].astype(np.float64).std(axis=0)
    error = np.linalg.norm(sd - 1) / np.sqrt(model.dimension)
    assert record["table"]["relative_sd_error"] == pytest.approx(error)


def test_by_a_cost_table_a_run_repeats_and_a_curve_is_its_first_seconds():
    """Steps are what the budget buys, at least ten. All but measured seconds repeat bit for bit; replicates differ."""
    model, curves = small_pmf(), {"ksd_points": 5, "prediction_draws": 10}
    options = {"reference": metrics.Reference(np.ones(model.dimension)), "ksd_points": 5, "kept_draws": 100}

    def rows(replicate=0, price=1e-3, seconds=(0.02, 0.05), **changes):
        cost = CostTable({("sgld", 50, None): price})
        changes |= {"cost": cost, "curves": curves | {"seconds": list(seconds)}, **options}
        made = run(model, Arm(1e-3, 50), replicate, **changes)
        own = [made["table"], *made["curves"]]
        assert all(row is None or row.pop("wall_seconds") > 0 for row in own)
        return own

    table, *early, late = rows(seconds=(0.02, 0.05, 0.1))
    assert [row["n_samples"] for row in (table, *early, late)] == [100, 20, 50, 100]
    shown = late.keys() - {"relative_sd_error"}
    assert {name: late[name] for name in shown} == {name: table[name] for name in shown}
    assert rows() == [table, *early]
    assert rows(replicates=0) == [None, *early]
    assert rows(1)[0]["relative_sd_error"] != table["relative_sd_error"]
    assert [row["n_samples"] for row in rows(price=1.0)] == [10, 0, 0]


def test_a_run_replays_no_race_and_replicates_share_no_minibatches():
    """The race that chose an arm has favoured its draws: an evaluation by the same streams would be too good."""
    model, arm, cost = small_logistic_model(n_data=200), Arm(1e-3, 20), CostTable({("sgld", 20, None): 1e-3})
    reference = metrics.Reference(np.ones(2))
    options = {"burn_in": 0.0, "kept_draws": 100, "curves": {"replicates": 0}, "cost": cost}
    own, minibatches = {}, set()
    for stream in ("evaluation 0", "evaluation 1", "race 0", "race 1"):
        ensemble = Lockstep(model, "sgld", [arm], seed=0, replicate=stream)
        minibatches.add(tuple(jax.random.key_data(ensemble.minibatch_key).tolist()))
        draws = ensemble.advance(100)[:, 0]
        own[stream] = metrics.reference_errors(model, draws, reference)["relative_sd_error"]
    assert len(set(own.values())) == len(minibatches) == 4
    for i in (0, 1):
        found = run(model, arm, i, reference=reference, **options)["table"]["relative_sd_error"]
        assert found == pytest.approx(own[f"evaluation {i}"], rel=1e-6)


def test_the_floor_is_what_exact_draws_have_as_many_as_in_the_run():
    """Not as many as in the subset that the KSD is estimated from."""
    precision = np.diag([400.0, 25.0, 1.0]) + 0.5
    model = gaussian_model(precision, np.zeros(3))
    rng, factor = np.random.default_rng(0), np.linalg.cholesky(np.linalg.inv(precision))
    squares, floors = {"ksd": [], "ksd_scaled": []}, {}
    for _ in range(400):
        draws = (rng.standard_normal((60, 3)) @ factor.T).astype(np.float32)
        row = module.stein_metrics(model, draws, 20, 0)
        assert row["n_points"] == 20
        for name, values in squares.items():
            values.append(row[f"{name}_squared"])
            floors[name] = row[f"{name}_floor"]
    for name, values in squares.items():
        error = np.std(values) / np.sqrt(len(values))
        assert abs(np.mean(values) - floors[name] ** 2) < 4 * error
        # As many draws as points would have three times as much.
        assert error < 0.2 * floors[name] ** 2


def test_effective_draws_are_those_of_the_quantities_that_are_judged():
    """Of an AR(1) chain n (1 - r) / (1 + r); of a model with functionals theirs."""
    model, rng = gaussian_model(np.eye(3), np.zeros(3)), np.random.default_rng(0)
    draws = autoregressive(rng, 30_000, 3, 0.9).astype(np.float32)
    found = module.effective_draws(model, draws[:15_000])
    assert found["ess_min"] <= found["ess_median"] == pytest.approx(15_000 * 0.1 / 1.9, rel=0.15)
    assert module.effective_draws(model, draws)["ess_median"] == pytest.approx(30_000 * 0.1 / 1.9, rel=0.15)
    model = small_pmf()
    draws = random_draws(model, 400, sd=0.5)
    values = np.asarray(jax.vmap(model.functionals)(from_matrix(model, draws)))
    own = per_parameter([values[None]]).ess_bulk
    assert module.effective_draws(model, draws) == {"ess_median": np.median(own), "ess_min": own.min()}


COST = CostTable({("sgld", 20, None): 1e-3})
ARM = {"step_size": 1e-3, "batch_size": 20, "n_leapfrog": None}
SMALLER = {**ARM, "step_size": 1e-4}
CHOSEN = {"mamba-ksd": [ARM, SMALLER], "grid": [SMALLER], "heuristic": [None], "grid-ksd": [dict(ARM)]}
RUNS = [(1e-3, 0), (1e-4, 1), (1e-3, 2), (1e-4, 0), (1e-4, 2), (1e-3, 1)]
"""The runs of the first tuner, which has two races, in replicates 0, 1, 2; then the further runs of the others."""


@pytest.fixture(scope="module")
def logistic():
    return small_logistic_model(n_data=200)


def test_a_replicate_runs_what_its_race_chose_and_all_who_chose_it_share_the_run(
    logistic, tmp_path, monkeypatch
):
    """A killed job goes on with the runs that it has not made; with a cost table the rows are bit for bit the same."""
    ran = Calls(monkeypatch, module, "evaluate_run", lambda task, arm, r, section: (arm.step_size, r))

    def evaluate(name, chosen=CHOSEN):
        log = Log(tmp_path / name, logistic, "sgld", cost=COST)
        found = evaluate_tuned(log.task, chosen, SECTION)
        for row in [row for run in found["runs"] for row in (run["table"], *run["curves"]) if row]:
            assert row.pop("wall_seconds") > 0
        return found, log

    record, _ = evaluate("whole")
    assert ran == RUNS
    assert record["clock"] == "calibrated"
    assert record["tuners"] == [
        {"tuner": "mamba-ksd", "arms": [ARM, SMALLER], "runs": [0, 1, 2]},
        {"tuner": "grid", "arms": [SMALLER], "runs": [3, 1, 4]},
        {"tuner": "heuristic", "arms": [None], "runs": [None, None, None]},
        {"tuner": "grid-ksd", "arms": [ARM], "runs": [0, 5, 2]},
    ]
    for run in record["runs"]:
        assert [(row["seconds"], row["n_samples"]) for row in run["curves"]] == [(0.02, 20), (0.05, 50)]
        # Runs that no table uses are as short as a curve.
        assert (run["table"] is None) == (run["replicate"] == 2)
    ran.clear()
    ran.killed_at = RUNS[4]
    with pytest.raises(KeyboardInterrupt):
        evaluate("part")
    again, log = evaluate("part")
    assert ran == RUNS, "each once"
    assert len(log.taken()) == 4
    assert again == record
    ran.clear()
    # An arm that rounds to the same name is another arm.
    near = {**ARM, "step_size": 1e-3 * (1 + 1e-9)}
    more, _ = evaluate("part", CHOSEN | {"heuristic": [near]})
    assert ran[:3] == [(near["step_size"], replicate) for replicate in range(3)]
    assert [one["runs"] for one in more["tuners"]] == [[0, 1, 2], [3, 1, 4], [5, 6, 7], [0, 8, 2]]


def test_a_run_by_the_other_clock_is_the_same_chain(logistic):
    """For the first tuner with an arm in every replicate."""
    section, task = SECTION | {"replicates": 3}, Log(None, logistic, "sgld", cost=COST).task
    evaluated = evaluate_tuned(task, {"heuristic": [None], **CHOSEN}, section)
    found = compare_clocks(task, evaluated, section)
    assert (found["tuner"], found["arm"]) == ("mamba-ksd", ARM)
    assert found["calibrated"] == [evaluated["runs"][place]["table"] for place in (0, 1, 2)]
    assert [row["replicate"] for row in found["wall"]] == [0, 1, 2]
    assert all(row["wall_seconds"] >= row["seconds"] == 0.1 for row in found["wall"])
    by_wall = evaluated | {"clock": "wall"}
    again = compare_clocks(task, by_wall, section)
    for row, first in zip(again["calibrated"], found["calibrated"], strict=True):
        assert row | {"wall_seconds": 0} == first | {"wall_seconds": 0}
    none = evaluate_tuned(task, {"grid": [ARM, None]}, SECTION)
    found = compare_clocks(task, none, SECTION)
    assert found == {"tuner": "grid", "arm": None, "wall": [], "calibrated": []}
