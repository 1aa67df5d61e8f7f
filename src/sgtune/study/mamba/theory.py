"""Tuners that look ahead: the errors that theory predicts beside measured ones, choices for several horizons,
and on Gaussians, where every arm's expected error is known; and how well discrepancies see a wrong width."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import hypot, sqrt

import numpy as np

from sgtune.study.catalogue import cap_of
from sgtune.study.config.sections import model_settings
from sgtune.study.mamba.comparison import choice_cells
from sgtune.study.mamba.regret import AT_LEAST
from sgtune.study.report.means import SOURCES, metric_of, ratio
from sgtune.study.report.records import Records, finite, mean_of, required
from sgtune.study.report.table import AT_CAP, DASH, DIVERGED, NO_ARM, NOT_TRUSTED, Cell

LOSS = "xi_white"
"""What the theory predicts: `sgtune.metrics.xi_white`."""

ESCAPED = 10.0
"""Where records cut an error off (`sgtune.study.experiments.ladder.ESCAPED`)."""

WIDTHS = (0.5, 1.5)
"""Draws of these widths, in sds of the target, are in `signal_of_width`."""


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
        if tuned is not None:
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
    fresh = record["runs"] if LOSS in record["losses"] else []
    run = next((one for one in fresh if (one["arm"], one["seconds"]) == (arm, seconds)), None)
    both = {"measured_x100": 0.01, "measured_over_foreseen": hypot(predicted, of_reference)}
    missing = _missing(record, run)
    if missing:
        yield from (Cell(**own, metric=metric, missing=missing) for metric in both)
        return
    squares = np.array(run["losses"][LOSS], float) ** 2
    value, counts = sqrt(squares.mean()), _counts(run)
    # By the delta method.
    se = float(squares.std(ddof=1) / sqrt(len(squares)) / (2 * value)) if value else 0.0
    for metric, unit in both.items():
        cell = Cell(**own, metric=metric, value=value / unit, se=se / unit, **counts)
        yield _bounded(cell, run, LOSS)


def _counts(run: Mapping) -> dict[str, int]:
    return {"finite": run["diverged"].count(False), "replicates": len(run["diverged"])}


def _is_bound(run: Mapping, loss: str) -> bool:
    """Whether a run diverged, or is at the cap of the loss: the mean is a lower bound."""
    return any(run["diverged"]) or max(run["losses"][loss]) >= cap_of(loss)


def _bounded(cell: Cell, run: Mapping, loss: str) -> Cell:
    """Marked if it is a lower bound."""
    return replace(cell, text=f"{AT_LEAST} {cell.shown}") if _is_bound(run, loss) else cell


def _missing(record: Mapping, run: Mapping | None) -> str | None:
    """Why a fresh run has no error; None if it has one."""
    if record["trusted"] is False:
        return NOT_TRUSTED
    if run is None:
        return DASH
    return DIVERGED if all(run["diverged"]) else None


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
        about |= _counts(run)
        for name in names:
            metric = metric_of(name)
            values = SOURCES[metric][1] * np.array(run["losses"][name], float)
            error = float(values.std(ddof=1) / sqrt(len(values)))
            yield _bounded(Cell(**about, metric=metric, value=float(values.mean()), se=error), run, name)
        best = for_longest[chosen["tuner"]]
        for metric, name in (("over_longest", names[0]), ("over_longest_xi", "relative_sd_error")):
            if best is not None and name in names:
                above, below = (
                    np.array(after[arm]["losses"][name])[:, None] for arm in (chosen["arm"], best)
                )
                over = ratio(above, below)
                # An arm against itself has no error.
                error = None if chosen["arm"] == best else over.se
                if chosen["arm"] != best and _is_bound(after[best], name):
                    yield Cell(**about, metric=metric, missing=AT_CAP)
                else:
                    yield _bounded(Cell(**about, metric=metric, value=over.value, se=error), run, name)


def gaussian_ladder(records: Records) -> list[Cell]:
    """Tuners' choices on Gaussians, all samplers together: expected errors over the oracle's, and arms that escaped or
    are frozen."""
    races: dict[tuple[str, str], list[dict]] = {}
    for record in sorted(required(records, "ladder"), key=lambda record: record["dimension"]):
        for own in record["gaussians"]:
            for run in own["runs"]:
                key = (run["tuner"], f"{own['kind']}, D = {own['dimension']:,}")
                races.setdefault(key, []).append(run | {"smallest": own["smallest"]})
    return [cell for whose, runs in races.items() for cell in _of_races(*whose, runs)]


def _of_races(tuner: str, detail: str, runs: Sequence[dict]) -> list[Cell]:
    """Where some run's error is cut off, all but the counts are lower bounds."""
    about = {"model": "", "sampler": "", "tuner": tuner, "detail": detail}
    over = [run["error"] / run["oracle_error"] for run in runs]
    numbers = {
        "ladder_error": mean_of([run["error"] for run in runs]),
        "ladder_over_oracle": mean_of(over),
        "ladder_worst": (max(over), None),
        "ladder_over_smallest": mean_of([run["error"] / run["smallest"] for run in runs]),
        "ladder_marginal": mean_of([run["marginal"] for run in runs]),
    }
    if tuner == "oracle":
        numbers |= dict.fromkeys(("ladder_over_oracle", "ladder_worst"), (None, None))
    cells = [Cell(**about, metric=metric, value=value, se=se) for metric, (value, se) in numbers.items()]
    if any(run["error"] >= ESCAPED for run in runs):
        cells = [
            cell if cell.value is None else replace(cell, text=f"{AT_LEAST} {cell.shown}") for cell in cells
        ]
    counts = {f"ladder_{name}": sum(run[name] for run in runs) for name in ("escaped", "frozen")}
    return cells + [Cell(**about, metric=metric, value=count) for metric, count in counts.items()]


def signal_of_width(records: Records) -> list[Cell]:
    """Signal over noise of one value for draws half, and one and a half times, as wide as the target; of the density
    that the draws are from (``square``), and of the draws themselves (``value``)."""
    cells = []
    for row in (row for record in required(records, "sensitivity") for row in record["rows"]):
        if row["perturbation"] != "width" or row["size"] not in WIDTHS:
            continue
        detail = f"{row['judge']}, width {row['size']:g}, D = {row['dimension']}, n = {row['points']}"
        for metric in ("square_signal", "value_signal"):
            cells.append(Cell("", "", "", metric, value=row[metric], se=row[f"{metric}_se"], detail=detail))
    # Details stand in the order in which they come: numbers by size.
    return sorted(cells, key=lambda cell: [float(part.split()[-1]) for part in cell.detail.split(", ")[1:]])
