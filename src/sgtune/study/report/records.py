"""The result files an artifact is made from, by kind."""

import csv
import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from operator import itemgetter
from pathlib import Path
from statistics import fmean, stdev
from typing import TypeVar

import yaml

from sgtune.study.catalogue import TUNERS
from sgtune.study.report.artifact import Artifact
from sgtune.support.errors import DataError
from sgtune.support.files import read_json

Records = dict[str, list[dict]]
Item = TypeVar("Item")


def load_records(paths: Iterable[str | Path], kinds: Sequence[str]) -> Records:
    """The records of each kind, in the order of their paths. The kind is the folder (``.../tuning/...json``) or the
    file's own name. A file of several tuners gives a record for each; a ``.csv`` gives a record for each row, with
    a float in its column ``value``; a ``.yaml`` is one record.

    Raises `DataError` for a path that names no kind, or a file that cannot be read.
    """
    records: Records = {kind: [] for kind in kinds}
    for path in sorted({Path(path) for path in paths if Path(path).suffix in (".csv", ".json", ".yaml")}):
        named = [part for part in (*path.parts[:-1], path.stem) if part in kinds]
        if not named:
            raise DataError(
                f"{path}: not a known kind of result; its path must name one of {', '.join(kinds)}"
            )
        if path.suffix == ".csv":
            rows = csv.DictReader(path.read_text(encoding="utf-8").splitlines())
            records[named[-1]] += [row | {"value": float(row["value"])} for row in rows]
        elif path.suffix == ".json":
            records[named[-1]] += _by_tuner(read_json(path))
        else:
            records[named[-1]].append(yaml.safe_load(path.read_text(encoding="utf-8")))
    return records


def _by_tuner(held: dict) -> list[dict]:
    """The result of a job for all tuners of a sampler, as records: one per tuner and tuning replicate, or, for runs
    that tuners share, one per tuner with its rows. Other files are one record."""
    if "tuners" not in held:
        return [held]
    common = {name: value for name, value in held.items() if name not in ("tuners", "runs")}
    if "runs" not in held:
        return [common | own for own in held["tuners"]]
    return [common | own | rows_of(own, held["runs"]) for own in held["tuners"]]


def rows_of(own: dict, runs: list[dict]) -> dict:
    """A tuner's rows: those of its runs, one per evaluation replicate; one that has no arm says so. ``best`` is the
    first arm that it found."""
    # Further replicates are for curves alone.
    first_without = min((run["replicate"] for run in runs if run["table"] is None), default=math.inf)
    table, curves = [], []
    for replicate, place in enumerate(own["runs"]):
        if place is not None:
            curves += runs[place]["curves"]
        if replicate < first_without:
            lost = {"replicate": replicate, "no_arm": True}
            table.append(lost if place is None else runs[place]["table"])
    best = next((arm for arm in own["arms"] if arm is not None), None)
    return {"best": best, "table": table, "curves": curves}


def of_tuners(records: Iterable[dict]) -> list[dict]:
    """The records of one tuner's tuning replicates as one: common entries are from the first, ``arms`` are the choices
    of all (None where none was found), ``best`` is the first that is not None, ``tunings`` are the records, in
    order."""
    merged, in_order = [], sorted(records, key=itemgetter("replicate"))
    for tunings in grouped(in_order, itemgetter("model", "sampler", "tuner")).values():
        arms = [record["best"] for record in tunings]
        best = next((arm for arm in arms if arm is not None), None)
        merged.append(tunings[0] | {"arms": arms, "best": best, "tunings": tunings})
    return merged


def looks_at_test_set(record: dict) -> bool:
    """Whether the tuner of a record judges arms by the test set; not if it held out training data to judge by."""
    entry = TUNERS.get(record["tuner"])
    return entry is not None and entry.looks_at_test_set and not record.get("validation_fraction")


def records_of(records: Records, about: Artifact) -> Records:
    """The records that an artifact is made from: of its kinds, of its model and of the tuners that it shows."""
    return {
        kind: [
            record
            for record in records.get(kind, ())
            if about.model in (None, record.get("model")) and record.get("tuner") not in about.without
        ]
        for kind in about.kinds
    }


def required(records: Records, kind: str) -> list[dict]:
    """The records of a kind."""
    if not records.get(kind):
        raise DataError(f"no {kind} records; it needs at least one")
    return records[kind]


def grouped(items: Iterable[Item], key: Callable[[Item], Hashable]) -> dict[Hashable, list[Item]]:
    """The ``items`` by their ``key``; keys and items in the order in which they come."""
    groups: dict[Hashable, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def mean_of(values: Sequence[float]) -> tuple[float | None, float | None]:
    """The mean and its standard error: None of no value, and of one."""
    if not values:
        return None, None
    return fmean(values), stdev(values) / math.sqrt(len(values)) if len(values) > 1 else None


def over(above: float | None, below: float | None) -> float | None:
    """The ratio of two numbers, None where one is missing or the second is 0."""
    return above / below if above is not None and below else None


def finite(value: float | None) -> float | None:
    """``value``, or None if it is not a finite number (files hold null for those)."""
    return value if value is not None and math.isfinite(value) else None


def provenances(records: Records) -> list[dict]:
    """The provenance of every file that has one: records of one file have one in common, and the combined reference
    names the jobs of its NUTS chains."""
    found = []
    for of_kind in records.values():
        for record in of_kind:
            # Elsewhere "chains" is their number.
            chains = record.get("chains")
            found += [*(chains if isinstance(chains, list) else ()), record.get("provenance")]
    return list({id(provenance): provenance for provenance in found if provenance}.values())
