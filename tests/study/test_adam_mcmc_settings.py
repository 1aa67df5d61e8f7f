"""The section ``adam_mcmc``: the settings that its results depend on, one-line errors, and its jobs."""

import copy
import re
import subprocess

import pytest
from config_files import config_with, raw_config, valid
from workflow_runs import ROOT, snakemake

from sgtune.study.adam_mcmc.settings import (
    costs_settings,
    experiment_settings,
    grid_of,
    model_job_settings,
    models_of,
    posterior_settings,
    race_settings,
)
from sgtune.study.config.sections import fingerprint
from sgtune.study.config.validate import validate_config
from sgtune.support.errors import InputError

GRID = "adam_mcmc__grids__logistic__adam-mcmc"
BAD = [
    ({"adam_mcmc__acceptance__scales": [0]}, "adam_mcmc.acceptance.scales[0]", "0", "> 0"),
    (
        {"adam_mcmc__acceptance__directional_noises": [1, 2]},
        "adam_mcmc.acceptance.directional_noises",
        "[1, 2]",
        "contain 0",
    ),
    ({f"{GRID}__noise_sd": [-1]}, "adam_mcmc.grids.logistic.adam-mcmc.noise_sd[0]", "-1", "> 0"),
    (
        {f"{GRID}__directional_noise": [0, 1, 2, 3, 4, 5, 6]},
        "adam_mcmc.grids.logistic.adam-mcmc",
        "84",
        "<= 81",
    ),
    (
        {"adam_mcmc__race__judges": ["mamba-kdd"]},
        "adam_mcmc.race.judges[0]",
        "'mamba-kdd'",
        "did you mean 'mamba-ksd'?",
    ),
    ({"adam_mcmc__race__regret__seconds": [2, 1]}, "adam_mcmc.race.regret.seconds", "[2, 1]", "ascend"),
    ({"adam_mcmc": 3}, "adam_mcmc", "3", "a mapping"),
]


@pytest.mark.parametrize(("changes", *("key", "value", "allowed")), BAD, ids=[bad[1] for bad in BAD])
def test_bad_input_is_one_line_with_the_key_its_value_and_what_is_allowed(changes, key, value, allowed):
    with pytest.raises(InputError) as caught:
        validate_config(config_with(**changes))
    message = str(caught.value)
    assert message.startswith(f"{key}: ")
    assert value in message
    assert allowed in message
    assert "\n" not in message


def test_the_published_run_has_all_arms_and_samplers_of_the_papers_run():
    """Both change config.yaml, whose default run has fewer."""
    sections = {run: raw_config(run)["adam_mcmc"] for run in ("medium", "paper", "quick")}
    grids = {run: section["grids"] for run, section in sections.items()}
    assert grids["medium"] == grids["paper"] != grids["quick"]
    samplers = {run: section["evaluation"]["bnn"]["samplers"] for run, section in sections.items()}
    assert samplers["medium"] == samplers["paper"] != samplers["quick"]
    dimensions = {run: section["acceptance"]["dimensions"] for run, section in sections.items()}
    assert dimensions["medium"] == dimensions["paper"] != dimensions["quick"]


def test_samplers_without_a_test_have_the_grid_of_the_main_study():
    config = valid()
    assert grid_of(config, "logistic", "sgld") == config["grids"]["logistic"]
    assert "smaller" not in grid_of(config, "bnn", "sgnht")
    assert grid_of(config, "logistic", "mala") == config["adam_mcmc"]["grids"]["logistic"]["mala"]
    config["models"] = ["logistic"]
    assert models_of(config) == ["logistic"]


def test_the_study_can_name_batch_sizes_of_its_own_for_samplers_without_a_test():
    config = valid(adam_mcmc__grids__bnn__without_test__batch_fractions=[0.01])
    main = config["grids"]["bnn"]
    assert main["batch_fractions"] != [0.01]
    assert grid_of(config, "bnn", "sgld")["batch_fractions"] == [0.01]
    assert grid_of(config, "bnn", "sghmc")["log10_step_sizes"] == main["log10_step_sizes"]
    assert grid_of(config, "bnn", "mala") == config["adam_mcmc"]["grids"]["bnn"]["mala"]
    assert grid_of(config, "logistic", "sgld") == config["grids"]["logistic"]


