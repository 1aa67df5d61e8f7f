"""The paper's tables of accuracy (1 to 3, 6, 8 and 10), errors by block of the parameters, and entropies on images
without digits; the tables of a user's own model, its errors and the check of its chains."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import sqrt

from sgtune.study.mamba.reference import doubted
from sgtune.study.report.means import SOURCES, evaluation_cells, is_of_one_choice, mark_best, mean_cell
from sgtune.study.report.records import Records, finite, required
from sgtune.study.report.table import DASH, NO_ARM, Cell

SCALES = {"ksd": "identity", "ksd_scaled": "laplace"}
"""By the key of a row, the coordinates in the record of `sgtune.study.experiments.discrepancies.measure_widths`."""

FEW = 200
"""Up to this dimension the floors of the Laplace approximation stay."""

OWN_METRICS = (
    *("xi_white_x100", "relative_sd_error_x100", "ksd_scaled"),
    *("accuracy_percent", "log_loss", "brier", "ece_percent", "rmse", "n_samples"),
)
"""Those of which a run has a number are shown."""

MOST_CHECKED = 20
"""So many parameters, the worst, are shown of each sampler."""

CHECKED = ("sd_ratio", "virial", "mean_error", "ess", "rhat", "mean", "sd", "nuts_mean", "nuts_sd")
"""The numbers of a parameter, some with a standard error."""


def of_metrics(records: Records, *, metrics: Mapping[str, Sequence[str]]) -> list[Cell]:
    """The tuners by some metrics of each model: those of one of the paper's tables, or others; or the mean predictive
    entropies on the test set and on images without digits, with the AUROC as a detector of these."""
    found = with_floors(records)
    cells = [cell for record in found for cell in evaluation_cells(record, metrics.get(record["model"], ()))]
    return _marked(records, cells)


def xi_by_block(records: Records) -> list[Cell]:
    """ξ of each block of the parameters, and of all of them."""
    metric = "relative_sd_error_x100"
    key = SOURCES[metric][0]
    found = required(records, "evaluation")
    rows = [row for record in found for row in record["table"]]
    blocks = dict.fromkeys(block for row in rows for block in row.get(f"{key}_by_block") or ())
    cells = []
    for record in found:
        own = {
            block: [(row.get(f"{key}_by_block") or {}).get(block) for row in record["table"]]
            for block in blocks
        }
        own["all parameters"] = [row.get(key) for row in record["table"]]
        cells += [replace(mean_cell(record, metric, values), detail=block) for block, values in own.items()]
    return _marked(records, cells)


def _marked(records: Records, cells: list[Cell]) -> list[Cell]:
    """`mark_best`, but nothing is the best by a distance from quantities whose reference is not trusted, nor beside a
    tuner with one tuning run whose choice is random: the errors of its cells are those of its arm, not of the tuner."""
    doubts = doubted(records)
    once = {record["model"] for record in required(records, "evaluation") if is_of_one_choice(record)}
    return [
        replace(cell, best=cell.best and cell.model not in once and (cell.model, cell.metric) not in doubts)
        for cell in mark_best(cells)
    ]


def with_floors(records: Records, found: Iterable[dict] | None = None) -> list[dict]:
    """The records ``found``, those of evaluation unless given, in whose rows ``ksd_floor`` and ``ksd_scaled_floor`` are
    the root mean squares √((E|score|² + D) / n) of the KSD of as many exact draws; above `FEW` parameters None without
    draws of NUTS.

    Evaluation writes floors of the Laplace approximation, with the curvature at the mode in place of E|score|². On the
    matrix factorisation that is ten times as large as E|score|², and in scaled coordinates a fortieth.
    `measure_widths` has the KSD of m draws of NUTS (width 1), whose mean square is (E|score|² + D) / m; in many
    dimensions a single one is near this mean. The written floor in scaled coordinates, √(2 D / n), tells n.
    """
    dimensions = {
        one["model"]: len(one["sd" if "sd" in one else "laplace_sd"]) for one in records.get("reference", ())
    }
    widths = {one["model"]: one["rows"] for one in records.get("widths", ())}
    floored = []
    for record in required(records, "evaluation") if found is None else found:
        dimension = dimensions.get(record["model"], 0)
        if dimension > FEW:
            # By the coordinates, √(E|score|² + D) over √(2 D).
            single = {
                row["scale"]: row["value"] * sqrt(row["n_points"]) / sqrt(2 * dimension)
                for row in widths.get(record["model"], ())
                if (row["width"], row["discrepancy"]) == (1, "ksd")
            }
            record = record | {"table": [_with_floors(row, single) for row in record["table"]]}
        floored.append(record)
    return floored


def _with_floors(row: dict, single: Mapping[str, float]) -> dict:
    written = row.get("ksd_scaled_floor")
    if written is None:
        return row
    return row | {
        f"{key}_floor": single[scale] * written if single else None for key, scale in SCALES.items()
    }


def own_errors(records: Records) -> list[Cell]:
    """The metrics that a user's model has: those of predictions depend on its file, errors on NUTS."""
    rows = [row for record in required(records, "evaluation") for row in record["table"]]
    known = [metric for metric in OWN_METRICS if any(row.get(SOURCES[metric][0]) is not None for row in rows)]
    return of_metrics(records, metrics={"own": known})


def own_check(records: Records) -> list[Cell]:
    """The worst parameters of each sampler of a user's model."""
    return [cell for record in required(records, "checks") for cell in _of_sampler(record)]


def _of_sampler(record: Mapping) -> Iterator[Cell]:
    about = {name: record[name] for name in ("model", "sampler", "tuner")}
    if not record["parameters"]:
        missing = NO_ARM if record["arm"] is None else DASH
        yield Cell(**about, metric="check_sd_ratio", missing=missing, detail="all")
    for row in record["parameters"][:MOST_CHECKED]:
        for key in (key for key in CHECKED if key in row):
            numbers = {"value": finite(row[key]), "se": finite(row.get(f"{key}_se"))}
            yield Cell(**about, metric=f"check_{key}", **numbers, detail=row["parameter"])
        yield Cell(**about, metric="check_problems", text=row["problems"] or "none", detail=row["parameter"])
