"""The samplers, data sets, tables and figures of the study of the covariance-controlled thermostat, and the settings of
the configuration that each of its results depends on. Imports nothing heavy: the workflow reads it while it is parsed.
"""

from collections.abc import Mapping
from typing import NamedTuple

from sgtune.study.catalogue import BLUE, GREEN, ORANGE, VERMILION
from sgtune.study.report.artifact import Artifact, Study

SETS = {"connect-4": "Connect-4", "letter": "Letter", "acoustic": "SensIT acoustic"}
"""The data sets of the discriminative RBM, in the order of print."""


class MethodEntry(NamedTuple):
    """A sampler of the study.

    Attributes:
        label: its name in tables and figures.
        sampler: the name in `sgtune.samplers` of the sampler with the full covariance; the paper's h and A are its
            ``step_size`` and ``friction``.
        look: of its lines in figures.
    """

    label: str
    sampler: str
    look: dict


METHODS: dict[str, MethodEntry] = {
    "sghmc": MethodEntry("SGHMC", "sghmc-shang", {"color": ORANGE, "linestyle": (0, (4, 1.2))}),
    "sgnht": MethodEntry("SGNHT", "sgnht-shang", {"color": BLUE, "linestyle": (0, (1.2, 1.2))}),
    "ccadl": MethodEntry("CCAdL", "ccadl", {"color": VERMILION, "linestyle": "-"}),
    "mccadl": MethodEntry("mCCAdL", "mccadl", {"color": GREEN, "linestyle": (0, (5, 1.5, 1.5, 1.5))}),
}
"""By the name of the configuration, in the order of print."""

NORMAL = "Mean and precision of a normal"
LOGISTIC = "Logistic regression of MNIST's sevens and nines"
DRBM = "Discriminative RBM"

BY_SETTING = {"rows": ("sampler", "metric"), "columns": ("detail",), "stub": {"metric": "Number"}}

TABLES: dict[str, Artifact] = {
    "normal": Artifact(("normal", "published"), f"{NORMAL}: errors and autocorrelation times", **BY_SETTING),
    "normal_details": Artifact(("normal",), f"{NORMAL}: causes of the errors", **BY_SETTING),
    "logistic_convergence": Artifact(
        ("logistic_curves", "logistic_draws"),
        f"{LOGISTIC}: passes until predictions are good",
        rows=("A", "sampler", "metric"),
        columns=("h",),
        parts=("h", "A"),
        stub={"metric": "Number"},
    ),
    "logistic_errors": Artifact(
        ("logistic_draws", "logistic_reference"),
        f"{LOGISTIC}: errors of long chains",
        **BY_SETTING,
    ),
    "drbm_sets": Artifact(
        ("map", "published"),
        f"{DRBM}: the data sets",
        rows=("model", "detail"),
        stub={"model": "Data set", "detail": "Whose"},
    ),
    "drbm_errors": Artifact(
        ("drbm", "map"),
        f"{DRBM}: test errors",
        **(BY_SETTING | {"rows": ("model", "sampler", "metric")}),
    ),
}
"""By name, in the order of print."""

FIGURES: dict[str, Artifact] = {
    "normal_densities": Artifact(("normal",), f"{NORMAL}: marginal densities"),
    "logistic_regression": Artifact(
        ("logistic_curves", "logistic_draws", "logistic_reference"),
        f"{LOGISTIC}: convergence and marginals",
    ),
    "drbm_curves": Artifact(("drbm", "map"), f"{DRBM}: test error against passes"),
}
"""By name, in the order of print."""

STUDY = Study(
    "CCAdL",
    TABLES,
    FIGURES,
    names={name: entry.label for name, entry in METHODS.items()} | SETS | {"nuts": "NUTS", "map": "MAP"},
)

KINDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "normal": ("normal", ()),
    "logistic_curves": ("logistic", ("draws", "reference")),
    "logistic_draws": ("logistic", ("curves", "reference")),
    "drbm": ("drbm", ("sets",)),
}
"""Of each kind of result that a sampler has: the experiment, a part of the section, and those of its keys that the
result does not depend on."""


def settings_of(config: Mapping, kind: str, method: str, data_set: str | None = None) -> dict:
    """The settings that the results of one sampler depend on; Snakemake reruns the job when they change.

    Args:
        kind: of `KINDS`.
        method: the sampler; results do not depend on which others there are.
        data_set: the same, where there are several.
    """
    section = config["ccadl"]
    experiment, left_out = KINDS[kind]
    own = {name: value for name, value in section[experiment].items() if name not in left_out}
    own["samplers"] = [method]
    if data_set is not None:
        own["step_sizes"] = {data_set: own["step_sizes"][data_set]}
    data = {} if experiment == "normal" else {"data": section["data"]}
    return {"seed": config["seed"], "ccadl": {experiment: own} | data}


def data_settings(config: Mapping) -> dict:
    """The settings that the study's prepared data depend on."""
    return {"ccadl": {"data": config["ccadl"]["data"]}}


def reference_settings(config: Mapping) -> dict:
    """The settings that the ground truth of the logistic regression depends on."""
    reference = config["ccadl"]["logistic"]["reference"]
    return {"seed": config["seed"], "reference": reference, **data_settings(config)}
