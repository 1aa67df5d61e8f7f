"""The configuration: all runs are valid, they merge as documented, and each mistake gets one clear line."""

import copy
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from config_files import OVERLAYS, ROOT, SCHEMA, config_with, plain_keys, raw_config
from hypothesis import given, settings
from hypothesis import strategies as st

from sgtune.sampling.budget import batch_size_of
from sgtune.study.config.checks import check_config
from sgtune.study.config.sections import model_settings
from sgtune.study.config.validate import validate_config
from sgtune.support.errors import InputError

RESOLVED = SCHEMA


@pytest.mark.parametrize("run", OVERLAYS)
def test_runs_are_valid_and_named(run):
    config = raw_config(run)
    validate_config(config)
    assert config["run"] == run


@pytest.mark.parametrize("run", OVERLAYS)
def test_config_yaml_sets_every_key(run):
    """No run gets the paper's budget for a key that its file forgot."""
    config = raw_config(run)
    validate_config(config)
    assert config == raw_config(run)


def test_quick_and_paper_run_study_the_same():
    """The same models, samplers and tuners; the grids of quick are subsets of the paper's, without whole batches, with
    which ten steps of every arm would take longer than the run may."""
    quick, paper = raw_config("quick"), raw_config("paper")
    for key in ("seed", "models", "samplers", "data"):
        assert quick[key] == paper[key]
    for model in quick["models"]:
        assert model_settings(quick, model)["tuners"] == model_settings(paper, model)["tuners"]
        ours, theirs = quick["grids"][model], paper["grids"][model]
        assert set(ours["log10_step_sizes"]) <= set(theirs["log10_step_sizes"])
        assert set(ours["batch_fractions"]) < set(theirs["batch_fractions"]) | {0.001}
        if "smaller" in theirs:
            assert ours["smaller"]["samplers"] == theirs["smaller"]["samplers"]
            assert set(ours["smaller"]["log10_step_sizes"]) <= set(theirs["smaller"]["log10_step_sizes"])


GRID = raw_config("quick")["grids"]["pmf"]

