"""Each model's settings in the configuration: the paper's values, and values for a single model."""

import copy

import pytest
import yaml
from config_files import ROOT, SCHEMA, config_with, plain_keys, raw_config, valid

from sgtune.model.posterior import LARGE_DIMENSION
from sgtune.study import catalogue
from sgtune.study.config.checks import SMALL_DIMENSION
from sgtune.study.config.sections import model_settings
from sgtune.study.config.validate import validate_config
from sgtune.study.posteriors import bnn, pmf
from sgtune.support.errors import InputError
from sgtune.tuning import TUNERS

PER_MODEL = {
    "logistic": {},
    "pmf": {
        "tuners": ["mamba-ksd", "mamba", "grid", "heuristic"],
        "reference": {"n_warmup", "n_draws"},
        "tuning": {"replicates"},
        "mamba": {"seconds", "points"},
        "grid": {"n_steps", "start_noise"},
        "evaluation": {"seconds", "replicates", "burn_in", "kept_draws", "ksd_points", "curves"},
        "regret": {"finalists", "screen", "seconds", "replicates"},
        "estimates": {"log10_step_sizes", "batch_fractions", "max_points"},
    },
    "bnn": {
        "tuners": ["mamba-ksd", "mamba", "grid", "heuristic"],
        "map": {"tolerance"},
        "reference": {"nuts"},
        "tuning": {"replicates"},
        "mamba": {"seconds", "points"},
        "grid": {"n_steps", "start_noise"},
        "evaluation": {
            *("seconds", "replicates", "burn_in", "kept_draws", "prediction_draws", "ksd_points", "curves"),
        },
        "regret": {"finalists", "screen", "seconds", "replicates", "prediction_draws"},
        "estimates": {"log10_step_sizes", "batch_fractions", "max_points"},
    },
}
"""The keys that have their own default for one model."""


def test_paper_run_is_the_defaults():
    """paper.yaml repeats values of sections in config.yaml, so only the settings of each model are compared."""
    paper = raw_config("paper")
    validate_config(paper)
    defaults = valid()
    assert set(paper) == set(defaults)
    for model in defaults["models"]:
        assert model_settings(paper, model) == model_settings(defaults, model) | {"run": "paper"}


def test_paper_values_of_logistic_regression():
    """Sect. 4.1 and App. B.1."""
    paper = model_settings(valid(), "logistic")
    grid = paper["grids"]
    assert grid["log10_step_sizes"] == [-1 - 0.5 * i for i in range(14)]
    assert (grid["batch_fractions"], grid["n_leapfrogs"]) == ([1, 0.1, 0.01, 0.001], [5, 10])
    assert (paper["mamba"]["seconds"], paper["mamba"]["pruning_rate"]) == (1, 3)
    assert paper["grid_ksd"]["seconds"] == 1
    assert (paper["grid"]["n_steps"], paper["grid"]["start_noise"]) == (5000, 0.2)
    assert paper["grid"]["batch_fraction"] == paper["heuristic"]["batch_fraction"] == 0.1
    # Of each of two chains.
    assert (paper["reference"]["n_warmup"], 2 * paper["reference"]["n_draws"]) == (1000, 20000)
    assert (paper["evaluation"]["seconds"], paper["evaluation"]["burn_in"]) == (10, 0)
    curves = paper["evaluation"]["curves"]
    assert (curves["seconds"], curves["replicates"]) == ([1, 2, 3, 4, 5], 5)


@pytest.mark.parametrize(("model", "n_steps", "seconds"), [("pmf", 2000, 20), ("bnn", 1000, 300)])
def test_paper_values_of_the_large_models(model, n_steps, seconds):
    """Sects. 4.2, 4.3, App. B.2.2, B.2.3, B.3.2, B.3.3."""
    paper = model_settings(valid(), model)
    grid = paper["grids"]
    assert grid["log10_step_sizes"] == [-2 - 0.5 * i for i in range(12)]
    assert (grid["batch_fractions"], grid["n_leapfrogs"]) == ([1, 0.1, 0.01], [5, 10])
    ours = ["mamba"]
    assert paper["tuners"] == ["mamba-ksd", *ours, "grid", "heuristic"]
    assert (paper["mamba"]["seconds"], paper["mamba"]["pruning_rate"]) == (10, 3)
    assert (paper["grid"]["n_steps"], paper["grid"]["start_noise"]) == (n_steps, 1)
    assert paper["grid"]["batch_fraction"] == paper["heuristic"]["batch_fraction"] == 0.1
    assert paper["evaluation"]["seconds"] == seconds
    curves = paper["evaluation"]["curves"]
    # Curves of the network use three runs, of which only one is as long as the paper's.
    assert (curves["seconds"], curves["replicates"]) == ([2, 4, 6, 8, 10], 5 if model == "pmf" else 3)


