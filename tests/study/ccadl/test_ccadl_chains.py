"""The chains of the study's experiments: their streams, what their kept pieces depend on, their numbers, and costs."""

import copy
from itertools import product

import numpy as np
import pytest
from scipy.special import expit

from sgtune.metrics import mean_prediction, xi_rel, xi_white
from sgtune.mode.find import map_position
from sgtune.sampling.arm import Arm
from sgtune.sampling.lockstep import Lockstep
from sgtune.study.ccadl import chains as ccadl_chains
from sgtune.study.ccadl import classifiers, normal
from sgtune.study.pipeline.parts import Parts
from sgtune.study.posteriors import classification
from sgtune.study.posteriors import drbm as machines
from sgtune.support.randomness import named_key

NORMAL = {
    **{"step_sizes": [0.01], "frictions": [10.0], "n_data": 20, "standardised": True, "batch_size": 10},
    **{"steps": 200, "warmup": 0, "replicates": 2, "bins": 10, "samplers": ["ccadl"]},
}
LOGISTIC = {
    **{"step_sizes": [0.002, 0.005], "frictions": [1.0, 10.0], "batch_size": 50},
    "curves": {"passes": 3, "points": 6, "replicates": 2},
    "draws": {"friction": 10.0, "steps": 1_200, "warmup": 50, "replicates": 2},
}
DRBM = {
    **{"step_sizes": {"letter": [0.01], "acoustic": [0.01]}, "frictions": [1.0, 10.0], "batch_size": 20},
    **{"passes": 3, "burn_in": 0.4, "readings": 5, "draws_per_reading": 2, "replicates": 2},
}
TRUTH = {"mean": np.zeros(8), "sd": np.full(8, 2.0), "covariance": np.diag(np.full(8, 4.0))}


@pytest.fixture(autouse=True)
def without_costs(monkeypatch):
    monkeypatch.setattr(classifiers, "measure_cost", lambda *args, **options: {})


@pytest.fixture(scope="module")
def regression():
    """Eight features of simulated sevens and nines, which overlap so that the weights are not far from 0."""
    arrays = classification.simulate("mnist79", 500)
    parts = {name: arrays[name][:, :8] if "inputs" in name else arrays[name] for name in arrays}
    test_data = {"inputs": parts["test_inputs"], "targets": parts["test_labels"]}
    return classification.mnist79(parts["train_inputs"], parts["train_labels"], test_data=test_data)


@pytest.fixture(scope="module")
def machine():
    arrays = classification.simulate("letter", 200)
    test_data = {"inputs": arrays["test_inputs"], "targets": arrays["test_labels"]}
    options = {"n_hidden": 5, "n_classes": 26, "test_data": test_data}
    return machines.from_arrays(arrays["train_inputs"], arrays["train_labels"], **options)


def test_costs_are_seconds_of_the_sampler_beside_those_of_sgnht(regression, monkeypatch):
    clock = [0.0]

    def advance(chains, n_steps, stride):
        clock[0] += 3.0 if chains.sampler_name.startswith("ccadl") else 1.0

    monkeypatch.setattr(Lockstep, "advance", advance)
    monkeypatch.setattr(ccadl_chains, "perf_counter", lambda: clock[0])
    settings, start = LOGISTIC | {"step_sizes": [0.002, 0.005, 0.01]}, map_position(regression)
    cost = ccadl_chains.measure_cost("ccadl", "diagonal", regression, settings, start=start, seed=0)
    assert (cost["step_size"], cost["friction"], cost["batch_size"]) == (0.005, 10.0, 50)
    assert set(cost["seconds"]) == {3.0}
    assert set(cost["baseline_seconds"]) == {1.0}
    assert len(cost["seconds"]) == len(cost["baseline_seconds"]) >= 2


class Asked(Parts):
    """Says what a piece depends on, in place of making it."""

    def once(self, name, depends_on, make):
        raise LookupError(name, copy.deepcopy(depends_on))


