"""The tables of mean and precision of a normal: errors and times beside the paper's, and their causes."""

# ruff: noqa: RUF001 - tables print Greek letters

from collections.abc import Mapping, Sequence
from math import sqrt

from sgtune.study.ccadl.findings import best_said
from sgtune.study.ccadl.names import mean_of, methods_in, setting
from sgtune.study.ccadl.table_parts import BOLD, CLIPPED, CLIPPING, PARTIAL, clipping_of, rows_of
from sgtune.study.report.artifacts import artifact
from sgtune.study.report.layout import Cell, Table
from sgtune.study.report.records import Records, need
from sgtune.study.report.remarks import counted

__all__ = ["normal", "normal_details", "published_of"]

PUBLISHED = {"density_rmse": "density_rmse_paper", "autocorrelation_time": "time_paper"}
"""Metrics of the paper's table as ours."""

MAIN = (
    *("density_rmse_mu", "density_rmse_gamma", "density_rmse_paper"),
    *("time_mu", "batch_time_mu", "time_gamma", "batch_time_gamma"),
    *("time_paper", "time_ratio_mu", "time_ratio_gamma"),
)
DETAILS = (
    *("density_bias_mu", "density_bias_gamma", "sd_ratio_mu", "sd_ratio_gamma"),
    *("crossings", *CLIPPING),
)
MEANINGS = {
    "normal": "RMSE: root mean square, over 200 bins of the exact central 99.9%, of the histogram's density less the "
    "exact one. Time to negative pair: twice the sum of the autocorrelations less 1, in steps, up to the first pair of "
    "neighbours whose sum is negative (Geyer's initial positive sequence). Time of all lags: from the means of 100 "
    "stretches; it is shorter for chains whose momenta make them oscillate. The number of steps over the time of all "
    "lags is the effective sample size.",
    "normal_details": "Bias: what is left of the RMSE in a chain without end, from products of the errors of different "
    "chains. Sd / exact: of the draws over the posterior's.",
}
RATIOS = ("time_ratio_mu", "time_ratio_gamma")
OPTIONAL = (*PUBLISHED.values(), *RATIOS, *CLIPPING)
"""What only some samplers have."""

TOLERANCE = 0.2
"""The relative difference from the paper's times within which ours count as equal."""


def _cell(method: str, cell: Mapping, metric: str, n: int, finite: int, **numbers: float | None) -> Cell:
    return Cell(
        "normal",
        method,
        "",
        metric,
        **numbers,
        finite=finite,
        replicates=n,
        detail=setting(cell["step_size"], cell["friction"]),
        missing="diverged" if not finite else Cell.missing,
    )


def _cells(record: dict, cell: dict, published: Mapping[tuple, float]) -> dict[str, Cell]:
    """Every number of one sampler with one (h, A), by its metric."""
    runs = [run for run in cell["replicates"] if not run["diverged"]]
    numbers: dict[str, tuple[float | None, float | None]] = {}
    for name in ("mu", "gamma"):
        for metric, key in (
            ("density_rmse", "density_rmse"),
            ("time", "time"),
            ("sd_ratio", "sd_ratio"),
            ("batch_time", "batch_means_time"),
        ):
            numbers[f"{metric}_{name}"] = mean_of([run[name][key] for run in runs])
        numbers[f"density_bias_{name}"] = _root(cell["bias"].get(name, {}))
    numbers["crossings"] = mean_of([float(run["crossings"]) for run in runs])
    where = (record["method"], cell["step_size"], cell["friction"])
    for theirs, ours in PUBLISHED.items():
        numbers[ours] = (published.get((*where, theirs)), None)
    paper = numbers["time_paper"][0]
    for name in ("mu", "gamma"):
        time, se = numbers[f"time_{name}"]
        if time is not None and paper is not None:
            numbers[f"time_ratio_{name}"] = (time / paper, None if se is None else se / paper)
    made = {}
    for metric in (*MAIN, *DETAILS):
        value, se = numbers.get(metric, (None, None))
        of_paper = metric in PUBLISHED.values()
        n, finite = (1, 1) if of_paper else (len(cell["replicates"]), len(runs))
        made[metric] = _cell(record["method"], cell, metric, n, finite, value=value, se=se)
    return made | clipping_of("normal", record["method"], cell)


