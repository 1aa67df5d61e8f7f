"""Regret: how much worse a tuner's arm is than the best finalist of its grid, with arms for comparison."""

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import replace

import numpy as np

from sgtune.study.catalogue import cap_of
from sgtune.study.mamba.regret_estimates import Estimate, best_of, chosen_losses, over_loss, ratio
from sgtune.study.mamba.regret_remarks import (
    BIASES,
    diverged_said,
    doubts,
    left_out,
    oracles_said,
    unknown_said,
)
from sgtune.study.report.artifacts import artifact
from sgtune.study.report.labels import METRICS, MODELS, in_order
from sgtune.study.report.layout import (
    AT_CAP,
    DIVERGED,
    FEWEST_REPLICATES,
    NO_ARM,
    NOT_TRUSTED,
    Cell,
    Table,
    lay_out,
    mark_best,
)
from sgtune.study.report.means import SOURCES, identity, metric_of
from sgtune.study.report.records import Records, finite, need
from sgtune.study.report.remarks import (
    budgets_said,
    by_model,
    counted,
    meanings,
    reference_said,
    tuning_runs_said,
)
from sgtune.study.report.trust import doubted

__all__ = [
    "AT_LEAST",
    "UNMARKED",
    "after",
    "can_be_marked",
    "cap_said",
    "fresh_replicates",
    "losses_of",
    "regret",
    "regret_cells",
    "runs_said",
    "seconds_of",
    "tuning_runs",
]

AT_LEAST = "≥"
"""What stands before a lower bound."""

UNMARKED = (
    "never with one tuning run, because the error then leaves out how much choices vary, or with fewer than "
    f"{FEWEST_REPLICATES} fresh replicates"
)
"""In captions, after the meaning of bold: see `can_be_marked`."""


def losses_of(record: dict) -> list[str]:
    """The metrics of the losses that a record's tuners are judged by, the headline first."""
    return [metric_of(key) for key in record["losses"]]


def seconds_of(record: dict) -> list[float]:
    """The seconds after which its arms were judged, ascending."""
    return sorted({run["seconds"] for run in record["runs"]})


def after(seconds: float) -> str:
    """The label of runs of this many seconds."""
    return f"after {seconds:g} s"


class _Fresh:
    """The results of a record's arms in fresh runs of some seconds."""

    def __init__(self, record: dict, seconds: float):
        runs = {run["arm"]: run for run in record["runs"] if run["seconds"] == seconds}
        self.runs = [runs[arm] for arm in range(len(record["arms"]))]

    def losses(self, key: str) -> np.ndarray:
        """(R, arms)."""
        return np.array([run["losses"][key] for run in self.runs], float).T

    def are_at_cap(self, arms: Sequence[int | None], key: str) -> bool:
        """Whether the loss of one of ``arms`` is only known to be at least the cap: a run is at it, or diverged, or
        there is no arm."""
        return any(arm is None or max(self.runs[arm]["losses"][key]) >= cap_of(key) for arm in arms)

    def counts(self, arms: Sequence[int | None]) -> dict[str, int]:
        """How many runs of ``arms`` stayed finite, and of how many; an arm that is None has none that did."""
        kept = [0 if arm is None else self.runs[arm]["diverged"].count(False) for arm in arms]
        return {"finite": sum(kept), "replicates": len(self.runs[0]["diverged"]) * len(arms)}


def _shown(estimate: Estimate, counts: dict[str, int], arms: Sequence[int | None]) -> dict:
    """The cell of a tuner: its number, unless none of its arms ever stayed finite."""
    if not counts["finite"]:
        return {"missing": NO_ARM if all(arm is None for arm in arms) else DIVERGED, **counts}
    return {"value": estimate.value, "se": estimate.se, **counts}


def _at_least(cell: Cell, fresh: _Fresh, arms: Sequence[int | None], key: str) -> Cell:
    """``cell``, marked as a lower bound if a finite run of its arms is at the cap: its loss may be any larger
    number."""
    at_cap = any(
        loss >= cap_of(key) and not diverged
        for arm in arms
        if arm is not None
        for loss, diverged in zip(fresh.runs[arm]["losses"][key], fresh.runs[arm]["diverged"], strict=True)
    )
    return replace(cell, text=f"{AT_LEAST} {cell.shown}") if at_cap and cell.value is not None else cell


