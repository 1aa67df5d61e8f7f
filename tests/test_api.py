"""The public interface: the uses in the documentation, and one clear line for every bad argument."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import sgtune.study
from sgtune import Budget, CostTable
from sgtune.mode.find import map_position
from sgtune.sampling.lockstep import Lockstep
from sgtune.study.posteriors import logistic
from sgtune.support.errors import DataError, InputError
from sgtune.tuning import Settings

pytestmark = pytest.mark.optimised

N_TRAIN, DIMENSION = 4_000, 10


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    """A small version of the paper's data set."""
    folder = tmp_path_factory.mktemp("small")
    arrays = logistic.simulate(n_rows=N_TRAIN + 500, n_train=N_TRAIN, dimension=DIMENSION)
    logistic.DATA.write(folder / "logistic.json", arrays)
    return folder


@pytest.fixture(scope="module")
def model(data_dir):
    return sgtune.study.load_model("logistic", data_dir=data_dir)


def test_all_names_are_there():
    for name in sgtune.__all__:
        assert getattr(sgtune, name) is not None
        assert name in dir(sgtune)
    with pytest.raises(AttributeError, match="no attribute 'tume'"):
        _ = sgtune.tume


def test_sample_as_documented(model):
    chain = sgtune.sample(
        model,
        "sghmc-cv",
        step_size=3e-7,
        batch_size=800,
        n_leapfrog=10,
        budget=sgtune.Budget(steps=5000),
        seed=0,
    )
    assert chain.positions.shape == (5_000, DIMENSION)
    assert chain.n_samples == 5_000
    assert chain.seconds > 0
    assert chain.diverged is False
    rows = np.asarray(model.data["signed_inputs"], np.float64)
    scores = chain.scores(model)
    assert scores.shape == (5_000, DIMENSION)
    for place in (0, 4_999):
        position = np.asarray(chain.positions[place], np.float64)
        exact = rows.T @ (1 / (1 + np.exp(rows @ position))) - position / 10
        np.testing.assert_allclose(scores[place], exact, rtol=1e-4, atol=1e-3)
    draws, scores = chain.thinned(10, 200), chain.scores(model)[:200]
    assert sgtune.stein.ksd(draws, scores) > 0
    assert sgtune.stein.fssd(draws, scores, seed=0) >= 0
    sd = np.asarray(chain.positions).std(0)
    assert 0 < sgtune.metrics.relative_sd_error(sd, 2 * sd) == pytest.approx(0.5)
    assert sgtune.metrics.relative_sd_error(sd, sd) == 0


def test_tune_as_documented(model):
    result = sgtune.tune(model, "sgld-cv", tuner="mamba-ksd", budget=sgtune.Budget(seconds=0.1), seed=0)
    assert result.best.step_size > 0
    assert result.best.batch_size in (40, 400, 4_000)
    assert result.best.n_leapfrog is None
    assert list(result.rungs.groupby("rung").size()) == [42, 14, 4]
    assert result.seconds["nominal"] == pytest.approx(0.969, abs=0.001)


def test_chains_start_at_the_map_by_default(model, by_steps):
    """Also with a wall-clock budget: all samples are counted, and the time exceeds the budget by at most a step."""
    still = {"step_size": 1e-20, "batch_size": 100, "budget": Budget(steps=3)}
    at_map = sgtune.sample(model, "sgld", **still).draws
    gradient = sgtune.sample(model, "sgld", **still).scores()
    assert np.abs(gradient).max() < 0.1
    elsewhere = np.asarray(at_map[0]) + 1
    moved = sgtune.sample(model, "sgld", position=elsewhere, **still).draws
    np.testing.assert_allclose(moved, np.tile(elsewhere, (3, 1)), rtol=1e-5)
    by_steps(1e-3)
    chain = sgtune.sample(model, "sgld", step_size=1e-5, batch_size=100, budget=Budget(seconds=0.2))
    assert 0.2 <= chain.seconds < 0.2011
    assert len(chain.draws) == chain.n_samples // chain.stride


def test_gradient_budgets_count_data_terms(model):
    """10,000 terms are 10 samples of 5 leapfrogs with batches of 200."""
    arm = {"step_size": 1e-6, "batch_size": 200, "n_leapfrog": 5}
    assert sgtune.sample(model, "sghmc", **arm, budget=Budget(gradients=10_999)).n_samples == 10


def test_the_map_is_kept_beside_the_data(data_dir, model):
    sgtune.sample(model, "sgld", step_size=1e-6, batch_size=10, budget=Budget(steps=1))
    assert (data_dir / "logistic.map.npz").is_file()


