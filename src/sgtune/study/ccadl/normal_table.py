"""The tables of mean and precision of a normal: errors and times beside the paper's, and their causes."""

# ruff: noqa: RUF001 - tables print Greek letters

from collections.abc import Mapping, Sequence
from math import sqrt

from sgtune.study.artifacts.layout import Cell, Table
from sgtune.study.artifacts.records import Records, need
from sgtune.study.artifacts.remarks import counted
from sgtune.study.artifacts.studies import artifact
from sgtune.study.ccadl.names import mean_of, methods_in, setting
from sgtune.study.ccadl.table_parts import BOLD, rows_of

__all__ = ["normal", "normal_details"]

PUBLISHED = {"density_rmse": "density_rmse_paper", "autocorrelation_time": "time_paper"}
"""Metrics of the paper's table as ours."""

MAIN = (
    *("density_rmse_mu", "density_rmse_gamma", "density_rmse_paper"),
    *("time_mu", "time_gamma", "time_paper", "time_ratio"),
)
DETAILS = (
    *("density_bias_mu", "density_bias_gamma", "sd_ratio_mu", "sd_ratio_gamma"),
    *("batch_time_mu", "batch_time_gamma", "crossings", "clipped_percent"),
)
MEANINGS = {
    "normal": "RMSE: root mean square, over 200 bins of the exact central 99.9%, of the histogram's density less the "
    "exact one. Time: integrated autocorrelation time, in steps.",
    "normal_details": "Bias: the RMSE that remains in an infinite chain, from products of the errors of different "
    "chains. Sd / exact: of the draws over the posterior's. Time of all lags: from the means of 100 stretches, which "
    "the oscillations of a chain with momenta shorten.",
}
OPTIONAL = (*PUBLISHED.values(), "time_ratio", "clipped_percent")
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
    clipped = [run["statistics"].get("clipped_share") for run in runs]
    numbers["clipped_percent"] = mean_of([100 * share for share in clipped if share is not None])
    where = (record["method"], cell["step_size"], cell["friction"])
    for theirs, ours in PUBLISHED.items():
        numbers[ours] = (published.get((*where, theirs)), None)
    time, se = numbers["time_gamma"]
    paper = numbers["time_paper"][0]
    if time is not None and paper is not None:
        numbers["time_ratio"] = (time / paper, None if se is None else se / paper)
    made = {}
    for metric in (*MAIN, *DETAILS):
        value, se = numbers.get(metric, (None, None))
        of_paper = metric in PUBLISHED.values()
        n, finite = (1, 1) if of_paper else (len(cell["replicates"]), len(runs))
        made[metric] = _cell(record["method"], cell, metric, n, finite, value=value, se=se)
    return made


def _root(bias: Mapping) -> tuple[float | None, float | None]:
    """The root of a squared bias with its standard error; None for a bias that does not differ from 0."""
    value, se = bias.get("value"), bias.get("se")
    if value is None or se is None or value <= 2 * se:
        return None, None
    return sqrt(value), se / (2 * sqrt(value))


def _published(records: Records) -> dict[tuple, float]:
    return {
        (row["sampler"], float(row["step_size"]), float(row["friction"]), row["metric"]): row["value"]
        for row in records.get("published") or []
        if row["table"] == "table1"
    }


def _table(records: Records, name: str, metrics: Sequence[str], note: str) -> Table:
    found = {record["method"]: record for record in need(records, "normal", name)}
    published = _published(records)
    methods = methods_in(found.values())
    cells = {
        method: [_cells(found[method], cell, published) for cell in found[method]["cells"]]
        for method in methods
    }
    first = found[methods[0]]
    n = len(first["cells"][0]["replicates"])
    data = first["data"]
    said = (
        f"{counted(n, 'chain')} of {first['steps']:,} steps each; N = {data['n']} data of mean {data['mean']:.3g} and "
        f"variance {data['variance']:.3g}. ± one standard error over chains."
    )
    return Table(
        name=name,
        title=artifact(name).title,
        caption=f"{said}\n{MEANINGS[name]}\n{note}",
        stub=("Sampler", "Number"),
        columns=tuple(("", setting(cell["step_size"], cell["friction"])) for cell in first["cells"]),
        rows=tuple(rows_of(cells, metrics, optional=OPTIONAL)),
    )


def normal(records: Records) -> Table:
    """Errors of the densities and autocorrelation times, beside the paper's."""
    found = need(records, "normal", "normal")
    published = _published(records)
    ratios = [
        (cell, ratio.value)
        for record in found
        for cell in record["cells"]
        if (ratio := _cells(record, cell, published)["time_ratio"]).value is not None
    ]
    near = sum(abs(ratio - 1) <= TOLERANCE for _, ratio in ratios)
    note = (
        f"Of {len(ratios)} of the paper's times {near} are within {TOLERANCE:.0%} of the time of γ here: "
        "by their size, the paper's times are for the slower parameter. Times use Geyer's initial positive "
        "sequence. They depend on the variance v of the data, which the paper does not give: at A = 1 as "
        "1/v and at A = 10 as 1/v²; v has a relative sd of √(2/N) from one data set to the next. "
        "The paper gives neither the units of its errors nor the parameter, so only their order can be "
        "compared.\n"
        f"{BOLD}"
    )
    return _table(records, "normal", MAIN, note)


def normal_details(records: Records) -> Table:
    """The causes of the errors: bias of the density, widths, integrals over all lags, and steps across 0."""
    note = (
        "–: a bias within two standard errors of 0. A step that crosses γ = 0 is reflected there: "
        "|γ| is kept. Clipped: steps in which A I − h Σ / 2 was not positive semi-definite, so that SGHMC's noise had "
        "to be cut off there and its chain is too hot."
    )
    return _table(records, "normal_details", DETAILS, note)