def test_paper_reference_of_the_factorisation_and_none_of_the_network():
    reference = model_settings(valid(), "pmf")["reference"]
    # Together the two chains have the paper's warm-up, and 7,000 of its 10,000 draws: fresh runs take the rest of
    # the time.
    assert (reference["nuts"], 2 * reference["n_warmup"], 2 * reference["n_draws"]) == (True, 1000, 7000)
    assert model_settings(valid(), "bnn")["reference"]["nuts"] is False


def test_defaults_of_a_section_do_not_become_a_models_own():
    """Snakemake fills in the defaults of every schema that it meets, also behind a reference."""
    own = valid()["per_model"]
    assert own.keys() == PER_MODEL.keys()
    for model, sections in PER_MODEL.items():
        assert own[model].keys() == sections.keys()
        for section, keys in sections.items():
            assert own[model][section] == keys if section == "tuners" else own[model][section].keys() == keys
    assert own["pmf"]["evaluation"]["curves"].keys() == {"seconds", "replicates", "ksd_points"}
    assert own["bnn"]["evaluation"]["curves"].keys() == {
        "seconds",
        "replicates",
        "ksd_points",
        "prediction_draws",
    }


@pytest.mark.parametrize("model", catalogue.MODELS)
def test_a_key_given_for_one_model_sets_no_other_key(model):
    changes = {f"per_model__{model}__evaluation__curves__replicates": 7, f"per_model__{model}__widths": {}}
    before, own = valid()["per_model"].get(model, {}), valid(**changes)["per_model"][model]
    expected = copy.deepcopy(before)
    expected.setdefault("evaluation", {}).setdefault("curves", {})["replicates"] = 7
    assert own == expected | {"widths": {}}


def test_per_model_takes_every_key_of_its_sections_under_the_same_bounds():
    schema = SCHEMA["properties"]
    sections = schema["per_model"]["properties"]["logistic"]["properties"]
    assert sections.keys() == set(schema) - {
        *(
            "run",
            "published_as",
            "artifacts",
            "seed",
            "models",
            "samplers",
            "data",
            "grids",
            "ladder",
            "sensitivity",
            "per_model",
        ),
        *catalogue.STUDIES,
    }
    for name, section in sections.items():
        assert plain_keys(section) == plain_keys(schema[name])

    def without_defaults(entry):
        if isinstance(entry, dict):
            documented = ("default", "description")
            return {name: without_defaults(value) for name, value in entry.items() if name not in documented}
        return entry

    for model in catalogue.MODELS:
        own = schema["per_model"]["properties"][model]["properties"]
        for name in sections:
            assert without_defaults(own[name]) == without_defaults(schema[name])


def test_values_of_a_model_win_over_the_section_and_leave_its_other_keys():
    config = valid(mamba__seconds=3, mamba__thin=7, per_model__logistic__mamba__seconds=5)
    assert model_settings(config, "logistic")["mamba"]["seconds"] == 5
    assert model_settings(config, "pmf")["mamba"]["seconds"] == 10
    assert {model_settings(config, model)["mamba"]["thin"] for model in catalogue.MODELS} == {7}
    config = valid(per_model__pmf__evaluation__curves__seconds=[1])
    assert model_settings(config, "pmf")["evaluation"]["curves"]["seconds"] == [1]


BAD = [
    ({"mamba__secnods": 1}, "per_model.pmf.mamba.secnods: no such key (did you mean 'seconds'?)"),
    ({"mamab": {}}, "per_model.pmf.mamab: no such key (did you mean 'mamba'?)"),
    ({"evaluation__curves__replictes": 2}, "per_model.pmf.evaluation.curves.replictes: no such key (did you"),
    ({"seed": 1}, "per_model.pmf.seed: no such key"),
    ({"mamba__seconds": 0}, "per_model.pmf.mamba.seconds: 0 is not allowed; it must be a number > 0"),
    ({"mamba": 3}, "per_model.pmf.mamba: 3 is not allowed; it must be a mapping with keys among seconds,"),
    ({"tuners": ["girds"]}, "per_model.pmf.tuners[0]: 'girds' is not allowed (did you mean 'grid'?)"),
    (
        {"reference__n_draws": 61},
        "per_model.pmf.reference.n_draws: 61 is not allowed; it must be a multiple of",
    ),
    (
        {"reference__chains": 7},
        "per_model.pmf.reference.n_draws: 40 is not allowed; it must be a multiple of ",
    ),
    (
        {"evaluation__curves__seconds": [2, 1]},
        "per_model.pmf.evaluation.curves.seconds: [2, 1] is not allowed",
    ),
    (
        {"reference__nuts": False},
        "regret.prediction_draws: 0 is not allowed for pmf, which has no reference: its arms are judged by rmse; ",
    ),
    ({"widths__widths": [0, 2]}, "per_model.pmf.widths.widths: [0, 2] is not allowed; it must contain 1"),
    (
        {"grid__batch_fraction": 1e-5},
        "per_model.pmf.grid.batch_fraction: 1e-05 is not allowed; it must be >= ",
    ),
    (
        {"tuners": ["grid", "mamba-ece"]},
        "per_model.pmf.tuners[1]: 'mamba-ece' is not allowed for pmf, which is not a",
    ),
]


