"""The defaults are the paper's values, and what the library does without a configuration."""

import inspect

import pytest
import yaml
from config_files import OVERLAYS, ROOT, SCHEMA, own_values, raw_config, valid
from jsonschema import Draft202012Validator

from sgtune.mode.find import find_map
from sgtune.samplers import resolve_sampler, sampler_names
from sgtune.study import catalogue
from sgtune.study.catalogue import method_of
from sgtune.study.config.schema import generated
from sgtune.study.config.sections import model_settings
from sgtune.study.config.validate import overridden, validate_config
from sgtune.study.experiments.ladder import KINDS
from sgtune.study.mamba.comparison import deviations
from sgtune.study.pipeline.plan import check_costs, tunes_alone
from sgtune.study.posteriors import bnn, pmf
from sgtune.tuning import TUNERS, GridSearch, Halving, Heuristic, stein
from sgtune.tuning.grid import BATCH_FRACTIONS, LOG10_STEP_SIZES, default_fractions


@pytest.mark.parametrize("run", OVERLAYS)
def test_runs_are_valid_set_every_key_and_override_nothing_silently(run):
    """No run gets the paper's budget for a key that its file forgot."""
    config = raw_config(run)
    validate_config(config)
    check_costs(config)
    assert config == raw_config(run)
    assert config["run"] == run
    assert list(Draft202012Validator(SCHEMA).iter_errors(config)) == []
    # The tiny run is for tests alone.
    assert run == "tiny" or overridden(config, own_values(run)) == []


def test_what_is_generated_is_made_from_the_models():
    for path, made in generated(ROOT).items():
        assert path.read_text(encoding="utf-8") == made, "run: python -m sgtune.study.config.schema"
    assert yaml.safe_load((ROOT / "workflow/schemas/config.schema.yaml").read_text("utf-8")) == SCHEMA
    (row,) = [row.split(" | ") for row in made.splitlines() if row.startswith("| `mamba.seconds` |")]
    assert row[2:] == ["s", "a number > 0 and <= 86400", "`1` |"]


def test_paper_run_is_the_defaults():
    """But for the values of single models."""
    paper, defaults = raw_config("paper"), {"run": "paper", "models": ["logistic"]}
    validate_config(defaults)
    assert paper == defaults | {name: paper[name] for name in ("models", "per_model")}


def test_a_key_given_for_a_section_leaves_the_others_as_they_are_there():
    config = {"run": "mine", "models": ["logistic"], "ccadl": {"map": {"epochs": 5}}}
    validate_config(config)
    assert config["map"] == {"epochs": 500, "tolerance": 0.01, "max_steps": 5_000}
    assert config["ccadl"]["map"] == {"epochs": 5, "tolerance": 0.05, "max_steps": 1_000}


def test_the_run_has_the_papers_values_but_for_these():
    """Sects. 4.1 to 4.3 and App. B."""
    papers = yaml.safe_load((ROOT / "workflow/resources/paper_settings.yaml").read_text("utf-8"))
    cells = deviations({"settings": [{"configuration": valid()}], "paper_settings": [papers]})
    ours = {f"{cell.metric}, {cell.model}": cell.text for cell in cells if cell.detail == "this run"}
    clocks = ("mamba.clock, ", "grid_ksd.clock, logistic", "evaluation.clock, ")
    models = ("logistic", "pmf", "bnn")
    assert ours == {
        # Two chains share the draws.
        **{f"reference.chains, {model}": "2" for model in models[:2]},
        **{f"evaluation.replicates, {model}": number for model, number in zip(models, "553", strict=True)},
        **{f"tuning.replicates, {model}": number for model, number in zip(models, "533", strict=True)},
        **dict.fromkeys(clocks, "calibrated"),
        "evaluation.ksd_points, bnn": "70",
    }


def test_values_of_a_model_win_over_the_section_and_leave_its_other_keys():
    config = valid(evaluation__burn_in=0.5, per_model__logistic__evaluation__curves__seconds=[1])
    expected = config["evaluation"] | {"curves": config["evaluation"]["curves"] | {"seconds": [1]}}
    assert model_settings(config, "logistic")["evaluation"] == expected


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
    """`sgtune.tune` by itself does what the paper run does on the logistic regression, except for step sizes."""
    paper, library = raw_config("paper"), Halving()
    grid, mamba = paper["grids"]["logistic"], paper["mamba"]
    given = {name: tuple(values) for name, values in grid.items()}
    # None stands for the paper's fractions that leave enough rows.
    assert given.pop("batch_fractions") == BATCH_FRACTIONS == default_fractions(800_000)
    assert library.grid.batch_fractions is None
    # The library's step sizes fit the sampler and the posterior.
    assert given.pop("log10_step_sizes") == LOG10_STEP_SIZES
    assert library.grid.log10_step_sizes is None
    assert given == {name: getattr(library.grid, name) for name in given}
    for name in ("pruning_rate", "clock", "thin"):
        assert mamba[name] == getattr(library, name)
    # The paper's scores use all data; a user rather wants the cheaper tenth, corrected at the mode.
    assert (mamba["score_fraction"], stein().scores["score_fraction"]) == (1, 0.1)
    assert mamba["score_rows"] == library.judge.scores["score_rows"]
    assert library.points is None
    for section, tuner in (("mamba", "mamba-ksd"), ("grid", "grid"), ("grid_ksd", "grid-ksd")):
        assert paper[section]["points"] == (TUNERS[tuner].points or TUNERS[tuner].judge.points)
    for name in ("batch_fraction", "n_leapfrog"):
        assert paper["heuristic"][name] == getattr(Heuristic(), name)
    for name in ("start_noise", "batch_fraction"):
        assert paper["grid"][name] == getattr(GridSearch(), name)
    defaults = {name: entry.default for name, entry in inspect.signature(find_map).parameters.items()}
    assert paper["map"] == {name: defaults[name] for name in ("epochs", "tolerance", "max_steps")}


def test_tuning_takes_the_machine_unless_a_table_decides():
    """With the wall clock of one tuner it takes the machine although there is a table."""
    quick = raw_config("quick")

    def alone():
        return [tunes_alone(quick, model) for model in quick["models"]]

    assert not any(alone())
    quick["per_model"]["pmf"]["mamba"]["clock"] = "wall"
    assert alone() == [False, True, False]
    quick["calibration"]["table"] = None
    assert all(alone())
