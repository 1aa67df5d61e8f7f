"""The catalogue of the study: one registry for each concept, read by the workflow, the jobs and the artifacts.

A new tuner, model or sampler is an entry here and a module of its own; the schema of the configuration
lists the names for editors, and a test compares the two. Nothing heavy is imported here.
"""

from sgtune.study.catalogue.models import MODELS, PREDICTIVE_LOSSES, ModelEntry, Study, cap_of, losses_of
from sgtune.study.catalogue.samplers import SAMPLERS, SamplerEntry
from sgtune.study.catalogue.tuners import TUNERS, TunerEntry, method_of, smaller_of

__all__ = [
    "MODELS",
    "PREDICTIVE_LOSSES",
    "SAMPLERS",
    "TUNERS",
    "ModelEntry",
    "SamplerEntry",
    "Study",
    "TunerEntry",
    "cap_of",
    "losses_of",
    "method_of",
    "smaller_of",
]
