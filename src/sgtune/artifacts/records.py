"""The result files an artifact is made from, by kind."""

import csv
import math
from collections.abc import Iterable
from pathlib import Path

from sgtune.errors import DataError
from sgtune.files import read_json

__all__ = ["KINDS", "Records", "finite", "load_records", "need", "only_model", "provenances"]

KINDS = ("tuning", "evaluation", "sweep", "estimates", "widths", "published")
Records = dict[str, list[dict]]


def _kind(path: Path) -> str:
    named = [part for part in (*path.parts[:-1], path.stem) if part in KINDS]
    if not named:
        raise DataError(f"{path}: not a known kind of result; its path must name one of {', '.join(KINDS)}")
    return named[-1]


def load_records(paths: Iterable[str | Path]) -> Records:
    """The records of each kind, in the order of their paths. The kind is the folder (``.../tuning/...json``);
    a ``.csv`` gives one record per row, its column ``value`` a float.

    Raises `DataError` for a path that names no kind, or a file that cannot be read.
    """
    records: Records = {kind: [] for kind in KINDS}
    for path in sorted({Path(path) for path in paths}):
        if path.suffix == ".csv":
            with path.open(newline="", encoding="utf-8") as file:
                rows = list(csv.DictReader(file))
            try:
                records[_kind(path)] += [row | {"value": float(row["value"])} for row in rows]
            except (KeyError, TypeError, ValueError) as error:
                raise DataError(f"{path}: column 'value' must hold a number in every row ({error})") from None
        elif path.suffix == ".json":
            records[_kind(path)].append(read_json(path))
    return records


def need(records: Records, kind: str, artifact: str) -> list[dict]:
    """The records of ``kind``, or a `DataError` if there are none."""
    found = records.get(kind) or []
    if not found:
        raise DataError(f"{artifact}: no {kind} records; it is made from at least one")
    return found


def only_model(records: list[dict], artifact: str) -> list[dict]:
    """The records if they are of one model, or a `DataError`: a figure of six panels has room for one."""
    models = sorted({record["model"] for record in records})
    if len(models) > 1:
        raise DataError(f"{artifact}: records of the models {', '.join(models)}; it shows one model")
    return records


def finite(value: float | None) -> float | None:
    """``value``, or None if it is not a finite number (files hold null for those)."""
    return value if value is not None and math.isfinite(value) else None


def provenances(records: Records) -> list[dict]:
    """The provenance of every record that has one."""
    return [
        record["provenance"] for found in records.values() for record in found if record.get("provenance")
    ]
