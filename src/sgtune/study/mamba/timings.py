"""The cost of a run: seconds and memory by rule, and the cost of a step on this machine and in a given table."""

# ruff: noqa: RUF001 - tables print signs of mathematics

from collections.abc import Sequence
from statistics import median

from sgtune.sampling.budget import shape_of_row
from sgtune.study.mamba.catalogue_tables import EVERYTHING
from sgtune.study.report.artifacts import artifact
from sgtune.study.report.layout import Cell, Table, lay_out
from sgtune.study.report.records import Records, need, provenances
from sgtune.support.axes import BATCH_SIZE, STATIC, numbers_of, symbol_of
from sgtune.support.errors import DataError

__all__ = ["cost", "timings"]


def timings(records: Records) -> Table:
    """Jobs, seconds, share of overhead and memory of each rule that makes results, in the order of the
    pipeline."""
    by_rule: dict[str, list[dict]] = {}
    for job in provenances(records):
        if job.get("rule"):
            by_rule.setdefault(job["rule"], []).append(job)
    if not by_rule:
        raise DataError("timings: no record names the rule that made it; at least one must")
    cells = []
    everything = [job for jobs in by_rule.values() for job in jobs]
    for rule, jobs in [*by_rule.items(), (EVERYTHING, everything)]:
        seconds = [job["process_seconds"] for job in jobs]
        values = {
            "jobs": len(jobs),
            "total_seconds": sum(seconds),
            "median_seconds": median(seconds),
            "longest_seconds": max(seconds),
            "startup_percent": 100 * sum(job["startup_seconds"] for job in jobs) / sum(seconds),
            "compilation_percent": 100 * sum(job["compile_seconds"] for job in jobs) / sum(seconds),
            "peak_memory_gb": max(job["peak_memory_gb"] for job in jobs),
        }
        cells += [
            Cell(model="", sampler="", tuner="", metric=metric, value=value, detail=rule)
            for metric, value in values.items()
        ]
    return lay_out(
        cells,
        name="timings",
        title=artifact("timings").title,
        caption="The jobs that made the results, by rule. Seconds of wall clock from the start of a job's process "
        "to the writing of its result: their sum, the median job, and the longest job. Start-up (until "
        "the model is loaded) and compilation (tracing included) in % of the sum. Memory: the peak of one "
        "job. Untimed jobs run in parallel where the machine has cores for it, so the run takes less time "
        "than the "
        "sum. Downloads, tables and figures are not listed.",
        rows=("detail",),
        columns=("metric",),
        stub={"detail": "Rule"},
    )


def cost(records: Records) -> Table:
    """Seconds of a step as measured on this machine, beside the given table that the run used."""
    found = need(records, "cost", "cost")
    tables = {
        record["model"]: {shape_of_row(row): row["seconds_per_step"] for row in record.get("table") or ()}
        for record in found
    }
    # Details stand in the order in which they come, and models have some in common: sorted before, not by model.
    rows = [(record["model"], row) for record in found for row in record["rows"]]
    rows.sort(key=lambda pair: _by_size(_static(pair[1])))
    cells, given = [], False
    for model, row in rows:
        here, there = row["seconds_per_step"], tables[model].get(shape_of_row(row))
        given = given or there is not None
        values = {"step_ms": 1e3 * here}
        if there is not None:
            values |= {"table_step_ms": 1e3 * there, "step_ratio": here / there}
        cells += [
            Cell(
                model=model,
                sampler=row["sampler"],
                tuner="",
                metric=metric,
                value=value,
                detail=", ".join(
                    f"{symbol_of(name)} = {number:,}"
                    for name, number in _static(row).items()
                    if number is not None
                ),
            )
            for metric, value in values.items()
        ]
    by = (
        "“Table”: the same in the table that the run was given (calibration.table). The run used it, so "
        "its steps do not depend on this machine; a ratio above 1 means that this machine is slower."
        if given
        else "The run used these costs."
    )
    return lay_out(
        cells,
        name="cost",
        title=artifact("cost").title,
        caption="Milliseconds of one step of a single chain, by sampler, batch size n and number L of "
        "leapfrog steps. “Here”: the median that this run measured, alone among the jobs of this run, without "
        "compilation. "
        f"{by}{_speed_said(found)}",
        rows=("model", "sampler", "detail"),
        columns=("metric",),
        stub={"detail": "Step"},
    )


def _speed_said(found: Sequence[dict]) -> str:
    """The machine's time for a fixed benchmark, by which a reader compares machines; older records have none."""
    known = [record["numpy_product_seconds"] for record in found if "numpy_product_seconds" in record]
    return (
        f" NumPy multiplied two 1,000 × 1,000 matrices of float64 in {1e3 * min(known):.0f} ms here."
        if known
        else ""
    )


def _static(row: dict) -> dict:
    """The static numbers of a row by name, None where its sampler has none."""
    return numbers_of(shape_of_row(row)[1:], STATIC)


def _by_size(static: dict) -> list:
    """Large batches first, then by the other numbers, the smallest first."""
    return [-number if name == BATCH_SIZE.name else number or 0 for name, number in static.items()]