BAD = [
    ({"samplers": ["sgdl"]}, "samplers[0]", "'sgdl'", "did you mean 'sgld'?"),
    ({"samplers": []}, "samplers", "[]", "a list without repeats, of 1 or more"),
    ({"samplers": ["sgld", "sgld"]}, "samplers", "['sgld', 'sgld']", "a list without repeats"),
    ({"tuners": ["mamba-kds"]}, "tuners[0]", "'mamba-kds'", "did you mean 'mamba-ksd'?"),
    ({"tuners": "grid"}, "tuners", "'grid'", "a list without repeats"),
    ({"models": ["logistics"]}, "models[0]", "'logistics'", "did you mean 'logistic'?"),
    ({"models": ["cnn"]}, "models[0]", "'cnn'", "did you mean 'bnn'?"),
    ({"samplres": ["sgld"]}, "samplres", "no such key", "did you mean 'samplers'?"),
    ({"mamba__secnods": 1}, "mamba.secnods", "no such key", "did you mean 'seconds'?"),
    ({"grids__cnn": {}}, "grids.cnn", "no such key", "allowed: bnn, logistic, pmf"),
    ({"data__mirror": 3}, "data.mirror", "3", "null or text that is not empty"),
    ({"data__mirror": ""}, "data.mirror", "''", "null or text that is not empty"),
    ({"data__mirror": "no/such/folder"}, "data.mirror", "'no/such/folder'", "it must be null or a folder"),
    ({"data__ood": "notminst"}, "data.ood", "'notminst'", "did you mean 'notmnist'?"),
    ({"data__pmf__simulated": 3}, "data.pmf.simulated", "3", "null or an integer >= 50"),
    ({"data__bnn__simulated": 99.5}, "data.bnn.simulated", "99.5", "null or an integer >= 50"),
    ({"reference__nuts": "no"}, "reference.nuts", "'no'", "true or false"),
    ({"ladder__kinds": ["axes"]}, "ladder.kinds[0]", "'axes'", "did you mean 'axis'?"),
    ({"ladder__dimensions": [1]}, "ladder.dimensions[0]", "1", "an integer >= 2"),
    ({"ladder__tuners": ["heuristic", "grid"]}, "ladder.tuners[1]", "'grid'", "without predictions"),
    ({"evaluation__burn_in": 1}, "evaluation.burn_in", "1", "a number >= 0 and < 1"),
    ({"evaluation__kept_draws": 0}, "evaluation.kept_draws", "0", "an integer >= 10"),
    ({"evaluation__ksd_points": -1}, "evaluation.ksd_points", "-1", "an integer >= 0"),
    ({"mamba__seconds": 0}, "mamba.seconds", "0", "a number > 0 and <= 86400"),
    ({"mamba__seconds": -1.5}, "mamba.seconds", "-1.5", "a number > 0"),
    ({"mamba__seconds": "soon"}, "mamba.seconds", "'soon'", "a number > 0"),
    ({"mamba__seconds": "1e-1"}, "mamba.seconds", "'1e-1'", "a file needs 1.0e-6, not 1e-6"),
    ({"mamba__seconds": None}, "mamba.seconds", "None", "a number > 0"),
    ({"mamba__seconds": True}, "mamba.seconds", "True", "a number > 0"),
    ({"mamba__seconds": float("nan")}, "mamba.seconds", "nan", "a finite number"),
    ({"mamba__seconds": float("inf")}, "mamba.seconds", "inf", "<= 86400"),
    ({"mamba__pruning_rate": 1}, "mamba.pruning_rate", "1", "an integer >= 2"),
    ({"mamba__pruning_rate": 2.5}, "mamba.pruning_rate", "2.5", "an integer >= 2"),
    ({"mamba__clock": "wal"}, "mamba.clock", "'wal'", "did you mean 'wall'?"),
    ({"mamba": 3}, "mamba", "3", "a mapping with keys among seconds"),
    ({"mamba": None}, "mamba", "None", "a mapping with keys among seconds"),
    ({"grid__n_steps": 9}, "grid.n_steps", "9", "an integer >= 10"),
    ({"grid__start_noise": -0.2}, "grid.start_noise", "-0.2", "a number >= 0"),
    ({"grid__batch_fraction": 0}, "grid.batch_fraction", "0", "a number > 0 and <= 1"),
    ({"grid__batch_fraction": 1.1}, "grid.batch_fraction", "1.1", "a number > 0 and <= 1"),
    (
        {"grid__batch_fraction": 1e-7},
        "grid.batch_fraction",
        "1e-07",
        ">= 1.25e-06, one of the 800000 training",
    ),
    ({"heuristic__batch_fraction": 1e-7}, "heuristic.batch_fraction", "1e-07", ">= 1.25e-06"),
    ({"estimates__batch_fraction": 1e-7}, "estimates.batch_fraction", "1e-07", ">= 1.25e-06"),
    (
        {"grids__logistic__batch_fractions": [1, 1e-7]},
        "grids.logistic.batch_fractions[1]",
        "1e-07",
        ">= 1.25e-06",
    ),
    ({"grids__logistic__batch_fractions": []}, "grids.logistic.batch_fractions", "[]", "of 1 or more"),
    ({"grids__logistic__batch_fractions": [800]}, "grids.logistic.batch_fractions[0]", "800", "<= 1"),
    ({"grids__logistic__log10_step_sizes": []}, "grids.logistic.log10_step_sizes", "[]", "of 1 or more"),
    (
        {"grids__logistic__log10_step_sizes": ["a"]},
        "grids.logistic.log10_step_sizes[0]",
        "'a'",
        "a number >= -20",
    ),
    ({"grids__logistic__n_leapfrogs": [0]}, "grids.logistic.n_leapfrogs[0]", "0", "an integer >= 1"),
    ({"grids__pmf__friction": [1.5]}, "grids.pmf.friction[0]", "1.5", "a number >= 0 and <= 1"),
    ({"grids__pmf__friction": 0.1}, "grids.pmf.friction", "0.1", "a list without repeats, of 1 or more"),
    ({"grids__pmf__frictoin": [0.1]}, "grids.pmf.frictoin", "no such key", "did you mean 'friction'?"),
    ({"grids__pmf__noise_estimate": [0, 0.02]}, "grids.pmf.noise_estimate", "0.02", "<= 0.01, the smallest"),
    (
        {"grids__pmf": {**GRID, "friction": [0.2, 0.1], "noise_estimate": [0.15]}},
        "grids.pmf.noise_estimate",
        "0.15",
        "<= 0.1, the smallest friction of the grid",
    ),
    ({"data__logistic__n_train": 1000000}, "data.logistic.n_train", "1000000", "n_rows = 1000000"),
    ({"reference__n_draws": 601}, "reference.n_draws", "601", "a multiple of reference.chains = 2"),
    ({"evaluation__curves__seconds": [1, 3, 2]}, "evaluation.curves.seconds", "[1, 3, 2]", "ascend"),
    ({"evaluation__curves__seconds": [0, 1]}, "evaluation.curves.seconds[0]", "0", "a number > 0"),
    ({"evaluation__seconds": 0}, "evaluation.seconds", "0", "a number > 0"),
    ({"run": "My run"}, "run", "'My run'", "a string that matches"),
    ({"run": "published"}, "run", "'published'", "tracked copy"),
    ({"seed": -1}, "seed", "-1", "an integer >= 0"),
    ({"seed": "lucky"}, "seed", "'lucky'", "an integer >= 0"),
]