def _cells_at(record: dict, seconds: float, metric: str) -> Iterator[Cell]:
    """The cells of one loss after some seconds; for a loss with an oracle also over the oracle's."""
    fresh, (key, factor) = _Fresh(record, seconds), SOURCES[metric]
    losses, oracles, random = fresh.losses(key), record["oracles"].get(key), record["random"]
    best = best_of(losses, record["finalists"][key])
    below = {f"{metric}_regret": [best]}
    common = {"model": record["model"], "sampler": record["sampler"], "detail": after(seconds)}

    def over(name: str, arms: Sequence[int | None], *, same_tunings: bool = True, **whose: object) -> Cell:
        """The mean loss of ``arms`` over that of the arms ``below``."""
        cell, counts = Cell(**common | whose, metric=name), fresh.counts(arms)
        if counts["finite"] and fresh.are_at_cap(below[name], key):
            return replace(cell, missing=AT_CAP, **counts)
        above, smallest = (chosen_losses(losses, some, key) for some in (arms, below[name]))
        estimate = ratio(above, smallest, same_tunings=same_tunings)
        return _at_least(replace(cell, **_shown(estimate, counts, arms)), fresh, arms, key)

    if oracles is not None:
        yield over(f"{metric}_regret", oracles, tuner="oracle")
        below = {f"{metric}_over_oracle": oracles} | below
    for chosen in record["chosen"]:
        for name in below:
            yield over(name, chosen["arms"], **identity({**record, **chosen}))
    finalist = ratio(factor * losses[:, [best]], np.ones((len(losses), 1)))
    shown = _shown(finalist, fresh.counts([best]), [best])
    yield Cell(**common, tuner="finalist", metric=metric, **shown)
    for name, arms in below.items():
        if random:
            yield over(name, random, same_tunings=False, tuner="random")
        if finite(record["frozen"].get(key)) is not None:
            cell = Cell(**common, tuner="frozen", metric=name, missing=AT_CAP)
            frozen = over_loss(record["frozen"][key], chosen_losses(losses, arms, key))
            known = not fresh.are_at_cap(arms, key)
            yield replace(cell, value=frozen.value, se=frozen.se, finite=1) if known else cell


def regret_cells(found: Sequence[dict], doubts: Set[tuple[str, str]] = frozenset()) -> list[Cell]:
    """For each record's tuners, seconds and losses: the mean loss of the chosen arms over the smallest mean loss of the
    finalists, for losses with an oracle also over the oracle's mean loss; and the arms for comparison. No numbers if
    the reference is not trusted, or if the (model, metric) is among the ``doubts`` (`trust.doubted`)."""
    cells = []
    for record in found:
        own = []
        for seconds in seconds_of(record):
            for metric in losses_of(record):
                of_loss = _cells_at(record, seconds, metric)
                if record["trusted"] is False or (record["model"], metric) in doubts:
                    nothing = {"value": None, "se": None, "text": None, "missing": NOT_TRUSTED}
                    of_loss = (replace(cell, **nothing) for cell in of_loss)
                own += of_loss
        tuners = {chosen["tuner"] for chosen in record["chosen"]}
        of_tuners = [cell for cell in own if cell.tuner in tuners]
        cells += mark_best(of_tuners) if can_be_marked([record]) else of_tuners
        cells += [cell for cell in own if cell.tuner not in tuners]
    return cells


def runs_said(records: Sequence[dict]) -> str:
    """How many tuning runs and fresh replicates are behind the regret of a model."""
    chosen = [one for record in records for one in record["chosen"]]
    tunings = tuning_runs_said((one["tuner"], len(one["arms"])) for one in chosen)
    return f"{tunings}, {counted(fresh_replicates(records), 'fresh replicate')}"


def tuning_runs(records: Sequence[dict]) -> int:
    """Tuning runs of the tuner that has the most."""
    return max(len(chosen["arms"]) for record in records for chosen in record["chosen"])


def fresh_replicates(records: Sequence[dict]) -> int:
    """Fresh runs of each arm."""
    return max(len(run["diverged"]) for record in records for run in record["runs"])


def can_be_marked(records: Sequence[dict]) -> bool:
    """Whether a best tuner may be claimed: one tuning run leaves out how much choices vary, and the error of few fresh
    replicates is itself uncertain."""
    return tuning_runs(records) > 1 and fresh_replicates(records) >= FEWEST_REPLICATES


