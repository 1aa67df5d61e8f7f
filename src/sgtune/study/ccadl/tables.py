"""The tables of the study: means over runs with their standard errors, by sampler, h and A."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import hypot, isfinite, pi, sqrt
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from sgtune.study.ccadl.artifacts import METHODS, SETS
from sgtune.study.report.means import mark_best
from sgtune.study.report.records import Records, mean_of, required
from sgtune.study.report.table import DASH, DIVERGED, Cell

NEAR = 0.01
"""Nats per test datum: predictions within this difference from NUTS's count as equally good."""

PARAMETERS = ("mu", "gamma")

SIZES = ("n_train", "n_test", "n_classes", "n_features", "n_hidden", "n_parameters")
"""What Table 2 of the paper has of a data set and its model."""

OPTIONAL = (
    *("density_rmse_paper", "time_paper", "time_ratio_mu", "time_ratio_gamma", "xi_white_x100"),
    *("seconds_per_pass", "clipped_percent", "friction_needed"),
)
"""Metrics that only some samplers have."""

CLIPPED = ("clipped_share", "friction_needed")
"""Statistics of SGHMC: of the steps whose noise was clipped, and the least A without any."""


def setting(cell: Mapping) -> str:
    """``h = 0.001, A = 10``."""
    return f"h = {cell['step_size']:g}, A = {cell['friction']:g}"


def in_print_order(records: Sequence[dict]) -> list[dict]:
    """The records by data set and sampler, where they have these."""
    ranks = {name: rank for rank, name in enumerate([*SETS, *METHODS])}
    return sorted(records, key=lambda record: [ranks.get(record.get(name), 0) for name in ("set", "method")])


class _Runs(NamedTuple):
    """The runs of one sampler with one (h, A)."""

    model: str
    method: str
    cell: Mapping

    def number(self, metric: str, value: float | None, se: float | None = None, **fields) -> Cell:
        return Cell(self.model, self.method, "", metric, value, se=se, detail=setting(self.cell), **fields)

    def of_finite(self, metric: str, value: float | None, se: float | None, n: int, missing: str) -> Cell:
        """A number of ``n`` of the runs, with its standard error."""
        counts = {"finite": n, "replicates": len(self.cell["replicates"])}
        return self.number(metric, value, se, missing=missing, **counts)

    def mean(self, metric: str, pick: Callable, factor: float = 1, missing: str = DIVERGED) -> Cell:
        """The mean of ``factor * pick(run)`` over the runs that have not diverged and have it."""
        values = [factor * value for run in self.whole if (value := pick(run)) is not None]
        return self.of_finite(metric, *mean_of(values), len(values), missing)

    @property
    def whole(self) -> list[dict]:
        """Those that have not diverged."""
        return [run for run in self.cell["replicates"] if not run.get("diverged")]


def _settings(records: Sequence[dict], model: str = "") -> Iterator[tuple[dict, _Runs]]:
    """Each record with the runs of each (h, A) of it; those of a data set are of the model of its name."""
    for record in in_print_order(records):
        for cell in record["cells"]:
            yield record, _Runs(record.get("set", model), record["method"], cell)


def _marked(cells: Sequence[Cell]) -> list[Cell]:
    """The best of each metric and setting marked; without optional metrics of a sampler that has no such number."""
    has = {(cell.model, cell.sampler, cell.metric) for cell in cells if cell.value is not None}
    return [
        cell
        for cell in mark_best(cells, among="sampler")
        if cell.metric not in OPTIONAL or (cell.model, cell.sampler, cell.metric) in has
    ]


def _clipping(runs: _Runs) -> list[Cell]:
    """How often SGHMC's noise was clipped, and the least A without that."""
    share, needed = (lambda run, name=name: run["statistics"].get(name) for name in CLIPPED)
    clipped = runs.mean("clipped_percent", share, 100, missing="")
    least = runs.mean("friction_needed", needed, missing="")
    return [clipped, replace(least, text=f"≤ {runs.cell['friction']:g}") if clipped.value == 0 else least]


