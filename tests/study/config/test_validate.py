"""Each mistake in a configuration gets one line that names the key, its value and what is allowed."""

import copy
import json
import re

import pytest
from config_files import ROOT, SCHEMA, config_with, raw_config, snakemake, valid
from hypothesis import given, settings
from hypothesis import strategies as st
from snakemake.utils import update_config

from sgtune.sampling.budget import batch_size_of
from sgtune.study.config.schema import entries
from sgtune.study.config.validate import overridden, validate_config
from sgtune.study.pipeline.job import exit_unless_startable
from sgtune.study.pipeline.plan import check_costs
from sgtune.support.errors import InputError

# What is set, and what the line says is allowed.
OF_ONE_KEY = [
    ("samplers", [], "a list without repeats, of 1 or more"),
    ("data.mirror", "", "null or text that is not empty"),
    ("data.mirror", "no/such/folder", "null or a folder"),
    ("data.ood", "notminst", "(did you mean 'notmnist'?); it must be one of: fashion-mnist, notmnist"),
    ("evaluation.burn_in", 1, "a number >= 0 and < 1"),
    ("mamba.seconds", "1e-1", "a file needs 1.0e-6, not 1e-6"),
    ("mamba.seconds", float("nan"), "a finite number"),
    ("mamba", 3, "a mapping with keys among clock, thin"),
    ("evaluation.curves.seconds", [1, 3, 2], "ascend"),
    ("run", "My run", "a string that matches"),
    ("run", "published", "another name: results/ has published, downloads"),
    # With another.
    ("grid.batch_fraction", 1e-7, ">= 1.25e-06, one of the 800000 training"),
    ("data.logistic.n_train", 1000000, "n_rows = 1000000"),
    ("reference.n_draws", 601, "a multiple of reference.chains = 2"),
    ("estimates.thin", 200, "<= estimates.max_points = 150"),
    ("map.max_steps", 0, "for logistic, which has 10 parameters"),
    ("calibration.table", "results/quick/cost/table.json", "copy"),
    ("ccadl.normal.batch_size", 101, "<= ccadl.normal.n_data = 100"),
    ("adam_mcmc.acceptance.directional_noises", [1, 2], "contain 0"),
    ("posteriors.reference.chains", 1, "be >= 2"),
    ("posteriors.reference.n_draws", 602, "a multiple of posteriors.reference.chains = 4"),
    # Of one model.
    ("per_model.pmf.mamba.seconds", 0, "a number > 0"),
    ("per_model.pmf.widths.widths", [0, 2], "contain 1"),
]
NAMED = [
    ("samplers", ["sgdl"], "samplers[0]: 'sgdl' is not allowed (did you mean 'sgld'?); it must be one of: "),
    ("models", ["own"], "models: 'own' is not allowed without the key model"),
    ("samplres", ["sgld"], "samplres: no such key (did you mean 'samplers'?); allowed: adam_mcmc,"),
    ("ccadl.data.simulated", 400, "ccadl.logistic.batch_size: 500 is not allowed; it must be <= ccadl.data."),
    ("adam_mcmc.grids.adam-mcmc.noise_sd", [*range(1, 12)], "adam_mcmc.grids.adam-mcmc: 132 is not allowed"),
    ("ladder.tuners", ["heuristic", "grid"], "ladder.tuners[1]: 'grid' is not allowed; it must judge"),
    ("grids.pmf.friction", [1.5], "grids.pmf.friction[0]: 1.5 is not allowed; it must be a number >= 0"),
    (
        "grids.pmf.noise_estimate",
        [0, 0.02],
        "grids.pmf.noise_estimate[1]: 0.02 is not allowed; it must be <=",
    ),
    ("grids.pmf.smaller", {"samplers": ["sgld"]}, "grids.pmf.smaller.log10_step_sizes: missing; it must be"),
    ("evaluation.curves.seconds", [0.1, 3], "evaluation.curves.seconds[1]: 3 is not allowed; a curve is"),
    ("per_model.pmf.seed", 1, "per_model.pmf.seed: no such key"),
    ("per_model.pmf.reference.chains", 7, "per_model.pmf.reference.n_draws: 40 is not allowed; it must be"),
    ("per_model.pmf.tuners", ["mamba-ece"], "per_model.pmf.tuners[0]: 'mamba-ece' is not allowed for pmf"),
    (
        "per_model.logistic.reference.nuts",
        False,
        "regret.prediction_draws: 0 is not allowed for logistic, which has no",
    ),
]
BAD = [(path, value, f"{path}: {value!r} ", said) for path, value, said in OF_ONE_KEY]
BAD += [(path, value, line, "") for path, value, line in NAMED]


def validate_and_check_costs(config: dict) -> None:
    """As the workflow does when it is read."""
    validate_config(config)
    check_costs(config)


