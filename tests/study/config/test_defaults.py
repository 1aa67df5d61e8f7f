"""The defaults are the paper's values, and what the library does without a configuration."""

import csv
import inspect
import json

import pytest
from config_files import OVERLAYS, ROOT, SCHEMA, changed, own_values, plain_keys, raw_config, valid
from jsonschema import Draft202012Validator
from pydantic import ValidationError

from sgtune.mode.find import find_map
from sgtune.samplers import resolve_sampler, sampler_names
from sgtune.study import catalogue
from sgtune.study.catalogue import method_of
from sgtune.study.config.__main__ import page_of, schema_text
from sgtune.study.config.run import Configuration
from sgtune.study.config.validate import dotted
from sgtune.study.config.sections import FURTHER_STUDIES, leaves, model_settings, tunes_alone
from sgtune.study.config.validate import overridden, validate_config
from sgtune.study.experiments.ladder import KINDS
from sgtune.study.posteriors import bnn, pmf
from sgtune.tuning import TUNERS, Settings
from sgtune.tuning.grid import BATCH_FRACTIONS, default_fractions


@pytest.mark.parametrize("run", OVERLAYS)
def test_runs_are_valid_set_every_key_and_override_nothing_silently(run):
    """No run gets the paper's budget for a key that its file forgot."""
    config = raw_config(run)
    validate_config(config)
    assert config == raw_config(run)
    assert config["run"] == run
    assert list(Draft202012Validator(SCHEMA).iter_errors(config)) == []
    # The tiny run is for tests alone.
    assert run == "tiny" or overridden(config, own_values(run)) == []


def test_what_is_generated_is_made_from_the_models():
    page = (ROOT / "config/README.md").read_text(encoding="utf-8")
    held = (ROOT / "workflow/schemas/config.schema.yaml").read_text(encoding="utf-8")
    for text, made in ((held, schema_text(SCHEMA)), (page, page_of(SCHEMA, page))):
        assert text == made, "run: python -m sgtune.study.config"
    rows = page[page.index("### `per_model`") :].splitlines()
    assert "| `mamba.seconds` | `1` | as there | `10` | `10` |" in rows
    assert "| `reference.nuts` | `true` | as there | as there | `false` |" in rows
    assert not [row for row in rows if row.startswith("| `mamba.thin`")]


def entries(schema: dict, path: str = ""):
    for name, entry in schema.get("properties", {}).items():
        yield f"{path}{name}", entry
        yield from entries(entry, f"{path}{name}.")


def test_every_key_is_described_and_bounded():
    for path, entry in entries(SCHEMA):
        assert entry["description"].endswith("."), path
        if entry.get("type") == "object":
            assert entry["additionalProperties"] is False
            continue
        # Further axes of a grid have no default, since it would change the dependencies of results.
        optional = (".smaller", ".friction", ".noise_estimate", "per_model.", "run")
        assert "default" in entry or any(name in path for name in optional), path
        item = entry.get("items", entry)
        kind = item["type"][0] if isinstance(item.get("type"), list) else item.get("type")
        if kind in ("integer", "number"):
            assert {"minimum", "exclusiveMinimum"} & item.keys(), path
            assert {"maximum", "exclusiveMaximum"} & item.keys(), path
            assert "unit" in item or path.endswith("seed"), path
        else:
            assert kind == "boolean" or {"enum", "pattern", "minLength"} & item.keys(), path


def test_the_schema_for_editors_refuses_what_the_models_refuse():
    """Every number is below its bound."""
    broken, config = {}, raw_config("quick")
    for path, entry in entries(SCHEMA):
        item = entry.get("items", entry)
        bound = item.get("minimum", item.get("exclusiveMinimum"))
        if bound is not None:
            broken[path] = [bound - 1, bound - 2] if "items" in entry else bound - 1
    changed(config, **{path.replace(".", "__"): value for path, value in broken.items()})
    by_schema = {dotted(error.absolute_path) for error in Draft202012Validator(SCHEMA).iter_errors(config)}
    with pytest.raises(ValidationError) as caught:
        Configuration.model_validate(config)
    assert {dotted(error["loc"]) for error in caught.value.errors()} == by_schema
    assert {path.partition("[")[0] for path in by_schema} == broken.keys()


def test_per_model_takes_every_key_of_its_sections_under_the_same_bounds():
    def bare(entry):
        if isinstance(entry, dict):
            return {
                name: bare(value) for name, value in entry.items() if name not in ("default", "description")
            }
        return entry

    schema = SCHEMA["properties"]
    of_run = {"run", "published_as", "artifacts", "seed", "models", "samplers", "data", "grids"}
    sections = schema.keys() - of_run - {"ladder", "sensitivity", "per_model", *FURTHER_STUDIES}
    for model in catalogue.MODELS:
        own = schema["per_model"]["properties"][model]["properties"]
        assert own.keys() == sections
        for name in sections:
            assert plain_keys(own[name]) == plain_keys(schema[name])
            assert bare(own[name]) == bare(schema[name])


