"""What a step costs beside one of SGNHT: the rounds of a job, and the number that the tables print."""

import numpy as np
import pytest

from sgtune.sampling.lockstep import Lockstep
from sgtune.study.ccadl import costs
from sgtune.study.ccadl.costs import measure_cost
from sgtune.study.ccadl.table_parts import relative_cost
from sgtune.study.posteriors import classification


@pytest.fixture(scope="module")
def model():
    arrays = classification.simulate("mnist79", 100)
    test_data = {"inputs": arrays["test_inputs"], "targets": arrays["test_labels"]}
    return classification.mnist79(arrays["train_inputs"], arrays["train_labels"], test_data=test_data)


def measure(method, model):
    setting = {"step_sizes": [1e-3, 1e-5, 1e-4], "frictions": [1.0, 10.0], "batch_size": 20}
    return measure_cost(method, "full", model, **setting, start=np.zeros(model.dimension, np.float32))


def test_samplers_take_turns_after_a_first_call(model, monkeypatch):
    calls = []

    def advance(self, n_steps, stride):
        assert n_steps == stride == costs.STEPS
        calls.append(self.program.sampler)

    monkeypatch.setattr(Lockstep, "advance", advance)
    cost = measure("ccadl", model)
    baseline, own = calls[:2]
    assert baseline is not own
    assert (cost["step_size"], cost["friction"]) == (1e-4, 10.0)
    assert calls == [baseline, own] * (1 + costs.ROUNDS[1])
    assert len(cost["seconds"]) == len(cost["baseline_seconds"]) == costs.ROUNDS[1]
    assert all(0 < seconds < 1 for seconds in cost["seconds"])


def test_a_slow_machine_ends_the_rounds_early(model, monkeypatch):
    monkeypatch.setattr(costs, "SECONDS", 0.0)
    assert len(measure("ccadl", model)["seconds"]) == costs.ROUNDS[0]


def test_the_baseline_costs_as_much_as_itself(model):
    assert relative_cost(measure("sgnht", model)) == (1.0, 0.0)


def test_relative_cost_is_a_median_that_one_slow_round_does_not_move():
    rng = np.random.default_rng(0)
    baseline = rng.uniform(1, 2, 9)
    cost = {"seconds": 5 * baseline, "baseline_seconds": baseline}
    cost["seconds"][3] *= 100
    assert relative_cost(cost) == (pytest.approx(5), pytest.approx(0, abs=1e-12))


def test_standard_error_of_the_relative_cost_is_the_spread_of_medians():
    """401 rounds of normal ratios, where the large-sample formula holds.

    The relative error of the sd of 500 medians is 1 / sqrt(1000), 3%.
    """
    rng = np.random.default_rng(1)
    found = [
        relative_cost({"seconds": rng.normal(5, 0.5, 401), "baseline_seconds": np.ones(401)})
        for _ in range(500)
    ]
    middles, errors = np.array(found).T
    assert np.mean(errors) == pytest.approx(middles.std(ddof=1), rel=0.13)