SGLD = {"sampler": "sgld", "step_size": 1e-5, "batch_size": 100, "budget": Budget(steps=2)}
SGHMC = {**SGLD, "sampler": "sghmc", "n_leapfrog": 2}
NAN = float("nan")

BAD_SAMPLES = [
    ({**SGLD, "sampler": "sgdl"}, "sampler", "'sgdl'", "sgld-cv"),
    ({**SGLD, "step_size": 0}, "step_size", "0", "> 0"),
    ({**SGLD, "step_size": -1e-3}, "step_size", "-0.001", "> 0"),
    ({**SGLD, "step_size": NAN}, "step_size", "nan", "> 0"),
    ({**SGLD, "step_size": "fast"}, "step_size", "'fast'", "> 0"),
    ({**SGLD, "step_size": None}, "step_size", "None", "> 0"),
    ({**SGLD, "batch_size": 0}, "batch_size", "0", ">= 1 and <= 4000"),
    ({**SGLD, "batch_size": 4_001}, "batch_size", "4001", ">= 1 and <= 4000"),
    ({**SGLD, "batch_size": 0.1}, "batch_size", "0.1", "an integer"),
    ({**SGLD, "n_leapfrog": 10}, "n_leapfrog", "10", "sgld"),
    ({**SGLD, "sampler": "mala"}, "batch_size", "100", "mala", "must be 4000"),
    ({**SGLD, "sampler": "mala", "batch_size": None}, "batch_size", "None", "mala", "must be 4000"),
    ({**SGLD, "sampler": "mala-cv", "batch_size": 4_000}, "sampler", "'mala-cv'", "must be 'mala'"),
    ({**SGHMC, "n_leapfrog": None}, "n_leapfrog", "None", ">= 1"),
    ({**SGHMC, "n_leapfrog": 0}, "n_leapfrog", "0", ">= 1"),
    ({**SGHMC, "sampler": "sghmc-chen", "n_leapfrog": 1}, "n_leapfrog", "1", ">= 2"),
    ({**SGHMC, "fricton": 0.5}, "fricton", "0.5", "friction, noise_estimate"),
    ({**SGLD, "friction": 0.5}, "friction", "0.5", "sgld"),
    ({**SGHMC, "friction": -1.0}, "friction", "-1.0", ">= 0"),
    ({**SGHMC, "friction": NAN}, "friction", "nan", ">= 0"),
    ({**SGHMC, "friction": "a"}, "friction", "'a'", ">= 0"),
    ({**SGHMC, "noise_estimate": 0.5}, "noise_estimate", "0.5", "friction"),
    ({**SGLD, "seed": -1}, "seed", "-1", ">= 0"),
    ({**SGLD, "budget": 1.0}, "budget", "1.0", "Budget"),
    ({**SGLD, "budget": None}, "budget", "None", "Budget"),
    ({**SGLD, "position": np.zeros(3, np.float32)}, "position", "(3,)", "(10,)"),
    ({**SGLD, "sampler": "sgld-cv", "centre": np.zeros(3, np.float32)}, "centre", "(3,)", "(10,)"),
]


BAD_BUDGETS = [
    ({currency: amount}, "budget", currency, repr(amount), "> 0")
    for currency in ("seconds", "steps", "gradients")
    for amount in (0, -1, NAN, float("inf"), "1", True)
] + [
    (amounts, "budget", "exactly one of seconds, steps, gradients", *amounts)
    for amounts in ({}, {"seconds": 1.0, "steps": 2}, {"steps": 2, "gradients": 3, "seconds": 1})
]

SMALL = Settings(log10_step_sizes=(-4.0, -5.0), batch_fractions=(0.1,), n_leapfrogs=(2,))
TUNE = {"sampler": "sghmc", "budget": Budget(steps=3), "settings": SMALL}


def with_settings(**changes):
    """``TUNE`` with other settings of any type, hidden from the type checks that tests switch on."""
    settings = replace(SMALL)
    for name, value in changes.items():
        object.__setattr__(settings, name, value)
    return {**TUNE, "settings": settings}