@pytest.mark.parametrize("name", ["normal", "curves", "draws", "drbm"])
def test_a_kept_replicate_is_of_its_seed_sampler_and_settings_and_of_no_number_of_replicates(
    name, regression, machine
):
    settings = copy.deepcopy({"normal": NORMAL, "drbm": DRBM}.get(name, LOGISTIC))

    def asked(method="ccadl", seed=0):
        options = {"seed": seed, "parts": Asked()}
        sample = {
            "normal": lambda: normal.sample_normal(method, settings, **options),
            "curves": lambda: classifiers.sample_curves(method, regression, settings, **options),
            "draws": lambda: classifiers.sample_draws(method, regression, TRUTH, settings, **options),
            "drbm": lambda: classifiers.sample_errors("letter", method, machine, settings, **options),
        }[name]
        with pytest.raises(LookupError) as said:
            sample()
        return said.value.args

    first = asked()
    assert asked(seed=1) != first
    assert asked(method="sgnht") != first
    settings.get(name, settings)["replicates"] = 7
    assert asked() == first
    settings["batch_size"] = 5
    assert asked() != first


def test_log_likelihoods_are_those_of_the_test_data_and_late_means_of_the_last_half(regression):
    positions = np.random.default_rng(0).standard_normal((3, 8))
    x, y = regression.test_data["inputs"].astype(float), regression.test_data["targets"]
    naive = [np.mean(np.log(np.where(y == 1, expit(x @ w), 1 - expit(x @ w)))) for w in positions]
    assert np.allclose(classifiers.mean_log_likelihoods(regression, positions), naive)
    positions[1, 2] = np.nan
    found = classifiers.mean_log_likelihoods(regression, positions)
    assert np.allclose(found, [naive[0], np.nan, naive[2]], equal_nan=True)
    draws = np.random.default_rng(1).standard_normal((9, 2))
    naive = [draws[first:last].mean(axis=0) for first, last in ((0, 1), (2, 4), (4, 9))]
    assert np.allclose(classifiers.late_means(draws, np.array([1, 4, 9])), naive)


def draws_of(model, sampler, frictions, batch_size, start, n_steps, *, step_sizes=(0.002, 0.005), **options):
    """Draws of a chain of each (h, A), (n_steps, chains, D), by the library alone."""
    cells = product(step_sizes, frictions)
    arms = [Arm(step_size=h, batch_size=batch_size, friction=friction) for h, friction in cells]
    chains = Lockstep(model, sampler, arms, position=start, **options)
    return chains.advance(n_steps).astype(float)


def test_curves_are_those_of_the_chains(regression):
    record = classifiers.sample_curves("sgnht", regression, LOGISTIC, seed=3, parts=Parts())
    assert np.allclose(record["passes"], [0.5, 1, 1.5, 2, 2.5, 3])
    cell = record["cells"][3]
    assert (cell["step_size"], cell["friction"]) == (0.005, 10.0)
    start, options = regression.init(named_key(3, "ccadl", "logistic", 1)), {"replicate": "ccadl curves 1"}
    draws = draws_of(regression, "sgnht-shang", (1.0, 10.0), 50, start, 30, seed=3, **options)[:, 3]
    means = classifiers.late_means(draws, np.arange(5, 31, 5))
    values = classifiers.mean_log_likelihoods(regression, means)
    assert np.allclose(cell["replicates"][1]["log_likelihoods"], values)


def test_long_chains_have_the_moments_of_their_draws(regression):
    record = classifiers.sample_draws("ccadl", regression, TRUTH, LOGISTIC, seed=3, parts=Parts())
    assert (record["steps"], record["sampler"]) == (1_200, "ccadl")
    start, options = map_position(regression), {"seed": 3, "replicate": "ccadl draws 1"}
    draws = draws_of(regression, "ccadl", (10.0,), 50, start, 1_250, **options)[50:, 1]
    run, covariance = record["cells"][1]["replicates"][1], np.cov(draws.T)
    of_two = list(classifiers.COORDINATES)
    assert np.allclose(run["mean"], draws.mean(axis=0)[of_two], atol=1e-5)
    assert np.allclose(run["covariance"], covariance[np.ix_(of_two, of_two)], rtol=1e-4)
    assert run["xi_rel"] == pytest.approx(xi_rel(draws.std(axis=0, ddof=1), TRUTH["sd"]), rel=1e-4)
    assert run["xi_white"] == pytest.approx(xi_white(covariance, TRUTH["covariance"]), rel=1e-4)
    assert run["mean_error"] == pytest.approx(np.sqrt(np.mean((draws.mean(axis=0) / 2) ** 2)), rel=1e-4)


