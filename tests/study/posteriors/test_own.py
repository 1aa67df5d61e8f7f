"""A model of a user's file: bad files are one line, and a good one is a model of the study like the others."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest
from config_files import valid

from sgtune.metrics import mean_prediction
from sgtune.model.posterior import scores
from sgtune.study.config import validate
from sgtune.study.config.sections import SECTIONS, fingerprint, settings_of
from sgtune.study.pipeline.forecast import budgets
from sgtune.study.pipeline.plan import extras_of, tuners_of
from sgtune.study.posteriors import load_model, own
from sgtune.study.studies import artifacts_of_run
from sgtune.support.errors import DataError, InputError
from sgtune.support.files import file_sha256, write_json

GOOD = """
import jax.numpy as jnp
import numpy as np
from pathlib import Path
import sgtune

DATA_FILES = ["scale.txt"]


def model():
    x = float((Path(__file__).parent / "scale.txt").read_text("utf-8")) * np.random.default_rng(0).normal(size=(200, 2))
    y = x @ np.array([1.0, 2.0])
    return sgtune.define_model(
        "mine",
        log_prior=lambda p: -0.5 * p @ p,
        log_likelihood=lambda p, batch: -0.5 * (batch["y"] - batch["x"] @ p) ** 2,
        data={"x": x, "y": y},
        init=lambda key: jnp.zeros(2),
        predict=lambda p, inputs: inputs @ p,
        test_data={"inputs": x[:5], "targets": y[:5]},
        task="regression",
    )
