"""Predictions of tuners that look ahead: the theory's errors beside measured ones, and choices for several horizons."""

# ruff: noqa: RUF001 - tables print Greek letters and signs of mathematics

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import hypot, sqrt

import numpy as np

from sgtune.study.config.sections import model_settings
from sgtune.study.mamba.choices import choice_cells
from sgtune.study.mamba.regret_estimates import Estimate, ratio
from sgtune.study.report.artifacts import artifact
from sgtune.study.report.labels import MODELS, in_order
from sgtune.study.report.layout import DIVERGED, NO_ARM, NOT_TRUSTED, Cell, Table, lay_out
from sgtune.study.report.means import SOURCES, metric_of
from sgtune.study.report.records import Records, finite, foreseen_of, need
from sgtune.study.report.remarks import by_model, counted, meanings, reference_said

__all__ = ["horizons", "theory"]

LOSS = "xi_white"
"""What the theory predicts: `sgtune.metrics.xi_white`."""


def theory(records: Records) -> Table:
    """The error that theory predicts for the arm that it chooses, and the error in fresh runs of as many seconds."""
    tunings = {(one["model"], one["sampler"]): one for one in need(records, "tuning", "theory")}
    found = [one for one in need(records, "regret", "theory") if LOSS in one["losses"]]
    config = need(records, "settings", "theory")[0]["configuration"]
    cells, models = [], in_order((one["model"] for one in found), MODELS)
    of_reference = {
        one["model"]: finite(one["monte_carlo_error"].get(LOSS)) or 0.0
        for one in need(records, "reference", "theory")
        if "monte_carlo_error" in one
    }
    for record in found:
        tuned = tunings.get((record["model"], record["sampler"]))
        if tuned is not None:
            mamba = model_settings(config, record["model"])["mamba"]
            seconds = mamba["horizon"] or mamba["seconds"]
            cells += _foreseen_cells(record, tuned, seconds, of_reference.get(record["model"], 0.0))
    return lay_out(
        cells,
        name="theory",
        title=artifact("theory").title,
        caption="ξ whitened × 10² at the end of the planned run, for the arm that theory chooses: predicted, "
        "without a chain, and the root mean square of fresh runs ± one standard error "
        f"({by_model(found, _replicates)}). The reference's own error adds to every measured one. The ratio "
        "is of the measured error over √(predicted² + reference's own²). A dash: no fresh run was as long as "
        "the planned one.\n"
        "The theory assumes a Gaussian posterior and gradient noise as near the mode. It fails where an arm "
        "leaves the neighbourhood of the mode, because of minibatches without control variates or large steps, and "
        "where the posterior is skew, has heavy tails, or only the diagonal of its curvature is known (more than 200 "
        "parameters). A ratio far from 1 shows this; the warnings of a tuning result show it in advance."
        f"{reference_said(records, 'theory', dict.fromkeys(models, ('xi_white_x100',)))}",
        rows=("sampler",),
        columns=("metric",),
    )


def _replicates(records: Sequence[dict]) -> str:
    return counted(max(len(run["diverged"]) for record in records for run in record["runs"]), "run")


def _foreseen_cells(record: dict, tuned: dict, seconds: float, of_reference: float) -> Iterator[Cell]:
    """The cells of one sampler: the arm, its predicted and its measured error after ``seconds``, and the ratio of the
    measured error to what prediction and reference's own error together make of it."""
    own = {"model": record["model"], "sampler": record["sampler"], "tuner": "theory"}
    if tuned["best"] is None:
        yield Cell(**own, metric="foreseen_x100", missing=NO_ARM)
        return
    yield from choice_cells({**tuned, "arms": [tuned["best"]]})
    foreseen = foreseen_of(tuned["best"], tuned["rungs"])
    yield Cell(**own, metric="foreseen_x100", value=100 * foreseen)
    place = next(one["arms"][0] for one in record["chosen"] if one["tuner"] == "theory")
    run = next((one for one in record["runs"] if (one["arm"], one["seconds"]) == (place, seconds)), None)
    if record["trusted"] is False or run is None:
        missing = {"missing": NOT_TRUSTED} if record["trusted"] is False else {}
        yield Cell(**own, metric="measured_x100", **missing)
        yield Cell(**own, metric="measured_over_foreseen", **missing)
        return
    yield from _measured(own, run, hypot(foreseen, of_reference))