def relative_cost(cost: Mapping) -> tuple[float, float]:
    """The median over rounds of the seconds of a sampler over SGNHT's, and its standard error.

    A round in which another program had the processor is an outlier: the standard error is sqrt(pi / 2) times the sd
    over the root of the number of rounds, with the sd from the median absolute deviation (1.4826 times it).
    """
    ratios = np.asarray(cost["seconds"], np.float64) / np.asarray(cost["baseline_seconds"], np.float64)
    middle = np.median(ratios)
    sd = 1.4826 * np.median(np.abs(ratios - middle))
    return float(middle), float(sqrt(pi / 2) * sd / sqrt(len(ratios)))


def _cost(record: Mapping, runs: _Runs) -> Cell:
    """Seconds of a pass over SGNHT's, for the setting with which they were measured."""
    cost, cell = record.get("cost") or {}, runs.cell
    is_here = (cost.get("step_size"), cost.get("friction")) == (cell["step_size"], cell["friction"])
    return runs.number("seconds_per_pass", *(relative_cost(cost) if is_here else (None, None)))


def _published(records: Records, table: str, *keys: str) -> dict[tuple, float]:
    """The numbers of a table of the paper."""
    rows = [row for row in records.get("published") or [] if row["table"] == table]
    return {tuple(row[key] for key in keys): row["value"] for row in rows}


def normal(records: Records) -> list[Cell]:
    """Errors of the densities and autocorrelation times, beside those of the paper's Table 1."""
    published = _published(records, "table1", "sampler", "step_size", "friction", "metric")
    paper = {(name, float(h), float(a), metric): own for (name, h, a, metric), own in published.items()}
    cells: list[Cell] = []
    for _, runs in _settings(required(records, "normal"), "normal"):
        where = runs.method, runs.cell["step_size"], runs.cell["friction"]
        times = {name: _of_parameter(runs, "time", name) for name in PARAMETERS}
        cells += [_of_parameter(runs, "density_rmse", name) for name in PARAMETERS]
        cells.append(runs.number("density_rmse_paper", paper.get((*where, "density_rmse"))))
        for name, time in times.items():
            cells += [time, _of_parameter(runs, "batch_means_time", name)]
        theirs = paper.get((*where, "autocorrelation_time"))
        cells.append(runs.number("time_paper", theirs))
        for name, time in times.items():
            value, se = (None if None in (x, theirs) else x / theirs for x in (time.value, time.se))
            missing = time.missing if time.value is None else DASH
            cells.append(replace(time, metric=f"time_ratio_{name}", value=value, se=se, missing=missing))
    return _marked(cells)


def _of_parameter(runs: _Runs, key: str, name: str) -> Cell:
    """The mean over runs of a number of the parameter ``name``."""
    return runs.mean(f"{key.replace('batch_means', 'batch')}_{name}", lambda run: run[name][key])


def normal_details(records: Records) -> list[Cell]:
    """What is behind the errors: bias of the density, widths, and steps across 0."""
    cells: list[Cell] = []
    for _, runs in _settings(required(records, "normal"), "normal"):
        finite = len(runs.whole)
        for name in PARAMETERS:
            bias = _root(runs.cell["bias"].get(name, {}))
            cells.append(runs.of_finite(f"density_bias_{name}", *bias, finite, DASH if finite else DIVERGED))
        cells += [_of_parameter(runs, "sd_ratio", name) for name in PARAMETERS]
        cells.append(runs.mean("crossings", lambda run: float(run["crossings"])))
        cells += _clipping(runs)
    return _marked(cells)


def _root(bias: Mapping) -> tuple[float | None, float | None]:
    """The root of a squared bias with its standard error; none of one within two standard errors of 0."""
    value, se = bias.get("value"), bias.get("se")
    if value is None or se is None or value <= 2 * se:
        return None, None
    return sqrt(value), se / (2 * sqrt(value))


def passes_to(passes: Sequence[float], values: Sequence[float | None], goal: float) -> float | None:
    """The first of ``passes`` from which on all ``values`` are at least ``goal``; None if there is none."""
    reached = None
    for at, value in zip(passes, values, strict=True):
        if value is None or not isfinite(value) or value < goal:
            reached = None
        elif reached is None:
            reached = at
    return reached


