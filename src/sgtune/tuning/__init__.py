"""Tuners of SGMCMC hyperparameters: MAMBA, grid search, the heuristic."""

from sgtune.tuning.calibrate import calibrate_cost
from sgtune.tuning.grid import make_arms
from sgtune.tuning.halving import halving_schedule
from sgtune.tuning.horizon import at_horizon
from sgtune.tuning.judges import Judge, acceptance, predictive, stein
from sgtune.tuning.methods import Grid, GridSearch, Halving, Heuristic, Theory
from sgtune.tuning.race import AllDivergedError
from sgtune.tuning.result import TuningResult
from sgtune.tuning.tune import tune
from sgtune.tuning.tuners import TUNERS, Settings

__all__ = [
    "TUNERS",
    "AllDivergedError",
    "Grid",
    "GridSearch",
    "Halving",
    "Heuristic",
    "Judge",
    "Settings",
    "Theory",
    "TuningResult",
    "acceptance",
    "at_horizon",
    "calibrate_cost",
    "halving_schedule",
    "make_arms",
    "predictive",
    "stein",
    "tune",
]
