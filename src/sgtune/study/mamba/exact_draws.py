"""The KSD of exact draws, below which a smaller one does not mean better draws."""

from collections.abc import Mapping
from math import sqrt

from sgtune.study.report.records import Records, belonging, need

__all__ = ["with_floors"]

SCALES = {"ksd": "identity", "ksd_scaled": "laplace"}
"""By the key of a row, the coordinates in the record of `sgtune.study.experiments.discrepancies.measure_widths`."""

FEW = 200
"""Up to this dimension the floors of the Laplace approximation stay."""


def with_floors(records: Records, name: str) -> list[dict]:
    """The evaluation records of the table ``name``, in whose rows ``ksd_floor`` and ``ksd_scaled_floor`` are the root
    mean squares √((E|score|² + D) / n) of the KSD of as many exact draws; above `FEW` parameters None without draws of
    NUTS.

    Evaluation writes floors of the Laplace approximation, with the curvature at the mode in place of E|score|². On the
    matrix factorisation that is ten times as large as E|score|², and in scaled coordinates a fortieth.
    `measure_widths` has the KSD of m draws of NUTS (width 1), whose mean square is (E|score|² + D) / m; in many
    dimensions a single one is near this mean. The written floor in scaled coordinates, √(2 D / n), tells n.
    """
    references, widths = (belonging(records, kind, name) for kind in ("reference", "widths"))
    dimensions = {one["model"]: len(one["sd" if "sd" in one else "laplace_sd"]) for one in references}
    single = {model: {} for model, dimension in dimensions.items() if dimension > FEW}
    single |= {
        one["model"]: _of_one_draw(one, dimensions[one["model"]]) for one in widths if one["model"] in single
    }
    return [
        record | {"table": [_with_floors(row, single[record["model"]]) for row in record["table"]]}
        if record["model"] in single
        else record
        for record in need(records, "evaluation", name)
    ]


def _of_one_draw(widths: Mapping, dimension: int) -> dict[str, float]:
    """√(E|score|² + D) by the key of a row, over the root of 2 D."""
    values = {
        row["scale"]: row["value"] * sqrt(row["n_points"])
        for row in widths["rows"]
        if (row["width"], row["discrepancy"]) == (1, "ksd")
    }
    return {key: values[scale] / sqrt(2 * dimension) for key, scale in SCALES.items()}


def _with_floors(row: dict, single: Mapping[str, float]) -> dict:
    written = row.get("ksd_scaled_floor")
    if written is None:
        return row
    return row | {f"{key}_floor": single[key] * written if single else None for key in SCALES}
