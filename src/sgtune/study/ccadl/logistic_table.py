"""The tables of the logistic regression: passes until predictions are as good as NUTS's, and errors of long chains."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import hypot, isfinite, sqrt

import numpy as np

from sgtune.study.ccadl.ellipses import pooled
from sgtune.study.ccadl.findings import best_said, pairs_said, time_said
from sgtune.study.ccadl.names import methods_in, setting
from sgtune.study.ccadl.table_parts import (
    BOLD,
    CLIPPED,
    CLIPPING,
    PARTIAL,
    cell_of,
    clipping_of,
    cost_of,
    cost_said,
    rows_of,
)
from sgtune.study.report.artifacts import artifact
from sgtune.study.report.layout import Cell, Table, format_number
from sgtune.study.report.records import Records, need
from sgtune.study.report.remarks import counted

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
    reached = [passes_to(passes, curve, goal - NEAR) for curve in curves]
    alive = any(curve[-1] is not None for curve in curves)
    numbers = {
        "passes_to_reference": (reached, f"> {passes[-1]:g}" if alive else "diverged"),
        "log_likelihood_end": ([curve[-1] for curve in curves], "diverged"),
    }
    cells = {
        metric: cell_of("mnist79", record["method"], cell, metric, values, missing)
        for metric, (values, missing) in numbers.items()
    }
    cells |= clipping_of("mnist79", record["method"], cell)
    cells["seconds_per_pass"] = cost_of("mnist79", record, cell)
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
    metrics = ("passes_to_reference", "log_likelihood_end", "seconds_per_pass", *CLIPPING)
    rows = tuple(rows_of(cells, metrics, optional=("seconds_per_pass", *CLIPPING)))
    fewest = best_said(rows, "passes_to_reference", "Fewest passes to NUTS")
    finding = f"{fewest} {pairs_said(cells, 'log_likelihood_end')}".rstrip()
    return Table(
        name=name,
        title=artifact(name).title,
        caption=f"{finding}{time_said(cells)}\n"
        f"{counted(n, 'run')} of {last:g} passes, ± one standard error. At the mean of NUTS the test "
        f"log-likelihood is {format_number(goal)} nats per datum ({reference_said(reference)}).\n"
        "Passes to NUTS: until the test log-likelihood of the mean of the last half of the draws stays within "
        f"{NEAR:g} of that. {cost_said(found.values())}{CLIPPED}\n{BOLD} {PARTIAL} For passes, k counts the runs "
        "that reach NUTS.",
        stub=("Sampler", "Number"),
        columns=_columns(found),
        rows=rows,
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
        }

    said = [numbers(run) for run in runs]
    cells = {
        metric: cell_of("mnist79", record["method"], cell, metric, [one.get(metric) for one in said])
        for metric in ERRORS
    }
    whole = [run for run in runs if not run["diverged"]]
    for place, metric in enumerate(SD_RATIOS):
        value, se = pooled_sd_ratio(whole, place, sds[place])
        cells[metric] = replace(cells[metric], value=value, se=se, finite=len(whole))
    return cells | clipping_of("mnist79", record["method"], cell)


def pooled_sd_ratio(runs: Sequence[Mapping], place: int, sd: float) -> tuple[float | None, float | None]:
    """The sd of equally long chains pooled over ``sd``, and its jackknife standard error over chains.

    The mean of the sds within chains would be too small where chains are short beside their autocorrelation time.
    None of no chain, and no standard error of fewer than three: without one of two there is no spread between chains.
    """

    def ratio(kept: Sequence[Mapping]) -> float:
        return float(np.sqrt(pooled(kept)[1][place, place]) / sd)

    if not runs:
        return None, None
    n = len(runs)
    if n < 3:
        return ratio(runs), None
    left = np.array([ratio([*runs[:i], *runs[i + 1 :]]) for i in range(n)])
    return ratio(runs), float(np.sqrt((n - 1) / n * np.sum((left - left.mean()) ** 2)))


SD_RATIOS = ("sd_ratio_2", "sd_ratio_5")
"""Of the two coordinates of the figure, in their order."""

ERRORS = ("xi_white_x100", "xi_rel_x100", "mean_error_sds", *SD_RATIOS)


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
    rows = tuple(rows_of(cells, (*ERRORS, *CLIPPING), optional=("xi_white_x100", *CLIPPING)))
    judged = "xi_rel_x100" if reference.get("covariance") is None else "xi_white_x100"
    finding = pairs_said(cells, judged)
    return Table(
        name=name,
        title=artifact(name).title,
        caption=f"{finding}\n{counted(n, 'chain')} of {first['steps']:,} steps of each, from the MAP; "
        f"± one standard error over chains. {reference_said(reference)}.\n"
        "ξ whitened and ξ relative: error of the sds along the eigen-directions of the posterior and "
        "along the axes, in hundredths; error of means: root mean square over "
        "parameters, in sds; sd / NUTS: of the two coordinates of the figure, from all chains pooled, with the "
        "jackknife's standard error over chains. All of them hold bias and the Monte Carlo error of the chains and of "
        f"NUTS together.{_floor_said(cells)}{_clipped_said(found)}\n{BOLD} {PARTIAL}",
        stub=("Sampler", "Number"),
        columns=_columns(found),
        rows=rows,
    )


def _floor_said(cells: Mapping[str, Sequence[Mapping[str, Cell]]]) -> str:
    """How many independent draws have the error of means of each setting: the least over samplers."""
    said = []
    for column in zip(*cells.values(), strict=True):
        errors = [cell["mean_error_sds"] for cell in column if cell["mean_error_sds"].value]
        if errors:
            least = min(cell.value for cell in errors)
            said.append(f"{1 / least**2:,.0f} at {errors[0].detail}")
    if not said:
        return ""
    return (
        " The means of n independent draws have an error of 1/√n. The least error of means of a column belongs to n = "
        f"{', '.join(said)}: so few independent draws set a floor for every error of the column."
    )


def _clipped_said(found: Mapping[str, dict]) -> str:
    """What clipping is, if a result file says how often it was; old files do not."""
    runs = [run for record in found.values() for cell in record["cells"] for run in cell["replicates"]]
    has = any("clipped_share" in run.get("statistics", {}) for run in runs)
    return f" {CLIPPED}" if has else ""
