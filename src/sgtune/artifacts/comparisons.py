"""Tables the paper does not have: regret, the price of tuning, and our numbers beside the published ones."""

# ruff: noqa: RUF001 - tables print Greek letters and signs of mathematics

from dataclasses import replace
from math import isclose

from sgtune.artifacts.labels import COMPARED, METRICS
from sgtune.artifacts.layout import DASH, DIVERGED, Cell, Table, lay_out, mark_best
from sgtune.artifacts.records import Records, finite, need
from sgtune.artifacts.tables import FINITE, choice_cells, evaluation_cells, identity

__all__ = ["published_comparison", "regret", "regret_cells", "tuning_time"]

ORACLE = "oracle"  # the arm of the grid with the smallest error, which no tuner can know
RATIOS = ("ksd", "relative_sd_error_x100")
HEADINGS = {
    metric + suffix: (METRICS[metric].label, heading)
    for metric in COMPARED
    for suffix, heading in (("", "ours"), ("_published", "paper"), ("_ratio", "ratio"))
}


def _same_arm(row: dict, arm: dict) -> bool:
    """Step sizes pass through float32 on their way, so they are compared to its precision."""
    return (
        isclose(row["step_size"], arm["step_size"], rel_tol=1e-5)
        and row["batch_size"] == arm["batch_size"]
        and row.get("n_leapfrog") == arm.get("n_leapfrog")
    )


def _grid(rows: list[dict]) -> list[dict]:
    """The arms of the grid: the heuristic's is one of them only if its step size is the grid's."""
    others = [row for row in rows if not row["is_heuristic"]]
    return others + [
        row
        for row in rows
        if row["is_heuristic"]
        and any(isclose(row["step_size"], other["step_size"], rel_tol=1e-5) for other in others)
    ]


def _smallest_error(rows: list[dict]) -> float | None:
    errors = [finite(row["relative_sd_error"]) for row in _grid(rows)]
    return min((error for error in errors if error is not None), default=None)


def _chosen_row(record: dict, rows: list[dict]) -> dict | None:
    same = [row for row in rows if _same_arm(row, record["best"])]
    if record["tuner"] == "heuristic":
        same = same or [row for row in rows if row["is_heuristic"]]
    return same[0] if same else None


def regret_cells(records: Records) -> list[Cell]:
    """Per tuner and sampler: regret (xi of the arm it chose over the smallest xi in the grid) and that xi x
    100; of the grid's best arm, the xi.

    Every xi is of the sweep: one equally long run of every arm. Regret is at least 1 for an arm of the grid;
    the heuristic's lies off it and may fall below. An arm that is not in the sweep has a dash.
    """
    sweeps = {(sweep["model"], sweep["sampler"]): sweep["rows"] for sweep in need(records, "sweep", "regret")}
    chosen, oracle = [], []
    for record in need(records, "tuning", "regret"):
        rows = sweeps.get((record["model"], record["sampler"]), [])
        smallest, row = _smallest_error(rows), _chosen_row(record, rows)
        error = None if row is None else finite(row["relative_sd_error"])
        values = {
            "regret": error / smallest if error is not None and smallest else None,
            "relative_sd_error_x100": None if error is None else 100 * error,
        }
        missing = DASH if row is None or error is not None else DIVERGED
        chosen += [
            Cell(**identity(record), metric=metric, value=value, missing=missing)
            for metric, value in values.items()
        ]
    for (model, sampler), rows in sweeps.items():
        smallest = _smallest_error(rows)
        oracle.append(
            Cell(
                model=model,
                sampler=sampler,
                tuner=ORACLE,
                metric="relative_sd_error_x100",
                value=None if smallest is None else 100 * smallest,
                missing=DIVERGED,
            )
        )
    return mark_best(chosen) + oracle


def regret(records: Records) -> Table:
    """How much worse than the best arm of its grid is the one a tuner chose."""
    return lay_out(
        regret_cells(records),
        name="regret",
        title="Regret of the tuners",
        caption="Regret: relative error ξ(σ̂) of the arm a tuner chose over the smallest ξ(σ̂) in the "
        "grid, both from the same sweep of equally long runs of every arm. 1 is the best a tuner can do; "
        "the heuristic, whose step size is off the grid, may fall below it. Bold: best of a sampler. "
        "“diverged”: the chosen arm did so in the sweep.",
        rows=("tuner", "metric"),
        columns="sampler",
    )


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
    return lay_out(
        cells,
        name="tuning_time",
        title="What tuning costs",
        caption="Wall time of each tuning job (compilation and discrepancies included), its nominal "
        "budget T (the sampling time Algorithm 1 and grid search would use, arm after arm), the data "
        "terms its gradients evaluated, and both times over those of MAMBA-KSD. The paper reports that "
        "for SGHMC grid search takes about 3 times as long as MAMBA-KSD, and grid search by KSD 1.2 to "
        "2.2 times.",
        rows=("tuner", "metric"),
        columns="sampler",
    )


def published_comparison(records: Records) -> Table:
    """Our KSD, xi and hyperparameters beside the paper's (its Tables 5 and 6)."""
    published = {
        (row["model"], row["sampler"], row["tuner"], row["metric"]): row["value"]
        for row in need(records, "published", "published_comparison")
        if row["table"] in ("table5", "table6")
    }
    compared = {key[:3] for key in published}
    cells = []
    for record in need(records, "evaluation", "published_comparison"):
        if tuple(identity(record).values()) not in compared:
            continue
        for cell in evaluation_cells(record, RATIOS) + choice_cells(record):
            cells.append(cell)
            paper = published.get((cell.model, cell.sampler, cell.tuner, cell.metric))
            if paper is None:
                continue
            alone = replace(cell, sd=None, finite=1, replicates=1)
            cells.append(replace(alone, metric=f"{cell.metric}_published", value=paper))
            if cell.metric in RATIOS and cell.value is not None:
                cells.append(replace(alone, metric=f"{cell.metric}_ratio", value=cell.value / paper))
    return lay_out(
        cells,
        name="published_comparison",
        title="Beside the published numbers",
        caption="KSD, relative error ξ(σ̂) and hyperparameters of this run and of the paper (its Tables 5 "
        "and 6; ξ as printed, × 10²), and the ratio ours / paper of the first two. A dash: the paper does "
        f"not give the number. {FINITE}",
        rows=("sampler", "tuner"),
        columns="metric",
        headings=HEADINGS,
    )
