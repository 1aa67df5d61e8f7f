"""The section ``ccadl``: the settings that its results depend on, and one-line errors."""

import pytest
from config_files import changed, config_with, valid

from sgtune.samplers import resolve_sampler
from sgtune.study.ccadl.artifacts import METHODS, SETS
from sgtune.study.ccadl.chains import sampler_of
from sgtune.study.ccadl.settings import KINDS, data_settings, reference_settings, settings_of
from sgtune.study.config.sections import fingerprint
from sgtune.study.config.validate import validate_config
from sgtune.study.posteriors.classification import SETS as DATA
from sgtune.support.errors import InputError


@pytest.mark.parametrize(
    ("key", "value", "allowed"),
    [
        ("ccadl.normal.batch_size", 101, "<= ccadl.normal.n_data = 100"),
        ("ccadl.logistic.reference.n_draws", 401, "a multiple of ccadl.logistic.reference.chains = 2"),
        ("ccadl.data.simulated", 400, "ccadl.logistic.batch_size: 500 is not allowed"),
    ],
)
def test_keys_that_do_not_fit_each_other_are_one_line(key, value, allowed):
    with pytest.raises(InputError) as caught:
        validate_config(config_with(**{key.replace(".", "__"): value}))
    message = str(caught.value)
    assert key in message
    assert str(value) in message
    assert allowed in message
    assert "\n" not in message


def test_what_may_be_named_is_what_there_is():
    section = valid()["ccadl"]
    for experiment in ("normal", "logistic", "drbm"):
        assert section[experiment]["samplers"] == list(METHODS)
    assert section["drbm"]["sets"] == list(SETS)
    assert list(SETS) == [name for name, entry in DATA.items() if entry.n_hidden is not None]
    for name in METHODS:
        for form in ("full", "diagonal"):
            resolve_sampler(sampler_of(name, form))
    assert sampler_of("sgnht", "diagonal") == sampler_of("sgnht", "full") == "sgnht-shang"
    assert (sampler_of("ccadl", "full"), sampler_of("ccadl", "diagonal")) == ("ccadl", "ccadl-diagonal")


def prints(config):
    """The fingerprint of each result of the study."""
    found = {("data",): data_settings(config), ("reference",): reference_settings(config)}
    found |= {(kind, name): settings_of(config, kind, name) for kind in KINDS for name in METHODS}
    found |= {(of, name): settings_of(config, "drbm", name, of) for of in SETS for name in METHODS}
    return {result: fingerprint(settings) for result, settings in found.items() if result[0] != "drbm"}


@pytest.mark.parametrize(
    ("change", "kinds"),
    [
        ({"normal__samplers": ["ccadl"], "drbm__sets": ["letter"]}, set()),
        ({"normal__steps": 500}, {"normal"}),
        ({"logistic__curves__passes": 5}, {"logistic_curves"}),
        ({"logistic__draws__steps": 500}, {"logistic_draws"}),
        ({"logistic__batch_size": 50}, {"logistic_curves", "logistic_draws"}),
        ({"logistic__reference__n_draws": 50}, {"reference"}),
        ({"drbm__passes": 5}, set(SETS)),
        ({"drbm__step_sizes__letter": [0.5]}, {"letter"}),
        ({"data__simulated": 600}, {"data", "reference", "logistic_curves", "logistic_draws", *SETS}),
    ],
)
def test_a_key_changes_what_depends_on_it_and_nothing_else(change, kinds):
    config = valid()
    before = prints(config)
    changed(config["ccadl"], **change)
    after = prints(config)
    assert {result[0] for result in before if before[result] != after[result]} == kinds
