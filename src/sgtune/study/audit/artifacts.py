"""The defects that are audited, the table, and the settings that the results depend on. Imports nothing heavy: the
workflow reads it while it is parsed."""

from collections.abc import Mapping

from sgtune.study.config import sections
from sgtune.study.pipeline.plan import tuners_of
from sgtune.study.report.artifact import Artifact, Study

MODEL = "logistic"

DEFECTS = {
    "none": "None",
    "explicit": "Explicit SGHMC",
    "restarts": "Restarts",
    "u_statistic": "U-statistic",
    "as_published": "All",
}
"""By name, in the order of print; of ``none`` the results are the main study's."""

RACES = ("mamba-ksd", "mamba-fssd")
TUNERS = (*RACES, "grid", "heuristic")

STUDY = Study(
    label="Audit of the published code",
    kinds=("audits", "evaluation"),
    tables={
        "defects": Artifact(
            "tables:defects",
            ("audits", "evaluation"),
            title="Logistic regression with the published code's defects",
            rows=("tuner", "metric", "detail"),
            columns=("sampler",),
            stub={"detail": "Defect"},
        )
    },
    figures={},
    names=DEFECTS,
)


def audited(config: Mapping) -> list[tuple[str, str]]:
    """Every (defect, sampler) of the run that there are tuners for."""
    if MODEL not in config["models"]:
        return []
    samplers = [sampler for sampler in config["audit"]["samplers"] if sampler in config["samplers"]]
    return [
        (defect, sampler)
        for defect in DEFECTS
        for sampler in samplers
        if tuners_with(config, defect, sampler)
    ]


def tuners_with(config: Mapping, defect: str, sampler: str) -> list[str]:
    """The run's tuners whose choice, or whose chain, a defect changes. With all of them, grid and heuristic are as with
    the explicit SGHMC alone."""
    concerned = {
        "none": (),
        "explicit": TUNERS if sampler.startswith("sghmc") else (),
        "restarts": RACES,
        "u_statistic": ("mamba-fssd",),
        "as_published": RACES,
    }[defect]
    return [tuner for tuner in tuners_of(config, MODEL, sampler) if tuner in concerned]


def settings_of(config: Mapping, defect: str, sampler: str) -> dict:
    """The settings that the results of one sampler with one defect depend on."""
    own = sections.settings_of(config, "evaluation", MODEL)
    tuning = {
        tuner: sections.settings_of(config, "tuning", MODEL, tuner)
        for tuner in tuners_with(config, defect, sampler)
    }
    return {**own, "tuners": tuning}