def logistic_convergence(records: Records) -> list[Cell]:
    """Passes until the posterior mean predicts as well as NUTS's, the values at the end of runs, and costs."""
    curves = required(records, "logistic_curves")
    goal = required(records, "logistic_draws")[0]["truth_log_likelihood"]
    cells: list[Cell] = []
    for record, runs in _settings(curves, "mnist79"):
        passes = record["passes"]
        end = runs.mean("log_likelihood_end", lambda run: run["log_likelihoods"][-1])
        missing = f"> {passes[-1]:g}" if end.finite else DIVERGED

        def reached(run: Mapping, passes: Sequence[float] = passes) -> float | None:
            return passes_to(passes, run["log_likelihoods"], goal - NEAR)

        to_nuts = runs.mean("passes_to_reference", reached, missing=missing)
        if to_nuts.se is not None:
            # Runs have values only at given times, so passes are rounded up to the next one.
            rounding = (passes[1] - passes[0]) / sqrt(12 * to_nuts.finite)
            to_nuts = replace(to_nuts, se=hypot(to_nuts.se, rounding))
        cells += [to_nuts, end, _cost(record, runs), *_clipping(runs)]
    return _marked(cells) + _beside("mnist79", "nuts", curves[0], {"log_likelihood_end": goal})


def _beside(model: str, name: str, record: Mapping, numbers: Mapping[str, float]) -> list[Cell]:
    """Numbers of NUTS or of the MAP, which have no h and no A, beside each setting of a record."""
    runs = [_Runs(model, name, cell) for cell in record["cells"]]
    return [own.number(metric, value) for metric, value in numbers.items() for own in runs]


def logistic_errors(records: Records) -> list[Cell]:
    """Moments of long chains against NUTS."""
    draws, [reference] = required(records, "logistic_draws"), required(records, "logistic_reference")
    errors = {"xi_white_x100": ("xi_white", 100), "xi_rel_x100": ("xi_rel", 100)}
    errors["mean_error_sds"] = ("mean_error", 1)
    cells: list[Cell] = []
    for record, runs in _settings(draws, "mnist79"):
        cells += [runs.mean(metric, itemgetter(key), factor) for metric, (key, factor) in errors.items()]
        for place, coordinate in enumerate(record["coordinates"]):
            ratio = pooled_sd_ratio(runs.whole, place, reference["sd"][coordinate])
            cells.append(runs.of_finite(f"sd_ratio_{coordinate + 1}", *ratio, len(runs.whole), DIVERGED))
        cells += _clipping(runs)
    accuracy = reference["diagnostics"]
    truth = {"block_r_hat_max": accuracy["r_hat"], "block_ess_min": accuracy["ess_bulk"]}
    return _marked(cells) + _beside("mnist79", "nuts", draws[0], truth)


def pooled(runs: Sequence[Mapping]) -> tuple[np.ndarray, np.ndarray] | None:
    """Mean and covariance of equally long chains together, of those that have not diverged; None if all have."""
    runs = [run for run in runs if not run["diverged"]]
    if not runs:
        return None
    means = np.array([run["mean"] for run in runs])
    within = np.mean([run["covariance"] for run in runs], axis=0)
    apart = means - means.mean(axis=0)
    return means.mean(axis=0), within + apart.T @ apart / len(runs)


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


def drbm_sets(records: Records) -> list[Cell]:
    """Rows, classes, features and parameters of each data set, ours and the paper's."""
    paper = _published(records, "table2", "model", "metric")
    return [
        Cell(record["set"], "", "", metric, value, detail=whose, missing="unavailable")
        for record in in_print_order(required(records, "map"))
        for metric in SIZES
        for whose, value in (("here", record.get(metric)), ("paper", paper.get((record["set"], metric))))
    ]


def drbm_errors(records: Records) -> list[Cell]:
    """Test errors at the end of runs, and of the MAP; a set that no source has is marked as unavailable."""
    found = in_print_order(required(records, "drbm"))
    cells: list[Cell] = []
    for record, runs in _settings([record for record in found if not record["missing"]]):
        cells.append(runs.mean("error_percent", lambda run: run["errors"][-1], 100))
        cells.append(runs.mean("log_loss_end", lambda run: run["log_losses"][-1]))
        cells += [_cost(record, runs), *_clipping(runs)]
    cells = _marked(cells)
    maps = {record["set"]: record for record in required(records, "map")}
    for name, record in {record["set"]: record for record in found}.items():
        if record["missing"]:
            cells.append(Cell(name, "", "", "error_percent", missing="unavailable"))
        else:
            test = maps[name]["test"]
            at_map = {"error_percent": 100 * (1 - test["accuracy"]), "log_loss_end": test["log_loss"]}
            cells += _beside(name, "map", record, at_map)
    return cells
