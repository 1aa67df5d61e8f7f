"""The public interface: its names, where chains start, and one clear line for every bad argument."""

import json
import os
import subprocess
import sys
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest
from small_models import small_logistic_model

import sgtune
from sgtune import Budget, CostTable, InputError
from sgtune.mode.find import map_position
from sgtune.sampling.lockstep import Lockstep
from sgtune.tuning import Grid, GridSearch, Halving, Heuristic, acceptance

pytestmark = pytest.mark.optimised


@cache
def make_model():
    return small_logistic_model(n_data=4_000, dimension=10)


def test_chains_start_at_the_map_by_default():
    model = make_model()
    still = {"step_size": 1e-20, "batch_size": 100, "budget": Budget(steps=3)}
    at_map = sgtune.sample(model, "sgld", **still)
    assert np.abs(at_map.scores()).max() < 0.1
    elsewhere = np.asarray(at_map.draws[0]) + 1
    moved = sgtune.sample(model, "sgld", position=elsewhere, **still).draws
    np.testing.assert_allclose(moved, np.tile(elsewhere, (3, 1)), rtol=1e-5)


SGLD = {"sampler": "sgld", "step_size": 1e-5, "batch_size": 100, "budget": Budget(steps=2)}
SGHMC = {**SGLD, "sampler": "sghmc", "n_leapfrog": 2}
NAN = float("nan")

BAD_SAMPLES = [
    ({**SGLD, "sampler": "sgdl"}, "sampler", "'sgdl'", "sgld-cv"),
    ({**SGLD, "step_size": NAN}, "step_size", "nan", "> 0"),
    ({**SGLD, "batch_size": 4_001}, "batch_size", "4001", ">= 1 and <= 4000"),
    ({**SGLD, "sampler": "mala"}, "batch_size", "100", "mala", "must be 4000"),
    ({**SGLD, "sampler": "mala-cv", "batch_size": 4_000}, "sampler", "'mala-cv'", "must be 'mala'"),
    ({**SGHMC, "n_leapfrog": None}, "n_leapfrog", "None", ">= 1"),
    ({**SGHMC, "sampler": "sghmc-chen", "n_leapfrog": 1}, "n_leapfrog", "1", ">= 2"),
    ({**SGHMC, "fricton": 0.5}, "fricton", "0.5", "friction, noise_estimate"),
    ({**SGLD, "friction": 0.5}, "friction", "0.5", "sgld"),
    ({**SGHMC, "noise_estimate": 0.5}, "noise_estimate", "0.5", "friction"),
    ({**SGLD, "seed": -1}, "seed", "-1", ">= 0"),
    ({**SGLD, "budget": 1.0}, "budget", "1.0", "Budget"),
    ({**SGLD, "position": np.zeros(3, np.float32)}, "position", "(3,)", "(10,)"),
    ({**SGLD, "sampler": "sgld-cv", "centre": np.zeros(3, np.float32)}, "centre", "(3,)", "(10,)"),
    ({**SGLD, "cost": {}}, "cost", "{}", "a CostTable"),
    ({**SGLD, "position": np.full(10, np.nan)}, "position", "not finite"),
    ({**SGLD, "inverse_temperature": 0}, "inverse_temperature", "0", "> 0"),
    ({**SGLD, "chains": 0}, "chains", "0", ">= 1"),
    ({**SGLD, "chains": 2, "n_starts": 0}, "n_starts", "0", ">= 1"),
    ({**SGLD, "chains": 2, "position": np.zeros((3, 10))}, "position", "(3, 10)", "(10,)", "(2, 10)"),
]


BAD_BUDGETS = [
    ({currency: amount}, "budget", currency, repr(amount), "> 0")
    for currency in ("seconds", "steps", "gradients")
    for amount in (0, NAN, "1", True, -(10**400))
] + [
    (amounts, "budget", "exactly one of seconds, steps, gradients", *amounts)
    for amounts in ({}, {"seconds": 1.0, "steps": 2}, {"steps": 2, "gradients": 3, "seconds": 1})
]

SMALL = {"log10_step_sizes": (-4.0, -5.0), "batch_fractions": (0.1,), "n_leapfrogs": (2,)}
TUNE = {"sampler": "sghmc", "budget": Budget(steps=3), "tuner": Halving(grid=Grid(**SMALL))}


def with_numbers(tuner=Halving, **numbers):
    """``TUNE`` with a tuner that is made late, in the process without type checks."""
    grid = {} if tuner is Heuristic else {"grid": Grid(**SMALL)}
    return {**TUNE, "tuner": partial(tuner, **grid | numbers)}


def with_grid(**axes):
    return with_numbers(grid=Grid(**SMALL | axes))


