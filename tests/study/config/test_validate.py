"""Each mistake in a configuration gets one line that names the key, its value and what is allowed."""

import copy
import json
import re
import subprocess
import sys

import pytest
from config_files import ROOT, SCHEMA, config_with, plain_keys, raw_config, valid
from hypothesis import given, settings
from hypothesis import strategies as st
from snakemake.utils import update_config

from sgtune.model.posterior import LARGE_DIMENSION
from sgtune.sampling.budget import batch_size_of
from sgtune.study.config.checks import SMALL_DIMENSION
from sgtune.study.config.validate import overridden, validate_config
from sgtune.support.errors import InputError

GRIDS = raw_config("quick")["grids"]
OF_PMF = "per_model__pmf"
BAD = [
    # Of one key: (what is set, where it is named, its value, what is allowed).
    ({"samplers": ["sgdl"]}, "samplers[0]", "'sgdl'", "(did you mean 'sgld'?); it must be one of: sgld, "),
    ({"samplers": []}, "samplers", "[]", "a list without repeats, of 1 or more"),
    ({"samplers": ["sgld", "sgld"]}, "samplers", "['sgld', 'sgld']", "a list without repeats"),
    ({"tuners": "grid"}, "tuners", "'grid'", "a list without repeats"),
    ({"tuners": ["grid-smaller"]}, "tuners[0]", "'grid-smaller'", "one of: mamba-ksd, mamba-fssd, grid,"),
    ({"models": ["cnn"]}, "models[0]", "'cnn'", "did you mean 'bnn'?"),
    ({"samplres": ["sgld"]}, "samplres", "no such key", "did you mean 'samplers'?"),
    ({"mamba__secnods": 1}, "mamba.secnods", "no such key", "did you mean 'seconds'?"),
    ({"grids__cnn": {}}, "grids.cnn", "no such key", "allowed: bnn, logistic, pmf"),
    ({"grids__pmf__frictoin": [0.1]}, "grids.pmf.frictoin", "no such key", "did you mean 'friction'?"),
    ({"data__mirror": ""}, "data.mirror", "''", "null or text that is not empty"),
    ({"data__mirror": "no/such/folder"}, "data.mirror", "'no/such/folder'", "null or a folder"),
    ({"data__ood": "notminst"}, "data.ood", "'notminst'", "did you mean 'notmnist'?"),
    ({"data__bnn__simulated": 99.5}, "data.bnn.simulated", "99.5", "null or an integer >= 50"),
    ({"reference__nuts": "no"}, "reference.nuts", "'no'", "true or false"),
    ({"ladder__tuners": ["heuristic", "grid"]}, "ladder.tuners[1]", "'grid'", "without predictions"),
    ({"evaluation__burn_in": 1}, "evaluation.burn_in", "1", "a number >= 0 and < 1"),
    ({"mamba__seconds": 0}, "mamba.seconds", "0", "a number > 0 and <= 86400"),
    ({"mamba__seconds": "1e-1"}, "mamba.seconds", "'1e-1'", "a file needs 1.0e-6, not 1e-6"),
    ({"mamba__seconds": None}, "mamba.seconds", "None", "a number > 0"),
    ({"mamba__seconds": True}, "mamba.seconds", "True", "a number > 0"),
    ({"mamba__seconds": float("nan")}, "mamba.seconds", "nan", "a finite number"),
    ({"mamba__pruning_rate": 2.5}, "mamba.pruning_rate", "2.5", "an integer >= 2"),
    ({"mamba": 3}, "mamba", "3", "a mapping with keys among seconds"),
    ({"mamba": None}, "mamba", "None", "a mapping with keys among seconds"),
    ({"grids__pmf__friction": 0.1}, "grids.pmf.friction", "0.1", "a list without repeats, of 1 or more"),
    ({"grids__pmf__friction": [1.5]}, "grids.pmf.friction[0]", "1.5", "a number >= 0 and <= 1"),
    ({"evaluation__curves__seconds": [1, 3, 2]}, "evaluation.curves.seconds", "[1, 3, 2]", "ascend"),
    ({"regret__seconds": [2, 1]}, "regret.seconds", "[2, 1]", "ascend"),
    ({"run": "My run"}, "run", "'My run'", "a string that matches"),
    ({"run": "published"}, "run", "'published'", "tracked copy"),
    ({"published_as": "ccadl"}, "published_as", "'ccadl'", "another name"),
    ({"seed": -1}, "seed", "-1", "an integer >= 0"),
    # Of one key with another.
    (
        {"grid__batch_fraction": 1e-7},
        "grid.batch_fraction",
        "1e-07",
        ">= 1.25e-06, one of the 800000 training",
    ),
    ({"heuristic__batch_fraction": 1e-7}, "heuristic.batch_fraction", "1e-07", ">= 1.25e-06"),
    ({"estimates__batch_fraction": 1e-7}, "estimates.batch_fraction", "1e-07", ">= 1.25e-06"),
    ({"estimates__batch_fractions": [1e-7]}, "estimates.batch_fractions[0]", "1e-07", ">= 1.25e-06"),
    (
        {"grids__logistic__batch_fractions": [1, 1e-7]},
        "grids.logistic.batch_fractions[1]",
        "1e-07",
        ">= 1.25e-06",
    ),
    ({"tuning__validation_fraction": 1e-7}, "tuning.validation_fraction", "1e-07", "0 or >= 1.25e-06"),
    ({"grids__pmf__noise_estimate": [0, 0.02]}, "grids.pmf.noise_estimate", "0.02", "<= 0.01, the smallest"),
    (
        {"grids__pmf": {**GRIDS["pmf"], "friction": [0.2, 0.1], "noise_estimate": [0.15]}},
        *("grids.pmf.noise_estimate", "0.15", "<= 0.1, the smallest friction of the grid"),
    ),
    (
        {"grids__pmf__smaller": {"samplers": ["sgld"]}},
        "grids.pmf.smaller.log10_step_sizes",
        "missing",
        "sgld",
    ),
    ({"data__logistic__n_train": 1000000}, "data.logistic.n_train", "1000000", "n_rows = 1000000"),
    ({"reference__n_draws": 601}, "reference.n_draws", "601", "a multiple of reference.chains = 2"),
    (
        {"evaluation__curves__seconds": [1, 3]},
        "evaluation.curves.seconds",
        "[1, 3]",
        "<= evaluation.seconds = 0.1",
    ),
    ({"estimates__thin": 200}, "estimates.thin", "200", "<= estimates.max_points = 150"),
    ({"map__max_steps": 0}, "map.max_steps", "0", "for logistic, which has 10 parameters"),
    # Of one model.
    ({f"{OF_PMF}__mamab": {}}, "per_model.pmf.mamab", "no such key", "did you mean 'mamba'?"),
    ({f"{OF_PMF}__seed": 1}, "per_model.pmf.seed", "no such key", "allowed: calibration,"),
    ({"per_model__pfm": {}}, "per_model.pfm", "no such key", "did you mean 'pmf'?"),
    ({f"{OF_PMF}__mamba__seconds": 0}, "per_model.pmf.mamba.seconds", "0", "a number > 0"),
    ({f"{OF_PMF}__mamba": 3}, "per_model.pmf.mamba", "3", "a mapping with keys among seconds,"),
    ({f"{OF_PMF}__widths__widths": [0, 2]}, "per_model.pmf.widths.widths", "[0, 2]", "contain 1"),
    (
        {f"{OF_PMF}__reference__chains": 7},
        "per_model.pmf.reference.n_draws",
        "40",
        "per_model.pmf.reference.chains",
    ),
    ({f"{OF_PMF}__grid__batch_fraction": 1e-5}, "per_model.pmf.grid.batch_fraction", "1e-05", ">= 1.25e-05"),
    (
        {f"{OF_PMF}__tuners": ["grid", "mamba-ece"]},
        "per_model.pmf.tuners[1]",
        "'mamba-ece'",
        "not a classifier",
    ),
    (
        {f"{OF_PMF}__reference__nuts": False},
        "regret.prediction_draws",
        "0",
        "are judged by rmse; it must be >= 1",
    ),
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
@given(path=st.sampled_from(plain_keys(SCHEMA)), value=ANY_VALUE)
def test_any_value_is_accepted_or_named_in_one_line(path, value):
    message = ""
    try:
        validate_config(config_with(**{path.replace(".", "__"): value}))
    except InputError as problem:
        message = str(problem)
    assert "\n" not in message
    assert re.match("|".join(["$", *SCHEMA["properties"]]), message)


@settings(max_examples=40, deadline=None)
@given(n_data=st.integers(2, 10**6), rows=st.floats(0.5, 1.5))
def test_fractions_are_refused_where_the_library_finds_no_row(n_data, rows):
    fraction = rows / n_data
    data = {"data__logistic__n_rows": n_data + 1, "data__logistic__n_train": n_data}
    whole = {
        "heuristic__batch_fraction": 1,
        "estimates__batch_fraction": 1,
        "estimates__batch_fractions": [1],
    }
    changes = {"models": ["logistic"], **data, **whole, "grids__logistic__batch_fractions": [1]}
    config = config_with(**changes, grid__batch_fraction=fraction, calibration__table=None)
    try:
        batch_size_of(fraction, n_data)
    except InputError:
        with pytest.raises(InputError, match=r"^grid\.batch_fraction: "):
            validate_config(config)
    else:
        validate_config(config)


def test_whole_floats_become_integers_and_a_valid_configuration_stays():
    config = config_with(grid__n_steps=300.0)
    before = copy.deepcopy(config)
    validate_config(config)
    assert config == before
    assert isinstance(config["grid"]["n_steps"], int)


def test_only_a_large_model_has_a_mode_without_l_bfgs():
    """Adam does not run in ten dimensions."""
    assert SMALL_DIMENSION == LARGE_DIMENSION
    assert valid(per_model__bnn__map__max_steps=0)


def test_a_model_that_is_not_studied_is_not_checked_against_its_data():
    assert valid(models=["logistic"], data__bnn__simulated=60)
    with pytest.raises(
        InputError, match=r"^grids\.bnn\.batch_fractions\[2\]: 0\.01 .* of the 60 training rows"
    ):
        valid(data__bnn__simulated=60)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda models: models.pop("pmf"), "has no costs for pmf; it has costs for logistic, bnn"),
        (lambda models: models["bnn"].update(n_data=5), "are for n_data=5; this run has n_data=60000"),
        (
            lambda models: models["pmf"].update(dimension=5),
            "are for dimension=5; this run has dimension=52580",
        ),
        (lambda models: models["logistic"]["rows"].pop(), "no entry for sampler="),
        (lambda models: models["pmf"].update(rows=[{}]), "rows of pmf are not rows of a cost table"),
    ],
)
def test_a_cost_table_of_another_model_or_of_other_shapes_is_one_line(tmp_path, change, said):
    table = json.loads((ROOT / "config/cost/quick.json").read_text())
    change(table["models"])
    path = tmp_path / "costs.json"
    path.write_text(json.dumps(table))
    with pytest.raises(InputError) as failure:
        validate_config(config_with(calibration__table=str(path)))
    (line,) = str(failure.value).splitlines()
    assert line.startswith(f"calibration.table: {str(path)!r} is not allowed: ")
    assert said in line