"""

BAD = {
    "it cannot be imported, line 2: ModuleNotFoundError: No module named 'no_such_package'": "\nimport no_such_package",
    "it cannot be imported, line 1: SyntaxError: invalid syntax": "def model(:\n",
    "it cannot be imported, line 1: SystemExit: 3": "raise SystemExit(3)",
    "it defines no function model()": "def modle(): pass",
    "model is 3": "model = 3",
    "model() failed, line 1: ZeroDivisionError: division by zero": "def model(): return 1 / 0",
    "model() failed, line 1: ValueError: of two lines": 'def model(): raise ValueError("of two\\nlines")',
    "model() failed: TypeError: model() missing 1 required positional argument: 'x'": "def model(x): return x",
    "model() returns int; it must return what define_model or from_numpyro returns": "def model(): return 1",
    "model() failed, line 3: data: model 'm' needs arrays that share a leading axis of N rows": (
        "import sgtune\ndef model():\n"
        "    return sgtune.define_model('m', log_prior=print, log_likelihood=print, data={}, init=print)"
    ),
    "DATA_FILES is 'a.csv'; it must be a list of paths": "DATA_FILES = 'a.csv'",
    "which is no file": "DATA_FILES = ['absent.csv']",
}


@pytest.fixture(autouse=True)
def clean(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])


def write(text, name="mine.py", scale="1"):
    Path(name).write_text(text, encoding="utf-8")
    Path("scale.txt").write_text(scale, encoding="utf-8")
    return name


@pytest.mark.parametrize("line", BAD)
def test_a_bad_file_is_one_line_that_names_it_and_the_cause(line):
    file = write(BAD[line])
    with pytest.raises(InputError, match=re.escape(line)) as raised:
        own.read_model(file)
    said = str(raised.value)
    assert said.startswith("model: 'mine.py' is not allowed: ")
    assert "\n" not in said


@pytest.mark.slow
def test_facts_are_asked_for_in_a_process_of_their_own_once_for_each_content(monkeypatch):
    with pytest.raises(InputError, match=r"'absent\.py' is not allowed: there is no file of this name"):
        own.facts_of("absent.py")
    with pytest.raises(InputError, match=r"there is no Python file of this name; it must be a \.py file"):
        own.facts_of(write("", "model.txt"))
    with pytest.raises(InputError, match=r"'mine\.py' is not allowed: it defines no function"):
        own.facts_of(write(""))
    # What ends the process itself.
    with pytest.raises(InputError, match="the process that reads it ended with status 7"):
        own.facts_of(write("import os; os._exit(7)"))
    facts = own.facts_of(write(GOOD))
    assert {name: facts[name] for name in ("n_data", "dimension", "task", "predicts")} == {
        "n_data": 200,
        "dimension": 2,
        "task": "regression",
        "predicts": True,
    }
    assert facts["files"] == {path: file_sha256(path) for path in ("mine.py", "scale.txt")}
    assert facts["batch_fractions"] == [1, 0.1]
    with monkeypatch.context() as patch:
        patch.setattr(own.subprocess, "run", None)
        assert own.facts_of("mine.py") == facts
    # A declared file has changed.
    assert own.facts_of(write(GOOD, scale="2"))["checksum"] != facts["checksum"]


def test_the_run_has_the_files_name_unless_that_is_taken():
    assert own.run_named_after("examples/My model.py", ["quick"]) == "my_model"
    for file, taken, why in (
        ("quick.py", ["quick"], "it has another meaning here"),
        ("2nd.py", [], "it does not begin with a letter"),
    ):
        with pytest.raises(
            InputError, match=f"model: '{file}' cannot name its run .*: {why}; give the key run"
        ):
            own.run_named_after(file, taken)
    write_json("results/mine/data/own.json", {"files": {"old/mine.py": ""}})
    with pytest.raises(InputError, match=r"results/mine is of old/mine\.py; give the key run, too"):
        own.run_named_after("new/mine.py", [])
    assert own.run_named_after("old/mine.py", []) == own.run_named_after("./old/mine.py", []) == "mine"


FACTS = {
    "files": {"mine.py": "0" * 64},
    "n_data": 350,
    "dimension": 12,
    "task": "regression",
    "predicts": False,
    "checksum": "1" * 64,
}


@pytest.fixture
def config_of(monkeypatch):
    """``config_of(facts, **changes)``: the configuration of a run with a model of these facts."""

    def made(facts=(), **changes):
        found = {**FACTS, "batch_fractions": [1, 0.1], **dict(facts)}
        monkeypatch.setattr(validate, "facts_of", lambda file: dict(found))
        of_batches = {"estimates__batch_fractions": [1, 0.1], "estimates__batch_fraction": 0.1}
        return valid(**{"model": "mine.py", "models": ["own"], **of_batches, **changes})

    return made


def test_a_model_alone_has_the_results_that_it_can_have(config_of):
    bare = config_of(reference__nuts=False)
    assert extras_of(bare, "own") == set()
    # Neither what needs predictions, nor a step size for raw parameters.
    assert tuners_of(bare, "own", "sgld") == ["mamba-ksd", "mamba-fssd", "mamba", "theory", "grid-ksd"]
    names = set(artifacts_of_run(bare))
    assert {"own_errors", "own_choices", "own_check", "own_curves", "modes", "cost", "table4"} <= names
    assert not {"deviations", "published_comparison", "gaussian_ladder", "table1", "regret", "widths"} & names
    full = config_of({"predicts": True})
    assert "grid" in tuners_of(full, "own", "sgld")
    assert extras_of(full, "own") == {"reference", "regret"}
    assert {"regret", "headline", "reference", "theory"} <= set(artifacts_of_run(full))
    forecast = {jobs.rule for jobs in budgets(full)}
    assert "check_sampler" in forecast
    assert not {"measure_ladder", "measure_widths"} & forecast
    # A second check of the same configuration finds the facts in it.
    validate.validate_config(full)


def test_the_files_content_reruns_its_own_results_and_no_others(config_of):
    def prints(config):
        tuner = {"tuning": "mamba"}
        return {
            (kind, model): fingerprint(settings_of(config, kind, model, tuner.get(kind)))
            for kind in SECTIONS
            for model in config["models"]
        }

    models = ["logistic", "pmf", "bnn"]
    alone = prints(valid(estimates__batch_fractions=[1, 0.1], estimates__batch_fraction=0.1))
    before = prints(config_of(models=[*models, "own"]))
    after = prints(config_of({"files": {"mine.py": "2" * 64}}, models=[*models, "own"]))
    assert {result: before[result] for result in alone} == alone
    assert {result for result in before if before[result] != after[result]} == {
        (kind, "own") for kind in SECTIONS
    }


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"models": ["logistic"]}, r"models: \['logistic'\] is not allowed; 'own', .* must be one"),
        ({"tuners": ["grid", "heuristic"]}, "tuners: grid, heuristic is not allowed; none of them suits"),
        ({"tuners": ["mamba-ece", "mamba"]}, r"tuners\[0\]: 'mamba-ece' is not allowed for own"),
        (
            {"tuning__validation_fraction": 0.1},
            "tuning.validation_fraction: 0.1 is not allowed for own; it must be 0",
        ),
        ({"grids__own__batch_fractions": [0.001]}, r"grids.own.batch_fractions\[0\]: 0.001 is not allowed"),
    ],
)
def test_settings_that_do_not_suit_it_are_refused(config_of, changes, line):
    with pytest.raises(InputError, match=line):
        config_of(**changes)


def test_jobs_have_the_model_of_the_files_that_the_run_began_with(tmp_path):
    file = write(GOOD)
    made, paths = own.read_model(file)
    files = {str(path): file_sha256(path) for path in (file, *paths)}
    write_json("own.json", {"files": files, "checksum": made.checksum})
    model = load_model("own", tmp_path)
    assert (model.name, model.data_dir, model.n_data) == ("own", tmp_path, 200)
    # In coordinates of the mode it is N(0, I), and predicts the same.
    seen = own.in_coordinates(model)
    z = np.random.default_rng(1).normal(size=(6, 2)).astype(np.float32)
    np.testing.assert_allclose(scores(seen, z), -z, rtol=0.01, atol=0.01)
    theta = seen.preconditioner.positions(z)
    np.testing.assert_allclose(mean_prediction(seen, z), mean_prediction(model, theta), rtol=1e-4, atol=1e-4)
    write(GOOD, scale="3")
    with pytest.raises(DataError, match=r"scale\.txt: changed or missing since this run began"):
        load_model("own", tmp_path)


def test_data_that_differ_in_every_call_are_refused(tmp_path):
    file = write(GOOD.replace("default_rng(0)", "default_rng()").replace('["scale.txt"]', "[]"))
    made, _ = own.read_model(file)
    write_json("own.json", {"files": {file: file_sha256(file)}, "checksum": made.checksum})
    with pytest.raises(InputError, match="give its random numbers a seed"):
        load_model("own", tmp_path)
