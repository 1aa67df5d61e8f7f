"""The tables of the study: errors over the best arm's, errors of the default tuner, and pairs of coordinates."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import exp, hypot, log
from operator import attrgetter, itemgetter
from statistics import fmean

from sgtune.study.mamba.reference import doubted
from sgtune.study.report.means import SOURCES, mark_best, metric_of
from sgtune.study.report.records import Records, finite, grouped, mean_of, required
from sgtune.study.report.table import Cell

UNSTABLE = "unstable"
REFUSED = "refused"
DEFAULT = ("mamba", "rounds")
"""The tuner and the coordinates of `sgtune.tune` where nothing is said."""


def _of_choice(record: Mapping, tuner: str, coordinates: str) -> list[dict]:
    return [run for run in record["runs"] if (run["tuner"], run["coordinates"]) == (tuner, coordinates)]


def _ratio(record: Mapping, tuner: str, coordinates: str) -> Cell:
    """The mean error of a tuner's chains over that of the best arm's; of those that are stable, at least 1."""
    runs = _of_choice(record, tuner, coordinates)
    stable = [run["xi_white"] for run in runs if run["arm"] is not None and not run["unstable"]]
    about = {"model": record["case"], "sampler": record["sampler"], "tuner": tuner, "metric": "over_best"}
    about |= {"detail": coordinates, "finite": len(stable), "replicates": len(runs)}
    if not stable:
        return Cell(**about, missing=REFUSED if all(run["refused"] for run in runs) else UNSTABLE)
    value, error = mean_of(stable)
    best, of_best = mean_of([run["xi_white"] for run in record["best"]["runs"] if not run["unstable"]])
    if best is None:
        return Cell(**about, missing=UNSTABLE)
    ratio = max(1.0, value / best)
    se = None if None in (error, of_best) else ratio * hypot(error / value, of_best / best)
    return Cell(**about, value=ratio, se=se)


def posteriors_regret(records: Records) -> list[Cell]:
    """Of every posterior, sampler, tuner and coordinates; and the geometric means over the posteriors on which all runs
    are stable."""
    cells = []
    for record in required(records, "races"):
        choices = dict.fromkeys((run["tuner"], run["coordinates"]) for run in record["runs"])
        cells += [_ratio(record, *choice) for choice in choices]
    groups = grouped(cells, attrgetter("sampler", "tuner", "detail"))
    return cells + [_geometric_mean(own) for own in groups.values()]


def _geometric_mean(cells: list[Cell]) -> Cell:
    """Of the ratios; ``finite`` counts the posteriors that have one from all their runs."""
    known = [cell for cell in cells if cell.value is not None and cell.finite == cell.replicates]
    counts = {"finite": len(known), "replicates": len(cells)}
    if not known:
        return replace(cells[0], model="all", value=None, se=None, missing=UNSTABLE, **counts)
    value = exp(fmean(log(cell.value) for cell in known))
    errors = [cell.se / cell.value for cell in known if cell.se is not None]
    se = value * hypot(*errors) / len(known) if len(errors) == len(known) else None
    return replace(cells[0], model="all", value=value, se=se, **counts)


def posteriors_errors(records: Records) -> list[Cell]:
    """Of the best arm and of the default tuner: errors, what tuning spent, and the runs that left."""
    return [cell for record in required(records, "races") for cell in _errors(record)]


def _errors(record: Mapping) -> Iterator[Cell]:
    about = {"model": record["case"], "sampler": record["sampler"], "tuner": DEFAULT[0]}
    runs = _of_choice(record, *DEFAULT)
    stable = [run for run in runs if run["arm"] is not None and not run["unstable"]]
    best = record["best"]["runs"]
    columns = {
        "best_xi_white_x100": [100 * run["xi_white"] for run in best if not run["unstable"]],
        "xi_white_x100": [100 * run["xi_white"] for run in stable],
        "mean_error_sds": [run["mean_error"] for run in stable],
        "largest_mean_error_sds": [run["largest_mean_error"] for run in stable],
        "spent_x1e-6": [run["spent"] / 1e6 for run in runs if not run["refused"]],
    }
    for metric, values in columns.items():
        value, se = mean_of(values)
        counts = {"finite": len(values), "replicates": len(best if metric.startswith("best") else runs)}
        yield Cell(**about, metric=metric, value=value, se=se, missing=UNSTABLE, **counts)
    counts = {"finite": len(runs), "replicates": len(runs)}
    yield Cell(**about, metric="unstable_runs", value=len(runs) - len(stable), **counts)


def preconditioned(records: Records) -> list[Cell]:
    """Of every model and loss: the mean over the tuning runs, with and without. Nothing is the best by a distance from
    quantities whose reference is not trusted."""
    cells, doubts = [], doubted(records)
    for record in required(records, "preconditioned"):
        groups = grouped(record["runs"], itemgetter("sampler", "coordinates"))
        losses = dict.fromkeys(key for run in record["runs"] for key in run["losses"])
        for (sampler, coordinates), runs in groups.items():
            for key in losses:
                metric, values = metric_of(key), [finite(run["losses"].get(key)) for run in runs]
                kept = [SOURCES[metric][1] * value for value in values if value is not None]
                value, se = mean_of(kept)
                fields = {"finite": len(kept), "replicates": len(runs), "missing": UNSTABLE}
                about = record["model"], sampler, "mamba", metric
                cells.append(Cell(*about, value, se=se, detail=coordinates, **fields))
    marked = mark_best(cells, among="detail")
    return [replace(cell, best=cell.best and (cell.model, cell.metric) not in doubts) for cell in marked]
