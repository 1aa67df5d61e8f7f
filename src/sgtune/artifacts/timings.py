"""What a run costs where it runs: seconds and memory by rule, and what a step costs here and in a given table."""

from statistics import median

from sgtune.artifacts.labels import SAMPLERS, label
from sgtune.artifacts.layout import Cell, Table, lay_out
from sgtune.artifacts.records import Records, need, provenances
from sgtune.artifacts.studies import TITLES

__all__ = ["cost", "timings"]


def timings(records: Records) -> Table:
    """Jobs, seconds, share of overhead and memory of each rule that makes results, in the order of the
    pipeline."""
    by_rule: dict[str, list[dict]] = {}
    for job in provenances(records) + [job for one in records["reference"] for job in one.get("chains", [])]:
        if job.get("rule"):
            by_rule.setdefault(job["rule"], []).append(job)
    cells = []
    everything = [job for jobs in by_rule.values() for job in jobs]
    for rule, jobs in [*by_rule.items(), ("all of these", everything)]:
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
        title=TITLES["timings"],
        caption="By rule, of the jobs that made the results: their number, seconds of wall clock in sum, "
        "of the median job and of the longest, from the start of its process to the writing of its result; "
        "the overhead among them: start-up (until the model is loaded), and tracing and compiling; and the "
        "most memory that one held. Jobs run beside each other where the machine has cores for it, so the "
        "run takes less than the sum.",
        rows=("detail",),
        columns=("metric",),
        stub={"detail": "Rule"},
    )


def cost(records: Records) -> Table:
    """Seconds of a step as measured on this machine, beside those of the table that the run went by."""
    cells, given = [], False
    for record in need(records, "cost", "cost"):
        table = {_shape(row): row["seconds_per_step"] for row in record.get("table") or ()}
        for row in record["rows"]:
            here, there = row["seconds_per_step"], table.get(_shape(row))
            given = given or there is not None
            leapfrogs = "" if row["n_leapfrog"] is None else f", L = {row['n_leapfrog']}"
            detail = f"{label(row['sampler'], SAMPLERS)}, n = {row['batch_size']:,}{leapfrogs}"
            values = {"step_ms": 1e3 * here}
            if there is not None:
                values |= {"table_step_ms": 1e3 * there, "step_ratio": here / there}
            cells += [
                Cell(model=record["model"], sampler="", tuner="", metric=metric, value=value, detail=detail)
                for metric, value in values.items()
            ]
    by = (
        "The run went by the table that it was given (calibration.table), so its steps do not depend on "
        "this machine; the ratio says how much slower or faster this one is."
        if given
        else "The run went by these."
    )
    return lay_out(
        cells,
        name="cost",
        title=TITLES["cost"],
        caption="Milliseconds of one step of a single chain, by sampler, batch size n and leapfrog number "
        f"L: the median of what was measured here, alone on the machine, without compilation. {by}",
        rows=("model", "detail"),
        columns=("metric",),
        stub={"detail": "Step"},
    )


def _shape(row: dict) -> tuple:
    return row["sampler"], row["batch_size"], row["n_leapfrog"]