def _root(bias: Mapping) -> tuple[float | None, float | None]:
    """The root of a squared bias with its standard error; none of one within two standard errors of 0."""
    value, se = bias.get("value"), bias.get("se")
    if value is None or se is None or value <= 2 * se:
        return None, None
    return sqrt(value), se / (2 * sqrt(value))


def published_of(records: Records) -> dict[tuple, float]:
    """The numbers of the paper's Table 1, by sampler, h, A and metric."""
    return {
        (row["sampler"], float(row["step_size"]), float(row["friction"]), row["metric"]): row["value"]
        for row in records.get("published") or []
        if row["table"] == "table1"
    }


def _table(records: Records, name: str, metrics: Sequence[str], note: str) -> Table:
    found = {record["method"]: record for record in need(records, "normal", name)}
    published = published_of(records)
    methods = methods_in(found.values())
    cells = {
        method: [_cells(found[method], cell, published) for cell in found[method]["cells"]]
        for method in methods
    }
    first = found[methods[0]]
    n = len(first["cells"][0]["replicates"])
    data = first["data"]
    rows = tuple(rows_of(cells, metrics, optional=OPTIONAL))
    errors = {"density_rmse_mu": "Least RMSE of μ", "density_rmse_gamma": "Least RMSE of γ"}
    findings = " ".join(
        best_said(rows, metric, words) for metric, words in errors.items() if metric in metrics
    )
    said = (
        f"{counted(n, 'chain')} of {first['steps']:,} steps each; N = {data['n']} data of mean {data['mean']:.3g} and "
        f"variance {data['variance']:.3g}. ± one standard error over chains."
    )
    return Table(
        name=name,
        title=artifact(name).title,
        caption=f"{findings}\n{said}\n{MEANINGS[name]}\n{note}".strip(),
        stub=("Sampler", "Number"),
        columns=tuple(("", setting(cell["step_size"], cell["friction"])) for cell in first["cells"]),
        rows=rows,
    )


def _near(ratios: Sequence[float]) -> int:
    return sum(abs(ratio - 1) <= TOLERANCE for ratio in ratios)


def _times_said(records: Records) -> str:
    """How many of the paper's times are near those here, of either parameter, and what they depend on."""
    found, published = need(records, "normal", "normal"), published_of(records)
    cells = [_cells(record, cell, published) for record in found for cell in record["cells"]]
    ratios = {
        metric: [cell[metric].value for cell in cells if cell[metric].value is not None] for metric in RATIOS
    }
    of_mu, of_gamma = (_near(ratios[metric]) for metric in RATIOS)
    if not ratios["time_ratio_gamma"]:
        return ""
    both = [cell for cell in cells if cell["time_mu"].value is not None]
    slower = all(cell["time_gamma"].value > cell["time_mu"].value for cell in both)
    kind = ", and ".join(
        ["mixes more slowly than μ"] * slower
        + ["most of its times are nearer to the paper's"] * (of_gamma > of_mu)
    )
    n = found[0]["data"]["n"]
    spread = sqrt(2 / n)
    which = f" γ: {kind}." if kind else ""
    return (
        f"Of {len(ratios['time_ratio_gamma'])} times of the paper, {of_gamma} are within {TOLERANCE:.0%} of the time "
        f"to a negative pair of γ here, and {of_mu} of the time of μ. The paper does not say of which parameter its "
        f"times are.{which} The time of γ depends on the variance v of the data, which the paper does not give: at "
        "A = 1 as 1/v, and at A = 10 as 1/v². From one data set to the next v has a relative sd of √(2/N), "
        f"{spread:.0%}. So the time of γ has a relative sd of {spread:.0%} to {2 * spread:.0%}, which is not in the "
        "standard errors."
    )


def normal(records: Records) -> Table:
    """Errors of the densities and autocorrelation times, beside the paper's."""
    note = (
        f"{_times_said(records)} The paper does not say in which units its errors are, nor of which parameter. Only "
        f"their order compares; the table of orders has it.\n{BOLD} {PARTIAL}"
    )
    return _table(records, "normal", MAIN, note.strip())


def normal_details(records: Records) -> Table:
    """What is behind the errors: bias of the density, widths, and steps across 0."""
    note = (
        "–: a bias within two standard errors of 0. A step that crosses γ = 0 is reflected there: |γ| is kept. "
        f"{CLIPPED} SGHMC's noise is cut off in such steps, and its chain is too hot. {PARTIAL}"
    )
    return _table(records, "normal_details", DETAILS, note)