def test_paper_run_is_the_defaults():
    """paper.yaml repeats values of sections in config.yaml, so only the settings of each model are compared."""
    paper, defaults = raw_config("paper"), valid()
    assert paper.keys() == defaults.keys()
    for model in defaults["models"]:
        assert model_settings(paper, model) == model_settings(defaults, model) | {"run": "paper"}


def test_paper_values_of_logistic_regression():
    """Sect. 4.1 and App. B.1."""
    paper = model_settings(valid(), "logistic")
    grid, curves = paper["grids"], paper["evaluation"]["curves"]
    assert grid["log10_step_sizes"] == [-1 - 0.5 * i for i in range(14)]
    assert (grid["batch_fractions"], grid["n_leapfrogs"]) == ([1, 0.1, 0.01, 0.001], [5, 10])
    assert (paper["mamba"]["seconds"], paper["mamba"]["pruning_rate"]) == (1, 3)
    assert paper["grid_ksd"]["seconds"] == 1
    assert (paper["grid"]["n_steps"], paper["grid"]["start_noise"]) == (5000, 0.2)
    assert paper["grid"]["batch_fraction"] == paper["heuristic"]["batch_fraction"] == 0.1
    # Of each of two chains.
    assert (paper["reference"]["n_warmup"], 2 * paper["reference"]["n_draws"]) == (1000, 20000)
    assert (paper["evaluation"]["seconds"], paper["evaluation"]["burn_in"]) == (10, 0)
    assert (curves["seconds"], curves["replicates"]) == ([1, 2, 3, 4, 5], 5)


@pytest.mark.parametrize(
    ("model", "n_steps", "seconds", "runs"), [("pmf", 2000, 20, 5), ("bnn", 1000, 300, 3)]
)
def test_paper_values_of_the_large_models(model, n_steps, seconds, runs):
    """Sects. 4.2, 4.3, App. B.2.2, B.2.3, B.3.2, B.3.3."""
    paper = model_settings(valid(), model)
    grid, curves, reference = paper["grids"], paper["evaluation"]["curves"], paper["reference"]
    assert grid["log10_step_sizes"] == [-2 - 0.5 * i for i in range(12)]
    assert (grid["batch_fractions"], grid["n_leapfrogs"]) == ([1, 0.1, 0.01], [5, 10])
    assert paper["tuners"] == ["mamba-ksd", "mamba", "grid", "heuristic"]
    assert (paper["mamba"]["seconds"], paper["mamba"]["pruning_rate"]) == (10, 3)
    assert (paper["grid"]["n_steps"], paper["grid"]["start_noise"]) == (n_steps, 1)
    assert paper["grid"]["batch_fraction"] == paper["heuristic"]["batch_fraction"] == 0.1
    assert paper["evaluation"]["seconds"] == seconds
    # Curves of the network use three runs, of which only one is as long as the paper's.
    assert (curves["seconds"], curves["replicates"]) == ([2, 4, 6, 8, 10], runs)
    # Together the two chains have the paper's warm-up, and 7,000 of its 10,000 draws: fresh runs take the rest of
    # the time.
    assert reference["nuts"] == (model == "pmf")
    assert model == "bnn" or (2 * reference["n_warmup"], 2 * reference["n_draws"]) == (1000, 7000)


@pytest.mark.parametrize("model", catalogue.MODELS)
def test_a_key_given_for_one_model_sets_no_other_key(model):
    changes = {f"per_model__{model}__evaluation__curves__replicates": 7, f"per_model__{model}__widths": {}}
    before, own = valid()["per_model"][model], valid(**changes)["per_model"][model]
    assert dict(leaves(own)) == dict(leaves(before)) | {"evaluation.curves.replicates": 7}
    assert own["widths"] == {}


def test_values_of_a_model_win_over_the_section_and_leave_its_other_keys():
    config = valid(mamba__seconds=3, mamba__thin=7, per_model__logistic__mamba__seconds=5)
    assert [model_settings(config, model)["mamba"]["seconds"] for model in catalogue.MODELS] == [5, 10, 10]
    assert {model_settings(config, model)["mamba"]["thin"] for model in catalogue.MODELS} == {7}
    config = valid(per_model__pmf__evaluation__curves__seconds=[1])
    assert model_settings(config, "pmf")["evaluation"]["curves"]["seconds"] == [1]