def _measured(own: Mapping, run: Mapping, expected: float) -> list[Cell]:
    values = np.array(run["losses"][LOSS], float)
    kept = run["diverged"].count(False)
    counts = {"finite": kept, "replicates": len(values)}
    if not kept:
        return [
            Cell(**own, metric=name, missing=DIVERGED) for name in ("measured_x100", "measured_over_foreseen")
        ]
    error = root_mean_square(values)
    return [
        Cell(**own, metric="measured_x100", value=100 * error.value, se=100 * error.se, **counts),
        Cell(
            **own,
            metric="measured_over_foreseen",
            value=error.value / expected,
            se=error.se / expected,
            **counts,
        ),
    ]


def root_mean_square(values: np.ndarray) -> Estimate:
    """Of two or more runs, with its standard error by the delta method."""
    squares = values**2
    value = sqrt(squares.mean())
    return Estimate(value, float(squares.std(ddof=1) / sqrt(len(squares)) / (2 * value)) if value else 0.0)


def horizons(records: Records) -> Table:
    """The arms chosen for runs of several lengths, and their errors in the longest run."""
    found = need(records, "horizons", "horizons")
    losses = {record["model"]: [metric_of(key) for key in record["losses"]] for record in found}
    longest = max(record["seconds"][-1] for record in found)
    return lay_out(
        [
            cell
            for record in found
            for sampler in record["samplers"]
            for cell in _chosen_cells(record, sampler)
        ],
        name="horizons",
        title=artifact("horizons").title,
        caption="Arms chosen for runs of several lengths, all by races of the same budget "
        f"({by_model(found, _budget)}; theory needs no race), one race each; the error that the "
        "tuner predicts for its arm at its horizon, in units of ξ whitened × 10²; and errors after "
        f"{longest:g} s in fresh runs, mean ± one standard error ({by_model(found, _fresh)}). Over the "
        "longest's: the first of these errors, and ξ(σ̂), over the error of the arm that the same tuner chose for the "
        "longest run; a ratio above 1 is the loss from planning a shorter run.\n"
        f"{meanings(dict.fromkeys(name for own in losses.values() for name in own))}."
        f"{reference_said(records, 'horizons', losses)}",
        rows=("sampler", "tuner", "detail"),
        columns=("metric",),
        stub={"detail": "Chosen for"},
    )


def _budget(records: Sequence[dict]) -> str:
    return f"R = {records[0]['race_seconds']:g} s"


def _fresh(records: Sequence[dict]) -> str:
    runs = [run for record in records for one in record["samplers"] for run in one["runs"]]
    return counted(max(len(run["diverged"]) for run in runs), "run")


def _chosen_cells(record: dict, own: dict) -> Iterator[Cell]:
    seconds, names = record["seconds"], record["losses"]
    after = {run["arm"]: run for run in own["runs"] if run["seconds"] == seconds[-1]}
    # In the order of the horizons, for all tuners.
    for chosen in sorted(own["chosen"], key=lambda one: one["horizon"]):
        common = {
            **{"model": record["model"], "sampler": own["sampler"], "tuner": chosen["tuner"]},
            "detail": f"{chosen['horizon']:g} s",
        }
        if chosen["arm"] is None:
            yield Cell(**common, metric="foreseen_x100", missing=NO_ARM)
            continue
        arm = own["arms"][chosen["arm"]]
        for cell in choice_cells({**record, **common, "arms": [arm]}):
            yield replace(cell, detail=common["detail"])
        yield Cell(**common, metric="foreseen_x100", value=100 * chosen["foreseen"])
        run = after[chosen["arm"]]
        counts = {"finite": run["diverged"].count(False), "replicates": len(run["diverged"])}
        if record["trusted"] is False or not counts["finite"]:
            missing = NOT_TRUSTED if record["trusted"] is False else DIVERGED
            yield from (Cell(**common, metric=metric_of(name), missing=missing) for name in names)
            continue
        for name in names:
            metric = metric_of(name)
            values = SOURCES[metric][1] * np.array(run["losses"][name], float)
            error = float(values.std(ddof=1) / sqrt(len(values)))
            yield Cell(**common, metric=metric, value=float(values.mean()), se=error, **counts)
        best = next(
            one["arm"]
            for one in own["chosen"]
            if (one["tuner"], one["horizon"]) == (chosen["tuner"], seconds[-1])
        )
        for metric, name in (("over_longest", names[0]), ("over_longest_xi", "relative_sd_error")):
            if best is not None and name in names:
                above, below = (
                    np.array(after[place]["losses"][name])[:, None] for place in (chosen["arm"], best)
                )
                gained = ratio(above, below)
                # An arm against itself has no error.
                error = None if chosen["arm"] == best else gained.se
                yield Cell(**common, metric=metric, value=gained.value, se=error, **counts)
