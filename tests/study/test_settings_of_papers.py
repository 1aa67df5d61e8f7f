"""The sections ``ccadl`` and ``adam_mcmc``: the settings that results depend on."""

import pytest
from config_files import changed, valid

from sgtune.samplers import resolve_sampler
from sgtune.study.adam_mcmc import artifacts as adam_mcmc
from sgtune.study.ccadl import artifacts as ccadl
from sgtune.study.ccadl.artifacts import METHODS, SETS
from sgtune.study.ccadl.chains import sampler_of
from sgtune.study.config.sections import fingerprint
from sgtune.study.posteriors.classification import SETS as DATA


def test_what_may_be_named_is_what_there_is():
    section = valid()["ccadl"]
    for experiment in ("normal", "logistic", "drbm"):
        assert section[experiment]["samplers"] == list(METHODS)
    assert section["drbm"]["sets"] == list(SETS)
    assert list(SETS) == [name for name, entry in DATA.items() if entry.n_hidden is not None]
    for name in METHODS:
        resolve_sampler(sampler_of(name, "full"))
        resolve_sampler(sampler_of(name, "diagonal"))
    assert sampler_of("sgnht", "diagonal") == sampler_of("sgnht", "full") == "sgnht-shang"
    assert (sampler_of("ccadl", "full"), sampler_of("ccadl", "diagonal")) == ("ccadl", "ccadl-diagonal")


def test_samplers_without_a_test_have_the_grid_of_the_main_study():
    config = valid()
    assert adam_mcmc.grid_of(config, "sgld") == config["grids"]["logistic"]
    assert adam_mcmc.grid_of(config, "mala") == config["adam_mcmc"]["grids"]["mala"]


def results_of(config):
    """The settings of each result of the two studies."""
    found = {"data": ccadl.data_settings(config), "reference": ccadl.reference_settings(config)}
    for name in METHODS:
        found |= {f"{kind} of {name}": ccadl.settings_of(config, kind, name) for kind in ccadl.KINDS}
        found |= {f"{of} of {name}": ccadl.settings_of(config, "drbm", name, of) for of in SETS}
        del found[f"drbm of {name}"]
    for kind in ("gaussians", "posterior", "bias", "distances", "costs"):
        found[kind] = adam_mcmc.settings_of(config, kind)
    for kind in ("race", "evaluation"):
        for name in config["adam_mcmc"][kind]["samplers"]:
            found[f"{kind} of {name}"] = adam_mcmc.settings_of(config, kind, name)
    return {result: fingerprint(settings) for result, settings in found.items()}


def each(*kinds):
    return {f"{kind} of {name}" for kind in kinds for name in METHODS}


EVALUATIONS = {f"evaluation of {name}" for name in ("adam-mcmc", "mala", "hmc", "sgld", "sghmc", "sgnht")}
RACES = {f"race of {name}" for name in ("adam-mcmc", "mala", "hmc")}
LOGISTIC = each("logistic_curves", "logistic_draws")
DEPENDENCE = [
    ("ccadl__normal__samplers", ["ccadl"], set()),
    ("ccadl__drbm__sets", ["letter"], set()),
    ("ccadl__normal__steps", 500, each("normal")),
    ("ccadl__logistic__curves__passes", 5, each("logistic_curves")),
    ("ccadl__logistic__draws__steps", 500, each("logistic_draws")),
    ("ccadl__logistic__batch_size", 50, LOGISTIC),
    ("ccadl__logistic__reference__n_draws", 50, {"reference"}),
    ("ccadl__drbm__passes", 5, each(*SETS)),
    ("ccadl__drbm__step_sizes__letter", [0.5], each("letter")),
    ("ccadl__data__simulated", 600, {"data", "reference"} | LOGISTIC | each(*SETS)),
    ("adam_mcmc__acceptance__dimensions", [10], set()),
    ("adam_mcmc__acceptance__few_dimensions__replicates", 7, {"gaussians"}),
    ("adam_mcmc__acceptance__drifts", [3], {"gaussians"}),
    ("adam_mcmc__acceptance__posterior_drifts", [3], {"posterior"}),
    ("adam_mcmc__acceptance__directional_noises", [0, 3], {"gaussians", "posterior"}),
    ("adam_mcmc__acceptance__batch_fraction", 0.5, {"posterior", "costs"}),
    ("adam_mcmc__bias__steps", 500, {"bias"}),
    ("adam_mcmc__distances__slow_steps", 500, {"distances"}),
    ("adam_mcmc__race__judges", ["mamba"], RACES),
    ("adam_mcmc__race__samplers", ["mala"], {"costs"}),
    ("adam_mcmc__race__pruning_rate", 4, RACES | EVALUATIONS),
    ("adam_mcmc__grids__mala__log10_step_sizes", [-5], {"race of mala", "evaluation of mala"}),
    ("adam_mcmc__grids__hmc__n_leapfrogs", [3], {"race of hmc", "evaluation of hmc", "costs"}),
    ("adam_mcmc__evaluation__seconds", 5, EVALUATIONS),
]


@pytest.mark.parametrize(("path", "value", "results"), DEPENDENCE, ids=[path for path, _, _ in DEPENDENCE])
def test_a_key_changes_what_depends_on_it_and_nothing_else(path, value, results):
    config = valid()
    if path == "adam_mcmc__race__samplers":
        # An evaluation needs their costs, too.
        config["adam_mcmc"]["evaluation"]["samplers"] = ["sgld"]
    before = results_of(config)
    after = results_of(changed(config, **{path: value}))
    assert {result for result in before if before[result] != after.get(result, before[result])} == results