BAD_TUNES = [
    ({**TUNE, "sampler": "sghm-cv"}, "sampler", "'sghm-cv'", "sghmc-cv"),
    ({**TUNE, "tuner": "mambo"}, "tuner", "'mambo'", "did you mean 'mamba'?"),
    ({**TUNE, "seed": 0.5}, "seed", "0.5", ">= 0"),
    ({**TUNE, "budget": 1.0}, "budget", "1.0", "Budget"),
    (with_settings(pruning_rate=1), "pruning_rate", "1", ">= 2"),
    (with_settings(pruning_rate=0), "pruning_rate", "0", ">= 2"),
    (with_settings(pruning_rate=2.5), "pruning_rate", "2.5", ">= 2"),
    (with_settings(log10_step_sizes=()), "log10_step_sizes", "empty", "at least one"),
    (with_settings(batch_fractions=()), "batch_fractions", "empty", "at least one"),
    (with_settings(n_leapfrogs=()), "n_leapfrogs", "empty", "at least one"),
    (with_settings(log10_step_sizes=(NAN,)), "log10_step_sizes", "nan", "a number"),
    (with_settings(log10_step_sizes=("a",)), "log10_step_sizes", "'a'", "a number"),
    (with_settings(batch_fractions=(0.0,)), "batch_fraction", "0.0", "> 0 and <= 1"),
    (with_settings(batch_fractions=(1.5,)), "batch_fraction", "1.5", "> 0 and <= 1"),
    (with_settings(batch_fractions=(1e-6,)), "batch_fraction", "1e-06", "0.00025"),
    (with_settings(n_leapfrogs=(0,)), "n_leapfrog", "0", ">= 1"),
    ({**with_settings(n_leapfrogs=(1,)), "sampler": "sghmc-chen"}, "n_leapfrog", "1", ">= 2"),
    (with_settings(clock="sun"), "clock", "'sun'", "calibrated, wall"),
    (with_settings(points=0), "points", "0", ">= 1"),
    ({**with_settings(start_noise=-1.0), "tuner": "grid"}, "start_noise", "-1.0", ">= 0"),
    (with_settings(validation_fraction="half"), "validation_fraction", "'half'", ">= 0"),
    ({**with_settings(validation_fraction=1), "tuner": "grid"}, "validation_fraction", "1", ">= 0 and < 1"),
    (
        {**with_settings(validation_fraction=1e-6), "tuner": "grid"},
        "validation_fraction",
        "1e-06",
        ">= 0.00025",
    ),
    ({**with_settings(n_leapfrog=0), "tuner": "heuristic"}, "n_leapfrog", "0", ">= 1"),
    ({**TUNE, "budget": Budget(seconds=1), "cost": CostTable()}, "cost", "sghmc", "calibrate"),
]


CASES = [(function, *case) for function, cases in
         (("sample", BAD_SAMPLES), ("Budget", BAD_BUDGETS), ("tune", BAD_TUNES)) for case in cases]  # fmt: skip


def report_errors(data_dir):
    """The error of each case, as JSON on the standard output, from its own process."""
    model = sgtune.study.load_model("logistic", data_dir=data_dir)
    map_position(model)

    def begin(self):
        raise AssertionError("work has begun")

    Lockstep.compile = begin
    raised = []
    for function, arguments, *_ in CASES:
        try:
            getattr(sgtune, function)(*([] if function == "Budget" else [model]), **arguments)
            raised.append((None, "accepted"))
        except Exception as error:
            raised.append((isinstance(error, InputError), f"{error}"))
    print(json.dumps(raised))


@pytest.fixture(scope="module")
def raised(data_dir):
    """The errors that a user sees, from a process without the type checks of the tests."""
    here = Path(__file__).parent
    code = "import sys, test_api; test_api.report_errors(sys.argv[1])"
    paths = [str(here), str(Path(sgtune.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "-c", code, str(data_dir)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    "number", range(len(CASES)), ids=lambda number: "-".join(map(str, CASES[number][:4:2]))
)
def test_bad_input_gets_one_line_before_any_work(raised, number):
    """The line names the argument, its value and the allowed values."""
    is_input_error, line = raised[number]
    assert is_input_error, line
    check_line(line, *CASES[number][2:])


def check_line(error, *parts):
    line = str(error)
    assert "\n" not in line
    assert line.startswith(parts[0])
    for part in parts[1:]:
        assert part in line


def test_bad_models_get_one_line(tmp_path):
    with pytest.raises(InputError) as caught:
        sgtune.study.load_model("logstic", data_dir=tmp_path)
    check_line(caught.value, "model", "'logstic'", "did you mean 'logistic'", "allowed: bnn, logistic, pmf")
    with pytest.raises(DataError) as caught:
        sgtune.study.load_model("logistic", data_dir=tmp_path)
    check_line(caught.value, str(tmp_path), "logistic.json", "missing")


def test_bad_costs_get_one_line():
    row = {"sampler": "sgld", "batch_size": 10, "n_leapfrog": None}
    with pytest.raises(InputError) as caught:
        CostTable.from_rows([{**row, "seconds_per_step": 0.0}])
    check_line(caught.value, "cost", "seconds_per_step", "0.0", "> 0")
    table = CostTable({("sgld", 10, None): 1e-4, ("sghmc", 20, 5): 2e-3})
    assert CostTable.from_rows(table.to_rows()) == table