def cap_said(losses: Iterable[str]) -> str:
    """The cap of these losses, with those that differ from the usual one by name."""
    usual = cap_of("")
    others = {METRICS[m].label: cap_of(SOURCES[m][0]) for m in losses if cap_of(SOURCES[m][0]) != usual}
    said = "; ".join(f"{name}: {cap:g}" for name, cap in others.items())
    return f"{usual:g}{f' ({said})' if said else ''}"


def _design(records: Sequence[dict]) -> str:
    screen = records[0]["screen"]
    arms = dict.fromkeys(f"{n(record['screen']['n_arms'] for record in records):,}" for n in (min, max))
    return (
        f"{runs_said(records)}; a screen of {' to '.join(arms)} arms, {counted(screen['replicates'], 'replicate')} of "
        f"{screen['seconds']:g} s"
    )


def regret(records: Records) -> Table:
    """How much worse a tuner's arm is than the best finalist of its grid."""
    found, not_trusted = need(records, "regret", "regret"), doubted(records, "regret")
    settings = need(records, "settings", "regret")
    models = in_order((record["model"] for record in found), MODELS)
    of_models = {record["model"]: losses_of(record) for record in found}
    losses = list(dict.fromkeys(metric for model in models for metric in of_models[model]))
    cells = _without_repeated_dashes(regret_cells(found, not_trusted))
    return lay_out(
        _headline_first(cells, of_models.values()),
        name="regret",
        title=artifact("regret").title,
        caption="Ratios of mean losses of arms, in fresh runs that were not used to choose them; ± one standard "
        "error, from replicates and tuning runs together; with one tuning run it leaves out how much choices "
        f"vary. {by_model(found, _design)}; MAMBA and the "
        f"oracle have {budgets_said(settings, models)}.\nOver the oracle's, the headline: mean loss of the "
        "arms that a tuner chose over the mean loss of the oracle's arms. The oracle runs the race of "
        f"MAMBA but sees the true loss of its own draws{oracles_said(found)}. Regret: the same "
        "over the smallest mean loss of the finalists, the best arms of the screen; the row “Best finalist” has "
        "this loss itself. Random arm: the mean over some arms drawn at random from those that stayed finite in "
        "the screen. Frozen chain: stays at the MAP, exact. A ratio below 1: the arm is better than every "
        "finalist, or than "
        "the oracle's arm.\nA loss above the cap counts as the cap, "
        f"{cap_said(losses)} (the loss itself, not in hundredths): “{AT_LEAST}” marks such cells. A run that "
        "diverged and a tuning run without an arm also count as the cap: “(k/n)”: k of the n runs stayed "
        "finite, and the cell is never in bold; “diverged”: none did. Bold: best of a sampler, if every other "
        f"that stayed finite is more than two standard errors of the difference away; {UNMARKED}. The same "
        "choices are marked together. 1.00 without an error: the arms are the same ones."
        f"{unknown_said(cells)}{doubts(found, not_trusted)}{left_out(records, found)}\n{BIASES}"
        f"\n{meanings(losses)}.{reference_said(records, 'regret', of_models)}{diverged_said(found)}",
        rows=("detail", "tuner", "metric"),
        columns=("sampler",),
        stub={"detail": "Runs"},
    )


def _without_repeated_dashes(cells: Sequence[Cell]) -> list[Cell]:
    """For a model whose reference is not trusted, only the headline of its tuners, which says so."""
    tuners = {cell.tuner for cell in cells} - {"oracle", "finalist", "random", "frozen"}
    return [
        cell
        for cell in cells
        if cell.missing != NOT_TRUSTED or (cell.metric.endswith("_over_oracle") and cell.tuner in tuners)
    ]


def _headline_first(cells: Sequence[Cell], losses: Iterable[Sequence[str]]) -> list[Cell]:
    """By the rank of their loss, then by the seconds: metrics and seconds stand in the order in which they come."""
    ranks: dict[str, int] = {}
    for rank, metric in (pair for of_model in losses for pair in enumerate(of_model)):
        # Regret over the oracle comes before the other columns of its loss, and the main loss comes first.
        ranks |= {f"{metric}_over_oracle": rank - 0.5, f"{metric}_regret": rank, metric: rank}
    return sorted(cells, key=lambda cell: (ranks[cell.metric], float(cell.detail.split()[1])))
