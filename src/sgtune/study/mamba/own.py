"""The tables of a user's own model: errors of the tuned samplers, and the check of their chains."""

from collections.abc import Iterator, Mapping

from sgtune.study.mamba.accuracy import of_metrics
from sgtune.study.report.means import SOURCES
from sgtune.study.report.records import Records, finite, required
from sgtune.study.report.table import DASH, NO_ARM, Cell

METRICS = (
    *("xi_white_x100", "relative_sd_error_x100", "ksd_scaled"),
    *("accuracy_percent", "log_loss", "brier", "ece_percent", "rmse", "n_samples"),
)
"""Those of which a run has a number are shown."""

MOST = 20
"""So many parameters, the worst, are shown of each sampler."""

CHECKED = {
    "check_sd_ratio": ("sd_ratio", "sd_ratio_se"),
    "check_virial": ("virial", ""),
    "check_mean_error": ("mean_error", "mean_error_se"),
    "check_ess": ("ess", ""),
    "check_rhat": ("rhat", ""),
    "check_mean": ("mean", ""),
    "check_sd": ("sd", ""),
    "check_nuts_mean": ("nuts_mean", ""),
    "check_nuts_sd": ("nuts_sd", ""),
}
"""By metric the keys of a parameter's number and its standard error."""


def errors(records: Records) -> list[Cell]:
    """The metrics that the model has: those of predictions depend on its file, errors on NUTS."""
    rows = [row for record in required(records, "evaluation") for row in record["table"]]
    known = [metric for metric in METRICS if any(row.get(SOURCES[metric][0]) is not None for row in rows)]
    return of_metrics(records, metrics={"own": known})


def check(records: Records) -> list[Cell]:
    """The worst parameters of each sampler."""
    return [cell for record in required(records, "checks") for cell in _of_sampler(record)]


def _of_sampler(record: Mapping) -> Iterator[Cell]:
    about = {name: record[name] for name in ("model", "sampler", "tuner")}
    if not record["parameters"]:
        missing = NO_ARM if record["arm"] is None else DASH
        yield Cell(**about, metric="check_sd_ratio", missing=missing, detail="all")
    for row in record["parameters"][:MOST]:
        for metric, (key, error) in CHECKED.items():
            if key in row:
                yield Cell(
                    **about,
                    metric=metric,
                    value=finite(row[key]),
                    se=finite(row.get(error)),
                    detail=row["parameter"],
                )
        yield Cell(**about, metric="check_problems", text=row["problems"] or "none", detail=row["parameter"])
