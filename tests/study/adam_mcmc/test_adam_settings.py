"""The section ``adam_mcmc``: the settings that its results depend on, and one-line errors."""

import copy

import pytest
from config_files import config_with, valid

from sgtune.study.adam_mcmc.settings import grid_of, settings_of
from sgtune.study.config.sections import fingerprint
from sgtune.study.config.validate import validate_config
from sgtune.support.errors import InputError

BAD = [
    ({"acceptance__directional_noises": [1, 2]}, "acceptance.directional_noises", "[1, 2]", "contain 0"),
    ({"grids__adam-mcmc__noise_sd": [*range(1, 12)]}, "grids.adam-mcmc", "132", "<= 81"),
    ({"race__judges": ["mamba-kdd"]}, "race.judges[0]", "'mamba-kdd'", "did you mean 'mamba-ksd'?"),
    ({"race__regret__seconds": [2, 1]}, "race.regret.seconds", "[2, 1]", "ascend"),
    ({"evaluation__bnn": {}}, "evaluation.bnn", "no such key", "samplers"),
]


@pytest.mark.parametrize(("changes", "key", "value", "allowed"), BAD, ids=[bad[1] for bad in BAD])
def test_bad_input_is_one_line_with_the_key_its_value_and_what_is_allowed(changes, key, value, allowed):
    changes = {f"adam_mcmc__{path}": own for path, own in changes.items()}
    with pytest.raises(InputError) as caught:
        validate_config(config_with(**changes))
    message = str(caught.value)
    assert message.startswith(f"adam_mcmc.{key}: ")
    assert value in message
    assert allowed in message
    assert "\n" not in message


def test_samplers_without_a_test_have_the_grid_of_the_main_study():
    config = valid()
    assert grid_of(config, "sgld") == config["grids"]["logistic"]
    assert grid_of(config, "mala") == config["adam_mcmc"]["grids"]["mala"]


def prints(config):
    """The fingerprint of each result of the study."""
    known = ("gaussians", "posterior", "bias", "distances", "costs")
    found = {name: settings_of(config, name) for name in known}
    for result in ("race", "evaluation"):
        for sampler in config["adam_mcmc"][result]["samplers"]:
            found[f"{result} of {sampler}"] = settings_of(config, result, sampler)
    return {result: fingerprint(settings) for result, settings in found.items()}


EVALUATIONS = {f"evaluation of {name}" for name in ("adam-mcmc", "mala", "hmc", "sgld", "sghmc", "sgnht")}
RACES = {f"race of {name}" for name in ("adam-mcmc", "mala", "hmc")}


@pytest.mark.parametrize(
    ("path", "value", "results"),
    [
        ("acceptance__dimensions", [10], set()),
        ("acceptance__few_dimensions__replicates", 7, {"gaussians"}),
        ("acceptance__drifts", [3], {"gaussians"}),
        ("acceptance__posterior_drifts", [3], {"posterior"}),
        ("acceptance__directional_noises", [0, 3], {"gaussians", "posterior"}),
        ("acceptance__batch_fraction", 0.5, {"posterior", "costs"}),
        ("bias__steps", 500, {"bias"}),
        ("distances__slow_steps", 500, {"distances"}),
        ("race__judges", ["mamba"], RACES),
        ("race__samplers", ["mala"], {"costs"}),
        ("race__pruning_rate", 4, RACES | EVALUATIONS),
        ("grids__mala__log10_step_sizes", [-5], {"race of mala", "evaluation of mala"}),
        ("grids__hmc__n_leapfrogs", [3], {"race of hmc", "evaluation of hmc", "costs"}),
        ("evaluation__seconds", 5, EVALUATIONS),
    ],
)
def test_a_key_changes_what_depends_on_it_and_nothing_else(path, value, results):
    config = valid()
    if path == "race__samplers":
        # An evaluation needs their costs, too.
        config["adam_mcmc"]["evaluation"]["samplers"] = ["sgld"]
    before, other = prints(config), copy.deepcopy(config)
    *sections, key = path.split("__")
    part = other["adam_mcmc"]
    for section in sections:
        part = part[section]
    part[key] = value
    after = prints(other)
    assert {result for result in before if before[result] != after.get(result, before[result])} == results
