"""The defects that are audited, the table, and the settings that the results depend on. Imports nothing heavy: the
workflow reads it while it is parsed."""

from collections.abc import Mapping

from sgtune.study.config import sections
from sgtune.study.config.sections import tuners_of
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

CLAIMS = {
    "ksd_logistic": "MAMBA has the lowest KSD for five of six samplers",
    "heuristic_logistic": "For SGNHT the heuristic has the lowest KSD",
    "batches_logistic": "MAMBA chooses batches of 1% for five of six samplers",
    "accuracy_logistic": "Accuracy cannot tell the tuners apart",
    "grid_ksd": "Grid search by KSD gives comparable KSDs",
    "grid_ksd_time": "Grid search by KSD takes longer than MAMBA",
    "time_logistic": "Grid search takes longer than MAMBA to tune SGHMC",
    "ours_logistic": "Not in the paper: the default tuner has a smaller error than theirs",
    "ksd_pmf": "MAMBA has the lowest KSD for all samplers",
    "time_pmf": "Grid search takes longer than MAMBA to tune SGHMC",
    "ours_pmf": "Not in the paper: the default tuner has a smaller error than theirs",
    "ece_bnn": "MAMBA's ECE is best or very close to it",
    "batches_bnn": "MAMBA chooses batches of 1% for all samplers",
    "unstable_bnn": "MAMBA's SGNHT loses stability; smaller step sizes mend it",
    "time_bnn": "Grid search takes longer than MAMBA to tune SGHMC",
    "stochastic": "KSD by stochastic gradients follows KSD by full gradients",
    "thinned": "Not in the paper: KSD of thinned draws follows, too",
}
"""By name, in the order of print; how each is judged is in `sgtune.study.audit.claims`."""

OF_TUNE = {"mamba-none": "tune, no preconditioner", "mamba-laplace": "tune, Laplace coordinates"}
"""`sgtune.tune` with its own grid, without and with a preconditioner, both on one processor."""

RACES = ("mamba-ksd", "mamba-fssd")
AUDITED = (*RACES, "grid", "heuristic")

STUDY = Study(
    label="Audit of the published code",
    n_commits=3,
    tables={
        "claims": Artifact(
            maker="claims:claims",
            kinds=("audits", "evaluation", "tuning", "regret", "estimates", "reference"),
            title="The paper's claims",
            rows=("model", "metric"),
            columns=("detail",),
            stub={"metric": "Claim"},
            is_prose=True,
        ),
        "defects": Artifact(
            maker="claims:defects",
            kinds=("audits", "evaluation", "published"),
            title="Logistic regression with the published code's defects",
            needs=("audit",),
            rows=("tuner", "metric", "detail"),
            columns=("sampler",),
            stub={"detail": "Defect"},
        ),
        "limit_ratios": Artifact(
            ("evaluation", "reference", "widths", "preconditioned"),
            maker="figures:limit_ratios",
            title="Tuned chains over what is possible",
            needs=("reference",),
            rows=("metric", "tuner"),
            columns=("sampler",),
        ),
    },
    figures={
        "limits": Artifact(
            ("evaluation", "reference", "widths", "preconditioned"),
            title="How far tuned chains are from what is possible",
            needs=("reference",),
        )
    },
    names={"paper": "The paper"} | DEFECTS | CLAIMS | OF_TUNE,
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
        "explicit": AUDITED if sampler.startswith("sghmc") else (),
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
