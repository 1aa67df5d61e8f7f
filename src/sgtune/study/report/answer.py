"""The result of a run in a few words, for the first page of its report."""

import csv
from collections.abc import Mapping
from pathlib import Path

from sgtune.study.catalogue import TUNERS as ENTRIES
from sgtune.study.report.labels import MODELS, TUNERS, label

__all__ = ["answer_of"]

DEFAULT, PAPERS = "mamba", "mamba-ksd"


def answer_of(run: Path) -> str:
    """The regret over the oracle's of the default tuner, of the paper's, and of the tuner with the smallest, for each
    model: from the table ``headline`` of the run in this folder; empty as long as there is no such table.

    Tuners that use the test set are left out.
    """
    path = run / "tables/headline.csv"
    if not path.is_file():
        return ""
    models: dict[str, dict[str, Mapping[str, str]]] = {}
    with path.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            is_fair = row["tuner"] in ENTRIES and row["at_test_set"] != "True"
            if row["metric"] == "over_oracle" and row["value"] and is_fair:
                # The first loss of a model is the main one.
                models.setdefault(row["model"], {}).setdefault(row["tuner"], row)
    return " ".join(f"{label(model, MODELS)}: {_said(tuners)}." for model, tuners in models.items())


def _said(tuners: Mapping[str, Mapping[str, str]]) -> str:
    smallest = min(tuners, key=lambda name: float(tuners[name]["value"]))
    named = [name for name in (DEFAULT, PAPERS) if name in tuners]
    said = [f"{label(name, TUNERS)} {tuners[name]['shown']}" for name in named]
    if smallest not in named:
        said.append(f"the smallest is {label(smallest, TUNERS)} with {tuners[smallest]['shown']}")
    return ", ".join(said)
