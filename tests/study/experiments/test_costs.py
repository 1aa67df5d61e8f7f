"""Given cost tables: files that are refused, and the shapes that a run needs."""

import json

import pytest
from config_files import ROOT, published, raw_config
from job_pieces import assert_refuses

from sgtune.sampling.arm import shape_of
from sgtune.sampling.budget import CostTable, read_costs
from sgtune.study.catalogue import MODELS
from sgtune.study.config.sections import settings_of
from sgtune.study.config.validate import validate_config
from sgtune.study.experiments.tune import tuning_arguments
from sgtune.study.pipeline.plan import shapes_of, tuners_of
from sgtune.tuning import make_arms

ROW = {"sampler": "sgld", "batch_size": 10, "n_leapfrog": None, "seconds_per_step": 1e-4}
OTHER = {"sampler": "sghmc", "batch_size": 20, "n_leapfrog": 5, "seconds_per_step": 2e-3}
TABLE = {"n_data": 100, "dimension": 7, "rows": [ROW, OTHER]}


def test_a_table_comes_back_as_it_was_written(tmp_path):
    table = CostTable({("sgld", 10, None): 1e-4, ("sghmc", 20, 5): 2e-3})
    assert table.to_rows() == [ROW, OTHER]
    (tmp_path / "costs.json").write_text(json.dumps(of_pmf()))
    # A job without a model does not know its dimension.
    for dimension in ((7,), ()):
        assert read_costs(tmp_path / "costs.json", "pmf", 100, *dimension) == table


def of_pmf(*rows, **facts):
    return {"models": {"pmf": {**TABLE, **facts} | ({"rows": list(rows)} if rows else {})}}


@pytest.mark.parametrize(
    ("held", "words"),
    [
        (None, "the file is missing"),
        ({"rows": [ROW]}, "not a cost table.*'models'.*collect_costs"),
        ({"models": {"bnn": TABLE, "logistic": TABLE}}, "no costs for pmf.*bnn, logistic"),
        (of_pmf(n_data=99), "pmf.*n_data=99.*n_data=100"),
        (of_pmf(dimension=8), "pmf.*dimension=8.*dimension=7"),
        (of_pmf({"sampler": "sgld"}), "cost: a row lacks .*batch_size"),
        (of_pmf(OTHER, {**ROW, "seconds_per_step": -1.0}), r"\('sgld', 10, None\).*-1\.0.*> 0"),
    ],
)
def test_every_other_file_gets_one_line_with_its_name(tmp_path, held, words):
    path = tmp_path / "costs.json"
    if held is not None:
        path.write_text(json.dumps(held))
    assert_refuses(words, read_costs, path, "pmf", 100, 7)


def config_of(run):
    config = raw_config(run)
    validate_config(config)
    return config


@pytest.mark.parametrize("run", ["quick", "paper"])
def test_a_run_measures_the_shapes_of_the_arms_that_it_runs(run):
    """Exactly the shapes of all tuners, the screen and the estimates; the run's table of costs has them."""
    config = config_of(run)
    for model in config["models"]:
        cost = settings_of(config, "cost", model)
        n_data = MODELS[model].n_data(cost["data"][model])
        used = set()
        for sampler in config["samplers"]:
            arms = make_arms(n_data, sampler, **settings_of(config, "screen", model)["grids"])
            for name in tuners_of(config, model, sampler):
                own = tuning_arguments(settings_of(config, "tuning", model, name), name)
                arms += own["tuner"].arms(n_data, sampler)
            used |= {shape_of(sampler, arm) for arm in arms}
        estimates = settings_of(config, "estimates", model)["estimates"]
        fractions = (estimates["batch_fraction"], *estimates["batch_fractions"])
        used |= {("sgld", int(fraction * n_data + 1e-6), None) for fraction in fractions}
        shapes = shapes_of(cost, n_data)
        assert len(shapes) == len(set(shapes))
        assert set(shapes) == used
        table = read_costs(ROOT / f"config/cost/{run}.json", model, n_data)
        assert all(1e-6 < table.lookup(*shape) < 10 for shape in shapes)


def test_the_costs_of_paper_are_those_of_its_published_run():
    held = json.loads((ROOT / "config/cost/paper.json").read_text("utf-8"))["models"]
    shown = published("paper", "cost", "model", "sampler")["value"]
    for model, own in held.items():
        for sampler in {row["sampler"] for row in own["rows"]}:
            costs = [1000 * row["seconds_per_step"] for row in own["rows"] if row["sampler"] == sampler]
            assert sorted(costs) == pytest.approx(sorted(shown[model, sampler]))
