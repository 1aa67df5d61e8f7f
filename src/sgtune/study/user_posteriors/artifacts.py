"""The tables of the study of posteriors that users bring, and the settings that its results depend on. Ours: no paper
has it. Imports nothing heavy: the workflow reads it while it is parsed."""

from collections.abc import Mapping

from sgtune.study.config import sections
from sgtune.study.report.artifact import Artifact, Study

CASES = {
    "raw_columns": "Raw columns",
    "heavy_tails": "Heavy tails",
    "groups": "Groups",
    "leverage": "Leverage",
    "diabetes": "Diabetes",
    "cancer": "Breast cancer",
    "digits": "Digits",
    "counts": "Counts",
}
"""The posteriors, in the order of print."""

COORDINATES = {"none": "No preconditioner", "laplace": "Laplace", "rounds": "Laplace, with rounds"}

STUDY = Study(
    label="Posteriors of users",
    tables={
        "posteriors_regret": Artifact(
            ("races", "references"),
            title="Tuners on posteriors of users: error over the best arm's",
            rows=("sampler", "detail", "model"),
            columns=("tuner",),
            stub={"detail": "Coordinates", "model": "Posterior"},
        ),
        "posteriors_errors": Artifact(
            ("races", "references"),
            title="The default tuner on posteriors of users: errors and cost",
            rows=("sampler", "model"),
            stub={"model": "Posterior"},
        ),
        "preconditioned": Artifact(
            ("preconditioned", "reference"),
            title="The paper's posteriors with and without a preconditioner",
            needs=("preconditioned",),
            rows=("metric", "detail"),
            columns=("sampler",),
            stub={"detail": "Coordinates"},
        ),
    },
    figures={},
    names=CASES | COORDINATES | {"all": "Geometric mean"},
    package="user_posteriors",
)


def settings_of(config: Mapping, result: str, model: str = "") -> dict:
    """The settings that a result depends on: ``references``, ``races``, or ``preconditioned`` of a model."""
    section, seed = config["posteriors"], {"seed": config["seed"]}
    if result == "references":
        return {**seed, "reference": section["reference"]}
    if result == "races":
        own = {name: value for name, value in section.items() if name not in ("cases", "samplers", "models")}
        return {**seed, "posteriors": own}
    own = sections.model_settings(config, model)
    kept = ("data", "map", "reference", "mamba", "evaluation", "tuning", "samplers")
    return {**seed, **{name: own[name] for name in kept}}