@pytest.mark.parametrize(("changes", "line"), BAD, ids=[str(bad[0]) for bad in BAD])
def test_bad_values_for_one_model_get_one_line(changes, line):
    config = config_with(**{f"per_model__pmf__{path}": value for path, value in changes.items()})
    with pytest.raises(InputError) as caught:
        validate_config(config)
    assert str(caught.value).startswith(line)
    assert "\n" not in str(caught.value)


def test_only_a_large_model_has_a_mode_without_l_bfgs():
    """Adam does not run in ten dimensions."""
    assert SMALL_DIMENSION == LARGE_DIMENSION
    assert valid(per_model__bnn__map__max_steps=0)
    with pytest.raises(
        InputError,
        match=r"^map\.max_steps: 0 is not allowed for logistic, which has 10 parameters: .* it must be >= 1$",
    ):
        valid(map__max_steps=0)


def test_a_models_name_misspelt_gets_the_nearest():
    with pytest.raises(InputError, match=r"^per_model\.pfm: no such key \(did you mean 'pmf'\?\)"):
        validate_config(config_with(per_model__pfm={}))


def test_a_section_is_named_where_its_bad_value_stands():
    with pytest.raises(InputError, match=r"^estimates\.batch_fraction: 1e-05 .* 1.25e-05, one of the 80000 "):
        valid(models=["pmf"], estimates__batch_fraction=1e-5)
    with pytest.raises(
        InputError, match=r"^grids\.bnn\.batch_fractions\[2\]: 0\.01 .* of the 60 training rows"
    ):
        valid(data__bnn__simulated=60)


def test_a_model_that_is_not_studied_is_not_checked_against_its_data():
    assert valid(models=["logistic"], data__bnn__simulated=60)


def test_metrics_of_classes_are_for_classifiers():
    needs = {name for name, tuner in TUNERS.items() if tuner.tasks == ("classification",)}
    assert needs == {name for name, entry in catalogue.TUNERS.items() if entry.needs_classes}
    assert "mamba-ece" in model_settings(valid(per_model__bnn__tuners=["mamba-ece"]), "bnn")["tuners"]


def test_facts_are_those_of_the_models(tmp_path):
    """The tasks and numbers of training rows that checks of the configuration use."""
    assert set(catalogue.MODELS) == set(SCHEMA["properties"]["models"]["items"]["enum"])
    train, test = pmf.split_u1(pmf.simulate(403))
    ratings = pmf.from_arrays(train, test, n_users=36, n_items=48)
    arrays = bnn.simulate(52)
    images = bnn.from_arrays(arrays["train_images"], arrays["train_labels"])
    for model, simulated in ((ratings, 403), (images, 52)):
        assert catalogue.MODELS[model.name].task == model.task
        assert catalogue.MODELS[model.name].n_data({"simulated": simulated}) == model.n_data
    assert catalogue.MODELS["pmf"].n_data({"simulated": None}) == 80_000
    assert catalogue.MODELS["bnn"].n_data({"simulated": None}) == 60_000


def test_tables_of_keys_show_a_models_defaults_once():
    text = describe_keys(yaml.safe_load(SCHEMA_PATH.read_text()))
    rows = text[text.index("### `per_model`") :].splitlines()
    assert "| `mamba.seconds` | `1` | as there | `10` | `10` |" in rows
    assert "| `reference.nuts` | `true` | as there | as there | `false` |" in rows
    assert not [row for row in rows if row.startswith("| `mamba.thin`")]
    assert text.count("per_model.") == 0
    assert (ROOT / "config/README.md").read_text().count("| `mamba.seconds` |") == 2