@pytest.mark.parametrize(
    ("path", "said"), [("none.json", "missing"), ("results/quick/cost/table.json", "copy")]
)
def test_a_missing_cost_table_and_one_that_the_run_itself_writes_are_refused(path, said):
    with pytest.raises(InputError, match=rf"^calibration.table: '{path}' is not allowed: .*{said}"):
        validate_config(config_with(calibration__table=path))


def test_a_value_that_per_model_overrides_is_named_with_the_models_and_their_values():
    def said(**own):
        config = raw_config("quick")
        update_config(config, copy.deepcopy(own))
        return overridden(config, own)

    assert said(mamba={"seconds": 0.2}) == ["mamba.seconds = 0.2, but 0.05 for pmf, 0.1 for bnn"]
    # What holds for all, what is the same, and what the file itself says for a model.
    assert said(mamba={"horizon": 3}) == said(tuning={"replicates": 1}) == []
    of_pmf = {"pmf": {"mamba": {"seconds": 0.05}}}
    assert said(mamba={"seconds": 0.2}, per_model=of_pmf) == ["mamba.seconds = 0.2, but 0.1 for bnn"]


def snakemake(*arguments: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "snakemake", "--dry-run", "--quiet", "all", "--cores", "1", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("overlay", "line"),
    [
        (
            "grid: {batch_fraction: 1.0e-9}",
            "grid.batch_fraction: 1e-09 is not allowed; it must be >= 1.25e-06",
        ),
        (
            "artifacts: [table1, horizon]",
            "artifacts[1]: 'horizon' is not allowed; it must be one that this run has",
        ),
    ],
)
def test_workflow_stops_with_one_line_before_any_work(tmp_path, overlay, line):
    (tmp_path / "mine.yaml").write_text(overlay + "\n")
    result = snakemake("--configfile", str(tmp_path / "mine.yaml"))
    output = result.stdout + result.stderr
    assert result.returncode != 0
    assert output.count("Error") == 1
    assert f"Error in the configuration: {line}" in output
    assert "Traceback" not in output


def test_workflow_warns_once_of_an_overridden_value(tmp_path):
    (tmp_path / "mine.yaml").write_text("run: mine\nmamba: {seconds: 0.2}\n")
    result = snakemake("--configfile", str(tmp_path / "mine.yaml"))
    assert result.returncode == 0
    (line,) = re.findall("^Warning: per_model .*", result.stderr, re.M)
    assert line.endswith("mamba.seconds = 0.2, but 0.05 for pmf, 0.1 for bnn")
