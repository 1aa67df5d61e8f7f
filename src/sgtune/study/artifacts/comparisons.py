"""Tables the paper does not have: the price of tuning, and our numbers beside the published ones."""

# ruff: noqa: RUF001 - tables print Greek letters and signs of mathematics

from dataclasses import replace

from sgtune.study import catalogue
from sgtune.study.artifacts.labels import MODELS, in_order, label
from sgtune.study.artifacts.layout import Cell, Table, format_number, lay_out
from sgtune.study.artifacts.records import Records, finite, need
from sgtune.study.artifacts.studies import artifact
from sgtune.study.artifacts.tables import FINITE, choice_cells, evaluation_cells, identity

__all__ = ["published_comparison", "tuning_time"]


HEADINGS = {
    "warm": ("warm_seconds", "sampling_seconds", "score_seconds", "discrepancy_seconds", "other_seconds"),
    "cold": ("cold_seconds", "compile_seconds", "startup_seconds"),
    "budget": ("nominal_seconds", "overrun_percent", "warm_per_budget", "cold_per_budget"),
    "to_mamba": ("warm_ratio", "nominal_ratio"),
    "work": ("gradient_evaluations_x1e-9",),
}
"""What the metrics of `tuning_time` stand under, in the order of print."""

TIMES = {
    "warm_seconds": "warm",
    "sampling_seconds": "sampling",
    "score_seconds": "gradients",
    "discrepancy_seconds": "discrepancy",
    "cold_seconds": "cold",
    "compile_seconds": "compilation",
    "startup_seconds": "startup",
    "nominal_seconds": "nominal",
}
"""Metric of the table -> entry of a record's ``seconds``."""


def _over(above: float | None, below: float | None) -> float | None:
    return above / below if above is not None and below else None


def tuning_time(records: Records) -> Table:
    """What tuning costs: warm and cold, what it goes into, against the nominal budget and against MAMBA-KSD."""
    tunings = need(records, "tuning", "tuning_time")
    mamba = {
        (record["model"], record["sampler"]): record["seconds"]
        for record in tunings
        if record["tuner"] == "mamba-ksd"
    }
    cells = []
    for record in tunings:
        seconds = {name: finite(value) for name, value in record["seconds"].items()}
        theirs = mamba.get((record["model"], record["sampler"]), {})
        evaluations, nominal = finite(record["gradient_evaluations"]), seconds["nominal"]
        values = {metric: seconds[entry] for metric, entry in TIMES.items()}
        parts = (seconds["sampling"], seconds["gradients"], seconds["discrepancy"])
        values["other_seconds"] = max(0.0, seconds["warm"] - sum(parts))
        values["compile_seconds"] = seconds["compilation"] + seconds["shared_compilation"]
        values |= {
            "overrun_percent": None if not nominal else 100 * seconds["overrun"] / nominal,
            "warm_per_budget": _over(seconds["warm"], nominal),
            "cold_per_budget": _over(seconds["cold"], nominal),
            "warm_ratio": _over(seconds["warm"], finite(theirs.get("warm"))),
            "nominal_ratio": _over(nominal, finite(theirs.get("nominal"))),
            "gradient_evaluations_x1e-9": None if evaluations is None else evaluations / 1e9,
        }
        cells += [
            Cell(**identity(record), metric=metric, value=values[metric], detail=heading)
            for heading, metrics in HEADINGS.items()
            for metric in metrics
        ]
    models = in_order((record["model"] for record in tunings), MODELS)
    claims = ", ".join(
        f"{catalogue.MODELS[model].study.speedup} times ({label(model, MODELS)})" for model in models
    )
    return lay_out(
        cells,
        name="tuning_time",
        title=artifact("tuning_time").title,
        caption="Warm: wall time of tuning once its programs are compiled. Its main parts are sampling, "
        "scores (of all data or of a part), and judging: the discrepancy, or predictions. Cold: what a "
        "user waits for who runs this tuner alone in a new process: warm, start-up (imports, data) and "
        "compiling, also of sampling programs that another tuner of the same job had compiled; programs "
        "that the machine keeps in its cache are read and not compiled, and those of the scores count for "
        "the tuner that came first. Budget T: the sampling time that the tuner is given, arm after arm; "
        "overrun: what arms took beyond it, for each makes ten steps before it is judged. A dash: the "
        "budget is in steps, or there is none. Over MAMBA-KSD: warm time and T over those of MAMBA-KSD. "
        "The paper reports that for SGHMC grid search takes this many times as long as MAMBA-KSD: "
        f"{claims}; and grid search by KSD, on logistic regression, 1.2 to 2.2 times. Terms: the data terms "
        "of all gradients, in sampling and scores.",
        rows=("sampler", "tuner"),
        columns=("detail", "metric"),
    )


def published_comparison(records: Records) -> Table:
    """Our metrics and hyperparameters beside the paper's (its Tables 5 to 10)."""
    papers = {
        (row["table"], row["model"], row["sampler"], row["tuner"], row["metric"]): row["value"]
        for row in need(records, "published", "published_comparison")
    }
    found = need(records, "evaluation", "published_comparison")
    studies = {name: entry.study for name, entry in catalogue.MODELS.items()}
    results = [cell for record in found for cell in evaluation_cells(record, studies[record["model"]].paper)]
    cells = []
    for ours in results + [cell for record in found for cell in choice_cells(record)]:
        study = studies[ours.model]
        named = study.paper.get(ours.metric)
        table = study.long[0] if named else study.choices
        paper = papers.get((table, ours.model, ours.sampler, ours.tuner, named or ours.metric))
        cells.append(replace(ours, sd=None, detail="ours"))
        if paper is not None:
            numbers = {"paper": (paper, "printed")}
            if named and ours.value is not None:
                numbers["ratio"] = (ours.value / paper, "significant")
            cells += [
                replace(
                    cells[-1],
                    value=value,
                    finite=1,
                    replicates=1,
                    detail=detail,
                    text=format_number(value, form),
                )
                for detail, (value, form) in numbers.items()
            ]
    return lay_out(
        cells,
        name="published_comparison",
        title=artifact("published_comparison").title,
        caption="Results and hyperparameters of this run (means over replicates) and of the paper (its "
        "Tables 5 to 10, ξ as printed, × 10²), and of results the ratio ours / paper. What the paper "
        "prints as RMSE, ECE and MCE is by its own definitions, so the rows “as published” are the ones to "
        "compare. Its network's SGNHT was tuned by MAMBA-KSD and Grid on the smaller grid. A dash: the "
        f"paper does not give the number. {FINITE}",
        rows=("tuner", "metric"),
        columns=("sampler", "detail"),
    )
