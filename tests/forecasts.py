"""A small study and its costs, for tests of the forecast."""

import json
from pathlib import Path

from config_files import changed, raw_config

from sgtune.sampling.budget import CostTable
from sgtune.study.pipeline.forecast import StepCosts

STEP = 1e-3
"""Seconds of a step with a batch of 100 rows or less."""


def config_of(**changes) -> dict:
    """A study of logistic regression with SGLD and mamba-ksd, in which no arm is judged by points or predictions."""
    config = raw_config("quick")
    plain = {
        **{"run": "mine", "models": ["logistic"], "samplers": ["sgld"], "tuners": ["mamba-ksd", "heuristic"]},
        "data__logistic": {"n_rows": 2000, "n_train": 1000, "dimension": 3, "seed": 42},
        "grids__logistic": {
            "log10_step_sizes": [-1, -2, -3],
            "batch_fractions": [0.1, 0.01],
            "n_leapfrogs": [2],
        },
        **{"calibration__table": None, "tuning": {"replicates": 1, "validation_fraction": 0}},
        **{"mamba__seconds": 1, "mamba__score_fraction": 1.0, "mamba__points": 10, "mamba__thin": 1},
        "evaluation": {
            **{
                "clock": "calibrated",
                "seconds": 10,
                "replicates": 3,
                "burn_in": 0,
                "kept_draws": 100,
                "thin": 1,
            },
            **{"prediction_draws": 0, "ksd_points": 0},
            "curves": {"seconds": [1, 4], "replicates": 5, "ksd_points": 0, "prediction_draws": 0},
        },
        "regret": {
            **{"screen": {"seconds": 2, "replicates": 3}, "finalists": 4, "seconds": [1, 5], "replicates": 7},
            "prediction_draws": 0,
        },
        "per_model": {},
    }
    return changed(config, **(plain | changes))


def costs_of(step: float = STEP) -> StepCosts:
    rows = {("sgld", 10, None): step, ("sgld", 100, None): step, ("sgld", 1000, None): 10 * step}
    return StepCosts(CostTable(rows), 3)


def write(path: str, record: dict) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(json.dumps(record))
