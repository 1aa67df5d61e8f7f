"""Tables the paper does not have: the price of tuning, and our numbers beside the published ones."""

# ruff: noqa: RUF001 - tables print Greek letters and signs of mathematics

from dataclasses import replace

from sgtune.artifacts.labels import MODELS, in_order, label
from sgtune.artifacts.layout import Cell, Table, format_number, lay_out
from sgtune.artifacts.records import Records, finite, need
from sgtune.artifacts.studies import STUDIES
from sgtune.artifacts.tables import FINITE, choice_cells, evaluation_cells, identity

__all__ = ["published_comparison", "tuning_time"]


def tuning_time(records: Records) -> Table:
    """What tuning costs: seconds on the wall, nominal budget, data terms evaluated; against MAMBA-KSD."""
    tunings = need(records, "tuning", "tuning_time")
    mamba = {
        (record["model"], record["sampler"]): record["seconds"]
        for record in tunings
        if record["tuner"] == "mamba-ksd"
    }

    def ratio(record: dict, entry: str) -> float | None:
        ours = finite(record["seconds"][entry])
        theirs = finite(mamba.get((record["model"], record["sampler"]), {}).get(entry))
        return ours / theirs if ours is not None and theirs else None

    cells = []
    for record in tunings:
        evaluations = finite(record["gradient_evaluations"])
        values = {
            "wall_seconds": finite(record["seconds"]["total"]),
            "nominal_seconds": finite(record["seconds"]["nominal"]),
            "gradient_evaluations_x1e-9": None if evaluations is None else evaluations / 1e9,
            "wall_ratio": ratio(record, "total"),
            "nominal_ratio": ratio(record, "nominal"),
        }
        cells += [Cell(**identity(record), metric=metric, value=value) for metric, value in values.items()]
    models = in_order((record["model"] for record in tunings), MODELS)
    claims = ", ".join(f"{STUDIES[model].speedup} times ({label(model, MODELS)})" for model in models)
    return lay_out(
        cells,
        name="tuning_time",
        title="What tuning costs",
        caption="Wall time of each tuning job (compilation and discrepancies included), its nominal "
        "budget T (the sampling time Algorithm 1 and grid search would use, arm after arm), the data "
        "terms its gradients evaluated, and both times over those of MAMBA-KSD. The paper reports that "
        f"for SGHMC grid search takes this many times as long as MAMBA-KSD: {claims}; and grid search by KSD, on "
        "logistic regression, 1.2 to 2.2 times.",
        rows=("tuner", "metric"),
        columns=("sampler",),
    )


def published_comparison(records: Records) -> Table:
    """Our metrics and hyperparameters beside the paper's (its Tables 5 to 10)."""
    papers = {
        (row["table"], row["model"], row["sampler"], row["tuner"], row["metric"]): row["value"]
        for row in need(records, "published", "published_comparison")
    }
    found = need(records, "evaluation", "published_comparison")
    results = [cell for record in found for cell in evaluation_cells(record, STUDIES[record["model"]].paper)]
    cells = []
    for ours in results + [cell for record in found for cell in choice_cells(record)]:
        study = STUDIES[ours.model]
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
        title="Beside the published numbers",
        caption="Results and hyperparameters of this run (means over replicates) and of the paper (its Tables 5 to 10, "
        "ξ as printed, × 10²), and of results the ratio ours / paper. What the paper prints as RMSE, ECE and MCE is "
        "by its own definitions, so the rows “as published” are the ones to compare. Its network's SGNHT was tuned "
        "by MAMBA-KSD and Grid on the smaller grid. A dash: the paper does not give the number. "
        f"{FINITE}",
        rows=("tuner", "metric"),
        columns=("sampler", "detail"),
    )
