"""Given cost tables: files that are refused, shapes that a run needs, and the races of `quick` without sampling."""

import json
import sys
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
from config_files import ROOT, raw_config

from sgtune.model import Model
from sgtune.samplers import resolve_sampler
from sgtune.sampling.arm import Arm, shape_of
from sgtune.sampling.budget import CostTable, read_costs
from sgtune.sampling.lockstep import Lockstep
from sgtune.study.catalogue import MODELS, SAMPLERS
from sgtune.study.config.sections import has_axis, settings_of, shapes_of, tuners_of
from sgtune.study.config.validate import validate_config
from sgtune.study.experiments.tune import tuning_arguments
from sgtune.support.axes import AXES
from sgtune.support.errors import DataError
from sgtune.tuning import Judge, make_arms, race, tune, tuner_of
from sgtune.tuning.judges import Judgement

ROW = {"sampler": "sgld", "batch_size": 10, "n_leapfrog": None, "seconds_per_step": 1e-4}
OTHER = {"sampler": "sghmc", "batch_size": 20, "n_leapfrog": 5, "seconds_per_step": 2e-3}
TABLE = {"n_data": 100, "dimension": 7, "rows": [ROW, OTHER]}
TEN, DIMENSION = 10, 2


def test_a_table_comes_back_as_it_was_written(tmp_path):
    table = CostTable({("sgld", 10, None): 1e-4, ("sghmc", 20, 5): 2e-3})
    assert table.to_rows() == [ROW, OTHER]
    (tmp_path / "costs.json").write_text(json.dumps({"models": {"pmf": TABLE}}))
    # A job without a model does not know its dimension.
    assert read_costs(tmp_path / "costs.json", "pmf", 100, 7) == table
    assert read_costs(tmp_path / "costs.json", "pmf", 100) == table


def of_pmf(*rows, **facts):
    return {"models": {"pmf": {**TABLE, **facts} | ({"rows": list(rows)} if rows else {})}}


@pytest.mark.parametrize(
    ("held", "parts"),
    [
        (None, ("the file is missing",)),
        ([], ("not a cost table", "'models'")),
        ({"rows": [ROW]}, ("not a cost table", "'models'", "collect_costs")),
        ({"models": {"bnn": TABLE, "logistic": TABLE}}, ("no costs for pmf", "bnn, logistic")),
        (of_pmf(n_data=99), ("pmf", "n_data=99", "n_data=100")),
        (of_pmf(dimension=8), ("pmf", "dimension=8", "dimension=7")),
        (of_pmf({"sampler": "sgld"}), ("the rows of pmf", "batch_size")),
        (of_pmf({**ROW, "batch_size": [10]}), ("the rows of pmf", "list")),
        (of_pmf(OTHER, {**ROW, "seconds_per_step": -1.0}), ("('sgld', 10, None)", "-1.0", "> 0")),
    ],
)
def test_every_other_file_gets_one_line_with_its_name(tmp_path, held, parts):
    path = tmp_path / "costs.json"
    if held is not None:
        path.write_text(json.dumps(held))
    with pytest.raises(DataError) as caught:
        read_costs(path, "pmf", 100, 7)
    line = str(caught.value)
    assert line.startswith(f"{path}: ")
    assert "\n" not in line
    assert all(part in line for part in parts)


def config_of(run):
    config = raw_config(run)
    validate_config(config)
    return config


def test_the_samplers_with_an_axis_are_those_of_the_registry():
    for sampler in SAMPLERS:
        own = [axis.name for axis in resolve_sampler(sampler)[0].axes]
        assert [axis for axis in AXES if has_axis(sampler, axis)] == own


@pytest.mark.parametrize("run", ["quick", "medium", "paper"])
def test_a_run_measures_the_shapes_of_the_arms_that_it_runs(run):
    """Exactly the shapes of all tuners, the screen and the estimates; the table of `quick` has them."""
    config = config_of(run)
    for model in config["models"]:
        cost = settings_of(config, "cost", model)
        n_data = MODELS[model].n_data(cost["data"][model])
        used = set()
        for sampler in config["samplers"]:
            arms = make_arms(n_data, sampler, **settings_of(config, "screen", model)["grids"])
            for name in tuners_of(config, model, sampler):
                own = tuning_arguments(settings_of(config, "tuning", model, name), name)
                arms += tuner_of(own["tuner"], own["settings"]).arms(n_data, sampler)
            used |= {shape_of(sampler, arm) for arm in arms}
        estimates = settings_of(config, "estimates", model)["estimates"]
        fractions = (estimates["batch_fraction"], *estimates["batch_fractions"])
        used |= {("sgld", int(fraction * n_data + 1e-6), None) for fraction in fractions}
        shapes = shapes_of(cost, n_data)
        assert len(shapes) == len(set(shapes))
        assert set(shapes) == used
        if run == "quick":
            table = read_costs(ROOT / config["calibration"]["table"], model, n_data)
            assert all(1e-6 < table.lookup(*shape) < 10 for shape in shapes)


