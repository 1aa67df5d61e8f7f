"""Tuners of SGMCMC hyperparameters: MAMBA, grid search, the heuristic, theory."""

from sgtune.sampling.by_clock import calibrate_cost
from sgtune.tuning.grid import make_arms
from sgtune.tuning.horizon import at_horizon
from sgtune.tuning.judges import Judge, acceptance, predictive, stein
from sgtune.tuning.race import AllDivergedError, halving_schedule
from sgtune.tuning.tune import TuningResult, tune
from sgtune.tuning.tuners import TUNERS, Grid, GridSearch, Halving, Heuristic, Theory, Tuner

__all__ = [
    "TUNERS",
    "AllDivergedError",
    "Grid",
    "GridSearch",
    "Halving",
    "Heuristic",
    "Judge",
    "Theory",
    "Tuner",
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
