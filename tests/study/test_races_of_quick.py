"""The races of the run `quick` without sampling: with its cost table every arm has at least ten steps."""

import jax.numpy as jnp
import numpy as np
import pytest
from config_files import ROOT, raw_config

from sgtune.model import Model
from sgtune.sampling.arm import Arm, shape_of
from sgtune.sampling.budget import CostTable, read_costs
from sgtune.sampling.lockstep import Lockstep
from sgtune.study import catalogue
from sgtune.study.config.sections import settings_of, tuners_of
from sgtune.study.config.validate import validate_config
from sgtune.study.experiments.tune import tuning_arguments
from sgtune.tuning import TUNERS, race, tuner_of
from sgtune.tuning.judges import Judgement

DIMENSION = 2
TEN = 10


class Still(Lockstep):
    """An ensemble with constant chains at zero."""

    def __init__(self, arms):
        self.arms = list(arms)

    finite = property(lambda self: np.ones(self.width, bool))
    statistics = property(lambda self: {})

    def narrow(self, kept):
        return Still([self.arms[i] for i in kept])

    def advance_to(self, n_steps, kept, stop=None):
        return np.zeros((len(kept), self.width, DIMENSION), np.float32)


def still_model(name, n_data):
    """A model with as many data as the real one, in no memory."""
    data = np.broadcast_to(np.float32(0), (n_data,))
    return Model(name, len, len, data, lambda key: jnp.zeros(DIMENSION))


def judge(model, arms):
    """A judge that prefers the first arm. An arm without draws has no value."""
    values = [float(place) if len(arm.points) else np.inf for place, arm in enumerate(arms)]
    return Judgement(values, 0.0, 0.0, 0)


@pytest.fixture(scope="module")
def config():
    config = raw_config("quick")
    validate_config(config)
    return config


@pytest.fixture(scope="module")
def races(config):
    """(model, sampler, tuner) of every race with a budget in seconds, and a function of the factor on the costs that
    gives it, run."""
    made = {}
    for name in config["models"]:
        n_data = catalogue.MODELS[name].n_data(config["data"][name])
        table = read_costs(ROOT / config["calibration"]["table"], name, n_data)
        for sampler in config["samplers"]:
            for tuner in tuners_of(config, name, sampler):
                own = tuning_arguments(settings_of(config, "tuning", name, tuner), tuner)
                raced = TUNERS[own["tuner"]].judge is not None
                if raced and own["budget"].seconds is not None:
                    made[name, sampler, tuner] = (still_model(name, n_data), table, own)
    return made


def run(model, sampler, table, own, slower):
    method, budget = tuner_of(own["tuner"], own["settings"]), own["budget"]
    arms = method.arms(model.n_data, sampler)
    cost = CostTable({shape: slower * each for shape, each in table.seconds_per_step.items()})
    dry = race.Race(
        model=model,
        sampler=sampler,
        arms=arms,
        schedule=method.schedule(len(arms), budget.amount),
        budget=budget,
        metric=judge,
        cost=cost,
        clock=method.clock,
        seed=0,
        replicate=0,
        horizon=budget.amount,
        points=method.points or method.judge.points,
        thin=method.judge.thin if method.thin is None else method.thin,
        growth=method.growth,
        make=Still,
    )
    return dry, dry.run(), cost


@pytest.fixture(autouse=True)
def _no_compiler(monkeypatch):
    monkeypatch.setattr(race, "compile_together", lambda ensembles: {})


def test_all_that_race_by_time_are_here(races, config):
    assert {name for name, _, _ in races} == set(config["models"])
    assert {sampler for _, sampler, _ in races} == set(config["samplers"])
    tuners = {"mamba", "mamba-ksd", "mamba-fssd", "mamba-ksd-smaller", "grid-ksd"}
    assert {tuner for _, _, tuner in races} == tuners


@pytest.mark.parametrize("slower", [0.01, 1, 100])
def test_every_arm_of_the_first_rung_is_judged_on_ten_steps_or_more(races, slower):
    overruns = {}
    for (name, sampler, tuner), (model, table, own) in races.items():
        dry, winner, cost = run(model, sampler, table, own, slower)
        first = [row for row in dry.rows if row["rung"] == 1]
        assert len(first) == len(dry.arms)
        assert all(row["steps"] >= TEN and row["points"] >= TEN for row in first)
        assert all(row["discrepancy"] is not None for row in dry.rows)
        assert winner.arm == dry.arms[0]
        # The overrun, by hand: the time of ten steps of an arm beyond the budgets of its rungs.
        budgets = np.cumsum([rung.amount for rung in dry.schedule.rungs])
        last = {Arm(row["step_size"], row["batch_size"], row["n_leapfrog"]): row for row in dry.rows}
        wanted = 0.0
        for arm, row in last.items():
            each, budget = cost.lookup(*shape_of(sampler, arm)), budgets[row["rung"] - 1]
            assert row["steps"] == max(TEN, int(budget / each))
            wanted += max(0.0, TEN * each - budget)
        assert dry.overrun == pytest.approx(wanted, rel=1e-6)
        said = f"spent {dry.overrun:.3g} seconds more than its total budget of {dry.schedule.total:.3g}"
        assert [said in line for line in dry.warnings] == [True] * (dry.overrun > 0)
        overruns[name, sampler, tuner] = dry.overrun / dry.schedule.total
    if slower == 100:
        assert min(overruns.values()) > 1
    if slower < 1:
        # Ten steps with many full-batch leapfrogs may still exceed the first rung a little.
        assert max(overruns.values()) < 1e-3
