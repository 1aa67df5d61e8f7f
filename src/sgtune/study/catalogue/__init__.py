"""The catalogue of the study: one registry for each concept, read by the workflow, the jobs and the artifacts.

A new tuner, model, sampler, table or figure is an entry here and a module of its own; the schema of the configuration
lists the names for editors, and a test compares the two. Nothing heavy is imported here.
"""

from sgtune.study.catalogue.models import MODELS, PREDICTIVE_LOSSES, ModelEntry, Study, cap_of, losses_of
from sgtune.study.catalogue.samplers import SAMPLERS, SamplerEntry
from sgtune.study.catalogue.tuners import TUNERS, TunerEntry, method_of, smaller_of
from sgtune.study.mamba.catalogue_figures import FIGURES
from sgtune.study.mamba.catalogue_tables import TABLES
from sgtune.study.report.artifact import Artifact
from sgtune.study.report.studies import STUDIES, FurtherStudy

__all__ = [
    "FIGURES",
    "MODELS",
    "PREDICTIVE_LOSSES",
    "SAMPLERS",
    "STUDIES",
    "TABLES",
    "TUNERS",
    "Artifact",
    "FurtherStudy",
    "ModelEntry",
    "SamplerEntry",
    "Study",
    "TunerEntry",
    "cap_of",
    "losses_of",
    "method_of",
    "smaller_of",
]
