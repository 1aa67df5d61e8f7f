"""The tables of the logistic regression: when predictions are as good as those of NUTS, and errors of long chains."""

# ruff: noqa: RUF001 - captions have signs of mathematics

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite

from sgtune.study.artifacts.labels import METRICS
from sgtune.study.artifacts.layout import Cell, Row, Table, mark_best
from sgtune.study.artifacts.records import Records, need
from sgtune.study.artifacts.remarks import counted
from sgtune.study.artifacts.studies import artifact
from sgtune.study.ccadl.names import mean_of, method_label, methods_in, setting

__all__ = ["NEAR", "logistic_convergence", "logistic_errors", "passes_to", "reference_said"]

NEAR = 0.01
"""Nats per test datum: predictions that are no further from those of NUTS count as as good."""


def passes_to(passes: Sequence[float], values: Sequence[float | None], goal: float) -> float | None:
    """The first of ``passes`` from which on all ``values`` are at least ``goal``; None if there is none."""
    reached = None
    for at, value in zip(passes, values, strict=True):
        if value is None or not isfinite(value) or value < goal:
            reached = None
        elif reached is None:
            reached = at
    return reached


def reference_said(reference: Mapping) -> str:
    """How NUTS sampled the truth."""
    known = reference["diagnostics"]
    return (
        f"NUTS: {counted(known['chains'], 'chain')}, {known['draws']:,} draws each, R-hat up to {known['r_hat']:.3f}, "
        f"bulk ESS from {known['ess_bulk']:,.0f}"
    )


def _cell(record: Mapping, cell: Mapping, metric: str, values: Sequence[float | None], missing: str) -> Cell:
    """The mean of those of ``values``, one per replicate, that there are."""
    finite = [value for value in values if value is not None]
    value, se = mean_of(finite)
    return Cell(
        "mnist79",
        record["method"],
        "",
        metric,
        value=value,
        se=se,
        finite=len(finite),
        replicates=len(values),
        detail=setting(cell["step_size"], cell["friction"]),
        missing=missing,
    )


def _rows(cells: Iterable[tuple[str, Sequence[Sequence[Cell]]]], metrics: Sequence[str]) -> tuple[Row, ...]:
    """A row per sampler and metric, a cell per setting, the best of a metric and setting marked; rows in which nothing
    is to be said are left out."""
    cells = list(cells)
    flat = [cell for _, columns in cells for column in columns for cell in column]
    marked = dict(zip(map(id, flat), mark_best(flat, among="sampler"), strict=True))
    return tuple(
        Row(
            (method_label(method), METRICS[metric].label),
            tuple(marked[id(column[place])] for column in columns),
        )
        for method, columns in cells
        for place, metric in enumerate(metrics)
        if any(column[place].value is not None for column in columns) or not _is_optional(metric)
    )


def _is_optional(metric: str) -> bool:
    return metric in ("clipped_percent", "xi_white_x100")


def logistic_convergence(records: Records) -> Table:
    """Passes until the posterior mean predicts as well as that of NUTS, and where runs end."""
    found = {record["method"]: record for record in need(records, "logistic_curves", "logistic_convergence")}
    [reference] = need(records, "logistic_reference", "logistic_convergence")
    goal = need(records, "logistic_draws", "logistic_convergence")[0]["truth_log_likelihood"]
    metrics = ("passes_to_reference", "log_likelihood_end", "clipped_percent")
    first = next(iter(found.values()))
    last = first["passes"][-1]
    cells = []
    for method in methods_in(found.values()):
        record, columns = found[method], []
        for cell in record["cells"]:
            runs = cell["replicates"]
            curves = [run["log_likelihoods"] for run in runs]
            shares = [run["statistics"].get("clipped_share") for run in runs]
            columns.append(
                (
                    _cell(
                        record,
                        cell,
                        metrics[0],
                        [passes_to(record["passes"], curve, goal - NEAR) for curve in curves],
                        f"> {last:g}",
                    ),
                    _cell(record, cell, metrics[1], [curve[-1] for curve in curves], "diverged"),
                    _cell(
                        record,
                        cell,
                        metrics[2],
                        [None if share is None else 100 * share for share in shares],
                        "",
                    ),
                )
            )
        cells.append((method, columns))
    n = len(first["cells"][0]["replicates"])
    return Table(
        name="logistic_convergence",
        title=artifact("logistic_convergence").title,
        caption=f"{counted(n, 'run')} of {last:g} passes, ± one standard error. At the mean of NUTS the test "
        f"log-likelihood is {goal:.4f} nats per datum ({reference_said(reference)}).\n"
        "Passes to NUTS: until the test log-likelihood of the mean of the last half of the draws stays within "
        f"{NEAR:g} of that. “(k/n)”: the mean of the k of n runs that get there. Clipped: steps in which A I − h Σ / 2 is not "
        "positive semi-definite.\n"
        "Bold: best of a column, if every other is more than two standard errors of the difference away.",
        stub=("Sampler", "Number"),
        columns=tuple(("", setting(cell["step_size"], cell["friction"])) for cell in first["cells"]),
        rows=_rows(cells, metrics),
    )


def logistic_errors(records: Records) -> Table:
    """Moments of long chains against those of NUTS."""
    found = {record["method"]: record for record in need(records, "logistic_draws", "logistic_errors")}
    [reference] = need(records, "logistic_reference", "logistic_errors")
    metrics = ("xi_white_x100", "xi_rel_x100", "mean_error_sds", "sd_ratio_2", "sd_ratio_5")
    cells, steps = [], {}
    for method in methods_in(found.values()):
        record = found[method]
        steps.setdefault(f"{record['steps']:,}", []).append(method_label(method))
        cells.append((method, [_errors(record, cell, reference, metrics) for cell in record["cells"]]))
    first = next(iter(found.values()))
    n = len(first["cells"][0]["replicates"])
    lengths = "; ".join(f"{words} steps ({', '.join(names)})" for words, names in steps.items())
    return Table(
        name="logistic_errors",
        title=artifact("logistic_errors").title,
        caption=f"{counted(n, 'chain')} of each, from the MAP: {lengths}. ± one standard error over chains. "
        f"{reference_said(reference)}.\nξ whitened and ξ relative: error of the sds along the eigen-directions of "
        "the posterior and along the axes, in hundredths; error of means: root mean square over parameters, in sds; "
        "sd ratio: over that of NUTS, of the two coordinates of the figure. They hold Monte Carlo error and bias "
        "together.\nBold: best of a column, if every other is more than two standard errors of the difference away.",
        stub=("Sampler", "Number"),
        columns=tuple(("", setting(cell["step_size"], cell["friction"])) for cell in first["cells"]),
        rows=_rows(cells, metrics),
    )


def _errors(record: dict, cell: dict, reference: dict, metrics: Sequence[str]) -> tuple[Cell, ...]:
    runs = [None if run["diverged"] else run for run in cell["replicates"]]
    sds = [reference["sd"][place] for place in record["coordinates"]]
    numbers = [
        {
            "xi_white_x100": None if run["xi_white"] is None else 100 * run["xi_white"],
            "xi_rel_x100": 100 * run["xi_rel"],
            "mean_error_sds": run["mean_error"],
            "sd_ratio_2": run["covariance"][0][0] ** 0.5 / sds[0],
            "sd_ratio_5": run["covariance"][1][1] ** 0.5 / sds[1],
        }
        if run
        else {}
        for run in runs
    ]
    return tuple(
        _cell(record, cell, metric, [one.get(metric) for one in numbers], "diverged") for metric in metrics
    )
