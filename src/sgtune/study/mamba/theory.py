"""Tuners that look ahead: the errors that theory predicts beside measured ones, choices for several horizons,
and on Gaussians, where every arm's expected error is known; and how well discrepancies see a wrong width."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import hypot, sqrt
from operator import itemgetter

from sgtune.study.config.sections import model_settings
from sgtune.study.mamba.comparison import choice_cells
from sgtune.study.mamba.regret import seconds_of
from sgtune.study.report.means import Estimate, FreshRuns, at_least, metric_of
from sgtune.study.report.records import Records, finite, grouped, mean_of, required
from sgtune.study.report.table import DASH, NO_ARM, NOT_TRUSTED, Cell

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
        yield Cell(**own, metric="predicted_x100", missing=NO_ARM)
        return
    yield from choice_cells({**tuned, "arms": [tuned["best"]]})
    # What it predicted of an arm stands in the arm's last rung.
    predicted = [one["discrepancy"] for one in tuned["rungs"] if tuned["best"].items() <= one.items()][-1]
    yield Cell(**own, metric="predicted_x100", value=100 * predicted)
    both = {"measured_x100": 0.01, "measured_over_predicted": hypot(predicted, of_reference)}
    if record["trusted"] is False or LOSS not in record["losses"] or seconds not in seconds_of([record]):
        missing = NOT_TRUSTED if record["trusted"] is False else DASH
        yield from (Cell(**own, metric=metric, missing=missing) for metric in both)
        return
    arm = next(one["arms"][0] for one in record["chosen"] if one["tuner"] == "theory")
    fresh = FreshRuns(record, seconds, LOSS)
    squares = fresh.losses[:, arm] ** 2
    value = sqrt(squares.mean())
    # By the delta method.
    se = float(squares.std(ddof=1) / sqrt(len(squares)) / (2 * value)) if value else 0.0
    for metric, unit in both.items():
        yield fresh.cell(own | {"metric": metric}, Estimate(value / unit, se / unit), [arm])


def horizons(records: Records) -> list[Cell]:
    """The arms chosen for runs of several lengths, and their errors in the longest run."""
    found = required(records, "horizons")
    return [cell for record in found for own in record["samplers"] for cell in _choices(record, own)]


def _choices(record: Mapping, own: Mapping) -> Iterator[Cell]:
    longest = record["seconds"][-1]
    after = {name: FreshRuns(own, longest, name) for name in record["losses"]}
    for_longest = {one["tuner"]: one["arm"] for one in own["chosen"] if one["horizon"] == longest}
    # In the order of the horizons, for all tuners.
    for chosen in sorted(own["chosen"], key=lambda one: one["horizon"]):
        about = {"model": record["model"], "sampler": own["sampler"], "tuner": chosen["tuner"]}
        detail, arm, best = f"{chosen['horizon']:g} s", chosen["arm"], for_longest[chosen["tuner"]]
        about["detail"] = detail
        if arm is None:
            yield Cell(**about, metric="predicted_x100", missing=NO_ARM)
            continue
        yield from choice_cells({**record, **about, "arms": [own["arms"][arm]]}, detail)
        yield Cell(**about, metric="predicted_x100", value=100 * chosen["predicted"])
        if record["trusted"] is False:
            yield from (Cell(**about, metric=metric_of(name), missing=NOT_TRUSTED) for name in after)
            continue
        yield from (fresh.alone(about, arm) for fresh in after.values())
        for metric, name in (("over_longest", record["losses"][0]), ("over_longest_xi", "relative_sd_error")):
            if best is not None and name in after:
                over = after[name].over(about | {"metric": metric}, [arm], [best])
                # An arm against itself has no error.
                yield replace(over, se=None) if arm == best else over


def gaussian_ladder(records: Records) -> list[Cell]:
    """Tuners' choices on Gaussians, all samplers together: expected errors over the oracle's, and arms that escaped or
    are frozen."""
    races = [
        run | {"smallest": own["smallest"], "target": f"{own['kind']}, D = {own['dimension']:,}"}
        for record in sorted(required(records, "ladder"), key=itemgetter("dimension"))
        for own in record["gaussians"]
        for run in own["runs"]
    ]
    by_tuner = grouped(races, itemgetter("tuner", "target"))
    return [cell for whose, runs in by_tuner.items() for cell in _of_races(*whose, runs)]


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
        cells = [cell if cell.value is None else at_least(cell) for cell in cells]
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