def test_names_are_those_of_the_library():
    properties = SCHEMA["properties"]
    assert set(properties["samplers"]["items"]["enum"]) <= set(sampler_names())
    assert set(properties["tuners"]["items"]["enum"]) == set(TUNERS)
    assert {method_of(name) for name in catalogue.TUNERS} == set(TUNERS)
    assert properties["ladder"]["properties"]["kinds"]["items"]["enum"] == list(KINDS)
    assert {entry.section for entry in catalogue.TUNERS.values()} <= properties.keys()
    for name, entry in catalogue.SAMPLERS.items():
        axes = [axis.name for axis in resolve_sampler(name)[0].axes]
        assert ["step_size", "batch_size", *entry.axes] == axes
    of_classes = {name for name, tuner in TUNERS.items() if tuner.tasks == ("classification",)}
    assert of_classes == {name for name, entry in catalogue.TUNERS.items() if entry.needs_classes}


def test_facts_are_those_of_the_models():
    """The tasks and numbers of training rows that checks of the configuration use."""
    train, test = pmf.split_u1(pmf.simulate(403))
    ratings = pmf.from_arrays(train, test, n_users=36, n_items=48)
    arrays = bnn.simulate(52)
    images = bnn.from_arrays(arrays["train_images"], arrays["train_labels"])
    for model, simulated, real in ((ratings, 403, 80_000), (images, 52, 60_000)):
        entry = catalogue.MODELS[model.name]
        assert (entry.task, entry.n_data({"simulated": simulated})) == (model.task, model.n_data)
        assert entry.n_data({"simulated": None}) == real


def test_defaults_are_those_of_the_library():
    """`sgtune.tune` without a configuration does what the paper run does on the logistic regression."""
    paper, library = raw_config("paper"), Settings()
    grid, mamba = paper["grids"]["logistic"], paper["mamba"]
    given = {name: tuple(values) for name, values in grid.items()}
    # None stands for the paper's fractions that leave enough rows.
    assert given.pop("batch_fractions") == BATCH_FRACTIONS == default_fractions(800_000)
    assert library.batch_fractions is None
    assert given == {name: getattr(library, name) for name in given}
    for name in ("pruning_rate", "clock", "thin"):
        assert mamba[name] == getattr(library, name)
    # The paper's scores use all data; a user rather wants the cheaper tenth, corrected at the mode.
    assert (mamba["score_fraction"], library.score_fraction) == (1, 0.1)
    assert library.points is None
    for section, tuner in (("mamba", "mamba-ksd"), ("grid", "grid"), ("grid_ksd", "grid-ksd")):
        assert paper[section]["points"] == (TUNERS[tuner].points or TUNERS[tuner].judge.points)
    for name in ("batch_fraction", "n_leapfrog"):
        assert paper["heuristic"][name] == getattr(library, name)
    assert paper["grid"]["start_noise"] == library.start_noise
    defaults = {name: entry.default for name, entry in inspect.signature(find_map).parameters.items()}
    assert paper["map"] == {name: defaults[name] for name in ("epochs", "tolerance", "max_steps")}


def test_tuning_takes_the_machine_unless_a_table_decides():
    """With the wall clock of one tuner it takes the machine although there is a table."""
    assert {run: raw_config(run)["calibration"]["table"] for run in ("quick", "medium", "paper", "tiny")} == {
        **dict.fromkeys(("medium", "paper", "tiny")),
        "quick": "config/cost/quick.json",
    }
    quick = raw_config("quick")
    assert not any(tunes_alone(quick, model) for model in quick["models"])
    quick["per_model"]["pmf"]["mamba"]["clock"] = "wall"
    assert [tunes_alone(quick, model) for model in quick["models"]] == [False, True, False]
    quick["calibration"]["table"] = None
    assert all(tunes_alone(quick, model) for model in quick["models"])


def test_the_table_of_medium_has_the_costs_of_the_published_run():
    """docs/reproducing.md says so: with other costs, races of the same seed have other steps and choose other arms."""
    with (ROOT / "results/published/tuning/tables/cost.csv").open(encoding="utf-8") as file:
        published = {
            (row["model"], row["sampler"], row["detail"]): float(row["value"])
            for row in csv.DictReader(file)
            if row["metric"] == "step_ms"
        }
    held = {}
    for model, costs in json.loads((ROOT / "config/cost/medium.json").read_text())["models"].items():
        for row in costs["rows"]:
            shape = f"n = {row['batch_size']:,}" + (f", L = {row['n_leapfrog']}" if row["n_leapfrog"] else "")
            held[model, row["sampler"], shape] = 1_000 * row["seconds_per_step"]
    assert held == pytest.approx(published, rel=1e-12)
