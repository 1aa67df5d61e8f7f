"""Regret: how much worse a tuner's arm is than the oracle's and than the best finalist of its grid; the table of all
samplers, and the short one of their means."""

from collections.abc import Iterator, Sequence, Set
from dataclasses import replace
from math import sqrt

from sgtune.study.mamba.reference import doubted
from sgtune.study.report.labels import COMPARED_ARMS, METRICS, MODELS, TUNERS, in_order
from sgtune.study.report.means import (
    FEWEST_REPLICATES,
    SOURCES,
    FreshRuns,
    at_least,
    best_of,
    identity,
    is_of_one_choice,
    mark_best,
    metric_of,
)
from sgtune.study.report.records import Records, finite, required
from sgtune.study.report.table import AT_CAP, DIVERGED, NO_ARM, NOT_TRUSTED, Cell


def judged_by(record: dict) -> list[str]:
    """The metrics of the losses that a record's tuners are judged by, the main one first."""
    return [metric_of(key) for key in record["losses"]]


def seconds_of(records: Sequence[dict]) -> list[float]:
    """The seconds after which their arms were judged, ascending."""
    return sorted({run["seconds"] for record in records for run in record["runs"]})


def after(seconds: float) -> str:
    """The detail of cells of runs of this many seconds."""
    return f"after {seconds:g} s"


def _cells_at(record: dict, seconds: float, metric: str) -> Iterator[Cell]:
    """The cells of one loss after some seconds; for a loss with an oracle also over the oracle's."""
    key = SOURCES[metric][0]
    fresh, oracles = FreshRuns(record, seconds, key), record["oracles"].get(key)
    frozen = finite(record["frozen"].get(key))
    best = best_of(fresh.losses, record["finalists"][key])
    below = {f"{metric}_regret": [best]}
    common = {"model": record["model"], "sampler": record["sampler"], "detail": after(seconds)}
    if oracles is not None:
        yield fresh.over(common | {"tuner": "oracle", "metric": f"{metric}_regret"}, oracles, [best])
        below = {f"{metric}_over_oracle": oracles} | below
    for chosen in record["chosen"]:
        for name, arms in below.items():
            about = common | identity({**record, **chosen}) | {"metric": name}
            yield fresh.over(about, chosen["arms"], arms)
    yield fresh.alone(common | {"tuner": "finalist"}, best)
    for name, arms in below.items():
        about = common | {"metric": name}
        if record["random"]:
            yield fresh.over(about | {"tuner": "random"}, record["random"], arms, same_tunings=False)
        if frozen is not None:
            yield fresh.frozen(about, frozen, arms)


def regret_cells(found: Sequence[dict], doubts: Set[tuple[str, str]] = frozenset()) -> list[Cell]:
    """For each record's tuners, seconds and losses: the mean loss of the chosen arms over the smallest mean loss of the
    finalists, for losses with an oracle also over the oracle's mean loss; and the arms for comparison. No numbers if
    the reference is not trusted, or if the (model, metric) is among the ``doubts`` (`reference.doubted`)."""
    cells = []
    for record in found:
        own = []
        for seconds in seconds_of([record]):
            for metric in judged_by(record):
                of_loss = _cells_at(record, seconds, metric)
                if record["trusted"] is False or (record["model"], metric) in doubts:
                    nothing = {"value": None, "se": None, "text": None, "missing": NOT_TRUSTED}
                    of_loss = (replace(cell, **nothing) for cell in of_loss)
                own += of_loss
        cells += _marked(own, [record])
    return cells


def over_oracle(found: Sequence[dict], doubts: Set[tuple[str, str]], metric: str) -> list[Cell]:
    """The `regret_cells` of one loss over the oracle's, after the longest runs."""
    which = (f"{metric}_over_oracle", after(seconds_of(found)[-1]))
    return [cell for cell in regret_cells(found, doubts) if (cell.metric, cell.detail) == which]


def _marked(cells: Sequence[Cell], found: Sequence[dict]) -> list[Cell]:
    """The cells of the tuners of ``found``, the best marked where one may be claimed, and then the others. One tuning
    run leaves out how much choices vary, and the error of few fresh replicates is itself uncertain."""
    of_tuners = [cell for cell in cells if cell.tuner not in COMPARED_ARMS]
    others = [cell for cell in cells if cell.tuner in COMPARED_ARMS]
    once = any(is_of_one_choice(chosen) for record in found for chosen in record["chosen"])
    replicates = max(len(run["diverged"]) for record in found for run in record["runs"])
    can_be_marked = not once and replicates >= FEWEST_REPLICATES
    return [*(mark_best(of_tuners) if can_be_marked else of_tuners), *others]


def regret(records: Records) -> list[Cell]:
    """The table of all samplers, seconds and losses. For a model whose reference is not trusted it has only its tuners'
    cells over the oracle's, which say so."""
    found = required(records, "regret")
    cells = [
        cell
        for cell in regret_cells(found, doubted(records))
        if cell.missing != NOT_TRUSTED
        or (cell.metric.endswith("_over_oracle") and cell.tuner not in COMPARED_ARMS)
    ]
    # Metrics and seconds stand in the order in which they come: by the rank of their loss, then by the seconds.
    ranks: dict[str, float] = {}
    for record in found:
        for rank, metric in enumerate(judged_by(record)):
            ranks |= {f"{metric}_over_oracle": rank - 0.5, f"{metric}_regret": rank, metric: rank}
    return sorted(cells, key=lambda cell: (ranks[cell.metric], float(cell.detail.split()[1])))


def headline(records: Records) -> list[Cell]:
    """The mean loss of each tuner's arms over the mean loss of the oracle's arms, mean over samplers, for each loss
    that has an oracle."""
    found, doubts = required(records, "regret"), doubted(records)
    cells = []
    for model in in_order((record["model"] for record in found), MODELS):
        own = [record for record in found if record["model"] == model]
        losses = judged_by(own[0])
        # The main loss if none has an oracle.
        for metric in [one for one in losses if SOURCES[one][0] in own[0]["oracles"]] or losses[:1]:
            cells += _marked(list(_means(own, doubts, metric)), own)
    return cells


def _means(found: Sequence[dict], doubts: Set[tuple[str, str]], metric: str) -> Iterator[Cell]:
    """Of each tuner the mean over the samplers for which its number is known, after the longest runs; a lower bound
    where one of these is, or all runs of another sampler diverged."""
    of_loss = over_oracle(found, doubts, metric)
    detail = METRICS[f"{metric}_regret"].label.removesuffix(", regret")
    for tuner in in_order((cell.tuner for cell in of_loss), TUNERS):
        cells = [cell for cell in of_loss if cell.tuner == tuner]
        known = [cell for cell in cells if cell.value is not None]
        at_test_set = any(cell.at_test_set for cell in cells)
        about = {"model": found[0]["model"], "sampler": "", "tuner": tuner, "metric": "over_oracle"}
        about |= {"detail": detail, "at_test_set": at_test_set}
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
        is_lost = {DIVERGED, NO_ARM} & {cell.missing for cell in cells if cell.value is None}
        if is_lost or any(cell.text is not None for cell in known):
            mean = at_least(replace(mean, se=None))
        yield mean
