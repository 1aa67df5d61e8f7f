"""Given cost tables: every way in which a file can be invalid, and that valid ones have all that tuners' arms need."""

import json

import pytest
from config_files import ROOT, SCHEMA, raw_config

from sgtune.samplers import resolve_sampler, sampler_names
from sgtune.sampling.arm import shape_of
from sgtune.sampling.budget import CostTable, read_costs
from sgtune.study import catalogue
from sgtune.study.catalogue import method_of
from sgtune.study.config.sections import has_axis, settings_of, shapes_of, tuners_of
from sgtune.study.config.validate import validate_config
from sgtune.study.experiments.tune import tuning_arguments
from sgtune.support.axes import AXES
from sgtune.support.errors import DataError
from sgtune.tuning import make_arms, tuner_of

ROW = {"sampler": "sgld", "batch_size": 10, "n_leapfrog": None, "seconds_per_step": 1e-4}
OTHER = {"sampler": "sghmc", "batch_size": 20, "n_leapfrog": 5, "seconds_per_step": 2e-3}
TABLE = {"n_data": 100, "dimension": 7, "rows": [ROW, OTHER]}


def written(tmp_path, held):
    path = tmp_path / "costs.json"
    path.write_text(held if isinstance(held, str) else json.dumps(held))
    return path


def test_a_table_comes_back_as_it_was_written(tmp_path):
    table = CostTable({("sgld", 10, None): 1e-4, ("sghmc", 20, 5): 2e-3})
    assert table.to_rows() == [ROW, OTHER]
    assert CostTable.from_rows(table.to_rows()) == table
    path = written(tmp_path, {"models": {"pmf": TABLE, "bnn": {**TABLE, "rows": []}}})
    assert read_costs(path, "pmf", 100, 7) == table
    # A job without a model does not know its dimension.
    assert read_costs(path, "pmf", 100) == table
    assert read_costs(path, "bnn", 100) == CostTable()


def with_rows(*rows):
    return {"models": {"pmf": {**TABLE, "rows": list(rows)}}}


@pytest.mark.parametrize(
    ("held", "parts"),
    [
        (None, ("the file is missing",)),
        ("{", ("not a readable JSON file",)),
        ([], ("not a cost table", "'models'")),
        ({"rows": [ROW]}, ("not a cost table", "'models'", "collect_costs")),
        ({"models": [TABLE]}, ("not a cost table", "'models'")),
        ({"models": {}}, ("no costs for pmf", "no model")),
        ({"models": {"bnn": TABLE, "logistic": TABLE}}, ("no costs for pmf", "bnn, logistic")),
        ({"models": {"pmf": [ROW]}}, ("pmf",)),
        ({"models": {"pmf": {**TABLE, "n_data": 99}}}, ("pmf", "n_data=99", "n_data=100")),
        ({"models": {"pmf": {**TABLE, "dimension": 8}}}, ("pmf", "dimension=8", "dimension=7")),
        ({"models": {"pmf": {"rows": [ROW]}}}, ("pmf", "n_data=None", "n_data=100")),
        ({"models": {"pmf": {"n_data": 100, "dimension": 7}}}, ("the rows of pmf", "rows")),
        (with_rows({"sampler": "sgld"}), ("the rows of pmf", "batch_size")),
        (with_rows(3), ("the rows of pmf",)),
        (with_rows({**ROW, "batch_size": [10]}), ("the rows of pmf", "list")),
        (with_rows({**ROW, "seconds_per_step": -1.0}), ("('sgld', 10, None)", "-1.0", "> 0")),
        (with_rows(OTHER, {**ROW, "seconds_per_step": "1"}), ("('sgld', 10, None)", "'1'", "> 0")),
    ],
)
def test_every_other_file_gets_one_line_with_its_name(tmp_path, held, parts):
    path = tmp_path / "costs.json" if held is None else written(tmp_path, held)
    with pytest.raises(DataError) as caught:
        read_costs(path, "pmf", 100, 7)
    line = str(caught.value)
    assert line.startswith(f"{path}: ")
    assert "\n" not in line
    for part in parts:
        assert part in line[len(str(path)) :]


def test_the_samplers_with_an_axis_are_those_of_the_registry():
    """Checked for the samplers that a configuration may name."""
    allowed = SCHEMA["properties"]["samplers"]["items"]["enum"]
    assert set(allowed) <= set(sampler_names())
    assert list(catalogue.SAMPLERS) == list(allowed)
    for sampler in allowed:
        assert [axis for axis in AXES if has_axis(sampler, axis)] == [
            axis.name for axis in resolve_sampler(sampler)[0].axes
        ]
    assert "n_leapfrog" in AXES
    assert [sampler for sampler in allowed if has_axis(sampler, "n_leapfrog")] == ["sghmc", "sghmc-cv"]


@pytest.mark.parametrize("run", ["quick", "medium", "paper"])
@pytest.mark.parametrize("model", catalogue.MODELS)
def test_a_run_measures_the_shapes_of_the_arms_that_it_runs(run, model):
    """The measured shapes are exactly the shapes of all tuners, the screen and the estimates."""
    config = raw_config(run)
    validate_config(config)
    if model not in config["models"]:
        pytest.skip(f"the run {run} has no {model}")
    cost = settings_of(config, "cost", model)
    n_data = catalogue.MODELS[model].n_data(cost["data"][model])
    used = set()
    for sampler in config["samplers"]:
        for tuner in tuners_of(config, model, sampler):
            arguments = tuning_arguments(settings_of(config, "tuning", model, tuner), tuner)
            method = tuner_of(method_of(tuner), arguments["settings"])
            used |= {shape_of(sampler, arm) for arm in method.arms(n_data, sampler)}
        screen = settings_of(config, "screen", model)["grids"]
        used |= {shape_of(sampler, arm) for arm in make_arms(n_data, sampler, **screen)}
    estimates = settings_of(config, "estimates", model)["estimates"]
    fractions = (estimates["batch_fraction"], *estimates["batch_fractions"])
    used |= {("sgld", int(fraction * n_data + 1e-6), None) for fraction in fractions}
    shapes = shapes_of(cost, n_data)
    assert len(shapes) == len(set(shapes))
    assert set(shapes) == used


@pytest.mark.parametrize("model", catalogue.MODELS)
def test_the_table_of_the_quick_run_has_its_costs(model):
    config = raw_config("quick")
    validate_config(config)
    cost = settings_of(config, "cost", model)
    n_data = catalogue.MODELS[model].n_data(cost["data"][model])
    table = read_costs(ROOT / config["calibration"]["table"], model, n_data)
    for shape in shapes_of(cost, n_data):
        assert 1e-6 < table.lookup(*shape) < 10
