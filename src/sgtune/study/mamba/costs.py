"""What a step, a tuner and a whole run cost: milliseconds, warm and cold seconds, memory."""

from collections.abc import Sequence
from math import sqrt
from statistics import fmean, median, stdev

from sgtune.sampling.budget import shape_of_row
from sgtune.study.report.means import identity
from sgtune.study.report.records import Records, finite, of_tuners, over, provenances, required
from sgtune.study.report.table import Cell
from sgtune.support.axes import BATCH_SIZE, STATIC, numbers_of, symbol_of
from sgtune.support.errors import DataError

EVERYTHING = "all of these"
"""The last row of the table of timings, from which a published run has the time of its jobs."""

HEADINGS = {
    "time": {
        "budget": ("nominal_seconds",),
        "warm": ("warm_seconds", "warm_per_budget"),
        "cold": ("cold_seconds", "cold_per_budget"),
        "to_mamba": ("warm_ratio", "nominal_ratio"),
    },
    "parts": {
        "warm_parts": ("sampling_seconds", "score_seconds", "discrepancy_seconds", "other_seconds"),
        "cold_parts": ("compile_seconds", "startup_seconds"),
        "beyond": ("overrun_percent",),
        "work": ("gradient_evaluations_x1e-9",),
    },
}
"""What the metrics of the tables of `tuning` stand under, in the order of print."""


def timings(records: Records) -> list[Cell]:
    """Jobs, seconds, share of overhead and memory of each rule that makes results, in the order of the pipeline."""
    jobs = [job for job in provenances(records) if job.get("rule")]
    if not jobs:
        raise DataError("timings: no record names the rule that made it; at least one must")
    by_rule = {rule: [job for job in jobs if job["rule"] == rule] for rule in (job["rule"] for job in jobs)}
    cells = []
    for rule, own in [*by_rule.items(), (EVERYTHING, jobs)]:
        seconds = [job["process_seconds"] for job in own]
        values = {
            "jobs": len(own),
            "total_seconds": sum(seconds),
            "median_seconds": median(seconds),
            "longest_seconds": max(seconds),
            "startup_percent": 100 * sum(job["startup_seconds"] for job in own) / sum(seconds),
            "compilation_percent": 100 * sum(job["compile_seconds"] for job in own) / sum(seconds),
            "peak_memory_gb": max(job["peak_memory_gb"] for job in own),
        }
        cells += [Cell("", "", "", metric, value=value, detail=rule) for metric, value in values.items()]
    return cells


def cost(records: Records) -> list[Cell]:
    """Seconds of a step as measured on this machine, beside the given table that the run used."""
    found = required(records, "cost")
    tables = {
        record["model"]: {shape_of_row(row): row["seconds_per_step"] for row in record.get("table") or ()}
        for record in found
    }
    # Details stand in the order in which they come, and models have some in common: sorted before, not by model.
    rows = [
        (record["model"], row, numbers_of(shape_of_row(row)[1:], STATIC))
        for record in found
        for row in record["rows"]
    ]
    # Large batches first, then by the other numbers, the smallest first.
    rows.sort(key=lambda one: [-n if name == BATCH_SIZE.name else n or 0 for name, n in one[2].items()])
    cells = []
    for model, row, static in rows:
        here, there = row["seconds_per_step"], tables[model].get(shape_of_row(row))
        values = {"step_ms": 1e3 * here}
        if there is not None:
            values |= {"table_step_ms": 1e3 * there, "step_ratio": here / there}
        known = {name: number for name, number in static.items() if number is not None}
        detail = ", ".join(f"{symbol_of(name)} = {number:,}" for name, number in known.items())
        for metric, value in values.items():
            cells.append(Cell(model, row["sampler"], "", metric, value=value, detail=detail))
    return cells


def tuning(records: Records, *, what: str) -> list[Cell]:
    """What tuning costs, warm and cold, against the nominal budget and MAMBA-KSD (``what`` is "time"), or where that
    goes ("parts")."""
    found = of_tuners(required(records, "tuning"))
    numbers = {(one["model"], one["sampler"], one["tuner"]): _numbers(one) for one in found}
    cells = []
    for record in found:
        own = numbers[record["model"], record["sampler"], record["tuner"]]
        theirs = numbers.get((record["model"], record["sampler"], "mamba-ksd"), {})
        for name in ("warm", "nominal"):
            own[f"{name}_ratio"] = over(own[f"{name}_seconds"], theirs.get(f"{name}_seconds"))
        warm = [run["seconds"]["warm"] for run in record["tunings"]]
        spread = stdev(warm) if len(warm) > 1 else None
        # Not replicates of the same work, so that `compare` does not judge measured times.
        of_warm = {} if spread is None else {"sd": spread, "se": spread / sqrt(len(warm))}
        cells += [
            Cell(
                **identity(record),
                metric=metric,
                value=own[metric],
                detail=heading,
                **of_warm if metric == "warm_seconds" else {},
            )
            for heading, metrics in HEADINGS[what].items()
            for metric in metrics
        ]
    return cells


def _numbers(record: dict) -> dict[str, float | None]:
    """The cost of one tuner's tuning runs, by metric: means, but cold only for the first run, which compiles."""
    runs = [run["seconds"] for run in record["tunings"]]
    seconds = {name: _mean([run[name] for run in runs]) for name in runs[0]}
    evaluations = _mean([run["gradient_evaluations"] for run in record["tunings"]])
    first, nominal = {name: finite(value) for name, value in runs[0].items()}, seconds["nominal"]
    parts = (seconds["sampling"], seconds["gradients"], seconds["discrepancy"])
    return {
        "nominal_seconds": nominal,
        "warm_seconds": seconds["warm"],
        "warm_per_budget": over(seconds["warm"], nominal),
        "cold_seconds": first["cold"],
        "cold_per_budget": over(first["cold"], nominal),
        "sampling_seconds": parts[0],
        "score_seconds": parts[1],
        "discrepancy_seconds": parts[2],
        "other_seconds": max(0.0, seconds["warm"] - sum(parts)),
        "compile_seconds": first["compilation"] + first["shared_compilation"],
        "startup_seconds": first["startup"],
        "overrun_percent": None if not nominal else 100 * seconds["overrun"] / nominal,
        "gradient_evaluations_x1e-9": None if evaluations is None else evaluations / 1e9,
    }


def _mean(values: Sequence[float | None]) -> float | None:
    """None unless all are there."""
    values = [finite(value) for value in values]
    return None if None in values else fmean(values)
