"""What a run is expected to take, before it runs: seconds by rule and model.

They are told from its configuration, the costs of a step, and what an earlier run took.

`read_costs_of` and `read_last_run` look into the results, `forecast` calculates, `Forecast.lines` says it.
"""

from sgtune.study.forecast.costs import StepCosts, read_costs_of
from sgtune.study.forecast.last_run import LastRun, read_last_run
from sgtune.study.forecast.report import Forecast, Row
from sgtune.study.forecast.run import forecast

__all__ = ["Forecast", "LastRun", "Row", "StepCosts", "forecast", "read_costs_of", "read_last_run"]
