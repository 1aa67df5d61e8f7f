"""Regret in short: one number for each tuner and model, the mean over the samplers."""

from collections.abc import Iterator, Sequence, Set
from dataclasses import replace
from itertools import chain
from math import sqrt

from sgtune.study.mamba.regret import (
    AT_LEAST,
    UNMARKED,
    after,
    can_be_marked,
    cap_said,
    losses_of,
    regret_cells,
    runs_said,
    seconds_of,
)
from sgtune.study.mamba.regret_remarks import doubts, left_out, oracles_said
from sgtune.study.report.artifacts import artifact
from sgtune.study.report.labels import METRICS, MODELS, TUNERS, in_order, label
from sgtune.study.report.layout import (
    AT_CAP,
    DIVERGED,
    NOT_TRUSTED,
    Cell,
    Table,
    lay_out,
    mark_best,
)
from sgtune.study.report.means import SOURCES
from sgtune.study.report.records import Records, need
from sgtune.study.report.remarks import by_model, reference_said
from sgtune.study.report.trust import doubted

__all__ = ["headline"]


def headline(records: Records) -> Table:
    """The mean loss of each tuner's arms over the mean loss of the oracle's arms, mean over samplers.

    A column for each model, or for each of its losses that has an oracle if a model has several.
    """
    found = need(records, "regret", "headline")
    models = in_order((record["model"] for record in found), MODELS)
    own = {model: [record for record in found if record["model"] == model] for model in models}
    losses = {model: _losses_with_oracle(own[model][0]) for model in models}
    not_trusted = doubted(records, "headline") & {(model, loss) for model in models for loss in losses[model]}
    said = ", ".join(
        f"{' and '.join(map(_loss, metrics))} ({label(model, MODELS)})" for model, metrics in losses.items()
    )
    several = any(len(metrics) > 1 for metrics in losses.values())
    cells = []
    for model in models:
        for metric in losses[model]:
            of_loss = list(_cells(own[model], not_trusted, metric, _loss(metric) if several else ""))
            cells += mark_best(of_loss) if can_be_marked(own[model]) else of_loss
    return lay_out(
        cells,
        name="headline",
        title=artifact("headline").title,
        caption="Mean loss, in fresh runs, of the arms that a tuner chose over the mean loss of an oracle's arms; mean "
        "over the samplers; ± one standard error. The oracle runs the race of MAMBA but sees the true loss "
        f"of its own draws{oracles_said(found)}. 1: as good as the oracle. The loss: {said}. "
        f"Judged {by_model(found, _runs_said)}. "
        "Seconds are steps at their measured cost, on which everything is compared; the table "
        f"“{artifact('clocks').title}” has runs by the wall clock. "
        "“(k/n)”: mean of k of the n samplers; for the others no run of the tuner's arms stayed finite, or one of the "
        "oracle's did not stay below the cap. "
        f"“{AT_LEAST}”: a sampler's run diverged or is at the cap, {cap_said(chain(*losses.values()))}, so the mean is "
        "a lower bound. 1.00 without an error: the oracle's arms. A tuner with a smaller grid is for the samplers that "
        "have one. Bold: the best of a "
        "model, if every other with a standard error is more than two standard errors of the difference away; "
        f"{UNMARKED}.{doubts(found, not_trusted)}{left_out(records, found)}"
        f"{reference_said(records, 'headline', losses)}",
        rows=("tuner",),
        columns=("model", "detail") if several else ("model",),
    )


def _losses_with_oracle(record: dict) -> list[str]:
    """Their metrics, the headline first; the headline if it has none, either."""
    losses = losses_of(record)
    return [metric for metric in losses if SOURCES[metric][0] in record["oracles"]] or losses[:1]


def _loss(metric: str) -> str:
    return METRICS[f"{metric}_regret"].label.removesuffix(", regret")


def _runs_said(found: Sequence[dict]) -> str:
    longest = max(seconds for record in found for seconds in seconds_of(record))
    return f"{after(longest)}, {runs_said(found)}"


def _cells(
    found: Sequence[dict], not_trusted: Set[tuple[str, str]], metric: str, detail: str
) -> Iterator[Cell]:
    longest = after(max(seconds for record in found for seconds in seconds_of(record)))
    of_loss = [
        cell
        for cell in regret_cells(found, not_trusted)
        if (cell.metric, cell.detail) == (f"{metric}_over_oracle", longest)
    ]
    for tuner in in_order((cell.tuner for cell in of_loss), TUNERS):
        cells = [cell for cell in of_loss if cell.tuner == tuner]
        known = [cell for cell in cells if cell.value is not None]
        about = {
            "model": found[0]["model"],
            "sampler": "",
            "tuner": tuner,
            "metric": "over_oracle",
            "detail": detail,
        }
        about |= {"at_test_set": any(cell.at_test_set for cell in cells)}
        if not known:
            reasons = {cell.missing for cell in cells}
            missing = next((reason for reason in (NOT_TRUSTED, AT_CAP) if reason in reasons), DIVERGED)
            yield Cell(**about, missing=missing)
            continue
        # Samplers are fixed, and each has its own runs.
        errors = [cell.se for cell in known]
        se = None if None in errors else sqrt(sum(error**2 for error in errors)) / len(known)
        value = sum(cell.value for cell in known) / len(known)
        mean = Cell(**about, value=value, se=se, finite=len(known), replicates=len(cells))
        if any(cell.text is not None or cell.finite < cell.replicates for cell in known):
            mean = replace(mean, text=f"{AT_LEAST} {replace(mean, se=None).shown}", se=None)
        yield mean
