"""The result files an artifact is made from, by kind."""

import csv
import math
from collections.abc import Iterable
from pathlib import Path

from sgtune.errors import DataError
from sgtune.files import read_json
from sgtune.study.artifacts.studies import artifact as entry_of

__all__ = ["KINDS", "Records", "belonging", "finite", "load_records", "need", "provenances"]

KINDS = ("data", "cost", "tuning", "evaluation", "sweep", "estimates", "widths", "reference", "published")
Records = dict[str, list[dict]]


def _kind(path: Path) -> str:
    named = [part for part in (*path.parts[:-1], path.stem) if part in KINDS]
    if not named:
        raise DataError(f"{path}: not a known kind of result; its path must name one of {', '.join(KINDS)}")
    return named[-1]


def load_records(paths: Iterable[str | Path]) -> Records:
    """The records of each kind, in the order of their paths. The kind is the folder (``.../tuning/...json``);
    what is of several tuners gives a record for each; a ``.csv`` gives one record per row, its column
    ``value`` a float.

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
            records[_kind(path)] += _by_tuner(read_json(path))
    return records


def _by_tuner(held: dict) -> list[dict]:
    """One record per tuner of what a job has made of all tuners of a sampler; tuners share the runs of an arm that
    several of them chose. Other files are one record."""
    if "tuners" not in held:
        return [held]
    common = {name: value for name, value in held.items() if name not in ("tuners", "arms")}
    if "arms" not in held:
        return [common | own for own in held["tuners"]]
    records = []
    for own in held["tuners"]:
        arm = {} if own["arm"] is None else dict(held["arms"][own["arm"]])
        runs = {name: arm.pop(name, []) for name in ("table", "curves")}
        records.append(common | {"tuner": own["tuner"], "reason": own["reason"], "best": arm or None} | runs)
    return records


def belonging(records: Records, kind: str, artifact: str) -> list[dict]:
    """The records of ``kind`` of the model that ``artifact`` is of and of the tuners that it shows."""
    of = entry_of(artifact)
    return [
        record
        for record in records.get(kind) or []
        if of.model in (None, record["model"]) and record.get("tuner") not in of.without
    ]


def need(records: Records, kind: str, artifact: str) -> list[dict]:
    """What `belonging` finds, or a `DataError` if it finds nothing."""
    found = belonging(records, kind, artifact)
    if not found:
        raise DataError(f"{artifact}: no {kind} records; it is made from at least one")
    return found


def finite(value: float | None) -> float | None:
    """``value``, or None if it is not a finite number (files hold null for those)."""
    return value if value is not None and math.isfinite(value) else None


def provenances(records: Records) -> list[dict]:
    """The provenance of every file that has one: records of one file have one in common."""
    found = [
        record["provenance"] for of_kind in records.values() for record in of_kind if "provenance" in record
    ]
    return list({id(provenance): provenance for provenance in found if provenance}.values())
