"""Tuners of SGMCMC hyperparameters: MAMBA, grid search, the heuristic."""

from sgtune.tuning.calibrate import calibrate_cost
from sgtune.tuning.grid import make_arms
from sgtune.tuning.halving import halving_schedule
from sgtune.tuning.race import AllDivergedError
from sgtune.tuning.result import TuningResult
from sgtune.tuning.tuners import TUNERS, Settings, tune

__all__ = [
    "TUNERS",
    "AllDivergedError",
    "Settings",
    "TuningResult",
    "calibrate_cost",
    "halving_schedule",
    "make_arms",
    "tune",
]
