"""The tables of the study: acceptance, bias, regret, the arms of races, and samplers at equal seconds."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean

import numpy as np

from sgtune.study.adam_mcmc.verdicts import has_left_target, squares_cause
from sgtune.study.report.means import (
    SOURCES,
    FreshRuns,
    best_of,
    evaluation_cells,
    mark_best,
    metric_of,
    over_loss,
    ratio,
)
from sgtune.study.report.records import Records, mean_of, required
from sgtune.study.report.table import AT_CAP, Cell
from sgtune.support.axes import named


def _mean(target: str, sampler: str, metric: str, detail: str, values: Sequence[float], **fields) -> Cell:
    """The mean of chains, with its standard error."""
    value, se = mean_of(values)
    n = len(values)
    return Cell(target, sampler, "", metric, value, se=se, finite=n, replicates=n, detail=detail, **fields)


def _rate(target: str, sampler: str, detail: str, cell: Mapping, steps: int) -> Cell:
    """The acceptance rate; with an upper end, where less than one acceptance is expected in all tests."""
    rates = cell["acceptance"]
    n_tests = len(rates) * steps
    found = _mean(target, sampler, "acceptance_rate", detail, rates)
    return replace(found, value=None, se=None, upper=1 / n_tests) if fmean(rates) * n_tests < 1 else found


def adam_acceptance(records: Records) -> list[Cell]:
    """Acceptance of every target, gamma / s, s_d and s, with a star where the chains have not settled; and E x^2 of
    chains from exact draws, at the middle s of those that all targets have."""
    found = required(records, "acceptance")
    common = sorted(set.intersection(*({cell["scale"] for cell in own["cells"]} for own in found)))
    shown = common[(len(common) - 1) // 2] if common else None
    rates, squares = [], []
    for record, own in [(target, cell) for target in found for cell in target["cells"]]:
        detail = f"{own['drift_ratio']:g}, {own['directional_noise']:g}, {own['scale']:g}"
        of, cause = (record["target"], "adam-mcmc"), squares_cause(own, own["steps"])
        rates.append(_starred(_rate(*of, detail, own, own["steps"]), cause))
        if record["n_data"] == 1 and own["scale"] == shown:
            values = own["square"] if not cause or has_left_target(own) else []
            square = _mean(*of, "second_moment", detail, values, missing=cause)
            squares.append(_starred(square, cause) if values else square)
    return [*rates, *squares]


def _starred(cell: Cell, cause: str) -> Cell:
    return replace(cell, text=f"{cell.shown} *") if cause else cell


def adam_bias(records: Records) -> list[Cell]:
    """E x^2 and acceptance of every D, variant and gamma / s."""
    [found] = required(records, "bias")
    cells = []
    for own in found["cells"]:
        of = (f"gaussian-{own['dimension']}", own["variant"])
        # Squares of chains that hardly move are those of their starts.
        cause, detail = squares_cause(own, found["steps"]), f"{own['ratio']:g}"
        cells.append(_mean(*of, "second_moment", detail, [] if cause else own["squares"], missing=cause))
        cells.append(_rate(*of, detail, own, found["steps"]))
    return cells


def adam_regret(records: Records) -> list[Cell]:
    """The mean loss of the arms that judges chose over the mean loss of the best arm, which stands in the row of the
    best arm; and how much the chosen arms accepted."""
    found = required(records, "races")
    seconds = max(run["seconds"] for run in found[0]["regret"]["runs"])
    keys = [key for key in found[0]["regret"]["losses"] if all(key in r["regret"]["losses"] for r in found)]
    return [cell for record in found for cell in _regret_of(record, seconds, keys)]


def _regret_of(record: Mapping, seconds: float, keys: Sequence[str]) -> list[Cell]:
    own, whose = record["regret"], {"model": record["model"], "sampler": record["sampler"]}
    acceptance = {run["arm"]: run["acceptance"] for run in own["runs"] if run["seconds"] == seconds}
    chosen = {one["tuner"]: one["arms"] for one in own["chosen"]}
    of_judges, others, accepted = [], [], []
    for key in keys:
        metric, fresh = metric_of(key), FreshRuns(own, seconds, key)
        # The best of all arms that ran again, because the best finalist of a short screen need not be the best of them.
        best = [best_of(fresh.losses, range(len(own["arms"])))]
        about = whose | {"metric": f"{metric}_regret"}
        for name, arms in (chosen | {"oracle": own["oracles"].get(key), "random": own["random"]}).items():
            one = about | {"tuner": name}
            (of_judges if name in chosen else others).append(
                fresh.over(one, arms, best) if arms else Cell(**one)
            )
        known = fresh.is_known(best)
        value, se = over_loss(own["frozen"][key], fresh.losses[:, best]) if known else (None, None)
        others.append(Cell(**about, tuner="frozen", value=value, se=se, missing=AT_CAP))
        alone = ratio(SOURCES[metric][1] * fresh.losses[:, best], np.ones((len(fresh.losses), 1)))
        least = fresh.cell(whose | {"tuner": "finalist", "metric": metric}, alone, best)
        others.append(least if record.get("trusted") else replace(least, text=f"{least.shown} *"))
    for name, arms in {**chosen, "oracle": own["oracles"].get(keys[0]), "random": own["random"]}.items():
        rates = [100 * fmean(acceptance[arm]) for arm in arms or () if arm is not None]
        if rates:
            accepted.append(Cell(**whose, tuner=name, metric="acceptance_percent", value=fmean(rates)))
    return [*of_judges, *others, *accepted]


def adam_choices(records: Records) -> list[Cell]:
    """The choice of each race."""
    cells = []
    for record in required(records, "races"):
        for judge in dict.fromkeys(race["judge"] for race in record["races"]):
            arms = [race["best"] for race in record["races"] if race["judge"] == judge]
            text = "; ".join("none" if arm is None else named(arm) for arm in arms)
            cells.append(Cell(record["model"], record["sampler"], judge, "chosen", text=text))
    return cells


EVALUATED = (
    *("n_samples", "acceptance_percent", "ksd", "ksd_floor", "ksd_points"),
    *("relative_sd_error_x100", "xi_white_x100"),
)


def adam_evaluation(records: Records) -> list[Cell]:
    """Draws, their KSD and their errors of every sampler, and the KSD of a chain that stays at the MAP."""
    found = required(records, "evaluations")
    cells = mark_best([cell for own in found for cell in evaluation_cells(own, EVALUATED)], among="sampler")
    # Printed with the standard error, in which races count, and not with the sd over runs.
    cells = [cell if cell.se is None else replace(cell, sd=None) for cell in cells]
    return [*cells, Cell(found[0]["model"], "map", "", "ksd", found[0]["map"]["ksd"])]