class Still(Lockstep):
    """An ensemble with constant chains at zero."""

    def __init__(self, arms):
        self.arms = list(arms)

    @classmethod
    def at_mode(cls, model, sampler, arms, **options):
        return cls(arms)

    finite = property(lambda self: np.ones(self.width, bool))
    statistics = property(lambda self: {})

    def narrow(self, kept):
        return Still([self.arms[i] for i in kept])

    def advance_to(self, n_steps, kept, stop=None):
        return np.zeros((len(kept), self.width, DIMENSION), np.float32)


def prefers_the_first(seed):
    """An arm without draws has no value."""

    def metric(model, arms):
        values = [float(place) if len(arm.points) else np.inf for place, arm in enumerate(arms)]
        return Judgement(values, 0.0, 0.0, 0)

    return metric


@pytest.mark.parametrize("slower", [0.01, 1, 100])
def test_every_arm_of_the_first_rung_is_judged_on_ten_steps_or_more(monkeypatch, slower):
    """In every race of `quick` by seconds, also on a machine a hundred times slower or faster."""
    monkeypatch.setattr(sys.modules[tune.__module__], "Lockstep", Still)
    monkeypatch.setattr(race, "compile_together", lambda ensembles: {})
    config, overruns, tuners = config_of("quick"), [], set()
    for name in config["models"]:
        n_data = MODELS[name].n_data(config["data"][name])
        # A model with as many data as the real one, in no memory.
        data = np.broadcast_to(np.float32(0), (n_data,))
        model = Model(name, len, len, data, lambda key: jnp.zeros(DIMENSION))
        table = read_costs(ROOT / config["calibration"]["table"], name, n_data)
        cost = CostTable({shape: slower * each for shape, each in table.seconds_per_step.items()})
        for sampler in config["samplers"]:
            for own_name in tuners_of(config, name, sampler):
                own = tuning_arguments(settings_of(config, "tuning", name, own_name), own_name)
                tuner = tuner_of(own["tuner"], own["settings"])
                if tuner.judge is None or own["budget"].seconds is None:
                    continue
                tuners.add(own_name)
                dry = replace(tuner, judge=Judge(prefers_the_first, points=500))
                found = tune(model, sampler, tuner=dry, budget=own["budget"], cost=cost)
                arms = tuner.arms(n_data, sampler)
                schedule = tuner.schedule(len(arms), own["budget"].amount)
                first = [row for row in found.rows if row["rung"] == 1]
                assert len(first) == len(arms)
                assert all(row["steps"] >= TEN and row["points"] >= TEN for row in first)
                assert found.best == arms[0]
                # The overrun, by hand: the time of ten steps of an arm beyond the budgets of its rungs.
                budgets, wanted = np.cumsum([rung.amount for rung in schedule.rungs]), 0.0
                last = {
                    Arm(row["step_size"], row["batch_size"], row["n_leapfrog"]): row for row in found.rows
                }
                for arm, row in last.items():
                    each, budget = cost.lookup(*shape_of(sampler, arm)), budgets[row["rung"] - 1]
                    assert row["steps"] == max(TEN, int(budget / each))
                    wanted += max(0.0, TEN * each - budget)
                assert found.seconds["overrun"] == pytest.approx(wanted, rel=1e-6)
                overruns.append(wanted / schedule.total)
    assert tuners == {"mamba", "mamba-ksd", "mamba-fssd", "mamba-ksd-smaller", "grid-ksd"}
    # Ten steps with many full-batch leapfrogs may exceed the first rung a little even on a fast machine.
    assert (min(overruns) > 1) if slower == 100 else (max(overruns) < 1e-3 or slower == 1)
