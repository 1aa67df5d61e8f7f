"""A forecast of a run's seconds, by rule and model.

It is estimated from the run's configuration, the costs of a step, and the seconds of an earlier run.

`read_costs_of` and `read_last_run` read the results, `forecast` calculates, `Forecast.lines` prints.
"""

from sgtune.study.pipeline.forecast.costs import StepCosts, read_costs_of
from sgtune.study.pipeline.forecast.last_run import LastRun, read_last_run
from sgtune.study.pipeline.forecast.report import Forecast, Row
from sgtune.study.pipeline.forecast.run import forecast

__all__ = ["Forecast", "LastRun", "Row", "StepCosts", "forecast", "read_costs_of", "read_last_run"]