@pytest.mark.parametrize(("friction", "share"), [(0.1, 1.0), (100.0, 0.0)])
def test_sghmc_is_lazy_in_long_chains_and_notes_what_is_clipped(regression, friction, share):
    """The noise of 50 of 500 data needs A from 1 to 10 at this h."""
    draws = LOGISTIC["draws"] | {"friction": friction, "steps": 200}
    settings, truth = {**LOGISTIC, "step_sizes": [0.005], "draws": draws}, TRUTH | {"covariance": None}
    record = classifiers.sample_draws("sghmc", regression, truth, settings, seed=0, parts=Parts())
    assert record["sampler"] == "sghmc-shang-lazy"
    for run in record["cells"][0]["replicates"]:
        assert run["statistics"]["clipped_share"] == share
        assert (run["statistics"]["friction_needed"] > friction) == (share > 0)
        assert run["xi_white"] is None


def test_a_chain_that_diverges_is_marked(regression):
    unstable = {**LOGISTIC, "step_sizes": [50.0]}
    curves = classifiers.sample_curves("sgnht", regression, unstable, seed=0, parts=Parts())
    assert np.isnan(curves["cells"][0]["replicates"][0]["log_likelihoods"][-1])
    draws = classifiers.sample_draws("sgnht", regression, TRUTH, unstable, seed=0, parts=Parts())
    assert draws["cells"][0]["replicates"][0] == {"replicate": 0, "diverged": True, "statistics": {}}


def test_predictions_are_averaged_once_the_burn_in_is_over_and_stay_lost_if_one_is_not_finite():
    targets, rng = np.array([0, 1, 2]), np.random.default_rng(0)
    read = rng.dirichlet(np.ones(3), size=(5, 3))
    running = classifiers.RunningPrediction(targets, burn_in=3)
    assert running.add(np.full((3, 3), np.nan)) == (None, None)
    for i, (error, loss) in enumerate([running.add(each) for each in read]):
        mean = read[i] if i < 2 else read[2 : i + 1].mean(axis=0)
        assert error == np.mean(mean.argmax(axis=1) != targets)
        assert loss == pytest.approx(-np.mean(np.log(mean[[0, 1, 2], targets])))
    assert running.add(np.full((3, 3), np.nan)) == running.add(read[0]) == (None, None)


def test_errors_are_those_of_the_chain(machine):
    sizes = {"n_train": 200, "n_test": 40, "n_classes": 26, "n_features": 16, "n_hidden": 5}
    assert classifiers.sizes_of(machine) == {**sizes, "n_parameters": 5 * (16 + 26 + 1) + 26}
    record = classifiers.sample_errors("letter", "ccadl", machine, DRBM, seed=1, parts=Parts())
    assert np.allclose(record["passes"], [0.6, 1.2, 1.8, 2.4, 3.0])
    assert record["burn_in_passes"] == pytest.approx(1.2)
    start = machine.init(named_key(1, "ccadl", "letter", 1))
    options = {"step_sizes": (0.01,), "seed": 1, "replicate": "ccadl 1"}
    chain = draws_of(machine, "ccadl-diagonal", (1.0, 10.0), 20, start, 30, **options)
    # Each reading of six steps has two draws, the second at its end; two readings are burn-in.
    mean = mean_prediction(machine, chain[[i - 1 for i in (15, 18, 21, 24, 27, 30)], 1].astype(np.float32))
    targets, last = machine.test_data["targets"], record["cells"][1]["replicates"][1]
    assert last["errors"][-1] == pytest.approx(np.mean(mean.argmax(axis=1) != targets))
    own = mean[np.arange(len(targets)), targets]
    assert last["log_losses"][-1] == pytest.approx(-np.mean(np.log(own)), rel=1e-5)
