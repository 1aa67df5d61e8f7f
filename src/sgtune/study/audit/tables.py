"""The table of the audit: accuracy and choices with each defect, beside those of the main study."""

from collections.abc import Iterator
from dataclasses import replace

from sgtune.study.audit.artifacts import MODEL, TUNERS
from sgtune.study.mamba.comparison import choice_cells
from sgtune.study.report.means import evaluation_cells
from sgtune.study.report.records import Records, required
from sgtune.study.report.table import Cell

METRICS = ("ksd", "relative_sd_error_x100")


def defects(records: Records) -> list[Cell]:
    """Of each tuner and defect the KSD, the error of the sds and the hyperparameters; without a defect those of the
    samplers and tuners that have one."""
    found = required(records, "audits")
    concerned = {(one["sampler"], one["tuner"]) for one in found}
    ours = [
        record
        for record in required(records, "evaluation")
        if record["model"] == MODEL and (record["sampler"], record["tuner"]) in concerned
    ]
    labelled = [*(("none", record) for record in ours), *((record["defect"], record) for record in found)]
    ordered = sorted(labelled, key=lambda pair: TUNERS.index(pair[1]["tuner"]))
    return [cell for defect, record in ordered for cell in _cells(record, defect)]


def _cells(record: dict, defect: str) -> Iterator[Cell]:
    for cell in evaluation_cells(record, METRICS):
        yield replace(cell, detail=defect)
    yield from choice_cells(record, defect)
