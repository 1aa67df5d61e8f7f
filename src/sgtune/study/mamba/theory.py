"""Tuners that look ahead: the errors that theory predicts beside measured ones, and choices for several horizons."""

from collections.abc import Iterator, Mapping
from math import hypot, sqrt

import numpy as np

from sgtune.study.config.sections import model_settings
from sgtune.study.mamba.comparison import choice_cells
from sgtune.study.report.means import SOURCES, Estimate, metric_of, ratio
from sgtune.study.report.records import Records, finite, required
from sgtune.study.report.table import DASH, DIVERGED, NO_ARM, NOT_TRUSTED, Cell

LOSS = "xi_white"
"""What the theory predicts: `sgtune.metrics.xi_white`."""


def theory(records: Records) -> list[Cell]:
    """The error that theory predicts for the arm that it chooses, and the error in fresh runs of as many seconds."""
    tunings = {(one["model"], one["sampler"]): one for one in required(records, "tuning")}
    config = required(records, "settings")[0]["configuration"]
    of_reference = {
        one["model"]: finite(one["monte_carlo_error"].get(LOSS)) or 0.0
        for one in required(records, "reference")
        if "monte_carlo_error" in one
    }
    cells = []
    for record in required(records, "regret"):
        tuned = tunings.get((record["model"], record["sampler"]))
        if tuned is not None and LOSS in record["losses"]:
            mamba = model_settings(config, record["model"])["mamba"]
            seconds = mamba["horizon"] or mamba["seconds"]
            cells += _of_sampler(record, tuned, seconds, of_reference.get(record["model"], 0.0))
    return cells


def _of_sampler(record: Mapping, tuned: Mapping, seconds: float, of_reference: float) -> Iterator[Cell]:
    """The arm, its predicted and its measured error after ``seconds``, and the ratio of the measured error to what
    prediction and reference's own error together make of it."""
    own = {"model": record["model"], "sampler": record["sampler"], "tuner": "theory"}
    if tuned["best"] is None:
        yield Cell(**own, metric="foreseen_x100", missing=NO_ARM)
        return
    yield from choice_cells({**tuned, "arms": [tuned["best"]]})
    # What it predicted of an arm stands in the arm's last rung.
    predicted = [one["discrepancy"] for one in tuned["rungs"] if tuned["best"].items() <= one.items()][-1]
    yield Cell(**own, metric="foreseen_x100", value=100 * predicted)
    arm = next(one["arms"][0] for one in record["chosen"] if one["tuner"] == "theory")
    run = next((one for one in record["runs"] if (one["arm"], one["seconds"]) == (arm, seconds)), None)
    both = {"measured_x100": 0.01, "measured_over_foreseen": hypot(predicted, of_reference)}
    missing = _missing(record, run)
    if missing:
        yield from (Cell(**own, metric=metric, missing=missing) for metric in both)
        return
    error = _root_mean_square(np.array(run["losses"][LOSS], float))
    counts = {"finite": run["diverged"].count(False), "replicates": len(run["diverged"])}
    for metric, unit in both.items():
        yield Cell(**own, metric=metric, value=error.value / unit, se=error.se / unit, **counts)


def _missing(record: Mapping, run: Mapping | None) -> str | None:
    """Why a fresh run has no error; None if it has one."""
    if record["trusted"] is False:
        return NOT_TRUSTED
    if run is None:
        return DASH
    return DIVERGED if all(run["diverged"]) else None


def _root_mean_square(values: np.ndarray) -> Estimate:
    """Of two or more runs, with its standard error by the delta method."""
    squares = values**2
    value = sqrt(squares.mean())
    return Estimate(value, float(squares.std(ddof=1) / sqrt(len(squares)) / (2 * value)) if value else 0.0)


def horizons(records: Records) -> list[Cell]:
    """The arms chosen for runs of several lengths, and their errors in the longest run."""
    found = required(records, "horizons")
    return [cell for record in found for own in record["samplers"] for cell in _choices(record, own)]


def _choices(record: Mapping, own: Mapping) -> Iterator[Cell]:
    seconds, names = record["seconds"], record["losses"]
    after = {run["arm"]: run for run in own["runs"] if run["seconds"] == seconds[-1]}
    for_longest = {one["tuner"]: one["arm"] for one in own["chosen"] if one["horizon"] == seconds[-1]}
    # In the order of the horizons, for all tuners.
    for chosen in sorted(own["chosen"], key=lambda one: one["horizon"]):
        about = {"model": record["model"], "sampler": own["sampler"], "tuner": chosen["tuner"]}
        detail = f"{chosen['horizon']:g} s"
        if chosen["arm"] is None:
            yield Cell(**about, metric="foreseen_x100", missing=NO_ARM, detail=detail)
            continue
        yield from choice_cells({**record, **about, "arms": [own["arms"][chosen["arm"]]]}, detail)
        yield Cell(**about, metric="foreseen_x100", value=100 * chosen["foreseen"], detail=detail)
        run = after[chosen["arm"]]
        about["detail"] = detail
        missing = _missing(record, run)
        if missing:
            yield from (Cell(**about, metric=metric_of(name), missing=missing) for name in names)
            continue
        about |= {"finite": run["diverged"].count(False), "replicates": len(run["diverged"])}
        for name in names:
            metric = metric_of(name)
            values = SOURCES[metric][1] * np.array(run["losses"][name], float)
            error = float(values.std(ddof=1) / sqrt(len(values)))
            yield Cell(**about, metric=metric, value=float(values.mean()), se=error)
        best = for_longest[chosen["tuner"]]
        for metric, name in (("over_longest", names[0]), ("over_longest_xi", "relative_sd_error")):
            if best is not None and name in names:
                above, below = (
                    np.array(after[arm]["losses"][name])[:, None] for arm in (chosen["arm"], best)
                )
                over = ratio(above, below)
                # An arm against itself has no error.
                error = None if chosen["arm"] == best else over.se
                yield Cell(**about, metric=metric, value=over.value, se=error)
