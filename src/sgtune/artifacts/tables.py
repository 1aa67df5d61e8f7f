"""The paper's tables, of our records: 1 and 6 (accuracy), 4 (what is tuned), 5 (what is chosen)."""

# ruff: noqa: RUF001 - tables print Greek letters and signs of mathematics

from math import log10
from statistics import fmean, stdev

from sgtune.artifacts.layout import DASH, DIVERGED, Cell, Table, lay_out, mark_best
from sgtune.artifacts.records import Records, finite, need

__all__ = ["choice_cells", "evaluation_cells", "table1", "table4", "table5", "table6"]

# metric of a table: (key of an evaluation's rows, factor)
SOURCES = {
    "relative_sd_error_x100": ("relative_sd_error", 100),
    "ksd": ("ksd", 1),
    "ksd_scaled": ("ksd_scaled", 1),
    "accuracy_percent": ("accuracy", 100),
    "n_samples": ("n_samples", 1),
}
FINITE = "“(k/n)”: mean of the k of n replicates that are finite, which is never marked; “diverged”: of none."


def identity(record: dict) -> dict:
    return {key: record[key] for key in ("model", "sampler", "tuner")}


def evaluation_cells(record: dict, metrics: tuple[str, ...]) -> list[Cell]:
    """A cell per metric: mean and sd (divisor n - 1) over the replicates that stayed finite."""
    cells = []
    for metric in metrics:
        key, factor = SOURCES[metric]
        rows = record["table"]
        values = [None if row.get("diverged") else finite(row.get(key)) for row in rows]
        values = [factor * value for value in values if value is not None]
        cells.append(
            Cell(
                **identity(record),
                metric=metric,
                value=fmean(values) if values else None,
                sd=stdev(values) if len(values) > 1 else None,
                finite=len(values),
                replicates=len(rows),
                missing=DIVERGED if any(row.get("diverged") for row in rows) else DASH,
            )
        )
    return cells


def choice_cells(record: dict) -> list[Cell]:
    """The hyperparameters a tuner chose: log10 of the step size, batch size in % of N, any leapfrog steps."""
    best, n_data = record["best"], record["n_data"]
    values = {
        "log10_step_size": log10(best["step_size"]),
        "batch_percent": 100 * best["batch_size"] / n_data,
        "n_leapfrog": best.get("n_leapfrog"),
    }
    return [
        Cell(**identity(record), metric=metric, value=value)
        for metric, value in values.items()
        if value is not None
    ]


def table1(records: Records) -> Table:
    """KSD and xi of each tuner and sampler (paper, Table 1), with MAMBA-KSD scaled as an extra tuner."""
    tuners = ("mamba-ksd", "mamba-fssd", "grid", "heuristic", "mamba-ksd-scaled")
    chosen = [record for record in need(records, "evaluation", "table1") if record["tuner"] in tuners]
    cells = [
        cell for record in chosen for cell in evaluation_cells(record, ("ksd", "relative_sd_error_x100"))
    ]
    return lay_out(
        mark_best(cells),
        name="table1",
        title="Table 1. Accuracy of the tuned samplers",
        caption="Kernel Stein discrepancy and relative error ξ(σ̂) of the posterior standard deviations, "
        "per tuner and sampler, mean ± sd over replicates where there are several. Bold: best of a "
        f"sampler and metric, MAMBA-KSD scaled, which the paper does not have, included. {FINITE}",
        rows=("tuner", "metric"),
        columns="sampler",
    )


def table4(records: Records) -> Table:
    """Which hyperparameters each tuner tunes (paper, Table 4): those of which its arms had several values."""
    symbols = {"step_size": "h", "batch_size": "n", "n_leapfrog": "L"}
    cells = []
    for record in need(records, "tuning", "table4"):
        arms = {tuple(rung.get(key) for key in symbols) for rung in record["rungs"]}
        tuned = [
            symbol
            for symbol, values in zip(symbols.values(), zip(*arms, strict=True), strict=False)
            if len(set(values)) > 1
        ]
        text = f"{', '.join(tuned)} ({len(arms)})" if tuned else "fixed"
        cells.append(Cell(**identity(record), metric="n_arms", value=len(arms), text=text))
    return lay_out(
        cells,
        name="table4",
        title="Table 4. What each tuner tunes",
        caption="Hyperparameters of which a tuner compared several values (h step size, n batch size, L "
        "leapfrog steps) and, in brackets, the number of its arms. “fixed”: it compares nothing; the "
        "paper lists the heuristic, which sets h = 1/N, as tuning h.",
        rows=("sampler",),
        columns="tuner",
    )


def table5(records: Records) -> Table:
    """The hyperparameters each tuner chose (paper, Table 5)."""
    cells = [cell for record in need(records, "tuning", "table5") for cell in choice_cells(record)]
    return lay_out(
        cells,
        name="table5",
        title="Table 5. Hyperparameters chosen",
        caption="Step size h of θ + h ∇ log π + √(2h) noise (the published tables' convention), batch "
        "size τ in % of the training data, and leapfrog steps L.",
        rows=("sampler", "metric"),
        columns="tuner",
    )


def table6(records: Records) -> Table:
    """All metrics of all six tuners (paper, Table 6), with the scaled KSD beside the paper's."""
    cells = [
        cell
        for record in need(records, "evaluation", "table6")
        for cell in evaluation_cells(record, tuple(SOURCES))
    ]
    return lay_out(
        mark_best(cells),
        name="table6",
        title="Table 6. Tuners compared",
        caption="Relative error ξ(σ̂) of the posterior standard deviations, KSD with the paper's kernel "
        "and in coordinates scaled by the posterior, accuracy on the test rows and number of samples, "
        "mean ± sd over replicates where there are several. Bold: best of a row; the number of samples, "
        f"which is no merit by itself, is not marked. {FINITE}",
        rows=("sampler", "metric"),
        columns="tuner",
    )
