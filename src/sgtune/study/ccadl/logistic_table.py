"""The tables of the logistic regression: passes until predictions are as good as NUTS's, and errors of long chains."""

# ruff: noqa: RUF001 - captions have signs of mathematics

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import hypot, isfinite, sqrt

from sgtune.study.artifacts.layout import Cell, Table
from sgtune.study.artifacts.records import Records, need
from sgtune.study.artifacts.remarks import counted
from sgtune.study.artifacts.studies import artifact
from sgtune.study.ccadl.names import methods_in, setting
from sgtune.study.ccadl.table_parts import BOLD, cell_of, rows_of

__all__ = ["NEAR", "logistic_convergence", "logistic_errors", "passes_to", "reference_said"]

NEAR = 0.01
"""Nats per test datum: predictions within this difference from NUTS's count as equally good."""


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


def _columns(found: Mapping[str, dict]) -> tuple[tuple[str, str], ...]:
    first = next(iter(found.values()))
    return tuple(("", setting(cell["step_size"], cell["friction"])) for cell in first["cells"])


def _curve_cells(record: dict, cell: dict, goal: float) -> dict[str, Cell]:
    runs, passes = cell["replicates"], record["passes"]
    curves = [run["log_likelihoods"] for run in runs]
    shares = [run["statistics"].get("clipped_share") for run in runs]
    reached = [passes_to(passes, curve, goal - NEAR) for curve in curves]
    alive = any(curve[-1] is not None for curve in curves)
    numbers = {
        "passes_to_reference": (reached, f"> {passes[-1]:g}" if alive else "diverged"),
        "log_likelihood_end": ([curve[-1] for curve in curves], "diverged"),
        "clipped_percent": ([None if share is None else 100 * share for share in shares], ""),
    }
    cells = {
        metric: cell_of("mnist79", record["method"], cell, metric, values, missing)
        for metric, (values, missing) in numbers.items()
    }
    known = cells["passes_to_reference"]
    if known.se is not None:
        # Runs have values only at given times, so passes are rounded up to the next one.
        rounding = (passes[1] - passes[0]) / sqrt(12 * known.finite)
        cells["passes_to_reference"] = replace(known, se=hypot(known.se, rounding))
    return cells


def logistic_convergence(records: Records) -> Table:
    """Passes until the posterior mean predicts as well as NUTS's, and the values at the end of runs."""
    name = "logistic_convergence"
    held = {record["method"]: record for record in need(records, "logistic_curves", name)}
    found = {method: held[method] for method in methods_in(held.values())}
    [reference] = need(records, "logistic_reference", name)
    goal = need(records, "logistic_draws", name)[0]["truth_log_likelihood"]
    cells = {
        method: [_curve_cells(record, cell, goal) for cell in record["cells"]]
        for method, record in found.items()
    }
    first = next(iter(found.values()))
    n, last = len(first["cells"][0]["replicates"]), first["passes"][-1]
    metrics = ("passes_to_reference", "log_likelihood_end", "clipped_percent")
    return Table(
        name=name,
        title=artifact(name).title,
        caption=f"{counted(n, 'run')} of {last:g} passes, ± one standard error. At the mean of NUTS the test "
        f"log-likelihood is {goal:.4f} nats per datum ({reference_said(reference)}).\n"
        "Passes to NUTS: until the test log-likelihood of the mean of the last half of the draws stays within "
        f"{NEAR:g} of this value. “(k/n)”: the mean of the k of n runs that reach it. Clipped: steps in "
        "which "
        f"A I − h Σ / 2 is not positive semi-definite.\n{BOLD}",
        stub=("Sampler", "Number"),
        columns=_columns(found),
        rows=tuple(rows_of(cells, metrics, optional=("clipped_percent",))),
    )


def _error_cells(record: dict, cell: dict, reference: dict) -> dict[str, Cell]:
    runs = cell["replicates"]
    sds = [reference["sd"][place] for place in record["coordinates"]]

    def numbers(run: dict) -> dict[str, float | None]:
        if run["diverged"]:
            return {}
        white = run["xi_white"]
        return {
            "xi_white_x100": None if white is None else 100 * white,
            "xi_rel_x100": 100 * run["xi_rel"],
            "mean_error_sds": run["mean_error"],
            "sd_ratio_2": run["covariance"][0][0] ** 0.5 / sds[0],
            "sd_ratio_5": run["covariance"][1][1] ** 0.5 / sds[1],
        }

    said = [numbers(run) for run in runs]
    return {
        metric: cell_of("mnist79", record["method"], cell, metric, [one.get(metric) for one in said])
        for metric in ERRORS
    }


ERRORS = ("xi_white_x100", "xi_rel_x100", "mean_error_sds", "sd_ratio_2", "sd_ratio_5")


def logistic_errors(records: Records) -> Table:
    """Moments of long chains against NUTS."""
    name = "logistic_errors"
    held = {record["method"]: record for record in need(records, "logistic_draws", name)}
    found = {method: held[method] for method in methods_in(held.values())}
    [reference] = need(records, "logistic_reference", name)
    cells = {
        method: [_error_cells(record, cell, reference) for cell in record["cells"]]
        for method, record in found.items()
    }
    first = next(iter(found.values()))
    n = len(first["cells"][0]["replicates"])
    return Table(
        name=name,
        title=artifact(name).title,
        caption=f"{counted(n, 'chain')} of {first['steps']:,} steps of each, from the MAP; ± one standard error over "
        f"chains. {reference_said(reference)}.\nξ whitened and ξ relative: error of the sds along the "
        "eigen-directions of the posterior and along the axes, in hundredths; error of means: root mean square over "
        "parameters, in sds; sd / NUTS: of the two coordinates of the figure. They include bias and Monte "
        f"Carlo error, also of NUTS.\n{BOLD}",
        stub=("Sampler", "Number"),
        columns=_columns(found),
        rows=tuple(rows_of(cells, ERRORS, optional=("xi_white_x100",))),
    )
