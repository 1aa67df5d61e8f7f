"""The cost of tuning: warm and cold, against its budget and against MAMBA-KSD, and its parts."""

from collections.abc import Sequence
from statistics import fmean, stdev

from sgtune.study import catalogue
from sgtune.study.report.artifacts import artifact
from sgtune.study.report.labels import MODELS, in_order, label
from sgtune.study.report.layout import Cell, Table, lay_out
from sgtune.study.report.means import identity
from sgtune.study.report.records import Records, finite, need, of_tuners
from sgtune.study.report.remarks import beside_said, budgets_said, by_model, tuning_runs_said

__all__ = ["tuning_parts", "tuning_time"]

TIME = {
    "budget": ("nominal_seconds",),
    "warm": ("warm_seconds", "warm_per_budget"),
    "cold": ("cold_seconds", "cold_per_budget"),
    "to_mamba": ("warm_ratio", "nominal_ratio"),
}
"""What the metrics of `tuning_time` stand under, in the order of print."""

PARTS = {
    "warm_parts": ("sampling_seconds", "score_seconds", "discrepancy_seconds", "other_seconds"),
    "cold_parts": ("compile_seconds", "startup_seconds"),
    "beyond": ("overrun_percent",),
    "work": ("gradient_evaluations_x1e-9",),
}
"""The same of `tuning_parts`."""


def _over(above: float | None, below: float | None) -> float | None:
    return above / below if above is not None and below else None


def _mean(values: Sequence[float | None]) -> float | None:
    """None unless all are there."""
    values = [finite(value) for value in values]
    return None if None in values else fmean(values)


def _numbers(record: dict) -> dict[str, float | None]:
    """The cost of one tuner's tuning runs, by metric: means, but cold only for the first run, which compiles."""
    runs = [run["seconds"] for run in record["tunings"]]
    seconds = {name: _mean([run[name] for run in runs]) for name in runs[0]}
    evaluations, first, nominal = (
        _mean([run["gradient_evaluations"] for run in record["tunings"]]),
        {name: finite(value) for name, value in runs[0].items()},
        seconds["nominal"],
    )
    parts = (seconds["sampling"], seconds["gradients"], seconds["discrepancy"])
    return {
        "nominal_seconds": nominal,
        "warm_seconds": seconds["warm"],
        "warm_per_budget": _over(seconds["warm"], nominal),
        "cold_seconds": first["cold"],
        "cold_per_budget": _over(first["cold"], nominal),
        "sampling_seconds": parts[0],
        "score_seconds": parts[1],
        "discrepancy_seconds": parts[2],
        "other_seconds": max(0.0, seconds["warm"] - sum(parts)),
        "compile_seconds": first["compilation"] + first["shared_compilation"],
        "startup_seconds": first["startup"],
        "overrun_percent": None if not nominal else 100 * seconds["overrun"] / nominal,
        "gradient_evaluations_x1e-9": None if evaluations is None else evaluations / 1e9,
    }


def _cells(found: Sequence[dict], headings: dict[str, tuple[str, ...]]) -> list[Cell]:
    numbers = {(one["model"], one["sampler"], one["tuner"]): _numbers(one) for one in found}
    cells = []
    for record in found:
        own = numbers[record["model"], record["sampler"], record["tuner"]]
        theirs = numbers.get((record["model"], record["sampler"], "mamba-ksd"), {})
        own |= {
            "warm_ratio": _over(own["warm_seconds"], theirs.get("warm_seconds")),
            "nominal_ratio": _over(own["nominal_seconds"], theirs.get("nominal_seconds")),
        }
        warm = [run["seconds"]["warm"] for run in record["tunings"]]
        spreads = {"warm_seconds": stdev(warm) if len(warm) > 1 else None}
        cells += [
            Cell(**identity(record), metric=metric, value=own[metric], sd=spreads.get(metric), detail=heading)
            for heading, metrics in headings.items()
            for metric in metrics
        ]
    return cells


def _runs(records: Sequence[dict]) -> str:
    return tuning_runs_said((record["tuner"], len(record["tunings"])) for record in records)


def tuning_time(records: Records) -> Table:
    """What tuning costs: warm and cold, against the nominal budget and against MAMBA-KSD."""
    found = of_tuners(need(records, "tuning", "tuning_time"))
    models = in_order((record["model"] for record in found), MODELS)
    settings = need(records, "settings", "tuning_time")
    claims = ", ".join(
        f"{catalogue.MODELS[model].study.speedup} times ({label(model, MODELS)})" for model in models
    )
    return lay_out(
        _cells(found, TIME),
        name="tuning_time",
        title=artifact("tuning_time").title,
        caption=f"Means over n = {by_model(found, _runs)}, for the warm time ± sd; the cold time is from the first of "
        "them.\nBudget T: the sampling time that the tuner was given, summed over its arms, without what it overran; "
        "the longest arm of MAMBA "
        f"has {budgets_said(settings, models)}. Warm: wall time once the tuner's programs are compiled. "
        "Cold: the wait of a user who runs this tuner alone in a new process, start-up and compiling "
        "included, also of sampling programs that another tuner of the same job had compiled; programs in "
        "the machine's cache are read and not compiled, and programs of the scores count for the tuner "
        "that ran first. A dash: the budget is in steps, or there is none. Over MAMBA-KSD: warm time and T "
        "over MAMBA-KSD's.\nThe paper reports that for SGHMC grid search takes this many times as long as "
        "MAMBA-KSD: "
        f"{claims}; and grid search by KSD, on logistic regression, 1.2 to 2.2 times."
        + beside_said(settings, models),
        rows=("sampler", "tuner"),
        columns=("detail", "metric"),
    )


def tuning_parts(records: Records) -> Table:
    """Where the time of tuning goes."""
    found = of_tuners(need(records, "tuning", "tuning_parts"))
    models = in_order((record["model"] for record in found), MODELS)
    return lay_out(
        _cells(found, PARTS),
        name="tuning_parts",
        title=artifact("tuning_parts").title,
        caption=f"Means over n = {by_model(found, _runs)}; the cold part is from the first of them.\nWarm: sampling, "
        "scores (of all data or of a subset), judging (the discrepancy, or predictions), and the rest. "
        "Cold, before that: compiling, in the first run, and start-up (imports, data). Beyond T: the time "
        "of arms beyond the budget T, in % of T, because each makes ten steps before it is judged. Terms: "
        "the data terms of all gradients, in "
        "sampling and scores." + beside_said(need(records, "settings", "tuning_parts"), models),
        rows=("sampler", "tuner"),
        columns=("detail", "metric"),
    )
