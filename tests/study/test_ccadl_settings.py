"""The section ``ccadl``: the settings that its results depend on, one-line errors, and its jobs."""

import copy
import os
import re
import subprocess

import pytest
from config_files import SCHEMA_PATH, config_with, raw_config, valid
from workflow_runs import ROOT, snakemake

from sgtune.study.ccadl.artifacts import METHODS, SETS
from sgtune.study.ccadl.methods import METHODS as RUNS
from sgtune.study.ccadl.methods import sampler_of
from sgtune.study.ccadl.settings import KINDS, data_settings, reference_settings, settings_of
from sgtune.study.config.sections import fingerprint
from sgtune.study.config.validate import validate_config
from sgtune.study.posteriors.classification import SETS as DATA
from sgtune.support.errors import InputError

BAD = [
    ({"ccadl__normal__batch_size": 1}, "ccadl.normal.batch_size", "1", ">= 2"),
    ({"ccadl__normal__batch_size": 101}, "ccadl.normal.batch_size", "101", "<= ccadl.normal.n_data = 100"),
    ({"ccadl__normal__frictions": [0]}, "ccadl.normal.frictions[0]", "0", "> 0"),
    ({"ccadl__normal__step_sizes": [-0.1]}, "ccadl.normal.step_sizes[0]", "-0.1", "> 0"),
    ({"ccadl__normal__samplers": ["cadl"]}, "ccadl.normal.samplers[0]", "'cadl'", "did you mean 'ccadl'?"),
    ({"ccadl__normla": {}}, "ccadl.normla", "no such key", "did you mean 'normal'?"),
    ({"ccadl__logistic__batch_size": 12_215}, "ccadl.logistic.batch_size", "12215", "<= 12214"),
    ({"ccadl__logistic__draws__friction": 0}, "ccadl.logistic.draws.friction", "0", "> 0"),
    (
        {"ccadl__logistic__reference__n_draws": 401},
        "ccadl.logistic.reference.n_draws",
        "401",
        "a multiple of ccadl.logistic.reference.chains = 2",
    ),
    ({"ccadl__drbm__sets": ["letters"]}, "ccadl.drbm.sets[0]", "'letters'", "did you mean 'letter'?"),
    ({"ccadl__drbm__burn_in": 1}, "ccadl.drbm.burn_in", "1", "<= 0.9"),
    ({"ccadl__data__simulated": 400}, "ccadl.logistic.batch_size", "500", "<= ccadl.data.simulated = 400"),
    ({"ccadl": 3}, "ccadl", "3", "a mapping"),
]


@pytest.mark.parametrize(("changes", *("key", "value", "allowed")), BAD, ids=[bad[1] for bad in BAD])
def test_bad_input_is_one_line_with_the_key_its_value_and_what_is_allowed(changes, key, value, allowed):
    with pytest.raises(InputError) as caught:
        validate_config(config_with(**changes), SCHEMA_PATH)
    message = str(caught.value)
    assert message.startswith(f"{key}: ")
    assert value in message
    assert allowed in message
    assert "\n" not in message


def test_what_may_be_named_is_what_there_is():
    assert set(METHODS) == set(RUNS)
    config = valid()
    for experiment in ("normal", "logistic", "drbm"):
        assert config["ccadl"][experiment]["samplers"] == list(METHODS)
    assert config["ccadl"]["drbm"]["sets"] == list(SETS)
    assert set(SETS) == set(DATA) - {"mnist79"}
    assert all(SETS[name] == DATA[name].label for name in SETS)
    assert sampler_of("sgnht", "diagonal") == sampler_of("sgnht", "full") == "sgnht-shang"
    assert (sampler_of("ccadl", "full"), sampler_of("ccadl", "diagonal")) == ("ccadl", "ccadl-diagonal")


def prints(config):
    """The fingerprint of each result of the study."""
    found = {
        (kind, method): settings_of(config, kind, method)
        for kind in KINDS
        if kind != "drbm"
        for method in METHODS
    }
    found |= {
        ("drbm", method, name): settings_of(config, "drbm", method, name)
        for method in METHODS
        for name in SETS
    }
    found |= {("data",): data_settings(config), ("reference",): reference_settings(config)}
    return {result: fingerprint(settings) for result, settings in found.items()}