@pytest.mark.parametrize(("changes", "key", "value", "hint"), BAD, ids=[str(bad[0]) for bad in BAD])
def test_bad_values_get_one_line(changes, key, value, hint):
    with pytest.raises(InputError) as caught:
        validate_config(config_with(**changes))
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(f"{key}: {value}")
    assert hint in message


def test_missing_run_is_named():
    with pytest.raises(InputError, match=r"^run: missing; it must be a string"):
        validate_config({})


ANY_VALUE = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just([]) | st.just({})
)


@settings(max_examples=60, deadline=None)
@given(path=st.sampled_from(plain_keys(RESOLVED)), value=ANY_VALUE)
def test_any_value_is_accepted_or_named_in_one_line(path, value):
    config = config_with(**{path.replace(".", "__"): value})
    try:
        validate_config(config)
    except InputError as problem:
        message = str(problem)
        assert "\n" not in message
        assert re.match("|".join(SCHEMA["properties"]), message)


def test_whole_floats_become_integers():
    config = config_with(grid__n_steps=300.0)
    validate_config(config)
    assert isinstance(config["grid"]["n_steps"], int)


def test_check_config_leaves_a_valid_config_alone():
    config = raw_config("quick")
    before = copy.deepcopy(config)
    check_config(config)
    assert config == before


@given(n_data=st.integers(2, 10**6), rows=st.floats(0.5, 1.5))
def test_fractions_are_refused_where_the_library_finds_no_row(n_data, rows):
    fraction = rows / n_data
    config = config_with(
        models=["logistic"],
        data__logistic__n_rows=n_data + 1,
        data__logistic__n_train=n_data,
        grid__batch_fraction=fraction,
    )
    config["grids"]["logistic"]["batch_fractions"] = [1]
    config["heuristic"]["batch_fraction"] = config["estimates"]["batch_fraction"] = 1
    config["estimates"]["batch_fractions"], config["calibration"]["table"] = [1], None
    try:
        size = batch_size_of(fraction, n_data)
    except InputError:
        with pytest.raises(InputError, match=r"^grid\.batch_fraction: "):
            check_config(config)
    else:
        assert size >= 1
        check_config(config)


def snakemake(*arguments: str, folder: Path) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "snakemake", "--dry-run", "--cores", "1", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


def test_overlay_merges_key_by_key(tmp_path):
    (tmp_path / "Snakefile").write_text(
        'import json\nconfigfile: "config.yaml"\njson.dump(config, open("seen.json", "w"))\nrule all:\n'
    )
    (tmp_path / "config.yaml").write_text("run: quick\npart: {kept: 1, changed: {list: [1, 2], kept: 3}}\n")
    (tmp_path / "paper.yaml").write_text("run: paper\npart: {changed: {list: [9]}}\n")
    result = snakemake("--configfile", "paper.yaml", "--config", "seed=5", folder=tmp_path)
    assert result.returncode == 0, result.stderr
    seen = json.loads((tmp_path / "seen.json").read_text())
    assert seen == {"run": "paper", "part": {"kept": 1, "changed": {"list": [9], "kept": 3}}, "seed": 5}


@pytest.mark.parametrize(
    ("overlay", "line"),
    [
        ("mamba: {seconds: 0}", "mamba.seconds: 0 is not allowed; it must be a number > 0 and <= 86400"),
        (
            "samplers: [sgdl]",
            "samplers[0]: 'sgdl' is not allowed (did you mean 'sgld'?); it must be one of: sgld,",
        ),
        ("published_as: ccadl", "published_as: 'ccadl' is not allowed; it must be another name"),
        (
            "artifacts: [table1, horizon]",
            "artifacts[1]: 'horizon' is not allowed; it must be one that this run has: table4,",
        ),
        ("tuner: [grid]", "tuner: no such key (did you mean 'tuners'?); allowed: adam_mcmc,"),
        (
            "grid: {batch_fraction: 1.0e-9}",
            "grid.batch_fraction: 1e-09 is not allowed; it must be >= 1.25e-06",
        ),
    ],
    ids=["number", "sampler", "folder", "artifact", "key", "across keys"],
)
def test_workflow_stops_with_one_line_before_any_work(tmp_path, overlay, line):
    (tmp_path / "mine.yaml").write_text(overlay + "\n")
    result = snakemake("--configfile", str(tmp_path / "mine.yaml"), folder=ROOT)
    output = result.stdout + result.stderr
    assert result.returncode != 0
    assert output.count("Error") == 1
    assert f"Error in the configuration: {line}" in output
    assert "Traceback" not in output
    assert "Job stats" not in output