def test_without_regret_no_predictions_are_asked_for():
    assert not valid(models=["bnn"], regret__seconds=[], regret__prediction_draws=0)["regret"]["seconds"]


@pytest.mark.parametrize(("path", "value", "start", "said"), BAD, ids=[f"{bad[0]} = {bad[1]}" for bad in BAD])
def test_bad_values_get_one_line(path, value, start, said):
    with pytest.raises(InputError) as caught:
        validate_and_check_costs(config_with(**{path.replace(".", "__"): value}))
    (line,) = str(caught.value).splitlines()
    assert line.startswith(start)
    assert said in line


ANY_VALUE = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), *map(st.just, ([], {}))
)


@settings(max_examples=60, deadline=None)
@given(path=st.sampled_from([path for path, _ in entries(SCHEMA)]), value=ANY_VALUE)
def test_any_value_is_accepted_or_named_in_one_line(path, value):
    message = ""
    try:
        validate_and_check_costs(config_with(**{path.replace(".", "__"): value}))
    except InputError as problem:
        message = str(problem)
    assert "\n" not in message
    assert re.match("|".join(["$", *SCHEMA["properties"]]), message)


@settings(max_examples=40, deadline=None)
@given(n_data=st.integers(2, 10**6), rows=st.floats(0.5, 1.5))
def test_fractions_are_refused_where_the_library_finds_no_row(n_data, rows):
    whole = ("heuristic__batch_fraction", "estimates__batch_fraction")
    of_lists = ("grids__logistic__batch_fractions", "estimates__batch_fractions")
    changes = dict.fromkeys(whole, 1) | {key: [1] for key in of_lists} | {"models": ["logistic"]}
    changes |= {"data__logistic__n_rows": n_data + 1, "data__logistic__n_train": n_data}
    config = config_with(**changes, grid__batch_fraction=rows / n_data, calibration__table=None)
    try:
        batch_size_of(rows / n_data, n_data)
    except InputError:
        with pytest.raises(InputError, match=r"^grid\.batch_fraction: "):
            validate_config(config)
    else:
        validate_config(config)


def test_whole_floats_become_integers():
    assert isinstance(valid(grid__n_steps=300.0)["grid"]["n_steps"], int)


def test_a_model_that_is_not_studied_is_not_checked_against_its_data():
    assert valid(models=["logistic"], data__bnn__simulated=60)
    with pytest.raises(
        InputError, match=r"^grids\.bnn\.batch_fractions\[2\]: 0\.01 .* of the 60 training rows"
    ):
        valid(data__bnn__simulated=60)


def test_a_cost_table_of_other_shapes_is_one_line(tmp_path):
    table, path = json.loads((ROOT / "config/cost/quick.json").read_text("utf-8")), tmp_path / "costs.json"
    table["models"]["logistic"]["rows"].pop()
    path.write_text(json.dumps(table))
    said = rf"^calibration\.table: '{path}' is not allowed: .*no entry for sampler=.*$"
    with pytest.raises(InputError, match=said):
        validate_and_check_costs(config_with(calibration__table=str(path)))


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
    # Not what an earlier file says of one.
    [line] = overridden(raw_config("quick"), {"per_model": of_pmf}, {"mamba": {"seconds": 7}})
    assert line == "mamba.seconds = 7, but 0.05 for pmf, 0.1 for bnn"


def test_workflow_stops_with_one_line_before_any_work(tmp_path):
    (tmp_path / "mine.yaml").write_text("calibration: {table: none.json}")
    done = snakemake(ROOT, "--dry-run", "--quiet", "all", "--configfile", str(tmp_path / "mine.yaml"))
    printed = (done.stdout + done.stderr).splitlines()
    (line,) = [line for line in printed if "Error" in line or "Trace" in line]
    assert done.returncode != 0
    said = "calibration.table: 'none.json' is not allowed: none.json: the file"
    assert line.startswith(f"Error in the configuration: {said}")


def test_a_file_of_the_command_line_that_is_missing_is_one_line(tmp_path):
    """A target after --configfile is taken for a file. Snakemake alone prints a traceback."""
    (tmp_path / "mine.yaml").touch()
    there = ["all", "--configfile", str(tmp_path / "mine.yaml"), "--cores", "2", "--config", "run=mine"]
    exit_unless_startable(there)
    for words in (["--configfiles", there[2], "table1", *there[3:]], [*there, "--configfile=table1"]):
        with pytest.raises(SystemExit, match=r"^Error: --configfile: 'table1' is not a file .*"):
            exit_unless_startable(words)


@pytest.mark.parametrize("name", ["HOME", "XDG_CACHE_HOME"])
def test_a_folder_of_snakemake_that_cannot_be_written_is_one_line(name, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv(name, str(tmp_path / "file"))
    with pytest.raises(SystemExit, match=f"^Error: {name}: '{tmp_path / 'file'}' cannot be written .*"):
        exit_unless_startable([])