BAD_TUNES = [
    ({**TUNE, "tuner": Halving}, "tuner", "Halving", "must be a Halving, GridSearch"),
    ({**TUNE, "tuner": "mambo"}, "tuner", "'mambo'", "did you mean 'mamba'?"),
    (with_numbers(pruning_rate=2.5), "pruning_rate", "2.5", ">= 2"),
    (with_grid(log10_step_sizes=()), "log10_step_sizes", "empty", "at least one"),
    (with_grid(batch_fractions=(1.5,)), "batch_fraction", "1.5", "> 0 and <= 1"),
    (with_grid(log10_step_sizes=None, batch_fractions=(0.0,)), "batch_fraction", "0.0", "> 0 and <= 1"),
    (with_grid(log10_step_sizes=None, batch_fractions=0.1), "batch_fractions", "0.1", "a list of numbers"),
    (with_grid(batch_fractions=(1e-6,)), "batch_fraction", "1e-06", "0.00025"),
    (with_numbers(clock="sun"), "clock", "'sun'", "calibrated, wall"),
    (with_numbers(GridSearch, start_noise=-1.0), "start_noise", "-1.0", ">= 0"),
    (with_numbers(validation_fraction="half"), "validation_fraction", "'half'", ">= 0"),
    (with_numbers(Heuristic, n_leapfrog=0), "n_leapfrog", "0", ">= 1"),
    ({**TUNE, "budget": Budget(seconds=1), "cost": CostTable()}, "cost", "sghmc", "calibrate"),
    ({"sampler": "sgld", "tuner": "heuristic", "horizon": 5}, "horizon", "5", "a Budget"),
    ({**TUNE, "rounds": 0}, "rounds", "0"),
    ({**TUNE, "rounds": 4}, "rounds", "4"),
    ({**TUNE, "preconditioner": "diagonal"}, "preconditioner", "'diagonal'"),
    ({**TUNE, "position": np.zeros(2)}, "position", "(2,)", "(10,)"),
    ({**TUNE, "tuner": Halving(acceptance())}, "sampler", "'sghmc'", "mala, hmc"),
]

SHORT = {"sampler": "sgld", "budget": Budget(steps=10)}
BAD_RUNS = [({**SHORT, "chains": 0}, "chains", "0"), ({**SHORT, "budget": 10}, "budget", "10")]
BAD_RUNS += [({**SHORT, "horizon": Budget(seconds=1.0)}, "horizon", "steps")]

BAD = {"sample": BAD_SAMPLES, "Budget": BAD_BUDGETS, "tune": BAD_TUNES, "tune_and_sample": BAD_RUNS}
CASES = [(function, *case) for function, cases in BAD.items() for case in cases]


def report_errors():
    """The error of each case, as JSON on the standard output, from its own process."""
    model = make_model()
    map_position(model)

    def begin(self):
        raise AssertionError("work has begun")

    Lockstep.compile = begin
    raised = []
    for function, arguments, *_ in CASES:
        try:
            made = {k: value() if isinstance(value, partial) else value for k, value in arguments.items()}
            getattr(sgtune, function)(*([] if function == "Budget" else [model]), **made)
            raised.append((None, "accepted"))
        except Exception as error:
            raised.append((isinstance(error, InputError), f"{error}"))
    print(json.dumps(raised))


@pytest.fixture(scope="module")
def raised():
    """The errors that a user sees, from a process without the type checks of the tests."""
    package = Path(sgtune.__file__).parents[1]
    path = f"{package}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    command = [sys.executable, "-c", "import test_api; test_api.report_errors()"]
    options = {"cwd": Path(__file__).parent, "env": os.environ | {"PYTHONPATH": path}}
    done = subprocess.run(command, **options, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.mark.parametrize("number", range(len(CASES)))
def test_bad_input_gets_one_line_before_any_work(raised, number):
    """The line names the argument, its value and the allowed values."""
    is_input_error, line = raised[number]
    _, _, argument, *parts = CASES[number]
    assert is_input_error, line
    assert "\n" not in line
    assert line.startswith(argument)
    assert all(part in line for part in parts), line


def test_scores_are_those_of_the_draws_that_they_stand_beside():
    model = make_model()
    arm = {"step_size": 3e-5, "batch_size": 800, "n_leapfrog": 3}
    chain = sgtune.sample(model, "sghmc-cv", **arm, budget=Budget(steps=90), kept_draws=30)
    assert (chain.positions.shape, chain.stride, chain.diverged) == ((30, 10), 3, False)
    rows = np.asarray(model.data["signed_inputs"], np.float64)
    exact = [rows.T @ (1 / (1 + np.exp(rows @ x))) - x / 10 for x in chain.draws.astype(np.float64)]
    np.testing.assert_allclose(chain.scores(), exact, rtol=1e-4, atol=2e-3)