@pytest.mark.parametrize(
    ("changes", "kinds"),
    [
        ({"normal__samplers": ["ccadl"], "drbm__sets": ["letter"]}, set()),
        ({"normal__steps": 5}, {"normal"}),
        ({"logistic__curves__passes": 5}, {"logistic_curves"}),
        ({"logistic__draws__steps": 500}, {"logistic_draws"}),
        ({"logistic__batch_size": 50}, {"logistic_curves", "logistic_draws"}),
        ({"logistic__reference__n_draws": 50}, {"reference"}),
        ({"drbm__passes": 5}, {"drbm"}),
        ({"data__simulated": 600}, {"data", "reference", "logistic_curves", "logistic_draws", "drbm"}),
    ],
)
def test_a_key_changes_what_depends_on_it_and_nothing_else(changes, kinds):
    config = valid()
    before = prints(config)
    other = copy.deepcopy(config)
    for path, value in changes.items():
        *sections, key = path.split("__")
        part = other["ccadl"]
        for section in sections:
            part = part[section]
        part[key] = value
    after = prints(other)
    assert {result[0] for result in before if before[result] != after[result]} == kinds


def test_step_sizes_of_one_set_change_that_set_alone():
    config = valid()
    before, config["ccadl"]["drbm"]["step_sizes"]["letter"] = prints(config), [0.5]
    after = prints(config)
    assert {result for result in before if before[result] != after[result]} == {
        ("drbm", method, "letter") for method in METHODS
    }


def jobs_of(folder, *arguments):
    command = snakemake(folder, "--dry-run", *arguments)
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return re.findall(r"^(?:local)?rule (\w+):", done.stdout, re.M), done.stdout


def test_the_study_is_made_by_its_own_rule_and_by_no_other(tmp_path):
    (tmp_path / "config").symlink_to(ROOT / "config")
    rules, _ = jobs_of(tmp_path, "ccadl")
    section = raw_config("quick")["ccadl"]
    n_methods = len(METHODS)
    assert rules.count("sample_normal") == rules.count("sample_logistic_curves") == n_methods
    assert rules.count("sample_drbm") == n_methods * len(section["drbm"]["sets"])
    assert rules.count("download_set") == 3
    assert rules.count("sample_set_nuts") == section["logistic"]["reference"]["chains"]
    assert not {"tune_sampler", "make_table", "describe_run", "prepare_movielens"} & set(rules)
    assert not {"sample_normal", "make_study_table", "download_set"} & set(jobs_of(tmp_path)[0])


def test_simulated_sets_need_no_download(tmp_path):
    (tmp_path / "config").symlink_to(ROOT / "config")
    rules, _ = jobs_of(tmp_path, "ccadl", "--configfile", str(ROOT / "tests/tiny.yaml"))
    assert not [rule for rule in rules if rule.startswith("download")]


def test_a_set_is_tried_for_again_without_what_does_not_depend_on_it(tmp_path):
    """Empty files of the same age stand in for a finished study."""
    (tmp_path / "config").symlink_to(ROOT / "config")
    _, printed = jobs_of(tmp_path, "ccadl")
    for line in re.findall(r"^ +output: (.+)$", printed, re.M):
        for path in line.split(", "):
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).touch()
            os.utime(tmp_path / path, (2e9, 2e9))
    by_age = ("--rerun-triggers", "mtime")
    assert jobs_of(tmp_path, "ccadl", *by_age)[0] == []
    again = "results/downloads/acoustic/source.json"
    rules, printed = jobs_of(tmp_path, "ccadl", *by_age, "--forcerun", again)
    assert rules.count("sample_drbm") == len(METHODS)
    assert "drbm/acoustic/ccadl.json" in printed
    assert "drbm/letter/ccadl.json" not in re.findall(r"output: (.+)", printed)
    assert not {"sample_normal", "sample_logistic_curves"} & set(rules)