def test_a_model_without_samplers_is_left_out_of_the_study():
    config = valid(adam_mcmc__evaluation__bnn__samplers=[])
    assert models_of(config) == ["logistic"]
    assert "bnn" not in " ".join(prints(config))


def prints(config):
    """The fingerprint of each result of the study."""
    found = {name: experiment_settings(config, name) for name in ("gaussians", "bias", "distances")}
    found["posterior"] = posterior_settings(config)
    for model in models_of(config):
        found[f"costs of {model}"] = costs_settings(config, model)
        for sampler in config["adam_mcmc"]["evaluation"][model]["samplers"]:
            found[f"{sampler} of {model}"] = model_job_settings(config, model, sampler)
    for sampler in config["adam_mcmc"]["race"]["samplers"]:
        found[f"race of {sampler}"] = race_settings(config, sampler)
    return {result: fingerprint(settings) for result, settings in found.items()}


@pytest.mark.parametrize(
    ("path", "value", "results"),
    [
        ("acceptance__steps", 500, {"gaussians"}),
        ("acceptance__dimensions", [10], set()),
        ("acceptance__steps_per_dimension", 7, {"gaussians"}),
        ("acceptance__long_up_to", 7, {"gaussians"}),
        ("acceptance__few_dimensions__replicates", 7, {"gaussians"}),
        ("acceptance__most_steps", 7, {"gaussians"}),
        ("acceptance__posterior_steps", 500, {"posterior"}),
        ("acceptance__posterior_long", 500, {"posterior"}),
        ("acceptance__posterior_drifts", [3], {"posterior"}),
        ("acceptance__drifts", [3], {"gaussians"}),
        ("acceptance__scales", [0.7], {"gaussians"}),
        ("acceptance__posterior_scales", [0.7], {"posterior"}),
        ("acceptance__directional_noises", [0, 3], {"gaussians", "posterior"}),
        ("acceptance__replicates", 9, {"gaussians"}),
        ("acceptance__posterior_replicates", 9, {"posterior"}),
        ("bias__steps", 500, {"bias"}),
        ("race__judges", ["mamba"], {"race of adam-mcmc", "race of mala", "race of hmc"}),
        ("grids__logistic__mala__log10_step_sizes", [-5], {"race of mala", "mala of logistic"}),
        (
            "evaluation__bnn__seconds",
            5,
            {f"{sampler} of bnn" for sampler in ("adam-mcmc", "sgld", "sghmc", "sgnht")},
        ),
    ],
)
def test_a_key_changes_what_depends_on_it_and_nothing_else(path, value, results):
    config = valid()
    before, other = prints(config), copy.deepcopy(config)
    *sections, key = path.split("__")
    part = other["adam_mcmc"]
    for section in sections:
        part = part[section]
    part[key] = value
    after = prints(other)
    assert {result for result in before if before[result] != after[result]} == results


def test_the_study_is_made_by_its_own_rule(tmp_path):
    (tmp_path / "config").symlink_to(ROOT / "config")
    done = subprocess.run(
        snakemake(tmp_path, "--dry-run", "adam_mcmc"), capture_output=True, text=True, check=True
    )
    rules = re.findall(r"^(?:local)?rule (\w+):", done.stdout, re.M)
    section = raw_config("quick")["adam_mcmc"]
    assert rules.count("measure_acceptance_gaussian") == len(section["acceptance"]["dimensions"])
    assert rules.count("race_adam_mcmc") == len(section["race"]["samplers"])
    assert rules.count("evaluate_adam_mcmc") == sum(
        len(own["samplers"]) for own in section["evaluation"].values()
    )
    # Of the network, which this run leaves out, it makes nothing.
    assert rules.count("calibrate_adam_mcmc") == rules.count("find_map") == 1
    assert not {"tune_sampler", "make_table", "sample_normal", "prepare_movielens", "prepare_mnist"} & set(
        rules
    )
