"""The table of how well the discrepancies see a width that is wrong everywhere, by dimension and number of points."""

from sgtune.study.report.labels import in_order
from sgtune.study.report.records import Records, required
from sgtune.study.report.table import Cell

__all__ = ["JUDGES", "signal_of_width"]
