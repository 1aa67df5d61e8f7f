"""The tables and figures of the study of MAMBA (Coullon et al. 2023)."""

from sgtune.study.mamba.catalogue_figures import FIGURES
from sgtune.study.mamba.catalogue_tables import TABLES
from sgtune.study.report.artifact import Study

__all__ = ["STUDY"]

KINDS = (
    *("data", "reference", "cost", "tuning", "evaluation", "screen", "regret", "clocks", "estimates"),
    *("widths", "horizons", "ladder", "sensitivity", "settings", "published"),
)

STUDY = Study("MAMBA", KINDS, TABLES, FIGURES)
