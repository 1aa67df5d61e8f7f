"""Regret: how much worse a tuner's arm is than the best arm of its grid, with arms for comparison."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from sgtune.axes import named
from sgtune.study.artifacts.labels import METRICS, MODELS, SAMPLERS, in_order, label
from sgtune.study.artifacts.layout import (
    DIVERGED,
    FEWEST_REPLICATES,
    NO_ARM,
    NOT_TRUSTED,
    Cell,
    Table,
    lay_out,
    mark_best,
)
from sgtune.study.artifacts.means import SOURCES, identity, metric_of
from sgtune.study.artifacts.records import Records, finite, need
from sgtune.study.artifacts.regret_estimates import Estimate, best_of, chosen_losses, over_loss, ratio
from sgtune.study.artifacts.regret_remarks import doubts, left_out, oracles_said
from sgtune.study.artifacts.remarks import (
    budgets_said,
    by_model,
    counted,
    meanings,
    reference_said,
    tuning_runs_said,
)
from sgtune.study.artifacts.studies import artifact
from sgtune.study.catalogue import cap_of

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
    losses, oracles = fresh.losses(key), record["oracles"].get(key)
    best = best_of(losses, record["finalists"][key])
    below = {f"{metric}_regret": (losses[:, [best]], 1.0)}
    common = {"model": record["model"], "sampler": record["sampler"], "detail": after(seconds)}
    if oracles is not None:
        of_oracle = chosen_losses(losses, oracles, key)
        regret_of_oracle = ratio(of_oracle, losses[:, [best]])
        below = {f"{metric}_over_oracle": (of_oracle, regret_of_oracle.value)} | below
        shown = _shown(regret_of_oracle, fresh.counts(oracles), oracles)
        yield Cell(**common, tuner="oracle", metric=f"{metric}_regret", **shown)
    for chosen in record["chosen"]:
        own, arms = identity({**record, **chosen}) | common, chosen["arms"]
        for name, (smallest, _) in below.items():
            estimate = ratio(chosen_losses(losses, arms, key), smallest)
            cell = Cell(**own, metric=name, **_shown(estimate, fresh.counts(arms), arms))
            yield _at_least(cell, fresh, arms, key)
    finalist = ratio(factor * losses[:, [best]], np.ones((len(losses), 1)))
    shown = _shown(finalist, fresh.counts([best]), [best])
    yield Cell(**common, tuner="finalist", metric=metric, **shown)
    for name, (smallest, _) in below.items():
        random = record["random"]
        if random:
            estimate = ratio(chosen_losses(losses, random, key), smallest)
            shown = _shown(estimate, fresh.counts(random), random)
            yield _at_least(Cell(**common, tuner="random", metric=name, **shown), fresh, random, key)
        if finite(record["frozen"].get(key)) is not None:
            frozen = over_loss(record["frozen"][key], smallest)
            yield Cell(**common, tuner="frozen", metric=name, value=frozen.value, se=frozen.se)


def regret_cells(found: Sequence[dict]) -> list[Cell]:
    """For each record's tuners, seconds and losses: the mean loss of the chosen arms over the smallest mean loss of the
    finalists, for losses with an oracle also over the oracle's mean loss; and the arms for comparison. No numbers if
    the reference is not trusted."""
    cells = []
    for record in found:
        own = [
            cell
            for seconds in seconds_of(record)
            for metric in losses_of(record)
            for cell in _cells_at(record, seconds, metric)
        ]
        if record["trusted"] is False:
            own = [replace(cell, value=None, se=None, missing=NOT_TRUSTED) for cell in own]
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


def _diverged(found: Sequence[dict]) -> str:
    """The arms, of those chosen and of the finalists, that diverged in a fresh run, by name."""
    said = []
    models, samplers = (list(dict.fromkeys(record[key] for record in found)) for key in ("model", "sampler"))
    places = [*in_order(models, MODELS), *in_order(samplers, SAMPLERS)]
    for record in sorted(found, key=lambda one: (places.index(one["model"]), places.index(one["sampler"]))):
        lost: dict[int, int] = {}
        for run in record["runs"]:
            lost[run["arm"]] = max(lost.get(run["arm"], 0), sum(run["diverged"]))
        n = len(record["runs"][0]["diverged"])
        arms = [f"{named(record['arms'][arm])} ({k} of {n})" for arm, k in lost.items() if k]
        if arms:
            said.append(
                f"{label(record['model'], MODELS)}, {label(record['sampler'], SAMPLERS)}: {', '.join(arms)}"
            )
    return f"\nDiverged in fresh runs: {'; '.join(said)}." if said else ""


def regret(records: Records) -> Table:
    """How much worse a tuner's arm is than the best arm of its grid."""
    found = need(records, "regret", "regret")
    settings = need(records, "settings", "regret")
    models = in_order((record["model"] for record in found), MODELS)
    of_models = {record["model"]: losses_of(record) for record in found}
    losses = list(dict.fromkeys(metric for model in models for metric in of_models[model]))
    return lay_out(
        _headline_first(_without_repeated_dashes(regret_cells(found)), of_models.values()),
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
        f"is more than two standard errors of the difference away; {UNMARKED}. The same choices are marked "
        f"together.{doubts(found)}{left_out(records, found)}\nThree biases of regret remain: the smallest of the "
        "finalists' noisy means is too small; among arms that are nearly as good, the truly best one has a regret of "
        "1.06 to 1.11 (simulated); and the reference's own error is in every loss, which moves ratios of small "
        f"losses towards 1.\n{meanings(losses)}.{reference_said(records, 'regret', of_models)}{_diverged(found)}",
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
